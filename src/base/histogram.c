/* histogram.c - logarithmic bins with 16 steps per power of two.
 *
 * Values below 16 have a bin each.  A larger value v with its highest bit at e >= 4 goes to bin
 * (e - 3) * 16 + the four bits below the highest one, so a bin is at most 1/16 of its value wide:
 *
 *     v = 1 b3 b2 b1 b0 x x x ...     e = position of the leading 1
 *
 * Percentiles answer with the upper edge of the bin, so they never look better than they are. */
#include "histogram.h"

static unsigned bin_of(uint64_t v)
{
    if (v < 16)
        return (unsigned)v;
    unsigned e = 63u - (unsigned)__builtin_clzll(v);
    return (e - 3) * 16 + (unsigned)((v >> (e - 4)) & 15);
}

static uint64_t upper_edge(unsigned bin)
{
    if (bin < 16)
        return bin;
    unsigned e = bin / 16 + 3;
    return ((16 + (uint64_t)(bin % 16)) << (e - 4)) + ((uint64_t)1 << (e - 4)) - 1;
}

void mr_histogram_add(struct mr_histogram *h, uint64_t value)
{
    h->bin[bin_of(value)]++;
    h->n++;
    if (value > h->max)
        h->max = value;
}

void mr_histogram_merge(struct mr_histogram *into, const struct mr_histogram *from)
{
    for (unsigned i = 0; i < MR_HISTOGRAM_BINS; i++)
        into->bin[i] += from->bin[i];
    into->n += from->n;
    if (from->max > into->max)
        into->max = from->max;
}

uint64_t mr_histogram_at(const struct mr_histogram *h, double share)
{
    uint64_t want = (uint64_t)(share * (double)h->n), seen = 0;
    for (unsigned i = 0; i < MR_HISTOGRAM_BINS && h->n; i++) {
        seen += h->bin[i];
        if (seen > want || seen == h->n) {
            uint64_t edge = upper_edge(i);
            return edge < h->max ? edge : h->max;
        }
    }
    return 0;
}
