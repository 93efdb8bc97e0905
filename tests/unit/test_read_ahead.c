/* test_read_ahead.c - what a run on an emulated storage draws is in the page cache before, and
 * where it came from a slower storage nevertheless, that is said. */
#include "unit.h"

#include "cache_sweep.h"
#include "device.h"
#include "json.h"
#include "lab.h"
#include "microbench.h"
#include "read_ahead.h"
#include "train_set.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#define N     40
#define BATCH 4

static struct mr_device *device(const char *text)
{
    struct mr_device_profile p;
    struct mr_device *d;
    assert_int_equal(mr_device_profile_parse(text, strlen(text), "profile", &p, NULL), 0);
    assert_int_equal(mr_device_new(&p, &d, NULL), 0);
    return d;
}

static struct mr_device *quick_device(void)
{
    return device("name = quick\nread_mb_per_s = 100000\nwrite_mb_per_s = 1\n");
}

static struct mr_read_ahead read_some(const struct mr_read_ahead_opts *o)
{
    struct mr_read_ahead got;
    struct mr_error err = {0};
    if (mr_read_ahead(o, &got, &err))
        fail_msg("%s", err.text);
    return got;
}

/* Bytes of the files of the first n batches, and what of them is cached. */
static struct mr_cache_sweep look_at(struct mr_dataset *d, const struct mr_pipeline_opts *pipe,
                                     uint64_t n)
{
    struct mr_cache_sweep s = {0};
    assert_int_equal(mr_cache_sweep_batches(&s, d, pipe, n, 0, 0), n);
    return s;
}

static void what_a_run_draws_is_cached(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 2);
    struct mr_pipeline_opts pipe = {.batch = BATCH, .threads = 1, .seed = 3};
    struct mr_read_ahead_opts o = {.data = d, .pipe = &pipe, .n_batches = 3};
    struct mr_cache_sweep all = {0};
    pipe.storage = quick_device();
    assert_int_equal(mr_cache_sweep_data(&all, d, 1, NULL, NULL), 0);
    struct mr_read_ahead got = read_some(&o);
    assert_true(got.all && got.batches == 3);
    struct mr_cache_sweep s = look_at(d, &pipe, 3);
    if (!s.n_unknown)
        assert_true(s.cached_before >= s.bytes);
    /* More than an epoch draws all, also those that the first one leaves out at its end. */
    pipe.batch = N / 2 + 1;
    o.n_batches = 0;
    assert_int_equal(mr_cache_sweep_data(&all, d, 1, NULL, NULL), 0);
    got = read_some(&o);
    assert_true(got.all && got.batches == 2);
    all = (struct mr_cache_sweep){0};
    assert_int_equal(mr_cache_sweep_data(&all, d, 0, NULL, NULL), 0);
    if (!all.n_unknown)
        assert_true(all.cached_before >= all.bytes);
    mr_device_close(pipe.storage);
    mr_dataset_unref(d);
}

static void no_more_than_the_device_delivers_is_read(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 2);
    struct mr_pipeline_opts pipe = {.batch = BATCH, .threads = 1, .prefetch = 1};
    struct mr_read_ahead_opts o = {.data = d, .pipe = &pipe, .run_s = 1};
    pipe.storage =
        device("name = far\nread_mb_per_s = 1000\nwrite_mb_per_s = 1\nread_latency_us = 300000\n");
    struct mr_read_ahead got = read_some(&o); /* three files, and what is fetched beyond */
    assert_true(got.all);
    assert_in_range(got.batches, 2, 6);
    mr_device_close(pipe.storage);
    pipe.storage = quick_device();
    assert_int_equal(read_some(&o).batches, N / BATCH);
    mr_device_close(pipe.storage);
    mr_dataset_unref(d);
}

static void its_time_ends_it(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 2);
    struct mr_pipeline_opts pipe = {.batch = BATCH, .threads = 1};
    struct mr_read_ahead_opts o = {.data = d, .pipe = &pipe, .run_s = 1e6, .box_s = 1e-9};
    pipe.storage = quick_device();
    struct mr_read_ahead got = read_some(&o);
    assert_false(got.all);
    assert_int_equal(got.batches, 2);
    mr_device_close(pipe.storage);
    mr_dataset_unref(d);
}

static int yes(void *ctx)
{
    (void)ctx;
    return 1;
}

static void it_can_be_stopped(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 2);
    struct mr_pipeline_opts pipe = {.batch = BATCH, .should_stop = yes};
    struct mr_read_ahead_opts o = {.data = d, .pipe = &pipe};
    struct mr_read_ahead got = {.batches = 77};
    assert_int_equal(mr_read_ahead(&o, &got, NULL), -ECANCELED);
    assert_int_equal(got.batches, 77);
    mr_dataset_unref(d);
}

static void runs_say_how_many_samples_came_late(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 2);
    struct mr_bench_opts b = {.data = d, .runs = 1, .ahead = 1, .pipe = {.batch = BATCH}};
    struct mr_bench_result r;
    assert_int_equal(mr_microbench_run(&b, &r, NULL), 0);
    assert_true(isnan(r.late_share)); /* of the real storage there is none */
    mr_bench_result_fini(&r);
    b.pipe.storage = quick_device();
    assert_int_equal(mr_microbench_run(&b, &r, NULL), 0);
    assert_int_equal(r.stats.overdue, N); /* no storage is as quick as that */
    assert_true(r.late_share == 1);
    mr_bench_result_fini(&r);
    mr_device_close(b.pipe.storage);
    mr_dataset_unref(d);
}

static double late(uint64_t overdue, int64_t device_bytes)
{
    struct mr_pipeline_stats stats = {
        .samples = 100, .delivered_bytes = 1000000, .overdue = overdue};
    return mr_late_share(&stats, device_bytes);
}

static size_t n_warnings(double late_share)
{
    struct mr_lab lab = {.warnings = mr_json_array()};
    mr_lab_check_late(&lab, "ssd", late_share);
    size_t n = mr_json_len(lab.warnings);
    mr_json_free(lab.warnings);
    return n;
}

static void late_samples_of_a_slower_storage_are_a_warning(void **state)
{
    (void)state;
    assert_true(late(80, 900000) == 0.8 && late(80, -1) == 0.8);
    assert_true(late(80, 4096) == 0); /* from memory: they waited for a core */
    assert_true(late(30, -1) == 0);   /* nobody knows */
    assert_true(late(0, 900000) == 0);
    assert_int_equal(n_warnings(late(80, 900000)), 1);
    assert_int_equal(n_warnings(late(3, 900000)), 0);
    assert_int_equal(n_warnings(NAN), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(what_a_run_draws_is_cached),
        WITH_TEMPDIR(no_more_than_the_device_delivers_is_read),
        WITH_TEMPDIR(its_time_ends_it),
        WITH_TEMPDIR(it_can_be_stopped),
        WITH_TEMPDIR(runs_say_how_many_samples_came_late),
        cmocka_unit_test(late_samples_of_a_slower_storage_are_a_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
