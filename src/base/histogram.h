/* histogram.h - latencies in nanoseconds, from which percentiles are read, in fixed memory. */
#ifndef MR_HISTOGRAM_H
#define MR_HISTOGRAM_H

#include <stdint.h>

#define MR_HISTOGRAM_BINS (58 * 128)

struct mr_histogram { /* all zero = empty */
    uint64_t n, max;
    uint64_t bin[MR_HISTOGRAM_BINS];
};

void mr_histogram_add(struct mr_histogram *h, uint64_t value);
void mr_histogram_merge(struct mr_histogram *into, const struct mr_histogram *from);
/* The percentile `share` (0..1, percentile.h) of the entries, or up to 1/128 more; 0 when empty. */
uint64_t mr_histogram_at(const struct mr_histogram *h, double share);

#endif
