/* test_faults.c - every fallible call of store, format, dataset and pipeline fails once; nothing
 * leaks, nothing half-made is handed out, and what could be delivered is right. */
#include "unit.h"

#include "buffer.h"
#include "device_profile.h"
#include "faults.h"
#include "memory_store.h"
#include "photo_set.h"
#include "sample_set.h"
#include "sanitizers.h"

#include <millrace/store.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N 40

static char set_path[512], list_path[512];
static int n_before_break;
static struct mr_store *memory; /* where the data set is; NULL: in files */

static struct mr_pipeline_opts opts(enum mr_engine engine)
{
    return (struct mr_pipeline_opts){.engine = engine,
                                     .threads = 2,
                                     .io_depth = 4,
                                     .batch = 8,
                                     .seed = 3,
                                     .max_file_bytes = PHOTO_TOO_LARGE,
                                     .max_error_count = 100};
}

static int check_sample(void *ctx, const struct mr_map_input *in, void *slot)
{
    (void)ctx;
    return photo_set_is(in->bytes, in->len, slot) ? 0 : -EBADMSG;
}

/* Open, draw everything, close.  0, or the error of whichever step failed. */
static int whole_run(const char *path, const struct mr_pipeline_opts *o)
{
    struct mr_dataset *d = NULL;
    struct mr_pipeline *p = NULL;
    struct mr_batch *b;
    struct mr_error err = {0};
    int r =
        memory ? mr_dataset_open_in(memory, path, NULL, &d, &err) : mr_dataset_open(path, &d, &err);
    if (r) {
        assert_null(d);
        assert_true(err.code == r && err.text[0]);
        return r;
    }
    r = mr_pipeline_open(d, o, &p, &err);
    if (r) {
        assert_null(p);
        assert_true(err.code == r && err.text[0]);
        mr_dataset_unref(d);
        return r;
    }
    unsigned n_epochs = o->epochs ? o->epochs : 1;
    while ((r = mr_pipeline_next(p, &b)) == 1 || (!r && --n_epochs)) {
        uint64_t which;
        if (!r)
            continue;
        for (unsigned i = 0; i < b->n && !o->map; i++)
            if (!photo_set_is(b->samples[i].data, b->samples[i].len, &which))
                fail_msg("batch %llu, slot %u: wrong bytes, %zu of them",
                         (unsigned long long)b->number, i, b->samples[i].len);
        mr_batch_unref(b);
    }
    if (r < 0)
        assert_true(mr_pipeline_error(p)[0]);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
    return r;
}

/* Fail call 1, 2, 3, ... until a run gets through without a failure.  ThreadSanitizer, under which
 * that takes minutes, sees some of them. */
static void loop(const char *path, const struct mr_pipeline_opts *o, enum fault_kind kind,
                 int may_fail)
{
    for (uint64_t at = 1;; at += MR_TSAN ? 4 : 1) {
        int64_t before = faults_live();
        faults_begin(kind, at);
        int r = whole_run(path, o);
        int hit = faults_end();
        if (r && (!hit || !may_fail))
            fail_msg("call %llu: %d", (unsigned long long)at, r);
        if (faults_live() != before)
            fail_msg("call %llu leaves %lld things behind", (unsigned long long)at,
                     (long long)(faults_live() - before));
        if (!hit)
            return;
        assert_in_range(at, 1, 100000);
    }
}

static void make_set(struct tempdir *t)
{
    photo_set_write(t, N);
    snprintf(set_path, sizeof set_path, "%s/set", t->path);
    snprintf(list_path, sizeof list_path, "%s", photo_set_list(t, N, 9));
}

static void every_call_may_fail_once_threads(void **state)
{
    make_set(*state);
    struct mr_pipeline_opts o = opts(MR_ENGINE_THREADS);
    loop(set_path, &o, FAULT_FAIL, 1);
    loop(list_path, &o, FAULT_FAIL, 1);
    o.map = check_sample;
    o.map_bytes = 8;
    o.shuffle = MR_SHUFFLE_WINDOW;
    loop(list_path, &o, FAULT_FAIL, 1);
}

/* The same without any file: what can fail is the pipeline's own. */
static void every_call_may_fail_once_in_memory(void **state)
{
    struct mr_store *files;
    struct mr_buffer bytes = {0};
    const char *name;
    char path[64];
    size_t len;
    make_set(*state);
    assert_int_equal(mr_store_open(set_path, &files, &name, NULL), 0);
    struct mr_dataset *d = photo_set_open(set_path);
    assert_int_equal(mr_memory_store_new(&memory), 0);
    for (uint64_t i = 0; i < mr_dataset_size(d); i++) {
        enum mr_stage stage;
        snprintf(path, sizeof path, "set/%u/%llu", mr_dataset_label(d, i), (unsigned long long)i);
        assert_int_equal(mr_dataset_load(d, i, SIZE_MAX / 4, &bytes, &len, &stage), 0);
        assert_int_equal(mr_memory_store_add(memory, path, bytes.data, len), 0);
    }
    mr_dataset_unref(d);
    mr_store_unref(files);
    mr_buffer_fini(&bytes);
    for (int e = 0; e < 2; e++) {
        struct mr_pipeline_opts o = opts(e ? MR_ENGINE_URING : MR_ENGINE_THREADS);
        loop("set", &o, FAULT_FAIL, 1);
        o.map = check_sample;
        o.map_bytes = 8;
        loop("set", &o, FAULT_FAIL, 1);
    }
    mr_store_unref(memory);
    memory = NULL;
}

/* Files whose sizes are known: with a table of descriptors of its own, and with a user's map, which
 * has the process's. */
static void every_call_may_fail_once_in_later_epochs(void **state)
{
    make_set(*state);
    for (int e = 0; e < 2; e++) {
        struct mr_pipeline_opts o = opts(e ? MR_ENGINE_URING : MR_ENGINE_THREADS);
        o.epochs = 2;
        loop(list_path, &o, FAULT_FAIL, 1);
        o.batch = 1;
        loop(set_path, &o, FAULT_FAIL, 1);
        o.map = check_sample;
        o.map_bytes = 8;
        loop(list_path, &o, FAULT_FAIL, 1);
    }
}

/* A device so quick that a run with it takes no longer, but everything is charged and held. */
static const char quick_profile[] = "name = quick\nread_mb_per_s = 10000\nwrite_mb_per_s = 10000\n"
                                    "read_latency_us = 60\nmetadata_us = 40\nseek_us = 20\n";

static void every_call_may_fail_once_with_an_emulated_device(void **state)
{
    struct tempdir *t = *state;
    char profile[512];
    make_set(t);
    snprintf(profile, sizeof profile, "%s", tempdir_text(t, "quick", quick_profile));
    for (uint64_t at = 1;; at++) { /* opening the device itself */
        struct mr_device *d = NULL;
        struct mr_error err = {0};
        int64_t before = faults_live();
        faults_begin(FAULT_FAIL, at);
        int r = mr_device_open(profile, &d, &err), hit = faults_end();
        assert_int_equal(r != 0, hit);
        assert_int_equal(d == NULL, hit);
        assert_int_equal(err.code, r);
        mr_device_close(d);
        assert_int_equal(faults_live(), before);
        if (!hit)
            break;
    }
    struct mr_device *d = NULL;
    assert_int_equal(mr_device_open(profile, &d, NULL), 0);
    for (int e = 0; e < 2; e++) {
        struct mr_pipeline_opts o = opts(e ? MR_ENGINE_URING : MR_ENGINE_THREADS);
        o.storage = d;
        if (whole_run(set_path, &o) == -ENOTSUP)
            break;
        loop(list_path, &o, FAULT_FAIL, 1);
        loop(list_path, &o, FAULT_EINTR, 0);
        o.map = check_sample;
        o.map_bytes = 8;
        loop(list_path, &o, FAULT_FAIL, 1);
    }
    mr_device_close(d);
}

/* A profile is there as it was, or as it is to be, and nothing beside it. */
static void a_profile_is_saved_or_stays_as_it_was(void **state)
{
    struct tempdir *t = *state;
    struct mr_device_profile p, q;
    char path[512];
    assert_int_equal(mr_device_profile_parse(quick_profile, strlen(quick_profile), "x", &p, NULL),
                     0);
    snprintf(path, sizeof path, "%s", tempdir_text(t, "saved", "old"));
    for (int kind = FAULT_FAIL; kind <= FAULT_SHORT; kind++) {
        int hit = 1;
        for (uint64_t at = 1; hit; at++) {
            struct mr_error err = {0};
            int64_t before = faults_live();
            tempdir_text(t, "saved", "old");
            faults_begin(kind, at);
            int r = mr_device_profile_save(&p, path, &err);
            hit = faults_end();
            assert_true(!r || (hit && kind != FAULT_SHORT && err.code == r && err.text[0]));
            assert_int_equal(mr_device_profile_load(path, &q, NULL) == 0, !r);
            assert_int_equal(tempdir_count(t->path), 1);
            assert_int_equal(faults_live(), before);
            assert_in_range(at, 1, 100);
        }
    }
}

static void every_call_may_fail_once_uring(void **state)
{
    make_set(*state);
    struct mr_pipeline_opts o = opts(MR_ENGINE_URING);
    if (whole_run(set_path, &o) == -ENOTSUP)
        skip();
    loop(list_path, &o, FAULT_FAIL, 1);
    faults_refuse_openat2(EAGAIN); /* all by chains */
    loop(list_path, &o, FAULT_FAIL, 1);
    faults_refuse_openat2(0);
    o.map = check_sample;
    o.map_bytes = 8;
    loop(list_path, &o, FAULT_FAIL, 1);
}

static void interruptions_and_short_reads_are_continued(void **state)
{
    make_set(*state);
    struct mr_pipeline_opts o = opts(MR_ENGINE_THREADS);
    loop(list_path, &o, FAULT_EINTR, 0);
    loop(list_path, &o, FAULT_SHORT, 0);
    o.engine = MR_ENGINE_URING;
    if (whole_run(set_path, &o) == -ENOTSUP)
        return;
    loop(list_path, &o, FAULT_EINTR, 0);
    faults_refuse_openat2(EPERM); /* a sandbox: never asked again */
    loop(list_path, &o, FAULT_EINTR, 0);
    faults_refuse_openat2(0);
}

/* Draw the set with the n-th read broken; the reasons seen, as "reason:n;". */
static void reasons_of_run(struct mr_pipeline_opts o, char *out)
{
    struct mr_dataset *d = photo_set_open(set_path);
    struct mr_pipeline *p = NULL;
    struct mr_batch *b;
    struct mr_pipeline_stats s;
    uint64_t which;
    o.start_on_next = 1;
    assert_int_equal(mr_pipeline_open(d, &o, &p, NULL), 0);
    while (mr_pipeline_next(p, &b) == 1) {
        for (unsigned i = 0; i < b->n; i++)
            assert_true(photo_set_is(b->samples[i].data, b->samples[i].len, &which));
        mr_batch_unref(b);
    }
    mr_pipeline_get_stats(p, &s);
    *out = 0;
    for (unsigned i = 0; s.errors[i].reason; i++)
        sprintf(out + strlen(out), "%s:%llu;", s.errors[i].reason,
                (unsigned long long)s.errors[i].n);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

static void break_completions_of_all_kinds(struct mr_pipeline_opts o)
{
    char reasons[256];
    /* Each of two rings reads once for its trial: number 10 is a sample. */
    faults_break_completion(10, -EIO);
    reasons_of_run(o, reasons);
    assert_string_equal(reasons, "I/O error:1;");
    faults_break_completion(10, 1); /* one byte: read on */
    reasons_of_run(o, reasons);
    assert_string_equal(reasons, "");
    faults_break_completion(10, -EINTR);
    reasons_of_run(o, reasons);
    assert_string_equal(reasons, "");
    faults_break_completion(10, -EAGAIN);
    reasons_of_run(o, reasons);
    assert_string_equal(reasons, "");
    faults_break_completion(10, -ECANCELED);
    reasons_of_run(o, reasons);
    assert_string_equal(reasons, "");
    o.direct = 1; /* a file that refuses it is read without */
    faults_break_completion(10, -EINVAL);
    reasons_of_run(o, reasons);
    assert_string_equal(reasons, "");
    faults_break_completion(10, 1);
    reasons_of_run(o, reasons);
    assert_string_equal(reasons, "");
    faults_break_completion(0, 0);
}

static void a_failed_or_short_completion_of_a_ring_is_handled(void **state)
{
    make_set(*state);
    struct mr_pipeline_opts o = opts(MR_ENGINE_URING);
    if (whole_run(set_path, &o) == -ENOTSUP)
        skip();
    break_completions_of_all_kinds(o);
    faults_refuse_openat2(EAGAIN);
    break_completions_of_all_kinds(o);
    faults_refuse_openat2(0);
}

/* ---- a file that the device cannot read ---- */

struct naming {
    unsigned n;
    int code;
    char stage[16], path[512];
    uint64_t index;
    int is_replaced;
};

static void keep_name(void *ctx, const struct mr_bad_sample *bad)
{
    struct naming *to = ctx;
    to->n++;
    to->code = bad->code;
    to->index = bad->index;
    to->is_replaced = bad->substitute && strcmp(bad->substitute, bad->path);
    snprintf(to->stage, sizeof to->stage, "%s", bad->stage);
    snprintf(to->path, sizeof to->path, "%s", bad->path);
}

static void break_a_read(void)
{
    if (n_before_break-- == 0)
        faults_begin(FAULT_FAIL, 1);
}

static void a_read_error_is_replaced_and_named_in_both_engines(void **state)
{
    make_set(*state);
    for (int e = 0; e < 2; e++) {
        struct naming named = {0};
        struct mr_pipeline_opts o = opts(e ? MR_ENGINE_URING : MR_ENGINE_THREADS);
        if (e && whole_run(set_path, &o) == -ENOTSUP)
            return;
        /* In listed order, one at a time: the sixth read is that of sample 5. */
        o.shuffle = MR_SHUFFLE_NONE;
        o.threads = o.io_depth = 1;
        o.on_error = keep_name;
        o.on_error_ctx = &named;
        n_before_break = 5;
        faults_before_read = e ? NULL : break_a_read;
        faults_break_completion(e ? 1 + 6 : 0, -EIO); /* the ring's trial is the first */
        char reasons[256];
        char path[512];
        struct mr_dataset *d = photo_set_open(set_path);
        assert_true(mr_dataset_name(d, 5, path, sizeof path) >= 0);
        mr_dataset_unref(d);
        reasons_of_run(o, reasons);
        faults_before_read = NULL;
        faults_break_completion(0, 0);
        assert_true(faults_end() || e);
        assert_string_equal(reasons, "I/O error:1;");
        assert_int_equal(named.n, 1);
        assert_int_equal(named.code, -EIO);
        assert_string_equal(named.stage, "read");
        assert_int_equal(named.index, 5);
        assert_true(named.is_replaced);
        assert_string_equal(named.path, path);
    }
}

static char victim[600];
static int n_before_cut;

static void cut_victim(void)
{
    if (n_before_cut-- == 0)
        assert_int_equal(truncate(victim, 17), 0);
}

static void a_file_that_shrinks_while_it_is_read_is_a_bad_sample(void **state)
{
    char reasons[256];
    make_set(*state);
    /* In listed order by one worker, so that it is known which read is the victim's. */
    struct mr_pipeline_opts o = opts(MR_ENGINE_THREADS);
    o.shuffle = MR_SHUFFLE_NONE;
    o.threads = 1;
    snprintf(victim, sizeof victim, "%s/a/0003.jpg", set_path);
    n_before_cut = 1; /* read 0 is a/0000.jpg */
    faults_before_read = cut_victim;
    reasons_of_run(o, reasons);
    faults_before_read = NULL;
    assert_string_equal(reasons, "truncated:1;");

    make_set(*state);
    o.engine = MR_ENGINE_URING;
    o.io_depth = 1;
    if (whole_run(set_path, &o) == -ENOTSUP)
        return;
    n_before_cut = 2; /* statx 0 is the ring's trial, 1 is a/0000.jpg */
    faults_before_statx = cut_victim;
    faults_refuse_openat2(EAGAIN); /* a file that is opened ahead: see test_uring_reader.c */
    reasons_of_run(o, reasons);
    faults_refuse_openat2(0);
    faults_before_statx = NULL;
    assert_string_equal(reasons, "truncated:1;");
}

static void the_steady_state_allocates_nothing(void **state)
{
    photo_set_write(*state, 36); /* no large file: those may still grow a buffer they had not met */
    snprintf(set_path, sizeof set_path, "%s/set", ((struct tempdir *)*state)->path);
    struct mr_device *device = NULL;
    assert_int_equal(mr_device_open(tempdir_text(*state, "quick", quick_profile), &device, NULL),
                     0);
    for (int e = 0; e < 2; e++)
        for (int mapped = 0; mapped < 4; mapped++) {
            struct mr_dataset *d = photo_set_open(set_path);
            struct mr_pipeline_opts o = opts(e ? MR_ENGINE_URING : MR_ENGINE_THREADS);
            struct mr_pipeline *p = NULL;
            struct mr_batch *b;
            uint64_t before = 0;
            o.epochs = 100;
            o.map = mapped % 2 ? check_sample : NULL;
            o.map_bytes = 8;
            o.storage = mapped / 2 ? device : NULL;
            if (mr_pipeline_open(d, &o, &p, NULL) == -ENOTSUP) {
                mr_dataset_unref(d);
                continue;
            }
            unsigned n = 0;
            while (n < 300) {
                if (mr_pipeline_next(p, &b) != 1)
                    continue;
                if (n == 10)
                    before = faults_n_allocations();
                mr_batch_unref(b);
                n++;
            }
            uint64_t n_allocations = faults_n_allocations() - before;
            mr_pipeline_close(p);
            mr_dataset_unref(d);
            assert_int_equal(n_allocations, 0);
        }
    mr_device_close(device);
}

static void a_thousand_failing_chains_leave_no_descriptor(void **state)
{
    struct tempdir *t = *state;
    make_set(t);
    char list[8192] = "", fdinfo[128], line[256];
    for (int i = 0; i < 64; i++) {
        const char *kind[] = {"set/missing.jpg", "set/a", "set/empty.jpg", "set/pipe"};
        sprintf(list + strlen(list), "%s,0\n", i % 2 ? "set/a/0000.jpg" : kind[i / 2 % 4]);
    }
    struct mr_dataset *d = photo_set_open(tempdir_text(t, "bad.csv", list));
    struct mr_pipeline_opts o = opts(MR_ENGINE_URING);
    struct mr_pipeline *p = NULL;
    struct mr_batch *b;
    o.max_error_count = 1000000;
    o.epochs = 40;
    o.threads = 1;
    int before = dup(0); /* the ring's descriptor will be this one */
    close(before);
    if (mr_pipeline_open(d, &o, &p, NULL) == -ENOTSUP) {
        mr_dataset_unref(d);
        skip();
    }
    int r = 1, ends = 0;
    while (ends < 40 && r >= 0) {
        r = mr_pipeline_next(p, &b);
        if (r == 1)
            mr_batch_unref(b);
        else
            ends++;
    }
    struct mr_pipeline_stats s;
    mr_pipeline_get_stats(p, &s);
    uint64_t n_failed = 0;
    for (unsigned i = 0; s.errors[i].reason; i++)
        n_failed += s.errors[i].n;
    snprintf(fdinfo, sizeof fdinfo, "/proc/self/fdinfo/%d", before);
    FILE *f = fopen(fdinfo, "r");
    assert_non_null(f);
    int user_files = 0, n_held = 0;
    while (fgets(line, sizeof line, f)) {
        user_files |= !strncmp(line, "UserFiles:", 10);
        n_held += strstr(line, "set/") != NULL;
    }
    fclose(f);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
    assert_true(user_files);
    assert_int_equal(n_held, 0);
    assert_true(n_failed > 1000);
    int after = dup(0);
    close(after);
    assert_int_equal(after, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(every_call_may_fail_once_threads),
        WITH_TEMPDIR(every_call_may_fail_once_in_memory),
        WITH_TEMPDIR(every_call_may_fail_once_uring),
        WITH_TEMPDIR(every_call_may_fail_once_in_later_epochs),
        WITH_TEMPDIR(every_call_may_fail_once_with_an_emulated_device),
        WITH_TEMPDIR(a_profile_is_saved_or_stays_as_it_was),
        WITH_TEMPDIR(interruptions_and_short_reads_are_continued),
        WITH_TEMPDIR(a_failed_or_short_completion_of_a_ring_is_handled),
        WITH_TEMPDIR(a_read_error_is_replaced_and_named_in_both_engines),
        WITH_TEMPDIR(a_file_that_shrinks_while_it_is_read_is_a_bad_sample),
        WITH_TEMPDIR(the_steady_state_allocates_nothing),
        WITH_TEMPDIR(a_thousand_failing_chains_leave_no_descriptor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
