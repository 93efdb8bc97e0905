/* test_repeat.c - the study's rule: several runs, the first left out, the median of the others. */
#include "repeat.h"

#include "unit.h"

struct log {
    unsigned n, fail_at;
    double value[16];
};

static int run_one(void *ctx, unsigned i)
{
    static const double seconds[] = {90, 4, 8, 5, 7, 6}; /* the first is slow: nothing was warm */
    struct log *log = ctx;
    assert_int_equal(i, log->n);
    log->value[log->n++] = seconds[i];
    return log->fail_at && i + 1 == log->fail_at ? -5 : 0;
}

static void the_first_of_several_is_left_out_of_the_median(void **state)
{
    struct log log = {0};
    struct mr_summary s;
    (void)state;
    assert_int_equal(mr_repeat(6, run_one, &log), 0);
    assert_int_equal(log.n, 6);
    unsigned first = mr_repeat_first(6);
    assert_int_equal(mr_summarize(log.value + first, log.n - first, &s), 0);
    assert_int_equal(s.n, 5);
    assert_true(s.median == 6 && s.min == 4 && s.max == 8);
    assert_true(s.spread > 0.666 && s.spread < 0.667);
    assert_int_equal(mr_median_index(log.value + first, 5), 4);
}

static void one_run_alone_counts(void **state)
{
    struct mr_summary s;
    (void)state;
    assert_int_equal(mr_repeat_first(1), 0);
    assert_int_equal(mr_repeat_first(2), 1);
    assert_int_equal(mr_summarize((double[]){3}, 1, &s), 0);
    assert_true(s.median == 3 && s.spread == 0);
    assert_int_equal(mr_summarize(NULL, 0, &s), 0);
    assert_true(s.n == 0 && s.median == 0);
}

static void of_an_even_number_the_median_is_between_two(void **state)
{
    const double v[] = {10, 1, 4, 3};
    struct mr_summary s;
    (void)state;
    assert_int_equal(mr_summarize(v, 4, &s), 0);
    assert_true(s.median == 3.5);
    assert_true(v[0] == 10 && v[3] == 3); /* a copy was sorted */
    assert_int_equal(mr_median_index(v, 4), 3);
    assert_int_equal(mr_median_index((double[]){2, 2, 2}, 3), 1);
}

static void a_run_that_fails_is_the_last(void **state)
{
    struct log log = {.fail_at = 3};
    (void)state;
    assert_int_equal(mr_repeat(6, run_one, &log), -5);
    assert_int_equal(log.n, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_of_several_is_left_out_of_the_median),
        cmocka_unit_test(one_run_alone_counts),
        cmocka_unit_test(of_an_even_number_the_median_is_between_two),
        cmocka_unit_test(a_run_that_fails_is_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
