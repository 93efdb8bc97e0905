/* test_draw.c - keyed random numbers: even, and independent in each of their inputs. */
#include "draw.h"

#include "chi_square.h"
#include "unit.h"

static void the_same_place_gives_the_same_number(void **state)
{
    for (uint64_t i = 0; i < 100; i++)
        assert_true(mr_draw(i, MR_DRAW_ORDER, 1, 2, 3) == mr_draw(i, MR_DRAW_ORDER, 1, 2, 3));
}

/* Bins of a byte of the difference between neighbours in one input. */
static void check_input(unsigned which)
{
    uint64_t high[256] = {0}, low[256] = {0}, diff[256] = {0}, was = 0;
    for (uint64_t i = 0; i < 100000; i++) {
        uint64_t v = mr_draw(which == 0 ? i : 5, MR_DRAW_SAMPLE, which == 1 ? i : 0,
                             which == 2 ? i : 0, which == 3 ? i : 0);
        high[v >> 56]++;
        low[v & 255]++;
        diff[((v ^ was) >> 56) & 255]++;
        was = v;
    }
    assert_true(is_even(high, 256));
    assert_true(is_even(low, 256));
    assert_true(is_even(diff, 256));
}

static void every_input_alone_yields_even_bits(void **state)
{
    for (unsigned which = 0; which < 4; which++)
        check_input(which);
}

static void inputs_and_uses_are_not_interchangeable(void **state)
{
    for (uint64_t a = 0; a < 50; a++)
        for (uint64_t b = 0; b < 50; b++) {
            if (a == b)
                continue;
            assert_true(mr_draw(1, MR_DRAW_ORDER, a, b, 0) != mr_draw(1, MR_DRAW_ORDER, b, a, 0));
            assert_true(mr_draw(1, MR_DRAW_ORDER, 0, a, b) != mr_draw(1, MR_DRAW_ORDER, 0, b, a));
            assert_true(mr_draw(a, MR_DRAW_ORDER, b, 0, 0) != mr_draw(b, MR_DRAW_ORDER, a, 0, 0));
        }
    for (int u = MR_DRAW_ORDER; u < MR_DRAW_SYNTHETIC; u++)
        for (uint64_t seed = 0; seed < 1000; seed++)
            assert_true(mr_draw(seed, (enum mr_draw_use)u, 0, 0, 0) !=
                        mr_draw(seed, (enum mr_draw_use)(u + 1), 0, 0, 0));
}

static void reduction_stays_in_range_and_is_even(void **state)
{
    assert_int_equal(mr_below(UINT64_MAX, 1), 0);
    assert_int_equal(mr_below(UINT64_MAX, 7), 6);
    assert_int_equal(mr_below(0, 7), 0);
    assert_true(mr_below(UINT64_MAX, UINT64_MAX) == UINT64_MAX - 1);
    uint64_t count[7] = {0};
    for (uint64_t i = 0; i < 70000; i++)
        count[mr_below(mr_draw(i, MR_DRAW_WINDOW, 0, 0, 0), 7)]++;
    assert_true(is_even(count, 7));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_place_gives_the_same_number),
        cmocka_unit_test(every_input_alone_yields_even_bits),
        cmocka_unit_test(inputs_and_uses_are_not_interchangeable),
        cmocka_unit_test(reduction_stays_in_range_and_is_even),
    };
    return cmocka_run_group_tests_name("draw", tests, NULL, NULL);
}
