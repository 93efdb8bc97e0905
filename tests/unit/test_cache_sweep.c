/* test_cache_sweep.c - what a boxed run evicts is what it draws, and no more; whatever the size of
 * the data set.  Files are told apart by their sizes. */
#include "unit.h"

#include "cache_sweep.h"
#include "microbench.h"
#include "survey.h"
#include "tempdir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define N_FILES    40
#define N_LINES    20000 /* more than a boxed run may draw */
#define LINE_BYTES 6

/* Sample i is file i % N_FILES, of 1 + (i % N_FILES)^3 bytes: few sums of sizes are alike. */
static struct mr_dataset *many_samples(struct tempdir *t, unsigned n)
{
    static const char bytes[N_FILES * N_FILES * N_FILES];
    struct mr_dataset *d;
    struct mr_error err = {0};
    static char text[N_LINES * LINE_BYTES + 1];
    char name[32];
    size_t at = 0;
    for (unsigned i = 0; i < N_FILES; i++) {
        snprintf(name, sizeof name, "f%02u", i);
        tempdir_write(t, name, bytes, 1 + (size_t)i * i * i);
    }
    for (unsigned i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "f%02u,0\n", i % N_FILES);
    if (mr_dataset_open(tempdir_write(t, "list.csv", text, at), &d, &err))
        fail_msg("%s", err.text);
    return d;
}

/* Bytes of the first batches that a pipeline delivers. */
static uint64_t drawn_bytes(struct mr_dataset *d, struct mr_pipeline_opts o, uint64_t n_batches)
{
    struct mr_pipeline *p;
    struct mr_pipeline_stats s;
    struct mr_batch *b;
    o.batches = n_batches;
    assert_int_equal(mr_pipeline_open(d, &o, &p, NULL), 0);
    while (mr_pipeline_next(p, &b) == 1)
        mr_batch_unref(b);
    mr_pipeline_get_stats(p, &s);
    mr_pipeline_close(p);
    return s.delivered_bytes;
}

static void those_that_are_drawn_first_are_swept(void **state)
{
    struct mr_dataset *d = many_samples(*state, N_FILES);
    static const struct mr_pipeline_opts ways[] = {
        {.batch = 4, .seed = 3},
        {.batch = 4, .shuffle = MR_SHUFFLE_NONE},
        {.batch = 4, .shuffle = MR_SHUFFLE_WINDOW, .window = 8, .seed = 3},
        {.batch = 4, .seed = 3, .rank = 1, .world = 2},
    };
    for (unsigned w = 0; w < sizeof ways / sizeof *ways; w++)
        for (uint64_t n = 1; n <= 5; n += 2) {
            struct mr_cache_sweep s = {0};
            assert_int_equal(mr_cache_sweep_batches(&s, d, &ways[w], n, 0, 0), n);
            assert_int_equal(s.files, 4 * n);
            assert_int_equal(s.bytes, drawn_bytes(d, ways[w], n));
        }
    mr_dataset_unref(d);
}

static void the_end_of_the_epoch_or_of_the_time_ends_it(void **state)
{
    struct mr_dataset *d = many_samples(*state, N_FILES);
    struct mr_pipeline_opts o = {.batch = 12};
    struct mr_cache_sweep s = {0};
    assert_int_equal(mr_cache_sweep_batches(&s, d, &o, UINT64_MAX, 0, 1), 3);
    assert_int_equal(s.files, 36);
    o.keep_last = 1;
    assert_int_equal(mr_cache_sweep_batches(&s, d, &o, UINT64_MAX, 0, 1), 4);
    assert_int_equal(mr_cache_sweep_batches(&s, d, &o, UINT64_MAX, 1e-9, 1), 2);
    mr_dataset_unref(d);
}

static int yes(void *ctx)
{
    (void)ctx;
    return 1;
}

static void it_can_be_stopped(void **state)
{
    struct mr_dataset *d = many_samples(*state, N_FILES);
    struct mr_pipeline_opts o = {.batch = 4, .should_stop = yes};
    struct mr_cache_sweep s = {0};
    assert_int_equal(mr_cache_sweep_batches(&s, d, &o, 5, 0, 1), -ECANCELED);
    mr_dataset_unref(d);
}

static void a_boxed_cold_run_ends_behind_what_was_evicted(void **state)
{
    struct mr_dataset *d = many_samples(*state, N_LINES);
    struct mr_bench_opts b = {
        .data = d, .runs = 1, .cold = 1, .box_s = 1e6, .pipe = {.batch = 64, .threads = 2}};
    struct mr_bench_result r;
    struct mr_error err = {0};
    if (mr_microbench_run(&b, &r, &err))
        fail_msg("%s", err.text);
    assert_true(r.median.samples >= 128 && r.median.samples <= 16384 + 128);
    mr_bench_result_fini(&r);
    b.pipe.batches = 3;
    assert_int_equal(mr_microbench_run(&b, &r, &err), 0);
    assert_int_equal(r.median.samples, 192);
    mr_bench_result_fini(&r);
    mr_dataset_unref(d);
}

/* 400 good files and a missing one; only the first samples are evicted, or all. */
static void what_stands_in_for_bad_samples_is_cold_only_if_all_is(void **state)
{
    static char text[8 * 401];
    struct tempdir *t = *state;
    struct mr_dataset *d;
    char name[16];
    size_t at = 0;
    for (unsigned i = 0; i < 400; i++) {
        snprintf(name, sizeof name, "f%03u", i);
        tempdir_write(t, name, "abc", 3);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s,0\n", i % 10 ? name : "no");
    }
    assert_int_equal(mr_dataset_open(tempdir_write(t, "list.csv", text, at), &d, NULL), 0);
    struct mr_bench_opts b = {
        .data = d, .runs = 1, .cold = 1, .pipe = {.batch = 16, .threads = 2, .max_error_share = 1}};
    for (unsigned k = 0; k < 3; k++) {
        struct mr_bench_result r;
        b.pipe.batches = k ? 4 : 0;
        b.touched = k == 1 ? 4 * 16 : 0; /* as the verdict has it */
        b.box_s = k == 2 ? 1e6 : 0;      /* as other experiments have it */
        assert_int_equal(mr_microbench_run(&b, &r, NULL), 0);
        assert_true(r.median.skipped > 0);
        if (k)
            assert_string_equal(r.cold, "unproven");
        mr_bench_result_fini(&r);
        struct mr_cache_sweep s = {0};
        assert_int_equal(mr_cache_sweep_data(&s, d, 1, NULL, NULL), 0);
        if (!k && !s.n_unproven)
            assert_string_equal(r.cold, "data");
    }
    mr_dataset_unref(d);
}

static void a_boxed_survey_looks_at_what_it_has_time_for(void **state)
{
    struct mr_dataset *d = many_samples(*state, N_LINES);
    struct mr_survey s;
    assert_int_equal(mr_survey_run(d, &(struct mr_survey_opts){.box_s = 1e-9}, &s), 0);
    assert_int_equal(s.samples, N_LINES);
    assert_int_equal(s.n_looked_at, 0);
    assert_int_equal(mr_survey_run(d, &(struct mr_survey_opts){.box_s = 1e6}, &s), 0);
    assert_int_equal(s.n_looked_at, N_LINES);
    assert_int_equal(s.files, N_LINES);
    mr_dataset_unref(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(those_that_are_drawn_first_are_swept),
        WITH_TEMPDIR(the_end_of_the_epoch_or_of_the_time_ends_it),
        WITH_TEMPDIR(it_can_be_stopped),
        WITH_TEMPDIR(a_boxed_cold_run_ends_behind_what_was_evicted),
        WITH_TEMPDIR(what_stands_in_for_bad_samples_is_cold_only_if_all_is),
        WITH_TEMPDIR(a_boxed_survey_looks_at_what_it_has_time_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
