/* paired.c - A B B A: whatever drifts evenly within a round (clocks, neighbours, caches) falls on
 * both equally; what jumps spoils one round, and the median does not mind. */
#include "paired.h"

#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of outer, inner, inner, outer; 0 or -1. */
static int round_of(struct mr_paired_work outer, struct mr_paired_work inner, double *s_outer,
                    double *s_inner)
{
    double o1 = outer.run(outer.arg), i1 = inner.run(inner.arg);
    double i2 = inner.run(inner.arg), o2 = outer.run(outer.arg);
    *s_outer = (o1 + o2) / 2;
    *s_inner = (i1 + i2) / 2;
    return o1 < 0 || i1 < 0 || i2 < 0 || o2 < 0 ? -1 : 0;
}

int mr_paired_compare(struct mr_paired_work a, struct mr_paired_work b, int rounds,
                      struct mr_paired_result *out)
{
    double ratio[MR_PAIRED_MAX_ROUNDS], control[MR_PAIRED_MAX_ROUNDS];
    double in_a[MR_PAIRED_MAX_ROUNDS], in_b[MR_PAIRED_MAX_ROUNDS];
    if (rounds < 9 || rounds > MR_PAIRED_MAX_ROUNDS || a.run(a.arg) < 0 || b.run(b.arg) < 0)
        return -1;
    for (int i = 0; i < rounds; i++) {
        double outer, inner;
        if (round_of(a, b, &in_a[i], &in_b[i]) || round_of(a, a, &outer, &inner))
            return -1;
        ratio[i] = in_a[i] / in_b[i];
        control[i] = outer / inner;
    }
    double *all[4] = {ratio, control, in_a, in_b};
    for (int k = 0; k < 4; k++)
        qsort(all[k], (size_t)rounds, sizeof(double), by_value);
    *out = (struct mr_paired_result){
        .seconds_a = in_a[rounds / 2],
        .seconds_b = in_b[rounds / 2],
        .ratio = ratio[rounds / 2],
        .control = control[rounds / 2],
        .spread = fmax(fabs(control[rounds / 4] - 1), fabs(control[rounds * 3 / 4] - 1))};
    return 0;
}
