/* significance.c - see significance.h.
 *
 * The logarithm of b / a is compared with its standard deviation s:
 *
 *     t = |ln(b / a)| / (s * sqrt(weight_a + weight_b))
 *
 * s comes from both points' own runs, and counts points alike as ALIKE more degrees of freedom:
 * with two runs each a point has two of its own, and by these alone a factor of 45 between
 * difference and s would be needed where a hundred points are compared.  Points of one storage do
 * not all have the same spread, so more than ALIKE would be too much trust; test_significance.c
 * shows both by simulation. */
#include "significance.h"

#include <math.h>
#include <stdlib.h>

#define ALIKE   2
#define MOST_DF 1000 /* more make no difference */
#define MANY    8    /* steps */

static double mean_of(const double *x, unsigned n)
{
    double sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += x[i];
    return n ? sum / n : 0;
}

static struct mr_noise noise_of(const double *x, unsigned n)
{
    struct mr_noise noise = {.df = n > 1 ? n - 1 : 0};
    double mean = mean_of(x, n);
    if (!noise.df || !(mean > 0))
        return (struct mr_noise){0};
    for (unsigned i = 0; i < n; i++)
        noise.squares += (x[i] / mean - 1) * (x[i] / mean - 1);
    return noise;
}

/* A median strays more than a mean: by 1.35 for three runs, 1.57 at the most.  Of two it is one. */
struct mr_noise mr_noise_of_runs(const double *x, unsigned n)
{
    struct mr_noise noise = noise_of(x, n);
    noise.weight = noise.df ? (n > 2 ? 1.5 : 1.0) / n : 0;
    return noise;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The quarters of a normal distribution lie 1.349 standard deviations apart, and say about half as
 * much about it as all values would. */
static struct mr_noise noise_of_many(double *x, unsigned n)
{
    struct mr_noise noise = {.df = (n - 1) / 2};
    double mean = mean_of(x, n);
    if (!(mean > 0))
        return (struct mr_noise){0};
    qsort(x, n, sizeof *x, by_size);
    double s = (x[n - 1 - n / 4] - x[n / 4]) / mean / 1.349;
    noise.squares = noise.df * s * s;
    return noise;
}

struct mr_noise mr_noise_of_steps(double *x, unsigned n)
{
    struct mr_noise noise = n < MANY ? noise_of(x, n) : noise_of_many(x, n);
    noise.weight = noise.df ? 1 : 0;
    return noise;
}

struct mr_noise mr_noise_of_two(double times)
{
    if (!isfinite(times))
        return (struct mr_noise){0};
    return (struct mr_noise){.squares = (times - 1) * (times - 1) / 2, .df = 1, .weight = 1};
}

void mr_noise_add(struct mr_noise *to, const struct mr_noise *of)
{
    to->squares += of->squares;
    to->df += of->df;
}

/* By the sums for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4). */
double mr_student_p(double t, unsigned df)
{
    if (!df || isnan(t))
        return 1;
    if (df > MOST_DF)
        df = MOST_DF;
    double angle = atan(fabs(t) / sqrt(df)), c = cos(angle), term, sum;
    unsigned odd = df % 2;
    term = sum = odd ? c : 1;
    for (unsigned k = 2 + odd; k + 2 <= df; k += 2) {
        term *= c * c * (k - 1) / k;
        sum += term;
    }
    double inside = sin(angle) * sum;
    if (odd)
        inside = (angle + (df > 1 ? inside : 0)) * M_2_PI;
    return fmin(fmax(1 - inside, 0), 1);
}

double mr_zero_p(const double *x, unsigned n)
{
    struct mr_noise noise = noise_of(x, n); /* nothing is known of a mean that is not positive */
    return noise.df ? mr_student_p(sqrt((double)n * noise.df / noise.squares), noise.df) : 1;
}

double mr_difference_p(double a, double b, const struct mr_noise noise[2],
                       const struct mr_noise *alike)
{
    struct mr_noise own = {0};
    for (unsigned k = 0; k < 2; k++) {
        if (!noise[k].df)
            return 1;
        mr_noise_add(&own, &noise[k]);
    }
    if (alike->df) {
        unsigned more = alike->df < ALIKE ? alike->df : ALIKE;
        own.squares += more * alike->squares / alike->df;
        own.df += more;
    }
    double variance = own.squares / own.df * (noise[0].weight + noise[1].weight);
    double apart = fabs(log(b / a));
    if (!(variance > 0))
        return apart > 0 && variance == 0 ? 0 : 1;
    return mr_student_p(apart / sqrt(variance), own.df);
}
