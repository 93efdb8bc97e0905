/* histogram.c - logarithmic bins with 128 steps per power of two.
 *
 * Values below 128 have a bin each.  A larger value v with its highest bit at e >= 7 goes to bin
 * (e - 6) * 128 + the seven bits below the highest one, so a bin is at most 1/128 of its value
 * wide:
 *
 *     v = 1 b6 b5 b4 b3 b2 b1 b0 x x x ...     e = position of the leading 1
 *
 * Percentiles answer with the upper edge of the bin, so they never look better than they are. */
#include "histogram.h"

#include "percentile.h"

#define BITS  7
#define STEPS (1u << BITS)

_Static_assert(MR_HISTOGRAM_BINS == (64 - BITS + 1) * STEPS, "a bin for every value");

static unsigned bin_of(uint64_t v)
{
    if (v < STEPS)
        return (unsigned)v;
    unsigned e = 63u - (unsigned)__builtin_clzll(v);
    return (e - BITS + 1) * STEPS + (unsigned)((v >> (e - BITS)) & (STEPS - 1));
}

static uint64_t upper_edge(unsigned bin)
{
    if (bin < STEPS)
        return bin;
    unsigned shift = bin / STEPS - 1;
    return ((STEPS + (uint64_t)(bin % STEPS)) << shift) + ((uint64_t)1 << shift) - 1;
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
    if (!h->n)
        return 0;
    uint64_t at = mr_percentile_index(share, h->n), seen = 0;
    unsigned i = 0;
    while ((seen += h->bin[i]) <= at)
        i++;
    uint64_t edge = upper_edge(i);
    return edge < h->max ? edge : h->max;
}
