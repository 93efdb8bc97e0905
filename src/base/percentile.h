/* percentile.h - which of n sorted values is a percentile: the one rule for all of them.
 *
 * Nearest rank: the smallest value that at least `share` of all values do not exceed.  It is one of
 * the values; of two, p50 is the smaller and p99 the larger. */
#ifndef MR_PERCENTILE_H
#define MR_PERCENTILE_H

#include <math.h>
#include <stdint.h>

/* The place, from 0, in n > 0 sorted values; share from 0 to 1. */
static inline uint64_t mr_percentile_index(double share, uint64_t n)
{
    double x = share * (double)n;
    double rank = ceil(x - x * 1e-12); /* 0.99 * 200 is a little more than 198 */
    return rank < 1 ? 0 : rank < (double)n ? (uint64_t)rank - 1 : n - 1;
}

#endif
