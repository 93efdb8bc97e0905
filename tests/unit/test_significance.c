/* test_significance.c - differences by chance, and others.
 *
 * Pairs of identical studies are drawn by seed: points of several storages, each with a spread of
 * its own, a few runs a point.  A page of such a pair should have no mark in 95 of 100 cases. */
#include "unit.h"

#include "draw.h"
#include "significance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PAIRS    400
#define STORAGES 11
#define MOST     8 /* points of a storage, and runs */

/* Spread of runs (relative) and number of points; a real disk and its decoding come first. */
static const struct {
    double sd;
    unsigned n;
} storages[STORAGES] = {{0.05, 8}, {0.05, 8}, {0.007, 8}, {0.01, 8}, {0.01, 4}, {0.01, 4},
                        {0.02, 4}, {0.02, 4}, {0.02, 4},  {0.02, 4}, {0.03, 8}};

static uint64_t n_drawn;

static double uniform(void)
{
    return ((double)(mr_mix(++n_drawn * 0x9e3779b97f4a7c15u) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *x, unsigned n)
{
    double v[MOST];
    memcpy(v, x, n * sizeof *v);
    qsort(v, n, sizeof *v, by_size);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

struct point {
    double x[2]; /* in both studies */
    struct mr_noise noise[2];
};

/* A point of a storage that is `times` as fast in the second study. */
static struct point draw_point(double sd, unsigned n_runs, double times)
{
    struct point p;
    sd *= exp(0.7 * normal()); /* one is twice as noisy as another */
    for (unsigned k = 0; k < 2; k++) {
        double run[MOST];
        for (unsigned i = 0; i < n_runs; i++)
            run[i] = exp(sd * normal()) * (k ? times : 1);
        p.x[k] = median(run, n_runs);
        p.noise[k] = mr_noise_of_runs(run, n_runs);
    }
    return p;
}

/* How many of the points of one storage are marked. */
static unsigned marks(const struct point *p, unsigned n, unsigned n_tested)
{
    unsigned marked = 0;
    for (unsigned i = 0; i < n; i++) {
        struct mr_noise alike = {0};
        for (unsigned k = 0; k < n; k++)
            for (unsigned of = 0; k != i && of < 2; of++)
                mr_noise_add(&alike, &p[k].noise[of]);
        double times = p[i].x[1] / p[i].x[0];
        times = times < 1 ? 1 / times : times;
        marked += times > 1.05 &&
                  mr_difference_p(p[i].x[0], p[i].x[1], p[i].noise, &alike) * n_tested < 0.05;
    }
    return marked;
}

/* A pair of studies with `n_runs` runs a point (0: 2 to 6); marks of the first two storages, which
 * are `times` as fast in the second one, and of all. */
static void draw_pair(unsigned n_runs, double times, unsigned *first, unsigned *all)
{
    unsigned n_tested = 0;
    *first = *all = 0;
    for (unsigned s = 0; s < STORAGES; s++)
        n_tested += storages[s].n;
    for (unsigned s = 0; s < STORAGES; s++) {
        struct point p[MOST];
        for (unsigned i = 0; i < storages[s].n; i++)
            p[i] = draw_point(storages[s].sd, n_runs ? n_runs : 2 + (unsigned)(5 * uniform()),
                              s < 2 ? times : 1);
        unsigned marked = marks(p, storages[s].n, n_tested);
        *all += marked;
        *first += s < 2 ? marked : 0;
    }
}

static void two_identical_studies_have_no_mark_in_95_of_100(void **state)
{
    (void)state;
    for (unsigned n_runs = 0; n_runs <= 6; n_runs += n_runs ? 1 : 2) {
        unsigned marked = 0;
        for (unsigned i = 0; i < PAIRS; i++) {
            unsigned first, all;
            draw_pair(n_runs, 1, &first, &all);
            marked += all > 0;
        }
        if (marked > PAIRS / 20)
            fail_msg("%u runs a point: %u of %u pairs have marks", n_runs, marked, PAIRS);
    }
}

static void large_differences_are_marked(void **state)
{
    static const struct {
        unsigned n_runs;
        double times, least; /* of the 16 points, on average */
    } row[] = {{2, 4, 0.9}, {3, 3, 0.95}, {3, 2, 0.8}, {6, 1.5, 0.85}, {0, 3, 0.9}};
    (void)state;
    for (unsigned r = 0; r < ARRAY_LEN(row); r++) {
        unsigned sum = 0;
        for (unsigned i = 0; i < PAIRS; i++) {
            unsigned first, all;
            draw_pair(row[r].n_runs, row[r].times, &first, &all);
            sum += first;
        }
        if (sum < row[r].least * 16 * PAIRS)
            fail_msg("%u runs, %g times: %u of %u points are marked", row[r].n_runs, row[r].times,
                     sum, 16 * PAIRS);
    }
}

static void students_distribution_is_as_in_the_tables(void **state)
{
    static const struct {
        double t;
        unsigned df;
        double p;
    } row[] = {{12.7062, 1, 0.05},  {636.619, 1, 0.001},  {4.30265, 2, 0.05},  {31.5991, 2, 0.001},
               {3.18245, 3, 0.05},  {12.9240, 3, 0.001},  {2.77645, 4, 0.05},  {5.95882, 6, 0.001},
               {2.22814, 10, 0.05}, {4.01500, 16, 0.001}, {2.04227, 30, 0.05}, {0, 5, 1}};
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
        double p = mr_student_p(row[i].t, row[i].df);
        if (!(fabs(p - row[i].p) < 1e-4 * row[i].p + 1e-9))
            fail_msg("t %g, %u degrees of freedom: %g", row[i].t, row[i].df, p);
        assert_true(mr_student_p(-row[i].t, row[i].df) == p);
    }
    assert_true(mr_student_p(1e300, 7) < 1e-12);
    assert_true(fabs(mr_student_p(1.95996, 4000000000u) - 0.05) < 1e-3);
    assert_true(mr_student_p(3, 0) == 1);
    assert_true(mr_student_p(NAN, 3) == 1);
}

static void what_is_not_known_is_no_difference(void **state)
{
    double one[] = {5}, two[] = {0.99, 1.01}, none[] = {0, 0}, odd[] = {-3, 1};
    struct mr_noise nothing = {0}, noise[2] = {mr_noise_of_runs(two, 2), mr_noise_of_runs(one, 1)};
    (void)state;
    assert_int_equal(noise[0].df, 1);
    assert_int_equal(noise[1].df, 0);
    assert_true(mr_difference_p(1, 100, noise, &nothing) == 1);
    assert_int_equal(mr_noise_of_runs(none, 2).df, 0);
    assert_int_equal(mr_noise_of_steps(odd, 2).df, 0);
    assert_int_equal(mr_noise_of_two(NAN).df, 0);
    noise[1] = noise[0];
    assert_true(mr_difference_p(1, 100, noise, &nothing) < 1e-4);
    assert_true(mr_difference_p(1, 1, noise, &nothing) == 1);
    assert_true(mr_difference_p(1, NAN, noise, &nothing) == 1);
    noise[0].squares = noise[1].squares = 0; /* runs that agree to the last digit */
    assert_true(mr_difference_p(1, 1, noise, &nothing) == 1);
    assert_true(mr_difference_p(1, 2, noise, &nothing) == 0);
}

static void values_around_0_are_no_more_than_0(void **state)
{
    double once[] = {0, 6, 0}, none[] = {0, 0, 0}, even[] = {5, 5}, close[] = {5, 6, 5.5, 5.2};
    double many[20] = {[7] = 50}; /* its middle half has no spread */
    (void)state;
    assert_true(mr_zero_p(once, 3) > 0.4);
    assert_true(mr_zero_p(many, 20) > 0.3);
    assert_true(mr_zero_p(none, 3) == 1);
    assert_true(mr_zero_p(close, 1) == 1);
    assert_true(mr_zero_p(close, 4) < 1e-3);
    assert_true(mr_zero_p(even, 2) == 0);
}

static void a_step_that_strays_among_many_is_passed_over(void **state)
{
    double x[16], few[] = {1, 1, 1, 30, 1, 1, 1};
    (void)state;
    for (unsigned i = 0; i < 16; i++)
        x[i] = 1 + 0.01 * (i % 4);
    struct mr_noise even = mr_noise_of_steps(x, 16);
    x[5] = 30;
    struct mr_noise stray = mr_noise_of_steps(x, 16);
    assert_true(stray.squares / stray.df <= even.squares / even.df * 1.5);
    assert_true(mr_noise_of_steps(few, 7).squares > 10); /* among few it is not */
    assert_true(even.weight == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_identical_studies_have_no_mark_in_95_of_100),
        cmocka_unit_test(large_differences_are_marked),
        cmocka_unit_test(students_distribution_is_as_in_the_tables),
        cmocka_unit_test(what_is_not_known_is_no_difference),
        cmocka_unit_test(values_around_0_are_no_more_than_0),
        cmocka_unit_test(a_step_that_strays_among_many_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
