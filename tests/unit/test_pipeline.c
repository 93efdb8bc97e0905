/* test_pipeline.c - batches, order, bad samples and limits, over both engines.
 * MILLRACE_ENGINE=threads or uring chooses the engine; the build runs the program once for each. */
#include "unit.h"

#include "mapping.h"
#include "photo_set.h"
#include "uring_reader.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define N 300

static void an_epoch_delivers_every_file_once_and_whole(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, N);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct mr_pipeline_opts o = photo_set_opts();
    o.keep_last = 1;
    o.epochs = 2;
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    struct mr_batch *b;
    for (unsigned epoch = 0; epoch < 2; epoch++) {
        unsigned seen[N] = {0}, n = 0;
        int r;
        while ((r = mr_pipeline_next(p, &b)) == 1) {
            assert_int_equal(b->epoch, epoch);
            for (unsigned i = 0; i < b->n; i++, n++) {
                uint64_t which;
                assert_true(photo_set_is(b->samples[i].data, b->samples[i].len, &which));
                assert_int_equal(b->samples[i].label, which % 3);
                seen[which]++;
            }
            mr_batch_unref(b);
        }
        assert_int_equal(r, 0);
        assert_int_equal(n, N);
        for (unsigned i = 0; i < N; i++)
            assert_int_equal(seen[i], 1);
    }
    assert_int_equal(mr_pipeline_next(p, &b), 0);
    assert_int_equal(mr_pipeline_n_samples(p), 2 * N);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

static void batches_do_not_depend_on_threads_or_prefetch_even_with_bad_files(void **state)
{
    static const unsigned threads[] = {1, 2, 4, 8}, prefetch[] = {MR_NONE, 1, 4};
    struct tempdir *t = *state;
    photo_set_write(t, N);
    struct mr_dataset *d = photo_set_open(photo_set_list(t, N, 7));
    struct mr_pipeline_opts o = photo_set_opts();
    o.max_error_share = 0.5;
    o.epochs = 2;
    /* The reference: the other engine where there is one. */
    o.engine = MR_ENGINE_THREADS;
    int r;
    uint64_t want = photo_set_hash(d, &o, &r);
    assert_int_equal(r, 0);
    o.engine = photo_set_engine;
    for (unsigned i = 0; i < 4; i++)
        for (unsigned k = 0; k < 3; k++) {
            o.threads = threads[i];
            o.prefetch = prefetch[k];
            assert_int_equal(photo_set_hash(d, &o, &r), want);
        }
    o.direct = 1;
    assert_int_equal(photo_set_hash(d, &o, &r), want);
    o.seed = 2;
    assert_int_not_equal(photo_set_hash(d, &o, &r), want);
    mr_dataset_unref(d);
}

struct noted {
    unsigned n, n_substituted;
    uint64_t last_place;
    char reasons[512];
};

static void note(void *ctx, const struct mr_bad_sample *bad)
{
    struct noted *s = ctx;
    uint64_t place = (bad->batch * 1000 + bad->slot) * 100 + bad->attempt;
    assert_true(s->n == 0 || place > s->last_place); /* in order */
    s->last_place = place;
    s->n++;
    s->n_substituted += bad->substitute != NULL;
    assert_true(bad->code < 0);
    assert_non_null(strstr(bad->path, "set"));
    if (!strstr(s->reasons, bad->reason)) {
        strcat(s->reasons, bad->reason);
        strcat(s->reasons, ";");
    }
}

static void each_kind_of_bad_file_is_replaced_and_named(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, N);
    struct mr_dataset *d = photo_set_open(photo_set_list(t, N, 6));
    struct mr_pipeline_opts o = photo_set_opts();
    struct noted noted = {0};
    o.keep_last = 1;
    o.max_error_share = 0.5;
    o.on_error = note;
    o.on_error_ctx = &noted;
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    struct mr_batch *b;
    int r;
    while ((r = mr_pipeline_next(p, &b)) == 1) {
        uint64_t which;
        for (unsigned i = 0; i < b->n; i++)
            assert_true(photo_set_is(b->samples[i].data, b->samples[i].len, &which));
        mr_batch_unref(b);
    }
    assert_int_equal(r, 0);
    struct mr_pipeline_stats s;
    mr_pipeline_get_stats(p, &s);
    assert_int_equal(s.replaced, N / 6);
    assert_int_equal(s.samples, N);
    assert_true(noted.n >= N / 6);
    assert_int_equal(noted.n_substituted, noted.n);
    uint64_t sum = 0;
    for (unsigned i = 0; s.errors[i].reason; i++) {
        assert_non_null(strstr(noted.reasons, s.errors[i].reason));
        sum += s.errors[i].n;
    }
    assert_int_equal(sum, noted.n);
    assert_non_null(strstr(noted.reasons, "missing;"));
    assert_non_null(strstr(noted.reasons, "directory;"));
    assert_non_null(strstr(noted.reasons, "empty;"));
    assert_non_null(strstr(noted.reasons, "not a file;"));
    assert_non_null(strstr(noted.reasons, "too large;"));
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

static int read_as_stranger(void *arg)
{
    struct mr_dataset *d = NULL;
    struct mr_pipeline_opts o = photo_set_opts();
    struct noted noted = {0};
    int r;
    o.on_error = note;
    o.on_error_ctx = &noted;
    o.max_error_share = 0.5;
    if (mr_dataset_open(arg, &d, NULL))
        return 1;
    photo_set_hash(d, &o, &r);
    mr_dataset_unref(d);
    return r || strcmp(noted.reasons, "permission;");
}

static void a_file_without_permission_is_replaced(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 64);
    assert_int_equal(chmod(tempdir_path(t, "set/a/0003.jpg"), 0), 0);
    assert_int_equal(chmod(t->path, 0755), 0);
    char path[512];
    snprintf(path, sizeof path, "%s/set", t->path);
    assert_int_equal(as_stranger(read_as_stranger, path), 0);
}

static void on_error_fail_stops_at_the_first_bad_sample_and_names_it(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, N);
    struct mr_dataset *d = photo_set_open(photo_set_list(t, N, 50));
    struct mr_pipeline_opts o = photo_set_opts();
    o.shuffle = MR_SHUFFLE_NONE;
    o.on_error_policy = MR_ON_ERROR_FAIL;
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    struct mr_batch *b;
    struct mr_position at;
    for (unsigned i = 0; i < 3; i++) { /* line 50 is in the fourth batch */
        assert_int_equal(mr_pipeline_next(p, &b), 1);
        mr_batch_unref(b);
    }
    assert_int_equal(mr_pipeline_next(p, &b), -ENOENT);
    assert_int_equal(mr_pipeline_next(p, &b), -ENOENT);
    assert_non_null(strstr(mr_pipeline_error(p), "set/missing.jpg"));
    mr_pipeline_position(p, &at);
    assert_int_equal(at.samples, 48);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

static void too_many_bad_samples_end_the_run_with_the_count(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, N);
    struct mr_dataset *d = photo_set_open(photo_set_list(t, N, 4));
    struct mr_pipeline_opts o = photo_set_opts();
    int r;
    photo_set_hash(d, &o, &r); /* 25% bad, 10% allowed */
    assert_int_equal(r, -EBADMSG);
    o.max_error_count = 1000;
    photo_set_hash(d, &o, &r);
    assert_int_equal(r, 0);
    o.max_error_count = 0;
    o.max_error_share = -1;
    photo_set_hash(d, &o, &r);
    assert_int_equal(r, -EBADMSG);
    mr_dataset_unref(d);
}

/* Three of four are bad, so substitutes are too: three bad ones are tried for each good one. */
static void the_budget_is_a_share_of_the_samples_that_were_tried(void **state)
{
    struct tempdir *t = *state;
    char list[40 * 100] = "";
    photo_set_write(t, 4);
    for (int i = 0; i < 100; i++)
        sprintf(list + strlen(list), i % 4 ? "gone-%d.jpg,0\n" : "set/a/0000.jpg,0\n", i);
    struct mr_dataset *d = photo_set_open(tempdir_text(t, "list.csv", list));
    struct mr_pipeline_opts o = photo_set_opts();
    int r;
    o.epochs = 10;
    o.max_error_share = 0.6;
    photo_set_hash(d, &o, &r);
    assert_int_equal(r, -EBADMSG);
    o.max_error_share = 0.9;
    photo_set_hash(d, &o, &r);
    assert_int_equal(r, 0);
    o.max_error_share = 1;
    photo_set_hash(d, &o, &r);
    assert_int_equal(r, 0);
    mr_dataset_unref(d);
}

static void a_data_set_of_nothing_but_bad_files_ends_soon(void **state)
{
    struct tempdir *t = *state;
    char list[4096] = "";
    for (int i = 0; i < 100; i++)
        sprintf(list + strlen(list), "gone-%d.jpg,0\n", i);
    struct mr_dataset *d = photo_set_open(tempdir_text(t, "list.csv", list));
    struct mr_pipeline_opts o = photo_set_opts();
    int r;
    o.max_error_share = 1;
    o.max_error_count = 1000000;
    photo_set_hash(d, &o, &r);
    assert_int_equal(r, -ENOENT);
    mr_dataset_unref(d);
}

static int reject_every_third(void *ctx, const struct mr_map_input *in, void *slot)
{
    uint64_t which;
    (void)ctx;
    if (!photo_set_is(in->bytes, in->len, &which))
        return -EIO;
    if (which % 3 == 2)
        return -EBADMSG;
    memcpy(slot, &which, sizeof which);
    memcpy((char *)slot + 8, &in->key, sizeof in->key);
    return in->label == which % 3 && in->worker < 3 ? 0 : -EINVAL;
}

static void a_map_fills_slots_and_its_failures_are_replaced(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, N);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct mr_pipeline_opts o = photo_set_opts();
    o.map = reject_every_third;
    o.map_bytes = 16;
    o.max_error_share = 1;
    o.epochs = 2;
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    struct mr_batch *b;
    unsigned ends = 0;
    uint64_t n = 0, last_key = 0;
    int r = 0;
    while (ends < 2 && (r = mr_pipeline_next(p, &b)) >= 0) {
        if (!r) {
            ends++;
            continue;
        }
        assert_int_equal(b->sample_bytes, 16);
        for (unsigned i = 0; i < b->n; i++, n++) {
            uint64_t which, key;
            memcpy(&which, b->data + 16 * i, 8);
            memcpy(&key, b->data + 16 * i + 8, 8);
            assert_ptr_equal(b->samples[i].data, b->data + 16 * i);
            assert_int_not_equal(which % 3, 2);
            assert_int_not_equal(key, last_key);
            last_key = key;
        }
        mr_batch_unref(b);
    }
    struct mr_pipeline_stats s;
    mr_pipeline_get_stats(p, &s);
    assert_int_equal(n, 2 * (N / 16 * 16));
    assert_string_equal(s.errors[0].reason, "corrupt");
    assert_null(s.errors[1].reason);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

static void no_op(int sig)
{
    (void)sig;
}

static void a_storm_of_signals_changes_nothing(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 200);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct mr_pipeline_opts o = photo_set_opts();
    int r;
    uint64_t want = photo_set_hash(d, &o, &r);
    struct sigaction act = {.sa_handler = no_op}, was; /* without SA_RESTART */
    struct itimerval storm = {{0, 200}, {0, 200}}, calm = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &act, &was);
    setitimer(ITIMER_REAL, &storm, NULL);
    unsigned n_equal = 0;
    for (int i = 0; i < 10; i++)
        n_equal += photo_set_hash(d, &o, &r) == want;
    setitimer(ITIMER_REAL, &calm, NULL);
    sigaction(SIGALRM, &was, NULL);
    assert_int_equal(n_equal, 10);
    mr_dataset_unref(d);
}

/* A wake-up that is missing would make one of these hang. */
static void no_worker_sleeps_while_there_is_work(void **state)
{
    static const unsigned threads[] = {1, 2, 8}, prefetch[] = {MR_NONE, 1, 4}, hold[] = {1, 3};
    struct tempdir *t = *state;
    photo_set_write(t, 60);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    for (unsigned i = 0; i < 3 * 3 * 2 * 2; i++) {
        struct mr_pipeline_opts o = photo_set_opts();
        o.threads = threads[i % 3];
        o.prefetch = prefetch[i / 3 % 3];
        o.hold = hold[i / 9 % 2];
        o.batch = i / 18 ? 7 : 1;
        o.keep_last = 1;
        o.epochs = 3;
        struct mr_pipeline *p = photo_set_pipeline(d, &o);
        struct mr_batch *held[3] = {0};
        uint64_t n = 0;
        for (unsigned k = 0, ends = 0; ends < 3; k++) {
            struct mr_batch **b = &held[k % o.hold];
            mr_batch_unref(*b); /* the oldest; all others stay out */
            *b = NULL;
            int r = mr_pipeline_next(p, b);
            assert_true(r >= 0);
            n += r ? (*b)->n : 0;
            ends += !r;
        }
        for (unsigned k = 0; k < 3; k++)
            mr_batch_unref(held[k]);
        assert_int_equal(n, 3 * 60);
        mr_pipeline_close(p);
    }
    mr_dataset_unref(d);
}

static void a_consumer_may_hold_as_many_batches_as_it_said(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 100);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct mr_pipeline_opts o = photo_set_opts();
    o.hold = 2;
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    struct mr_batch *a, *b, *c;
    assert_int_equal(mr_pipeline_next(p, &a), 1);
    assert_int_equal(mr_pipeline_next(p, &b), 1);
    assert_int_equal(mr_pipeline_next(p, &c), -EBUSY);
    mr_batch_unref(b);
    assert_int_equal(mr_pipeline_next(p, &c), 1);
    assert_int_equal(c->number, 2);
    mr_batch_ref(c);
    mr_batch_unref(c);
    mr_pipeline_close(p);
    /* Still valid after the pipeline is gone. */
    uint64_t which;
    assert_true(photo_set_is(a->samples[0].data, a->samples[0].len, &which));
    assert_true(photo_set_is(c->samples[15].data, c->samples[15].len, &which));
    mr_batch_unref(a);
    mr_batch_unref(c);
    mr_batch_unref(NULL);
    mr_pipeline_close(NULL);
    mr_dataset_unref(d);
}

static int always(void *ctx)
{
    (void)ctx;
    return 1;
}

struct gate {
    pthread_mutex_t mu;
    pthread_cond_t opened;
    int open;
};

static int wait_at_gate(void *ctx, const struct mr_map_input *in, void *slot)
{
    struct gate *g = ctx;
    (void)in;
    (void)slot;
    pthread_mutex_lock(&g->mu);
    while (!g->open)
        pthread_cond_wait(&g->opened, &g->mu);
    pthread_mutex_unlock(&g->mu);
    return 0;
}

static void a_wait_can_be_interrupted(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 40);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    struct mr_pipeline_opts o = photo_set_opts();
    o.map = wait_at_gate;
    o.map_ctx = &g;
    o.map_bytes = 8;
    o.should_stop = always;
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    struct mr_batch *b;
    assert_int_equal(mr_pipeline_next(p, &b), -ECANCELED);
    assert_string_equal(mr_pipeline_error(p), "interrupted");
    pthread_mutex_lock(&g.mu);
    g.open = 1;
    pthread_cond_broadcast(&g.opened);
    pthread_mutex_unlock(&g.mu);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

static int take_its_time(void *ctx, const struct mr_map_input *in, void *slot)
{
    (void)ctx;
    (void)in;
    (void)slot;
    usleep(30000);
    return 0;
}

/* Each wait is shorter than the time after which it is asked whether to stop. */
static void short_waits_can_be_interrupted(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 40);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct mr_pipeline_opts o = photo_set_opts();
    o.map = take_its_time;
    o.map_bytes = 8;
    o.batch = o.threads = 1;
    o.prefetch = MR_NONE;
    o.should_stop = always;
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    struct mr_batch *b;
    int r;
    while ((r = mr_pipeline_next(p, &b)) == 1)
        mr_batch_unref(b);
    assert_int_equal(r, -ECANCELED);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

/* What is known of a file from the last time is a hint: whatever became of it since is seen as by
 * somebody who has never read it. */
static void files_that_change_between_epochs_are_read_as_they_are(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 60);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct mr_pipeline_opts o = photo_set_opts();
    o.max_error_share = 0.5;
    int r;
    uint64_t before = photo_set_hash(d, &o, &r);
    assert_int_equal(photo_set_hash(d, &o, &r), before);
    assert_int_equal(truncate(tempdir_path(t, "set/a/0000.jpg"), 9), 0);
    assert_int_equal(truncate(tempdir_path(t, "set/b/0001.jpg"), 90000), 0);
    assert_int_equal(truncate(tempdir_path(t, "set/c/0002.jpg"), PHOTO_TOO_LARGE + 1), 0);
    assert_int_equal(truncate(tempdir_path(t, "set/a/0003.jpg"), 0), 0);
    assert_int_equal(unlink(tempdir_path(t, "set/b/0004.jpg")), 0);
    assert_int_equal(unlink(tempdir_path(t, "set/c/0005.jpg")), 0);
    tempdir_mkdir(t, "set/c/0005.jpg");
    assert_int_equal(unlink(tempdir_path(t, "set/a/0006.jpg")), 0);
    assert_int_equal(mkfifo(tempdir_path(t, "set/a/0006.jpg"), 0666), 0);
    struct stat st;
    assert_int_equal(stat(tempdir_path(t, "set/b/0007.jpg"), &st), 0);
    assert_int_equal(truncate(tempdir_path(t, "set/b/0007.jpg"), st.st_size + 1), 0);
    assert_int_equal(stat(tempdir_path(t, "set/c/0008.jpg"), &st), 0);
    assert_int_equal(truncate(tempdir_path(t, "set/c/0008.jpg"), st.st_size - 1), 0);
    uint64_t after = photo_set_hash(d, &o, &r);
    assert_int_equal(r, 0);
    assert_int_not_equal(after, before);
    /* A list with the same names, as the folder would be another set by now. */
    char list[60 * 32];
    size_t len = 0;
    for (unsigned i = 0; i < 3; i++)
        for (unsigned k = i; k < 60; k += 3)
            len += (size_t)snprintf(list + len, sizeof list - len, "set/%c/%04u.jpg,%u\n", "abc"[i],
                                    k, i);
    struct mr_dataset *fresh = photo_set_open(tempdir_write(t, "names.csv", list, len));
    assert_int_equal(photo_set_hash(fresh, &o, &r), after);
    assert_int_equal(photo_set_hash(fresh, &o, &r), after);
    mr_dataset_unref(fresh);
    mr_dataset_unref(d);
}

static void closing_in_the_middle_drops_what_was_prefetched(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, N);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct mr_pipeline_opts o = photo_set_opts();
    o.epochs = 1000;
    for (unsigned k = 0; k < 20; k++) {
        o.prefetch = k % 4 ? k % 4 : MR_NONE;
        struct mr_pipeline *p = photo_set_pipeline(d, &o);
        struct mr_batch *b;
        for (unsigned i = 0; i < k; i++)
            if (mr_pipeline_next(p, &b) == 1)
                mr_batch_unref(b);
        mr_pipeline_close(p);
    }
    mr_dataset_unref(d);
}

static void shards_divide_an_epoch_and_batches_does_limit_it(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 100);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    unsigned seen[100] = {0};
    for (unsigned rank = 0; rank < 3; rank++) {
        struct mr_pipeline_opts o = photo_set_opts();
        o.rank = rank;
        o.world = 3;
        o.keep_last = 1;
        struct mr_pipeline *p = photo_set_pipeline(d, &o);
        struct mr_batch *b;
        uint64_t n = 0;
        while (mr_pipeline_next(p, &b) == 1) {
            for (unsigned i = 0; i < b->n; i++, n++)
                seen[b->samples[i].index]++;
            mr_batch_unref(b);
        }
        assert_int_equal(mr_pipeline_n_samples(p), n);
        mr_pipeline_close(p);
    }
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(seen[i], 1);
    struct mr_pipeline_opts o = photo_set_opts();
    o.batches = 4;
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    struct mr_batch *b;
    unsigned n = 0;
    while (mr_pipeline_next(p, &b) == 1) {
        mr_batch_unref(b);
        n++;
    }
    assert_int_equal(n, 4);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

static void wrong_options_are_refused_with_words(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 10);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct mr_pipeline_opts bad[5] = {photo_set_opts(), photo_set_opts(), photo_set_opts(),
                                      photo_set_opts(), photo_set_opts()};
    bad[0].batch = 11; /* does not fill one batch */
    bad[1].rank = 2;
    bad[1].world = 2;
    bad[2].map = reject_every_third; /* no size */
    bad[3].map_without_bytes = 1;
    bad[4].threads = 1u << 30;
    for (unsigned i = 0; i < 5; i++) {
        struct mr_pipeline *p = NULL;
        struct mr_error err = {0};
        if (i != 0)
            bad[i].batch = 2;
        assert_int_equal(mr_pipeline_open(d, &bad[i], &p, &err), -EINVAL);
        assert_null(p);
        assert_true(strlen(err.text) > 10);
    }
    mr_dataset_unref(d);
}

static void a_size_out_of_range_is_named(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 4);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    static const struct {
        struct mr_pipeline_opts o;
        const char *text;
    } bad[] = {
        {{.threads = 4097}, "threads: 4097 is not from 1 to 4096"},
        {{.io_depth = 4097}, "io_depth: 4097 is not from 1 to 4096"},
        {{.batch = (1u << 24) + 1}, "batch: 16777217 is not from 1 to 16777216"},
        {{.prefetch = 65537}, "prefetch: 65537 is not from 1 to 65536"},
        {{.hold = 65537}, "hold: 65537 is not from 1 to 65536"},
    };
    for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
        struct mr_pipeline *p = NULL;
        struct mr_error err = {0};
        assert_int_equal(mr_pipeline_open(d, &bad[i].o, &p, &err), -EINVAL);
        assert_string_equal(err.text, bad[i].text);
    }
    mr_dataset_unref(d);
}

static void memory_is_pool_plus_files_under_way(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, N);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct mr_pipeline_opts o = photo_set_opts();
    o.map = reject_every_third;
    o.map_bytes = 1000;
    o.max_error_share = 1;
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    struct mr_batch *b;
    while (mr_pipeline_next(p, &b) == 1)
        mr_batch_unref(b);
    struct mr_pipeline_stats s;
    mr_pipeline_get_stats(p, &s);
    /* prefetch 1 + one being filled + one held */
    assert_true(s.pool_bytes >= 3 * 16 * 1000 && s.pool_bytes < 3 * (16 * 1000 + 8192));
    assert_true(s.memory_peak_bytes <= s.pool_bytes + 8 * 600000 + ((size_t)32 << 20));
    assert_true(s.memory_peak_bytes >= s.memory_bytes && s.memory_bytes > s.pool_bytes);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

/* Notes where the file lies; the slot has the number of the file, as ever. */
static int note_pages(void *ctx, const struct mr_map_input *in, void *slot)
{
    unsigned *n = ctx; /* [0]: files, [1]: of these, those in memory that is to be in huge pages */
    __atomic_fetch_add(&n[0], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&n[1], mapping_has(in->bytes, "hg"), __ATOMIC_RELAXED);
    return photo_set_number(NULL, in, slot);
}

static void files_read_directly_for_a_map_lie_in_huge_pages(void **state)
{
    struct tempdir *t = *state;
    unsigned n[2] = {0};
    if (access("/sys/kernel/mm/transparent_hugepage", F_OK))
        skip();
    photo_set_write(t, 60);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct mr_pipeline_opts o = photo_set_opts();
    o.map = note_pages;
    o.map_ctx = n;
    o.map_bytes = 8;
    o.direct = 1;
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    struct mr_batch *b;
    while (mr_pipeline_next(p, &b) == 1)
        mr_batch_unref(b);
    mr_pipeline_close(p);
    assert_true(n[0] >= 48);
    assert_int_equal(n[0], n[1]);
    mr_dataset_unref(d);
}

static void files_share_memory(struct tempdir *t, int direct)
{
    enum { BATCH = 4, FILES = 40 };
    static uint8_t bytes[900000];
    for (unsigned k = 0; k < FILES; k++) {
        char name[32];
        /* One byte, one page, just about a slot's share of 256 KB, and more than a batch has. */
        static const size_t sizes[] = {1, 4096, 262143, 262144, 262145, 700000, 900000, 5000};
        size_t n = sizes[k % ARRAY_LEN(sizes)];
        memset(bytes, (int)k + 1, n);
        snprintf(name, sizeof name, "set/a/%02u", k);
        tempdir_write(t, name, bytes, n);
    }
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct mr_pipeline_opts o = photo_set_opts();
    o.batch = BATCH;
    o.epochs = 3;
    o.direct = direct;
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    struct mr_batch *b;
    for (unsigned n = 0; n < 3 * FILES / BATCH;) {
        if (mr_pipeline_next(p, &b) != 1)
            continue;
        for (unsigned i = 0; i < BATCH; i++) {
            const struct mr_sample *s = &b->samples[i];
            assert_int_equal((uintptr_t)s->data % (direct ? 4096 : 64), 0);
            memset(bytes, (int)s->index + 1, s->len);
            assert_memory_equal(s->data, bytes, s->len); /* nobody else wrote there */
        }
        mr_batch_unref(b);
        n++;
    }
    struct mr_pipeline_stats s;
    mr_pipeline_get_stats(p, &s);
    assert_int_equal(s.replaced, 0);
    assert_true(s.memory_peak_bytes <= s.pool_bytes + 8 * 900000 + ((size_t)32 << 20));
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

static void files_of_a_batch_share_its_memory_and_overlap_nowhere(void **state)
{
    files_share_memory(*state, 0);
    files_share_memory(*state, 1);
}

/* Under a sanitizer freed memory and shadows count as well. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RSS_IS_OURS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RSS_IS_OURS 0
#endif
#endif
#ifndef RSS_IS_OURS
#define RSS_IS_OURS 1
#endif

static size_t resident_bytes(void)
{
    unsigned long long all = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f)
        return 0;
    assert_int_equal(fscanf(f, "%llu %llu", &all, &resident), 2);
    fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* The bound of the memory test does not depend on how much is read, and neither may what is held:
 * by the pipeline's own count and by the system's. */
static void memory_does_not_grow_with_what_was_read(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, N);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    for (int with_map = 0; with_map < 2; with_map++) {
        struct mr_pipeline_opts o = photo_set_opts();
        o.epochs = 24;
        o.map = with_map ? photo_set_number : NULL;
        o.map_bytes = with_map ? 8 : 0;
        size_t before = resident_bytes(), peak = before;
        struct mr_pipeline *p = photo_set_pipeline(d, &o);
        struct mr_pipeline_stats s;
        struct mr_batch *b;
        for (unsigned ends = 0; ends < o.epochs;) {
            int r = mr_pipeline_next(p, &b);
            assert_true(r >= 0);
            if (r == 1)
                mr_batch_unref(b);
            ends += r == 0;
            size_t now = resident_bytes();
            peak = now > peak ? now : peak;
        }
        mr_pipeline_get_stats(p, &s);
        size_t bound = s.pool_bytes + 8 * 600000 + ((size_t)32 << 20);
        assert_true(s.delivered_bytes > 3 * bound);
        assert_true(s.memory_peak_bytes <= bound);
        if (RSS_IS_OURS)
            assert_in_range(peak - before, 0, bound);
        mr_pipeline_close(p);
    }
    mr_dataset_unref(d);
}

/* Files that no leaf holds: as many as the batches have slots, and no more. */
/* 10,000 files of a kilobyte in a batch: three batches have 31 MB. */
static void memory_is_in_proportion_to_the_bytes_of_files(void **state)
{
    enum { LINES = 10000, LINE = 16, BYTES = 1000 };
    struct tempdir *t = *state;
    static char list[LINES * LINE + 1], bytes[BYTES];
    char *end = list;
    for (unsigned i = 0; i < 100; i++) {
        char name[32];
        snprintf(name, sizeof name, "small/%02u", i);
        tempdir_write(t, name, bytes, BYTES);
    }
    for (unsigned i = 0; i < LINES; i++)
        end += snprintf(end, LINE + 1, "small/%02u,0\n", i % 100);
    struct mr_dataset *d = photo_set_open(tempdir_text(t, "list.csv", list));
    struct mr_pipeline_opts o = photo_set_opts();
    o.batch = LINES;
    o.epochs = 6;
    size_t before = resident_bytes(), peak = before;
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    for (unsigned n = 0; n < o.epochs;) {
        struct mr_batch *b;
        int r = mr_pipeline_next(p, &b);
        assert_true(r >= 0);
        size_t now = resident_bytes();
        peak = now > peak ? now : peak;
        if (r == 1)
            mr_batch_unref(b);
        n += r == 1;
    }
    struct mr_pipeline_stats s;
    mr_pipeline_get_stats(p, &s);
    assert_int_equal(s.delivered_bytes, 6 * LINES * BYTES);
    assert_in_range(s.memory_peak_bytes, 3 * LINES * BYTES, 66 << 20);
    assert_int_equal(s.memory_bytes, s.memory_peak_bytes);
    if (RSS_IS_OURS) /* and what a slot has besides its file */
        assert_in_range(peak - before, 0, 96 << 20);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

static void memory_of_large_files_goes_round(void **state)
{
    enum { LARGE = 5 << 20, FILES = 24, BATCHES = 3 };
    struct tempdir *t = *state;
    uint8_t *bytes = calloc(1, LARGE);
    char name[64];
    assert_non_null(bytes);
    for (unsigned i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "large/%02u", i);
        tempdir_write(t, name, bytes, LARGE - i);
    }
    free(bytes);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "large"));
    struct mr_pipeline_opts o = {
        .engine = photo_set_engine, .threads = 2, .io_depth = 2, .batch = 2, .epochs = 3};
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    struct mr_pipeline_stats s;
    struct mr_batch *b;
    for (unsigned ends = 0; ends < o.epochs;) {
        int r = mr_pipeline_next(p, &b);
        assert_true(r >= 0);
        if (r == 1)
            mr_batch_unref(b);
        ends += r == 0;
    }
    mr_pipeline_get_stats(p, &s);
    assert_int_equal(s.samples, 3 * FILES);
    size_t room = LARGE + ((size_t)1 << 20); /* a buffer may be larger than what it holds */
    assert_in_range(s.memory_peak_bytes - s.pool_bytes, LARGE, BATCHES * o.batch * room);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

int main(void)
{
    if (photo_set_choose_engine()) {
        printf("SKIP: io_uring is not available here\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(an_epoch_delivers_every_file_once_and_whole),
        WITH_TEMPDIR(batches_do_not_depend_on_threads_or_prefetch_even_with_bad_files),
        WITH_TEMPDIR(each_kind_of_bad_file_is_replaced_and_named),
        WITH_TEMPDIR(a_file_without_permission_is_replaced),
        WITH_TEMPDIR(on_error_fail_stops_at_the_first_bad_sample_and_names_it),
        WITH_TEMPDIR(too_many_bad_samples_end_the_run_with_the_count),
        WITH_TEMPDIR(the_budget_is_a_share_of_the_samples_that_were_tried),
        WITH_TEMPDIR(a_data_set_of_nothing_but_bad_files_ends_soon),
        WITH_TEMPDIR(a_map_fills_slots_and_its_failures_are_replaced),
        WITH_TEMPDIR(a_storm_of_signals_changes_nothing),
        WITH_TEMPDIR(no_worker_sleeps_while_there_is_work),
        WITH_TEMPDIR(a_consumer_may_hold_as_many_batches_as_it_said),
        WITH_TEMPDIR(a_wait_can_be_interrupted),
        WITH_TEMPDIR(short_waits_can_be_interrupted),
        WITH_TEMPDIR(files_that_change_between_epochs_are_read_as_they_are),
        WITH_TEMPDIR(closing_in_the_middle_drops_what_was_prefetched),
        WITH_TEMPDIR(shards_divide_an_epoch_and_batches_does_limit_it),
        WITH_TEMPDIR(wrong_options_are_refused_with_words),
        WITH_TEMPDIR(a_size_out_of_range_is_named),
        WITH_TEMPDIR(memory_is_pool_plus_files_under_way),
        WITH_TEMPDIR(files_read_directly_for_a_map_lie_in_huge_pages),
        WITH_TEMPDIR(files_of_a_batch_share_its_memory_and_overlap_nowhere),
        WITH_TEMPDIR(memory_does_not_grow_with_what_was_read),
        WITH_TEMPDIR(memory_is_in_proportion_to_the_bytes_of_files),
        WITH_TEMPDIR(memory_of_large_files_goes_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
