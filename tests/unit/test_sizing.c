/* test_sizing.c - bounds of what a machine feeds are never below what it was measured to feed. */
#include "unit.h"

#include "sizing.h"

#include <math.h>

/* Two cores that by their CPU time alone decode 1,000 images/s; 2,000 files/s are read. */
static const struct mr_findings found = {
    .cores = 2, .image_cpu_s = 2e-3, .warm = 900, .fetched = 2000, .cold = 800};

static struct mr_sizing sized(const struct mr_findings *f, const struct mr_advice *a,
                              struct mr_sizing_known known)
{
    struct mr_sizing s;
    mr_sizing_take(f, a, 1e5, &known, &s);
    assert_true(s.storage_per_s >= s.measured_per_s && s.cores_per_s >= s.measured_per_s);
    return s;
}

static void bounds_follow_from_what_each_part_does_alone(void **state)
{
    struct mr_advice a = {.measured.per_s = 850};
    (void)state;
    struct mr_sizing s = sized(&found, &a, (struct mr_sizing_known){NAN, NAN});
    assert_true(s.storage_per_s == 2000 && s.cores_per_s == 1000 && s.measured_per_s == 850);
}

static void no_bound_is_below_what_was_measured(void **state)
{
    struct mr_findings f = found;
    struct mr_advice a = {.measured.per_s = 1400};
    (void)state;
    struct mr_sizing s = sized(&f, &a, (struct mr_sizing_known){0, 0});
    assert_true(s.cores_per_s == 1400 && s.measured_per_s == 1400);
    s = sized(&f, &a, (struct mr_sizing_known){.read_per_s = 2500, .decoded_per_s = 1500});
    assert_true(s.storage_per_s == 2500 && s.cores_per_s == 1500 && s.measured_per_s == 1400);
    f.warm = 1700;
    s = sized(&f, &a, (struct mr_sizing_known){0, 0});
    assert_true(s.cores_per_s == 1700);
    f.fetched = 1000; /* less than came through decoded */
    s = sized(&f, &a, (struct mr_sizing_known){0, 0});
    assert_true(s.storage_per_s == 1400);
    f = found;
    f.cold = 3000;
    s = sized(&f, &a, (struct mr_sizing_known){0, 0});
    assert_true(s.storage_per_s == 3000 && s.cores_per_s == 3000 && s.measured_per_s == 3000);
}

static void another_storage_says_what_the_cores_can_and_no_more(void **state)
{
    struct mr_advice a = {.on_tier = 1, .measured.per_s = 5000};
    (void)state;
    struct mr_sizing s = sized(&found, &a, (struct mr_sizing_known){0, 0});
    assert_true(s.storage_per_s == 2000 && s.cores_per_s == 5000 && s.measured_per_s == 800);
}

static double at(const struct mr_json *j, const char *path)
{
    return mr_json_number(mr_json_at(j, path));
}

static void tables_and_curves_agree(void **state)
{
    struct mr_advice a = {.measured.per_s = 1400};
    (void)state;
    struct mr_sizing s = sized(&found, &a, (struct mr_sizing_known){0, 0});
    struct mr_json *table = mr_sizing_json(&s), *cores = mr_sizing_by_cores(&s),
                   *mb = mr_sizing_by_bandwidth(&s);
    assert_int_equal(mr_json_len(table), 3);
    for (size_t i = 0; i < 3; i++) {
        const struct mr_json *row = mr_json_item(table, i);
        double need = at(row, "images_per_s_each");
        assert_true(fabs(at(row, "by_storage") * need - 2000) < 1e-6);
        assert_true(fabs(at(row, "by_cores") * need - 1400) < 1e-6);
        assert_true(fabs(at(row, "by_measured") * need - 1400) < 1e-6);
        assert_true(at(row, "feeds") == floor(1400 / need));
        /* the third point is of 8 cores, the last of 280 MB/s */
        const struct mr_json *by_cores = mr_json_item(cores, i), *by_mb = mr_json_item(mb, i);
        assert_true(at(by_cores, "curve.2.0") == 8);
        assert_true(fabs(at(by_cores, "curve.2.1") * need - 2000) < 1e-6);
        assert_true(fabs(at(by_mb, "curve.16.0") - 280) < 1e-6);
        assert_true(fabs(at(by_mb, "curve.16.1") * need - 1400) < 1e-6);
    }
    mr_json_free(table);
    mr_json_free(cores);
    mr_json_free(mb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_follow_from_what_each_part_does_alone),
        cmocka_unit_test(no_bound_is_below_what_was_measured),
        cmocka_unit_test(another_storage_says_what_the_cores_can_and_no_more),
        cmocka_unit_test(tables_and_curves_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
