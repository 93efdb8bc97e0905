/* test_places.c - operations of a pattern stay in the file, on their grid, and cover it. */
#include "places.h"

#include "unit.h"

#include <stdlib.h>
#include <string.h>

static struct mr_places places(const char *split, uint64_t bytes, uint32_t align)
{
    struct mr_places p = {.file_bytes = bytes, .align = align};
    assert_int_equal(mr_size_split_parse(split, &p.split, NULL), 0);
    return p;
}

static void in_order_means_one_after_the_other(void **state)
{
    struct mr_places p = places("1M/100", 8 << 20, 4096);
    uint64_t offset;
    uint32_t len;
    (void)state;
    for (uint64_t i = 0; i < 8; i++) {
        mr_place_in_order(&p, i, &offset, &len);
        assert_int_equal(offset, i << 20);
        assert_int_equal(len, 1 << 20);
    }
}

static void random_places_fit_and_lie_on_the_grid(void **state)
{
    static const uint32_t aligns[] = {512, 2048, 4096};
    (void)state;
    for (unsigned k = 0; k < ARRAY_LEN(aligns); k++) {
        struct mr_places p = places(MR_SPLIT_IMAGENET, (1 << 20) + 4096, aligns[k]);
        uint32_t grid = aligns[k] > 2048 ? aligns[k] : 2048, smallest = UINT32_MAX;
        uint64_t offset, last = 0;
        uint32_t len;
        for (uint64_t i = 0; i < 20000; i++) {
            mr_place_at_random(&p, i, &offset, &len);
            assert_true(offset % grid == 0 && len % aligns[k] == 0 && len);
            assert_true(offset + len <= p.file_bytes);
            smallest = len < smallest ? len : smallest;
            last = offset + len > last ? offset + len : last;
        }
        assert_int_equal(smallest, grid);
        assert_int_equal(last, p.file_bytes); /* the end is reached as well */
    }
}

static void random_places_are_even_over_the_file(void **state)
{
    enum { N = 160000, PLACES = 64 };
    struct mr_places p = places("16K/100", (uint64_t)PLACES * 16384, 4096);
    uint64_t n[PLACES] = {0}, offset;
    uint32_t len;
    (void)state;
    for (uint64_t i = 0; i < N; i++) {
        mr_place_at_random(&p, i, &offset, &len);
        n[offset / 16384]++;
    }
    for (unsigned k = 0; k < PLACES; k++) {
        double off = (double)n[k] - (double)N / PLACES;
        assert_true(off * off < 36.0 * N / PLACES); /* six standard deviations */
    }
}

static void another_run_reads_elsewhere_and_the_same_run_the_same(void **state)
{
    struct mr_places a = places("4K/100", 1 << 30, 4096), b = a;
    uint64_t x, y;
    uint32_t len;
    unsigned same = 0;
    (void)state;
    b.run = 1;
    for (uint64_t i = 0; i < 1000; i++) {
        mr_place_at_random(&a, i, &x, &len);
        mr_place_at_random(&a, i, &y, &len);
        assert_int_equal(x, y);
        mr_place_at_random(&b, i, &y, &len);
        same += x == y;
    }
    assert_true(same < 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order_means_one_after_the_other),
        cmocka_unit_test(random_places_fit_and_lie_on_the_grid),
        cmocka_unit_test(random_places_are_even_over_the_file),
        cmocka_unit_test(another_run_reads_elsewhere_and_the_same_run_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
