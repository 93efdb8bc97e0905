/* alternate.c - see alternate.h. */
#include "alternate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Quantile of sorted values, interpolated. */
static double quantile(const double *v, unsigned n, double q)
{
    double at = q * (n - 1);
    unsigned i = (unsigned)at;
    return i + 1 < n ? v[i] + (at - i) * (v[i + 1] - v[i]) : v[n - 1];
}

static struct ratio summarize(double *v, unsigned n)
{
    qsort(v, n, sizeof *v, by_value);
    return (struct ratio){quantile(v, n, 0.5), quantile(v, n, 0.25), quantile(v, n, 0.75)};
}

/* rate[0] ours, rate[1] and rate[2] the peer; begun with contender `first`. */
static int one_round(const struct contender *ours, const struct contender *peer, unsigned first,
                     double rate[3])
{
    for (unsigned i = 0; i < 3; i++) {
        unsigned who = (first + i) % 3;
        const struct contender *c = who ? peer : ours;
        rate[who] = c->run(c->ctx);
        if (!(rate[who] > 0)) {
            fprintf(stderr, "%s failed\n", c->name);
            return -1;
        }
    }
    return 0;
}

int alternate(const struct contender *ours, const struct contender *peer, unsigned rounds,
              struct comparison *out)
{
    double ratio[ALTERNATE_MAX_ROUNDS], control[ALTERNATE_MAX_ROUNDS];
    double a[ALTERNATE_MAX_ROUNDS], b[ALTERNATE_MAX_ROUNDS], rate[3];
    rounds = rounds < 9 ? 9 : rounds > ALTERNATE_MAX_ROUNDS ? ALTERNATE_MAX_ROUNDS : rounds;
    if (one_round(ours, peer, 0, rate)) /* warm-up */
        return -1;
    for (unsigned i = 0; i < rounds; i++) {
        if (one_round(ours, peer, i, rate))
            return -1;
        /* The two runs of the peer take turns as the one that ours is measured against. */
        double base = i % 2 ? rate[1] : rate[2], other = i % 2 ? rate[2] : rate[1];
        ratio[i] = rate[0] / base;
        control[i] = other / base;
        a[i] = rate[0];
        b[i] = base;
    }
    out->rounds = rounds;
    out->ours = summarize(a, rounds).median;
    out->peer = summarize(b, rounds).median;
    out->ratio = summarize(ratio, rounds);
    out->control = summarize(control, rounds);
    return 0;
}

void alternate_print(const char *what, const struct contender *ours, const struct contender *peer,
                     const struct comparison *c, double target)
{
    double noise = fmax(fabs(c->control.q1 - 1), fabs(c->control.q3 - 1));
    printf("%-34s %s %.4g/s, %s %.4g/s: ratio %.3f (%.3f..%.3f), A/A %.3f (%.3f..%.3f), %u rounds",
           what, ours->name, c->ours, peer->name, c->peer, c->ratio.median, c->ratio.q1,
           c->ratio.q3, c->control.median, c->control.q1, c->control.q3, c->rounds);
    if (target > 0)
        printf("; target %.2f %s", target,
               c->ratio.median >= target + noise   ? "met"
               : c->ratio.median >= target - noise ? "not distinguishable from met"
                                                   : "MISSED");
    printf("\n");
    fflush(stdout);
}
