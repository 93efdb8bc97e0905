/* test_histogram.c - percentiles against a sorted copy of the same values. */
#include "histogram.h"

#include "draw.h"
#include "percentile.h"
#include "unit.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* By definition: the first of n sorted values of which `permille` of them are not larger. */
static size_t naive_index(unsigned permille, size_t n)
{
    size_t i = 0;
    while ((i + 1) * 1000 < (size_t)permille * n)
        i++;
    return i;
}

static void a_percentile_is_one_of_the_values_also_of_few(void **state)
{
    for (size_t n = 1; n <= 300; n++)
        for (unsigned permille = 0; permille <= 1000; permille++)
            if (mr_percentile_index(permille / 1000.0, n) != naive_index(permille, n))
                fail_msg("%u permille of %zu: %llu", permille, n,
                         (unsigned long long)mr_percentile_index(permille / 1000.0, n));
    assert_int_equal(mr_percentile_index(0.5, 2), 0);
    assert_int_equal(mr_percentile_index(0.99, 2), 1);
    assert_true(mr_percentile_index(0.999, 2000000000) == 1997999999);
}

static void percentiles_of_two_values(void **state)
{
    struct mr_histogram h = {0};
    mr_histogram_add(&h, 1000);
    mr_histogram_add(&h, 1000000);
    assert_in_range(mr_histogram_at(&h, 0.5), 1000, 1007);
    assert_int_equal(mr_histogram_at(&h, 0.99), 1000000);
}

/* The answer is never below the true value, and at most 1/128 above it. */
static void check_percentiles(const struct mr_histogram *h, uint64_t *values, size_t n)
{
    static const double shares[] = {0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1};
    qsort(values, n, sizeof *values, by_value);
    for (size_t k = 0; k < ARRAY_LEN(shares); k++) {
        uint64_t truth = values[naive_index((unsigned)(shares[k] * 1000 + 0.5), n)];
        uint64_t answer = mr_histogram_at(h, shares[k]);
        if (answer < truth || answer - truth > truth / 128)
            fail_msg("share %g: %llu instead of %llu", shares[k], (unsigned long long)answer,
                     (unsigned long long)truth);
    }
}

enum { N = 20000 };

static void percentiles_are_within_a_hundredth(void **state)
{
    uint64_t *values = malloc(N * sizeof *values);
    assert_non_null(values);
    for (unsigned bits = 1; bits <= 64; bits += 3) {
        struct mr_histogram h = {0};
        for (size_t i = 0; i < N; i++) {
            values[i] = mr_mix(i + 1) >> (64 - bits);
            mr_histogram_add(&h, values[i]);
        }
        assert_int_equal(h.n, N);
        check_percentiles(&h, values, N);
    }
    free(values);
}

static void a_long_tail_is_seen(void **state)
{
    uint64_t *values = malloc(N * sizeof *values);
    assert_non_null(values);
    struct mr_histogram h = {0};
    for (size_t i = 0; i < N; i++) {
        unsigned shift = (unsigned)mr_below(mr_mix(i + 77), 50);
        values[i] = (uint64_t)1000 << (shift < 40 ? 0 : shift - 40);
        mr_histogram_add(&h, values[i]);
    }
    check_percentiles(&h, values, N);
    free(values);
}

static void nothing_has_no_percentiles(void **state)
{
    struct mr_histogram h = {0};
    assert_int_equal(mr_histogram_at(&h, 0), 0);
    assert_int_equal(mr_histogram_at(&h, 0.5), 0);
    assert_int_equal(mr_histogram_at(&h, 1), 0);
}

static void one_value_is_every_percentile(void **state)
{
    static const uint64_t values[] = {
        0, 1, 127, 128, 129, 255, 256, 1000003, UINT64_MAX - 1, UINT64_MAX};
    for (size_t k = 0; k < ARRAY_LEN(values); k++) {
        struct mr_histogram h = {0};
        mr_histogram_add(&h, values[k]);
        for (double share = 0; share <= 1; share += 0.25)
            assert_true(mr_histogram_at(&h, share) == values[k]);
        assert_true(h.max == values[k]);
    }
}

static void merging_equals_adding(void **state)
{
    struct mr_histogram *h = calloc(3, sizeof *h);
    assert_non_null(h);
    for (uint64_t i = 0; i < N; i++) {
        uint64_t v = mr_mix(i) >> (i % 60);
        mr_histogram_add(&h[i % 2], v);
        mr_histogram_add(&h[2], v);
    }
    mr_histogram_merge(&h[0], &h[1]);
    assert_memory_equal(&h[0], &h[2], sizeof h[0]);
    free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_percentile_is_one_of_the_values_also_of_few),
        cmocka_unit_test(percentiles_of_two_values),
        cmocka_unit_test(percentiles_are_within_a_hundredth),
        cmocka_unit_test(a_long_tail_is_seen),
        cmocka_unit_test(nothing_has_no_percentiles),
        cmocka_unit_test(one_value_is_every_percentile),
        cmocka_unit_test(merging_equals_adding),
    };
    return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
