/* intervals.c - see intervals.h.
 *
 * The arithmetic of TimeLogger: what a component took is the length of the union of its intervals,
 * so ten reads at the same time count once, and its bandwidth is bytes / that length.  What two
 * components have in common is the length of the intersection of their unions. */
#include "intervals.h"

#include <stdlib.h>

static int by_begin(const void *a, const void *b)
{
    const struct mr_interval *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

size_t mr_intervals_merge(struct mr_interval *v, size_t n)
{
    size_t kept = 0;
    qsort(v, n, sizeof *v, by_begin);
    for (size_t i = 0; i < n; i++) {
        if (v[i].end <= v[i].begin)
            continue;
        if (!kept || v[i].begin > v[kept - 1].end)
            v[kept++] = v[i];
        else if (v[i].end > v[kept - 1].end)
            v[kept - 1].end = v[i].end;
    }
    return kept;
}

/* Differences of int64_t may not fit into one; as uint64_t they do. */
static uint64_t length(int64_t begin, int64_t end)
{
    return end > begin ? (uint64_t)end - (uint64_t)begin : 0;
}

uint64_t mr_intervals_length(const struct mr_interval *v, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += length(v[i].begin, v[i].end);
    return sum;
}

/* First interval that ends after `at`. */
static size_t first_after(const struct mr_interval *v, size_t n, int64_t at)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (v[mid].end > at)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

uint64_t mr_intervals_overlap(const struct mr_interval *a, size_t n_a, const struct mr_interval *b,
                              size_t n_b)
{
    uint64_t sum = 0;
    if (!n_a || !n_b)
        return 0;
    size_t i = first_after(a, n_a, b[0].begin), j = first_after(b, n_b, a[0].begin);
    while (i < n_a && j < n_b) {
        int64_t begin = a[i].begin > b[j].begin ? a[i].begin : b[j].begin;
        int64_t end = a[i].end < b[j].end ? a[i].end : b[j].end;
        sum += length(begin, end);
        if (a[i].end < b[j].end)
            i++;
        else
            j++;
    }
    return sum;
}
