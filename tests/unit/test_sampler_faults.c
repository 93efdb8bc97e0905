/* test_sampler_faults.c - every fallible call of the sampler fails once; nothing leaks, nothing
 * half-made is handed out, and no number is wrong: at worst it is unknown. */
#include "unit.h"

#include "faults.h"
#include "sample_series.h"
#include "sampler.h"

#include <stdio.h>
#include <string.h>

#define N_DISKS 40 /* more than the first block of rows */

static void write_disks(struct tempdir *t, unsigned ios)
{
    char text[N_DISKS * 64];
    size_t len = 0;
    for (unsigned i = 0; i < N_DISKS; i++)
        len += (size_t)snprintf(text + len, sizeof text - len,
                                "8 %u sd%u %u 0 %u 1 0 0 0 0 0 1 1\n", i, i, 1000 + ios, 8 * ios);
    /* By libc's own calls, which do not fail: also while a fault is due. */
    FILE *f = fopen(tempdir_path(t, "diskstats"), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static void make_proc(struct tempdir *t)
{
    write_disks(t, 0);
    tempdir_text(t, "stat", "cpu  1 2 3 4 5 6 7 8\nctxt 9\n");
    tempdir_text(t, "meminfo", "MemTotal: 100 kB\n");
    tempdir_text(t, "net/dev", "eth0: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n");
    tempdir_text(t, "pressure/io", "some total=1\nfull total=1\n");
    for (unsigned pid = 10; pid < 12; pid++) {
        char name[32], text[64];
        snprintf(name, sizeof name, "%u/stat", pid);
        snprintf(text, sizeof text, "%u (x) S %u 1\n", pid, pid - 1);
        tempdir_text(t, name, text);
        snprintf(name, sizeof name, "%u/io", pid);
        tempdir_text(t, name,
                     "rchar: 5\nwchar: 1\nsyscr: 1\nsyscw: 1\nread_bytes: 1\nwrite_bytes: 1\n"
                     "cancelled_write_bytes: 0\n");
    }
}

/* Numbers that were handed out: right, or zero because a reading failed.  `moved` is what the
 * devices did since opening. */
static void check(const struct mr_system_sample *m, unsigned moved)
{
    for (unsigned i = 0; i < m->n_disks; i++) {
        uint64_t ios = m->disks[i].total.side[0].ios;
        if (ios > moved)
            fail_msg("%s: %llu requests", m->disks[i].name, (unsigned long long)ios);
    }
    assert_int_equal(m->total.cpu.ticks[MR_CPU_USER], 0);
    assert_int_equal(m->total.process.count[MR_IO_SYSCR], 0);
}

static int whole_run(struct tempdir *t)
{
    struct mr_sampler *s = NULL;
    struct mr_error err = {0};
    struct mr_sampler_opts o = {.proc_root = t->path, .sys_root = t->path, .process = 10};
    int r = mr_sampler_open(&o, &s, &err);
    if (r) {
        assert_null(s);
        assert_true(err.code == r && err.text[0]);
        return r;
    }
    struct mr_sample_series *k = mr_sample_series_new(NULL, 0);
    for (unsigned i = 1; i <= 2; i++) {
        write_disks(t, i);
        const struct mr_system_sample *m = mr_sampler_take(s);
        check(m, i);
        if (k)
            mr_sample_series_add(k, m);
    }
    mr_sample_series_free(k);
    mr_sampler_close(s);
    return 0;
}

static void fail_each_call_once(struct tempdir *t, enum fault_kind kind)
{
    for (uint64_t n = 1;; n++) {
        write_disks(t, 0);
        int64_t live = faults_live();
        faults_begin(kind, n);
        int r = whole_run(t);
        int hit = faults_end();
        assert_int_equal(faults_live(), live);
        if (kind != FAULT_FAIL)
            assert_int_equal(r, 0);
        if (!hit) {
            assert_int_equal(r, 0);
            assert_true(n > 10);
            return;
        }
    }
}

static void every_call_fails_once(void **state)
{
    make_proc(*state);
    fail_each_call_once(*state, FAULT_FAIL);
}

static void every_call_is_interrupted_once(void **state)
{
    make_proc(*state);
    fail_each_call_once(*state, FAULT_EINTR);
}

static void every_read_is_short_once(void **state)
{
    make_proc(*state);
    fail_each_call_once(*state, FAULT_SHORT);
}

static void ignore(void *ctx, const struct mr_system_sample *s)
{
    (void)ctx;
    (void)s;
}

static void a_thread_that_cannot_start_leaves_nothing(void **state)
{
    struct tempdir *t = *state;
    struct mr_sampler_opts o = {.proc_root = t->path, .sys_root = t->path, .on_sample = ignore};
    make_proc(t);
    for (uint64_t n = 1;; n++) {
        struct mr_sampler *s = NULL;
        int64_t live = faults_live();
        faults_begin(FAULT_FAIL, n);
        int r = mr_sampler_open(&o, &s, NULL);
        int hit = faults_end();
        assert_true((r == 0) == (s != NULL));
        mr_sampler_close(s);
        assert_int_equal(faults_live(), live);
        if (!hit)
            return;
    }
}

static void the_steady_state_allocates_nothing(void **state)
{
    struct tempdir *t = *state;
    struct mr_sampler *s = NULL;
    struct mr_sampler_opts o = {.proc_root = t->path, .sys_root = t->path, .process = 10};
    make_proc(t);
    assert_int_equal(mr_sampler_open(&o, &s, NULL), 0);
    mr_sampler_take(s);
    uint64_t before = faults_n_allocations();
    for (unsigned i = 0; i < 50; i++)
        mr_sampler_take(s);
    assert_int_equal(faults_n_allocations() - before, 0);
    mr_sampler_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(every_call_fails_once),
        WITH_TEMPDIR(every_call_is_interrupted_once),
        WITH_TEMPDIR(every_read_is_short_once),
        WITH_TEMPDIR(a_thread_that_cannot_start_leaves_nothing),
        WITH_TEMPDIR(the_steady_state_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
