/* test_intervals.c - union and overlap of intervals against a bitmap that is filled bit by bit. */
#include "unit.h"

#include "draw.h"
#include "intervals.h"

#include <stdlib.h>
#include <string.h>

#define TIME 400 /* moments of the bitmap */

static void fill(unsigned char *map, const struct mr_interval *v, size_t n)
{
    memset(map, 0, TIME);
    for (size_t i = 0; i < n; i++)
        for (int64_t t = v[i].begin; t < v[i].end; t++)
            map[t] = 1;
}

static uint64_t count(const unsigned char *a, const unsigned char *b)
{
    uint64_t n = 0;
    for (int i = 0; i < TIME; i++)
        n += a[i] && b[i];
    return n;
}

static uint64_t draw(uint64_t seed, uint64_t what, uint64_t i)
{
    return mr_draw(seed, MR_DRAW_SYNTHETIC, what, i, 0);
}

/* Short and long ones, empty ones, reversed ones, many or few. */
static size_t draw_list(uint64_t seed, struct mr_interval *v, size_t max)
{
    size_t n = draw(seed, 0, 0) % (max + 1);
    uint64_t longest = 1 + draw(seed, 1, 0) % 60;
    for (size_t i = 0; i < n; i++) {
        int64_t begin = (int64_t)(draw(seed, 2, i) % TIME);
        int64_t end = begin + (int64_t)(draw(seed, 3, i) % (longest + 1)) - 1;
        v[i] = (struct mr_interval){begin, end > TIME ? TIME : end};
    }
    return n;
}

static void unions_and_overlaps_match_a_bitmap(void **state)
{
    (void)state;
    struct mr_interval a[64], b[64];
    unsigned char map_a[TIME], map_b[TIME];
    for (uint64_t round = 0; round < 20000; round++) {
        size_t n_a = draw_list(2 * round, a, 64), n_b = draw_list(2 * round + 1, b, 64);
        fill(map_a, a, n_a);
        fill(map_b, b, n_b);
        n_a = mr_intervals_merge(a, n_a);
        n_b = mr_intervals_merge(b, n_b);
        assert_int_equal(mr_intervals_length(a, n_a), count(map_a, map_a));
        assert_int_equal(mr_intervals_length(b, n_b), count(map_b, map_b));
        assert_int_equal(mr_intervals_overlap(a, n_a, b, n_b), count(map_a, map_b));
        assert_int_equal(mr_intervals_overlap(b, n_b, a, n_a), count(map_a, map_b));
    }
}

static void a_merged_list_is_in_order_and_has_gaps(void **state)
{
    (void)state;
    struct mr_interval v[64];
    for (uint64_t round = 0; round < 2000; round++) {
        size_t n = mr_intervals_merge(v, draw_list(round, v, 64));
        for (size_t i = 0; i < n; i++) {
            assert_true(v[i].begin < v[i].end);
            assert_true(!i || v[i - 1].end < v[i].begin);
        }
    }
}

static void the_ends_of_time_do_not_overflow(void **state)
{
    (void)state;
    struct mr_interval all[] = {{INT64_MIN, INT64_MAX}},
                       some[] = {{-5, 5}, {INT64_MAX - 1, INT64_MAX}};
    assert_int_equal(mr_intervals_merge(all, 1), 1);
    assert_true(mr_intervals_length(all, 1) == UINT64_MAX);
    assert_int_equal(mr_intervals_overlap(all, 1, some, 2), 11);
    assert_int_equal(mr_intervals_overlap(all, 1, some, 0), 0);
    assert_int_equal(mr_intervals_merge(all, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unions_and_overlaps_match_a_bitmap),
        cmocka_unit_test(a_merged_list_is_in_order_and_has_gaps),
        cmocka_unit_test(the_ends_of_time_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
