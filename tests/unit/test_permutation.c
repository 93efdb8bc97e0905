/* test_permutation.c - the keyed permutation is a bijection, and looks random.
 *
 * Every key is fixed, so the outcome is too: a chi-square test below either always passes or
 * always fails.  Its threshold is p = 10^-6. */
#include "permutation.h"

#include "chi_square.h"
#include "draw.h"
#include "unit.h"

#include <stdlib.h>

static uint64_t at(const struct mr_permutation *p, uint64_t i)
{
    uint64_t image = mr_permutation_at(p, i);
    assert_true(image < p->n);
    return image;
}

/* Every element is hit once. */
static void check_whole(uint64_t n, uint64_t key)
{
    struct mr_permutation p;
    mr_permutation_init(&p, n, key);
    uint64_t *seen = calloc(n / 64 + 1, sizeof *seen);
    assert_non_null(seen);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t image = mr_permutation_at(&p, i), bit = (uint64_t)1 << (image % 64);
        if (image >= n || seen[image / 64] & bit)
            fail_msg("n %llu key %llu: element %llu goes to %llu", (unsigned long long)n,
                     (unsigned long long)key, (unsigned long long)i, (unsigned long long)image);
        seen[image / 64] |= bit;
    }
    free(seen);
}

static void is_a_bijection_of_every_size_to_5000(void **state)
{
    for (uint64_t n = 1; n <= 5000; n++)
        check_whole(n, n * 31);
}

static void is_a_bijection_of_larger_sizes(void **state)
{
    static const uint64_t sizes[] = {9999,    10000,   10001,  65535,   65536,
                                     65537,   99856,   99857,  1 << 20, (1 << 20) + 1,
                                     1281167, 4198401, 999999, 1000001, 20000003};
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++)
        check_whole(sizes[k], 1000 + k);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Several stretches of a permutation that is too large to go through: no image twice. */
static void check_sampled(uint64_t n, uint64_t key)
{
    enum { STRETCHES = 8, LENGTH = 5000 };
    struct mr_permutation p;
    mr_permutation_init(&p, n, key);
    uint64_t *image = malloc(STRETCHES * LENGTH * sizeof *image);
    assert_non_null(image);
    uint64_t m = 0;
    for (uint64_t s = 0; s < STRETCHES; s++) {
        uint64_t first = s * (n / STRETCHES);
        for (uint64_t i = 0; i < LENGTH; i++)
            image[m++] = at(&p, s + 1 < STRETCHES ? first + i : n - 1 - i);
    }
    qsort(image, m, sizeof *image, by_value);
    for (uint64_t i = 1; i < m; i++)
        assert_true(image[i - 1] < image[i]);
    free(image);
}

/* The network backwards: every line undone, in the reverse order.  That it exists at all is what
 * makes the map a bijection, whatever its size. */
static uint64_t undo(uint64_t x, uint64_t of, uint64_t key, uint64_t m)
{
    uint64_t h = (of ^ key) * 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
    return (x + m - (((h >> 32) * m) >> 32)) % m;
}

static uint64_t back(const struct mr_permutation *p, uint64_t image)
{
    do {
        uint64_t row = image / p->cols, col = image % p->cols;
        for (unsigned r = p->n_keys; r; r -= 2) {
            col = undo(col, row, p->key[r - 1], p->cols);
            row = undo(row, col, p->key[r - 2], p->rows);
        }
        image = row * p->cols + col;
    } while (image >= p->n);
    return image;
}

static void can_be_undone_near_a_thousand_million(void **state)
{
    static const uint64_t sizes[] = {999950884, 999999937, 1000000000, 1000000007};
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        struct mr_permutation p;
        uint64_t n = sizes[k];
        mr_permutation_init(&p, n, k);
        for (uint64_t i = 0; i < 300000; i++) {
            uint64_t any = mr_below(mr_mix(i), n), last = n - 1 - i;
            assert_true(back(&p, at(&p, any)) == any && back(&p, at(&p, last)) == last);
            assert_true(at(&p, back(&p, any)) == any); /* nothing is left out either */
        }
    }
}

static void does_not_collide_in_huge_sizes(void **state)
{
    static const uint64_t sizes[] = {100000000,
                                     999950884,
                                     999950885,
                                     1000000000,
                                     1000000007,
                                     (uint64_t)1 << 32,
                                     4294836225,
                                     ((uint64_t)1 << 32) + 1,
                                     10000000000,
                                     (uint64_t)1 << 53,
                                     ((uint64_t)1 << 53) + 1,
                                     UINT64_C(999999999999999999),
                                     (uint64_t)1 << 62};
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++)
        for (uint64_t key = 0; key < 2; key++)
            check_sampled(sizes[k], key);
    for (uint64_t k = 0; k < 50; k++)
        check_sampled(20000000 + mr_below(mr_mix(k + 1), 1000000000 - 20000000), k);
}

static void is_the_same_for_the_same_key(void **state)
{
    struct mr_permutation p, q;
    mr_permutation_init(&p, 12345, 7);
    mr_permutation_init(&q, 12345, 7);
    for (uint64_t i = 0; i < 12345; i++)
        assert_int_equal(at(&p, i), at(&q, i));
}

static void differs_between_keys(void **state)
{
    struct mr_permutation p, q;
    mr_permutation_init(&p, 100000, 0);
    for (unsigned k = 0; k < 64; k += 4) {
        unsigned n_same = 0;
        mr_permutation_init(&q, 100000, (uint64_t)1 << k);
        for (uint64_t i = 0; i < 100000; i++)
            n_same += at(&p, i) == at(&q, i);
        assert_in_range(n_same, 0, 12); /* one is expected */
    }
}

static void check_positions(uint64_t n, uint64_t n_keys)
{
    uint64_t *count = calloc(n * n, sizeof *count);
    assert_non_null(count);
    for (uint64_t key = 0; key < n_keys; key++) {
        struct mr_permutation p;
        mr_permutation_init(&p, n, key);
        for (uint64_t i = 0; i < n; i++)
            count[i * n + at(&p, i)]++;
    }
    for (uint64_t i = 0; i < n; i++)
        if (!is_even(count + i * n, n))
            fail_msg("n %llu: images of %llu: chi-square %.1f", (unsigned long long)n,
                     (unsigned long long)i, chi_square(count + i * n, n));
    free(count);
}

static void sends_an_element_anywhere_with_equal_chance(void **state)
{
    static const uint64_t sizes[] = {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, 25, 100};
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++)
        check_positions(sizes[k], sizes[k] < 20 ? 100000 : 20000);
}

/* Where a pair goes: n * (n - 1) places. */
static void check_pairs(uint64_t n, uint64_t i, uint64_t j, uint64_t n_keys)
{
    uint64_t *count = calloc(n * n, sizeof *count), n_places = 0;
    assert_non_null(count);
    for (uint64_t key = 0; key < n_keys; key++) {
        struct mr_permutation p;
        mr_permutation_init(&p, n, key);
        count[at(&p, i) * n + at(&p, j)]++;
    }
    for (uint64_t a = 0; a < n * n; a++)
        if (a / n != a % n)
            count[n_places++] = count[a];
        else
            assert_int_equal(count[a], 0);
    if (!is_even(count, n_places))
        fail_msg("n %llu: pair %llu, %llu: chi-square %.1f over %llu places", (unsigned long long)n,
                 (unsigned long long)i, (unsigned long long)j, chi_square(count, n_places),
                 (unsigned long long)n_places);
    free(count);
}

static void sends_a_pair_anywhere_with_equal_chance(void **state)
{
    static const uint64_t sizes[] = {5, 10, 16, 63, 100, 255, 256, 257};
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        uint64_t n = sizes[k], side = 1;
        while (side * side < n)
            side++;
        check_pairs(n, 0, 1, 100000);
        check_pairs(n, n / 2, n / 2 + 1, 100000);
        check_pairs(n, 0, side, 100000);
        check_pairs(n, 1, n - 1, 100000);
    }
}

static void takes_every_order_with_equal_chance(void **state)
{
    static const uint64_t n_orders[] = {1, 1, 2, 6, 24, 120, 720};
    for (uint64_t n = 3; n <= 6; n++) {
        uint64_t count[720] = {0};
        for (uint64_t key = 0; key < 180000; key++) {
            struct mr_permutation p;
            mr_permutation_init(&p, n, key);
            uint64_t image[6], code = 0;
            for (uint64_t i = 0; i < n; i++) {
                uint64_t rank = image[i] = at(&p, i);
                for (uint64_t j = 0; j < i; j++)
                    rank -= image[j] < image[i];
                code = code * (n - i) + rank;
            }
            count[code]++;
        }
        if (!is_even(count, n_orders[n]))
            fail_msg("n %llu: chi-square %.1f over %llu orders", (unsigned long long)n,
                     chi_square(count, n_orders[n]), (unsigned long long)n_orders[n]);
    }
}

/* 1 when the number of transpositions is odd. */
static unsigned parity(const struct mr_permutation *p)
{
    unsigned char seen[128] = {0};
    unsigned odd = 0;
    for (uint64_t i = 0; i < p->n; i++) {
        unsigned len = 0;
        for (uint64_t j = i; !seen[j]; j = at(p, j), len++)
            seen[j] = 1;
        odd ^= len && len % 2 == 0;
    }
    return odd;
}

static void is_odd_as_often_as_even(void **state)
{
    static const uint64_t sizes[] = {2, 3, 4, 5, 9, 10, 15, 16, 25, 35, 49, 64, 81, 100, 121};
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        uint64_t count[2] = {0};
        for (uint64_t key = 0; key < 5000; key++) {
            struct mr_permutation p;
            mr_permutation_init(&p, sizes[k], key);
            count[parity(&p)]++;
        }
        if (chi_square(count, 2) > chi_square_quantile(2, 4.76))
            fail_msg("n %llu: %llu even, %llu odd", (unsigned long long)sizes[k],
                     (unsigned long long)count[0], (unsigned long long)count[1]);
    }
}

/* (image of i + lag) - (image of i) mod n, from one key after another. */
static void check_differences(uint64_t n, uint64_t lag, uint64_t n_keys)
{
    enum { BINS = 99 };
    uint64_t count[BINS] = {0};
    for (uint64_t key = 0; key < n_keys; key++) {
        struct mr_permutation p;
        mr_permutation_init(&p, n, key);
        for (uint64_t i = 0; i + lag < n && i < 20000; i += 2 * lag) {
            uint64_t diff = (at(&p, i + lag) + n - at(&p, i)) % n; /* 1 .. n-1 */
            assert_int_not_equal(diff, 0);
            count[(diff - 1) * BINS / (n - 1)]++;
        }
    }
    if (!is_even(count, BINS))
        fail_msg("n %llu lag %llu: chi-square %.1f", (unsigned long long)n, (unsigned long long)lag,
                 chi_square(count, BINS));
}

static void scatters_neighbours(void **state)
{
    /* n - 1 is a multiple of 99 so that the bins are equal; the lags are rows and columns too. */
    static const uint64_t lags[] = {1, 2, 3, 10, 100, 995, 996, 997, 1000, 1024};
    for (size_t k = 0; k < ARRAY_LEN(lags); k++)
        check_differences(990001, lags[k], 40);
    for (uint64_t lag = 1; lag <= 12; lag++)
        check_differences(100, lag, 2000);
}

static void spreads_a_stretch_evenly(void **state)
{
    enum { BINS = 100, LENGTH = 10000 };
    uint64_t n = 1000000;
    for (uint64_t key = 0; key < 4; key++) {
        struct mr_permutation p;
        mr_permutation_init(&p, n, key);
        for (uint64_t first = 0; first < n; first += 50000) {
            uint64_t high[BINS] = {0}, low[BINS] = {0};
            for (uint64_t i = first; i < first + LENGTH; i++) {
                uint64_t image = at(&p, i);
                high[image * BINS / n]++;
                low[image % BINS]++;
            }
            assert_true(is_even(high, BINS));
            assert_true(is_even(low, BINS));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_a_bijection_of_every_size_to_5000),
        cmocka_unit_test(is_a_bijection_of_larger_sizes),
        cmocka_unit_test(can_be_undone_near_a_thousand_million),
        cmocka_unit_test(does_not_collide_in_huge_sizes),
        cmocka_unit_test(is_the_same_for_the_same_key),
        cmocka_unit_test(differs_between_keys),
        cmocka_unit_test(sends_an_element_anywhere_with_equal_chance),
        cmocka_unit_test(sends_a_pair_anywhere_with_equal_chance),
        cmocka_unit_test(takes_every_order_with_equal_chance),
        cmocka_unit_test(is_odd_as_often_as_even),
        cmocka_unit_test(scatters_neighbours),
        cmocka_unit_test(spreads_a_stretch_evenly),
    };
    return cmocka_run_group_tests_name("permutation", tests, NULL, NULL);
}
