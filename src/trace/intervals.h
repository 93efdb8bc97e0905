/* intervals.h - sets of moments as lists of intervals: union, length, overlap. */
#ifndef MR_INTERVALS_H
#define MR_INTERVALS_H

#include <stddef.h>
#include <stdint.h>

struct mr_interval { /* [begin, end); empty when end <= begin */
    int64_t begin, end;
};

/* Times of hostile traces may be anything: sums and differences saturate. */
static inline int64_t mr_time_add(int64_t a, int64_t b)
{
    int64_t r;
    return !__builtin_add_overflow(a, b, &r) ? r : b > 0 ? INT64_MAX : INT64_MIN;
}

static inline int64_t mr_time_minus(int64_t a, int64_t b)
{
    int64_t r;
    return !__builtin_sub_overflow(a, b, &r) ? r : b < 0 ? INT64_MAX : INT64_MIN;
}

/* Make the list its own union: in order, disjoint, none empty, none touching the next.  Returns how
 * many are left at the front. */
size_t mr_intervals_merge(struct mr_interval *v, size_t n);
/* Of merged lists: the length in all, */
uint64_t mr_intervals_length(const struct mr_interval *v, size_t n);
/* and the length of what two have in common. */
uint64_t mr_intervals_overlap(const struct mr_interval *a, size_t n_a, const struct mr_interval *b,
                              size_t n_b);

#endif
