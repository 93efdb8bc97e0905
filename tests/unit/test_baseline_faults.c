/* test_baseline_faults.c - a baseline whose n-th call fails says so and leaves nothing behind: no
 * file, no memory, no descriptor. */
#include "baseline.h"

#include "faults.h"
#include "sanitizers.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int stop_in_pattern(void *ctx, const struct mr_baseline_progress *now)
{
    return now->pattern == *(const enum mr_pattern *)ctx;
}

static struct mr_baseline_opts opts(struct tempdir *t)
{
    return (struct mr_baseline_opts){.dir = t->path, .size = MR_BASELINE_MIN_SIZE, .runs = 1};
}

/* In memory, if there is a place: hundreds of runs need not wait for a disk. */
static void every_call_may_fail_once(void **state)
{
    (void)state;
    struct tempdir *t = tempdir_new(access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    struct mr_baseline *b = calloc(1, sizeof *b);
    struct mr_baseline_opts o = opts(t);
    assert_non_null(b);
    int hit = 1;
    for (uint64_t at = 1; hit; at += MR_TSAN ? 4 : 1) {
        struct mr_error err = {0};
        int64_t before = faults_live();
        faults_begin(FAULT_FAIL, at);
        int r = mr_baseline_run(&o, b, &err);
        hit = faults_end();
        if (r && (!hit || !err.text[0]))
            fail_msg("call %llu: %d, '%s'", (unsigned long long)at, r, err.text);
        mr_baseline_fini(b);
        if (faults_live() != before)
            fail_msg("call %llu leaves %lld things behind (%s)", (unsigned long long)at,
                     (long long)(faults_live() - before), err.text);
        if (tempdir_count(t->path))
            fail_msg("call %llu leaves files behind (%s)", (unsigned long long)at, err.text);
        assert_in_range(at, 1, 5000);
    }
    tempdir_free(t);
    free(b);
}

static void being_stopped_leaves_nothing_behind(void **state)
{
    struct tempdir *t = *state;
    struct mr_baseline *b = calloc(1, sizeof *b);
    struct mr_baseline_opts o = opts(t);
    int64_t before = faults_live();
    assert_non_null(b);
    o.progress = stop_in_pattern;
    for (enum mr_pattern p = 0; p < MR_N_PATTERNS; p++) {
        o.ctx = &p;
        for (int engine = MR_RAW_AUTO; engine <= MR_RAW_THREADS; engine += MR_RAW_THREADS) {
            o.engine = engine;
            assert_int_equal(mr_baseline_run(&o, b, NULL), -ECANCELED);
            assert_int_equal(b->n_results, p + 1);
            for (unsigned i = 0; i <= p; i++) {
                assert_int_equal(b->result[i].partial, i == p);
                assert_int_equal(b->result[i].n_runs, i < p);
            }
            mr_baseline_fini(b);
            assert_int_equal(tempdir_count(t->path), 0);
        }
    }
    free(b);
    assert_int_equal(faults_live(), before - 1); /* that one was ours */
}

static void block(const void *ctx, uint64_t i, uint64_t *offset, uint32_t *len)
{
    (void)ctx;
    *offset = i * 4096;
    *len = 4096;
}

/* Write and read 24 blocks by threads; 0 or the first error. */
static int write_and_read(int fd)
{
    struct mr_raw_io *io = NULL;
    struct mr_raw_result out;
    struct mr_error err = {0};
    struct mr_raw_job job = {.name = "file",
                             .fd = fd,
                             .write = 1,
                             .sync = 1,
                             .depth = 3,
                             .max_len = 4096,
                             .place = block,
                             .n_ops = 24};
    int r = mr_raw_io_open(MR_RAW_THREADS, 3, 3 * 4096, &io, &err);
    if (!r)
        r = mr_raw_io_run(io, &job, &out, &err);
    job.write = job.sync = 0;
    if (!r)
        r = mr_raw_io_run(io, &job, &out, &err);
    assert_true(!r == !err.text[0]);
    assert_true(r || out.bytes == 24 * 4096);
    mr_raw_io_close(io);
    return r;
}

static void threads_report_failures_and_go_on_after_short_calls(void **state)
{
    int fd = open(tempdir_path(*state, "file"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    for (int kind = FAULT_FAIL; kind <= FAULT_SHORT; kind++) {
        int hit = 1;
        for (uint64_t at = 1; hit; at++) {
            int64_t before = faults_live();
            faults_begin(kind, at);
            int r = write_and_read(fd);
            hit = faults_end();
            if (r && (!hit || kind != FAULT_FAIL))
                fail_msg("call %llu: %d", (unsigned long long)at, r);
            assert_int_equal(faults_live(), before);
            assert_in_range(at, 1, 1000);
        }
    }
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_may_fail_once),
        WITH_TEMPDIR(being_stopped_leaves_nothing_behind),
        WITH_TEMPDIR(threads_report_failures_and_go_on_after_short_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
