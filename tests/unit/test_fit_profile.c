/* test_fit_profile.c - a device made from a baseline gives that baseline's figures again. */
#include "fit_profile.h"

#include "device.h"
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* What storage with these figures would have given. */
static struct mr_baseline measured(double read_mb, double write_mb, double iops_16k, double iops_4k,
                                   double files, uint64_t sync_ns)
{
    struct mr_baseline b = {.n_results = MR_N_PATTERNS};
    for (unsigned p = 0; p < MR_N_PATTERNS; p++)
        b.result[p] = (struct mr_baseline_result){.pattern = p, .n_runs = 5, .iops = 1};
    b.result[MR_PATTERN_SEQ].read_mb_per_s = read_mb;
    b.result[MR_PATTERN_SEQ].write_mb_per_s = write_mb;
    b.result[MR_PATTERN_RANDOM_16K].iops = iops_16k;
    b.result[MR_PATTERN_RANDOM_4K].iops = iops_4k;
    b.result[MR_PATTERN_SMALL_FILES].iops = files;
    mr_histogram_add(&b.result[MR_PATTERN_FSYNC].latency, sync_ns);
    return b;
}

static void assert_near(const char *what, double is, double wanted)
{
    if (fabs(is / wanted - 1) > 0.01)
        fail_msg("%s: %g instead of %g", what, is, wanted);
}

/* Operations a second of a device, `depth` at once, at places that are or are not in a row; in the
 * device's own time. */
static double rate(struct mr_device *d, uint64_t *now, enum mr_device_op op, uint64_t bytes,
                   unsigned depth, int in_order)
{
    enum { N = 2000, MAX_DEPTH = 128 };
    uint64_t due[MAX_DEPTH], start = *now;
    for (unsigned i = 0; i < N; i++) {
        uint64_t place = in_order ? i * bytes : (uint64_t)(i * 7919 % 4093) << 24;
        struct mr_device_place where = {.file = 7, .offset = place};
        if (i >= depth && due[i % depth] > *now)
            *now = due[i % depth];
        due[i % depth] = mr_device_reserve_at(d, *now, op, &where, bytes);
    }
    for (unsigned i = 0; i < depth; i++)
        *now = due[i] > *now ? due[i] : *now;
    return N / ((double)(*now - start) / 1e9);
}

static void check(struct mr_baseline b)
{
    struct mr_device_profile p;
    struct mr_error err = {0};
    struct mr_device *d = NULL;
    uint64_t now = 1000;
    const struct mr_baseline_result *r = b.result;
    if (mr_fit_profile(&b, "test", "", &p, &err) || mr_device_new(&p, &d, &err))
        fail_msg("%s", err.text);
    assert_near("read", rate(d, &now, MR_DEV_READ, 1 << 20, 16, 1) * 1.048576,
                r[MR_PATTERN_SEQ].read_mb_per_s);
    assert_near("write", rate(d, &now, MR_DEV_WRITE, 1 << 20, 16, 1) * 1.048576,
                r[MR_PATTERN_SEQ].write_mb_per_s);
    assert_near("16K", rate(d, &now, MR_DEV_READ, 16384, 128, 0), r[MR_PATTERN_RANDOM_16K].iops);
    assert_near("4K", rate(d, &now, MR_DEV_READ, 4096, 1, 0), r[MR_PATTERN_RANDOM_4K].iops);
    uint64_t start = now += 1000000000;
    struct mr_device_place where = {.file = 1 << 20};
    uint64_t due = mr_device_reserve_file(d, start, &where, 4096);
    assert_near("files", 1e9 / (double)(due - start), r[MR_PATTERN_SMALL_FILES].iops);
    start = now += 1000000000;
    mr_device_reserve_at(d, start, MR_DEV_WRITE, &where, 4096);
    due = mr_device_reserve_at(d, start, MR_DEV_SYNC, &where, 0);
    assert_near("sync", (double)(due - start),
                (double)mr_histogram_at(&r[MR_PATTERN_FSYNC].latency, 0.5));
    mr_device_close(d);
}

static void a_device_of_the_profile_gives_the_figures_again(void **state)
{
    (void)state;
    check(measured(163, 133.14, 500, 190, 130, 20000000)); /* a disk */
    check(measured(5234, 4659, 169912, 19872, 16724, 180000));
    check(measured(280.55, 195, 16000, 6500, 1200, 1500000));
}

static void impossible_figures_do_not_become_negative(void **state)
{
    struct mr_device_profile p;
    /* more random than sequential bytes, files quicker than one read, a sync that takes nothing */
    struct mr_baseline b = measured(100, 100, 1e6, 1e6, 1e9, 1);
    (void)state;
    assert_int_equal(mr_fit_profile(&b, "x", "y", &p, NULL), 0);
    assert_int_equal(p.seek_ns, 0);
    assert_int_equal(p.read_latency_ns, 0);
    assert_int_equal(p.metadata_ns, 0);
    assert_int_equal(p.sync_ns, 0);
}

static void a_part_of_a_baseline_is_not_enough(void **state)
{
    struct mr_device_profile p;
    struct mr_baseline b = measured(100, 100, 1e3, 1e3, 1e3, 1000);
    struct mr_error err = {0};
    (void)state;
    b.n_results = 3;
    assert_int_equal(mr_fit_profile(&b, "x", "y", &p, &err), -ENODATA);
    assert_non_null(strstr(err.text, "random-4k"));
    b.n_results = MR_N_PATTERNS;
    b.result[MR_PATTERN_FSYNC].n_runs = 0;
    assert_int_equal(mr_fit_profile(&b, "x", "y", &p, NULL), -ENODATA);
}

static void any_name_and_text_become_fit_for_a_profile(void **state)
{
    static const char *const names[] = {"",
                                        "my disk (fast)",
                                        "\xc3\xa9t\xc3\xa9",
                                        ".",
                                        "a/b",
                                        "a-very-long-name-that-does-not-fit-into-the-field"};
    struct mr_baseline b = measured(100, 100, 1e3, 1e3, 1e3, 1000);
    char text[MR_PROFILE_MAX_BYTES];
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        struct mr_device_profile p, back;
        struct mr_error err = {0};
        assert_int_equal(mr_fit_profile(&b, names[i], "on a\nhost\t\xff", &p, NULL), 0);
        int n = mr_device_profile_format(&p, text, sizeof text, &err);
        if (n < 0)
            fail_msg("'%s': %s", names[i], err.text);
        if (mr_device_profile_parse(text, (size_t)n, "text", &back, &err))
            fail_msg("'%s': %s", names[i], err.text);
        assert_string_equal(back.name, p.name);
        assert_int_equal(back.seek_ns, p.seek_ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_of_the_profile_gives_the_figures_again),
        cmocka_unit_test(impossible_figures_do_not_become_negative),
        cmocka_unit_test(a_part_of_a_baseline_is_not_enough),
        cmocka_unit_test(any_name_and_text_become_fit_for_a_profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
