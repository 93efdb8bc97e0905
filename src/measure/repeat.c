/* repeat.c - see repeat.h.  The study's rule: six runs, the first discarded, the median reported.
 */
#include "repeat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int mr_summarize(const double *values, unsigned n, struct mr_summary *out)
{
    *out = (struct mr_summary){.n = n};
    if (!n)
        return 0;
    double *v = malloc(n * sizeof *v);
    if (!v)
        return -ENOMEM;
    memcpy(v, values, n * sizeof *v);
    qsort(v, n, sizeof *v, by_value);
    out->median = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
    out->min = v[0];
    out->max = v[n - 1];
    out->spread = out->median > 0 ? (out->max - out->min) / out->median : 0;
    free(v);
    return 0;
}

unsigned mr_median_index(const double *values, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned below = 0, equal_before = 0;
        for (unsigned j = 0; j < n; j++) {
            below += values[j] < values[i];
            equal_before += values[j] == values[i] && j < i;
        }
        if (below + equal_before == (n - 1) / 2)
            return i;
    }
    return 0;
}

int mr_repeat(unsigned n, int (*run)(void *ctx, unsigned i), void *ctx)
{
    int r = 0;
    for (unsigned i = 0; !r && i < n; i++)
        r = run(ctx, i);
    return r;
}
