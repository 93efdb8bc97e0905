/* test_stand_in.c - a consumer that comes back at once does a worker's work, and nobody's sample
 * suffers: not when it goes away, not when it has no descriptors, and not when its ring is not to
 * be had, fails, or has to wait. */
#include "unit.h"

#include "photo_set.h"

#include "clock.h"
#include "digest.h"
#include "sanitizers.h"
#include "uring_reader.h"
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LONGEST_NS 60000000000u /* for what must come about, however busy the machine */
#define BATCH      8
#define THREADS    3

static _Atomic pthread_t consumer;
static atomic_uint in_use[THREADS]; /* by worker number */
static atomic_uint twice;           /* a number was used by two at once */
static atomic_uint_fast64_t by_consumer, by_workers;

static int is_consumer(void)
{
    return pthread_equal(pthread_self(), consumer);
}

static int note_who(void *ctx, const struct mr_map_input *in, void *slot)
{
    (void)ctx;
    if (atomic_fetch_add(&in_use[in->worker], 1))
        atomic_fetch_add(&twice, 1);
    memcpy(slot, &in->index, sizeof in->index);
    atomic_fetch_add(is_consumer() ? &by_consumer : &by_workers, 1);
    atomic_fetch_sub(&in_use[in->worker], 1);
    return 0;
}

static struct mr_pipeline *endless(struct mr_dataset *d, unsigned threads)
{
    struct mr_pipeline_opts o = {.threads = threads,
                                 .batch = BATCH,
                                 .prefetch = 4,
                                 .epochs = 1000000000,
                                 .map = note_who,
                                 .map_bytes = sizeof(uint64_t),
                                 .map_without_bytes = 1};
    consumer = pthread_self();
    atomic_store(&twice, 0);
    atomic_store(&by_consumer, 0);
    atomic_store(&by_workers, 0);
    return photo_set_pipeline(d, &o);
}

/* Take batches and look at nothing but whether they are right. */
static void take_until_standing_in(struct mr_pipeline *p, uint64_t samples)
{
    struct mr_batch *b;
    uint64_t end = mr_clock_ns() + LONGEST_NS, slot;
    while (atomic_load(&by_consumer) < samples) {
        assert_true(mr_clock_ns() < end);
        if (!mr_pipeline_next(p, &b))
            continue; /* an epoch ended */
        for (unsigned i = 0; i < b->n; i++) {
            memcpy(&slot, b->samples[i].data, sizeof slot);
            assert_int_equal(slot, b->samples[i].index);
        }
        mr_batch_unref(b);
    }
}

static void a_prompt_consumer_stands_in(void **state)
{
    struct mr_dataset *d;
    (void)state;
    assert_int_equal(mr_dataset_range(1000, &d, NULL), 0);
    for (unsigned threads = 1; threads <= THREADS; threads++) {
        struct mr_pipeline *p = endless(d, threads);
        take_until_standing_in(p, 5000);
        mr_pipeline_close(p);
        assert_int_equal(atomic_load(&twice), 0);
    }
    mr_dataset_unref(d);
}

static uint64_t n_filled(void)
{
    return atomic_load(&by_consumer) + atomic_load(&by_workers);
}

/* Its worker sees that it does not come, and fills what may be filled ahead. */
static void a_consumer_that_goes_away_is_not_waited_for(void **state)
{
    struct mr_dataset *d;
    struct mr_batch *b;
    struct mr_pipeline_stats s;
    (void)state;
    assert_int_equal(mr_dataset_range(1000, &d, NULL), 0);
    struct mr_pipeline *p = endless(d, 1);
    for (unsigned times = 0; times < 3; times++) {
        uint64_t end = mr_clock_ns() + LONGEST_NS;
        take_until_standing_in(p, atomic_load(&by_consumer) + 500);
        while (mr_pipeline_next(p, &b) != 1)
            ;
        mr_pipeline_get_stats(p, &s);
        while (n_filled() < s.samples + (uint64_t)3 * BATCH) {
            assert_true(mr_clock_ns() < end);
            sched_yield();
        }
        mr_batch_unref(b);
    }
    mr_pipeline_close(p);
    assert_int_equal(atomic_load(&twice), 0);
    mr_dataset_unref(d);
}

static atomic_uint n_refused;     /* files that the consumer could not open, */
static atomic_uint n_by_consumer; /* and those that it could, or began to read in its ring */

int __real_mr_whole_file_again(int dir, const char *path, void *buf, size_t size);
int __wrap_mr_whole_file_again(int dir, const char *path, void *buf, size_t size);
int __wrap_mr_whole_file_again(int dir, const char *path, void *buf, size_t size)
{
    int done = __real_mr_whole_file_again(dir, path, buf, size);
    if (done && is_consumer())
        atomic_fetch_add(&n_by_consumer, 1);
    return done;
}

int __real_mr_whole_file_open(int dir, const char *path, int direct, uint64_t max, size_t *size);
int __wrap_mr_whole_file_open(int dir, const char *path, int direct, uint64_t max, size_t *size);
int __wrap_mr_whole_file_open(int dir, const char *path, int direct, uint64_t max, size_t *size)
{
    int fd = __real_mr_whole_file_open(dir, path, direct, max, size);
    if (fd == -EMFILE && is_consumer())
        atomic_fetch_add(&n_refused, 1);
    return fd;
}

/* What the consumer's ring is like. */
static _Atomic enum {
    RING_GOOD,
    RING_REFUSED,
    RING_FAILS,
    RING_WAITS,
    RING_HANGS,
    WORKER_WAITS
} ring;
static atomic_uint n_rings, n_waits; /* that the consumer asked for, and in which it waited */

int __real_mr_uring_reader_open(unsigned depth, int direct, struct mr_uring_reader **out,
                                struct mr_error *err);
int __wrap_mr_uring_reader_open(unsigned depth, int direct, struct mr_uring_reader **out,
                                struct mr_error *err);
int __wrap_mr_uring_reader_open(unsigned depth, int direct, struct mr_uring_reader **out,
                                struct mr_error *err)
{
    if (is_consumer())
        atomic_fetch_add(&n_rings, 1);
    if (is_consumer() && ring == RING_REFUSED)
        return -EMFILE;
    return __real_mr_uring_reader_open(depth, direct, out, err);
}

void __real_mr_uring_reader_start(struct mr_uring_reader *r, struct mr_uring_op *op);
void __wrap_mr_uring_reader_start(struct mr_uring_reader *r, struct mr_uring_op *op);
void __wrap_mr_uring_reader_start(struct mr_uring_reader *r, struct mr_uring_op *op)
{
    if (is_consumer())
        atomic_fetch_add(&n_by_consumer, 1);
    __real_mr_uring_reader_start(r, op);
}

int __real_mr_uring_reader_wait(struct mr_uring_reader *r, struct mr_uring_op **done, unsigned max);
int __wrap_mr_uring_reader_wait(struct mr_uring_reader *r, struct mr_uring_op **done, unsigned max);
int __wrap_mr_uring_reader_wait(struct mr_uring_reader *r, struct mr_uring_op **done, unsigned max)
{
    if (is_consumer())
        atomic_fetch_add(&n_waits, 1);
    if (is_consumer() && ring == RING_FAILS)
        return -EIO;
    if (is_consumer() && ring == RING_WAITS)
        usleep(2000);
    return __real_mr_uring_reader_wait(r, done, max);
}

int __real_mr_uring_reader_wait_until(struct mr_uring_reader *r, struct mr_uring_op **done,
                                      unsigned max, uint64_t until_ns);
int __wrap_mr_uring_reader_wait_until(struct mr_uring_reader *r, struct mr_uring_op **done,
                                      unsigned max, uint64_t until_ns);
int __wrap_mr_uring_reader_wait_until(struct mr_uring_reader *r, struct mr_uring_op **done,
                                      unsigned max, uint64_t until_ns)
{
    static atomic_uint n;
    int hangs = ring == RING_HANGS && is_consumer();
    if (hangs)
        atomic_fetch_add(&n_waits, 1);
    if (hangs || (ring == WORKER_WAITS && !is_consumer() && atomic_fetch_add(&n, 1) % 16)) {
        struct timespec until = mr_clock_at(until_ns);
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        return 0;
    }
    return __real_mr_uring_reader_wait_until(r, done, max, until_ns);
}

/* Workers have descriptors of their own; the process has none left.  Files that are missing take
 * substitutes, which the consumer cannot open either. */
static void a_consumer_without_descriptors_leaves_files_to_workers(void **state)
{
    struct tempdir *t = *state;
    struct rlimit was;
    int r = 1, fd[4]; /* as many as a worker may want */
    if (MR_TSAN || syscall(SYS_close_range, ~0U, ~0U, 0))
        skip(); /* there, all share a table */
    photo_set_write(t, 300);
    struct mr_dataset *d = photo_set_open(photo_set_list(t, 300, 20));
    struct mr_pipeline_opts o = {
        .threads = 2, .batch = 1, .epochs = 1000000, .max_file_bytes = PHOTO_TOO_LARGE};
    struct mr_batch *b;
    consumer = pthread_self();
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    getrlimit(RLIMIT_NOFILE, &was);
    for (size_t i = 0; i < ARRAY_LEN(fd); i++)
        fd[i] = dup(0);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)fd[ARRAY_LEN(fd) - 1] + 1, was.rlim_max});
    uint64_t end = mr_clock_ns() + LONGEST_NS;
    while (r >= 0 && atomic_load(&n_refused) < 20 && mr_clock_ns() < end) {
        r = mr_pipeline_next(p, &b);
        if (r > 0)
            mr_batch_unref(b);
    }
    setrlimit(RLIMIT_NOFILE, &was);
    for (size_t i = 0; i < ARRAY_LEN(fd); i++)
        close(fd[i]);
    assert_true(r >= 0);
    assert_true(atomic_load(&n_refused) >= 20);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

#define KEPT 40 /* batches that are looked at only when all have come */

/* Hash of `n` times KEPT batches and of the bad files among them.  Who looks at each batch at once
 * is no prompt consumer. */
static uint64_t hash_of(struct mr_dataset *d, enum mr_engine engine, unsigned threads, unsigned n,
                        int prompt)
{
    struct mr_pipeline_opts o = {.engine = engine,
                                 .threads = threads,
                                 .io_depth = 3 * threads,
                                 .batch = 2,
                                 .prefetch = 2,
                                 .hold = KEPT,
                                 .epochs = 1000000,
                                 .max_error_share = 0.5,
                                 .max_file_bytes = PHOTO_TOO_LARGE};
    struct mr_batch *kept[KEPT];
    struct mr_digest digest;
    mr_digest_init(&digest);
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    for (unsigned i = 0; i < n * KEPT; i++) {
        struct mr_batch **b = &kept[i % KEPT];
        while (mr_pipeline_next(p, b) != 1)
            ;
        if (!prompt)
            usleep(300);
        for (unsigned k = 0; i % KEPT == KEPT - 1 && k < KEPT; k++) {
            mr_digest_add_u64(&digest, photo_set_batch_hash(kept[k]));
            mr_batch_unref(kept[k]);
        }
    }
    struct mr_pipeline_stats s;
    mr_pipeline_get_stats(p, &s);
    for (unsigned i = 0; i < MR_N_REASONS && s.errors[i].reason; i++) {
        mr_digest_add(&digest, (const uint8_t *)s.errors[i].reason, strlen(s.errors[i].reason));
        mr_digest_add_u64(&digest, s.errors[i].n);
    }
    mr_pipeline_close(p);
    return mr_digest_value(&digest);
}

static int has_uring(void)
{
    struct mr_dataset *d;
    struct mr_pipeline *p = NULL;
    struct mr_pipeline_opts o = {.engine = MR_ENGINE_URING, .threads = 1, .batch = 1};
    assert_int_equal(mr_dataset_range(1, &d, NULL), 0);
    int r = mr_pipeline_open(d, &o, &p, NULL);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
    return !r;
}

/* Bytes, substitutes and what is said of bad files. */
static void batches_do_not_depend_on_who_fills_them(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 30);
    struct mr_dataset *d = photo_set_open(photo_set_list(t, 30, 7));
    consumer = pthread_self();
    uint64_t want = hash_of(d, MR_ENGINE_THREADS, 2, 3, 0);
    for (unsigned i = 0; i < THREADS * (has_uring() ? 2 : 1); i++) {
        enum mr_engine engine = i < THREADS ? MR_ENGINE_THREADS : MR_ENGINE_URING;
        uint64_t end = mr_clock_ns() + LONGEST_NS;
        atomic_store(&n_by_consumer, 0);
        while (atomic_load(&n_by_consumer) < 100) {
            assert_true(mr_clock_ns() < end);
            assert_int_equal(hash_of(d, engine, i % THREADS + 1, 3, 1), want);
        }
    }
    mr_dataset_unref(d);
}

static int has_waited(void *ctx)
{
    (void)ctx;
    return atomic_load(&n_waits) >= 2;
}

static struct mr_pipeline *endless_by_ring(struct mr_dataset *d, unsigned io_depth)
{
    struct mr_pipeline_opts o = {.engine = MR_ENGINE_URING,
                                 .threads = 1,
                                 .io_depth = io_depth,
                                 .batch = 2,
                                 .epochs = 1000000000};
    atomic_store(&n_rings, 0);
    atomic_store(&n_waits, 0);
    atomic_store(&n_by_consumer, 0);
    return photo_set_pipeline(d, &o);
}

static struct mr_dataset *small_set(struct tempdir *t)
{
    char path[512];
    if (!has_uring())
        skip();
    photo_set_write(t, 30);
    snprintf(path, sizeof path, "%s/set", t->path);
    return photo_set_open(path);
}

/* Take `n` batches, or more until `enough` says so; what the last call returned. */
static int take(struct mr_pipeline *p, unsigned n, atomic_uint *count, unsigned enough)
{
    struct mr_batch *b;
    uint64_t end = mr_clock_ns() + LONGEST_NS;
    int r = 0;
    while (r >= 0 && (n || atomic_load(count) < enough)) {
        assert_true(mr_clock_ns() < end);
        r = mr_pipeline_next(p, &b);
        if (r != 1)
            continue;
        n -= n != 0;
        mr_batch_unref(b);
    }
    return r;
}

static void a_consumer_without_a_ring_leaves_files_to_workers(void **state)
{
    struct mr_dataset *d = small_set(*state);
    consumer = pthread_self();
    ring = RING_REFUSED;
    struct mr_pipeline *p = endless_by_ring(d, 4);
    assert_true(take(p, 500, &n_rings, 1) >= 0);
    ring = RING_GOOD;
    assert_true(take(p, 500, &n_rings, 1) >= 0);
    assert_int_equal(atomic_load(&n_rings), 1); /* it is not asked for again and again */
    assert_int_equal(atomic_load(&n_by_consumer), 0);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

static void a_ring_that_fails_ends_the_run(void **state)
{
    struct mr_dataset *d = small_set(*state);
    consumer = pthread_self();
    ring = RING_FAILS;
    for (unsigned depth = 1; depth <= 4; depth++) { /* its worker has flights left, or none */
        struct mr_pipeline *p = endless_by_ring(d, depth);
        assert_int_equal(take(p, 0, &n_rings, 2), -EIO);
        assert_non_null(strstr(mr_pipeline_error(p), "io_uring failed"));
        mr_pipeline_close(p);
    }
    ring = RING_GOOD;
    mr_dataset_unref(d);
}

/* A worker reads ahead, and so is better at it: after each failed attempt the next one is twice as
 * far away. */
static void a_consumer_that_waits_for_files_leaves_them_to_workers(void **state)
{
    struct mr_dataset *d = small_set(*state);
    consumer = pthread_self();
    ring = RING_WAITS;
    struct mr_pipeline *p = endless_by_ring(d, 4);
    assert_true(take(p, 2000, &n_waits, 1) >= 0);
    assert_in_range(atomic_load(&n_waits), 1, 20);
    ring = RING_GOOD;
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

static void a_consumer_whose_files_do_not_come_can_be_stopped(void **state)
{
    struct mr_dataset *d = small_set(*state);
    struct mr_pipeline_opts o = {.engine = MR_ENGINE_URING,
                                 .threads = 1,
                                 .io_depth = 4,
                                 .batch = 2,
                                 .epochs = 1000000000,
                                 .should_stop = has_waited};
    consumer = pthread_self();
    ring = RING_HANGS;
    atomic_store(&n_waits, 0);
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    assert_int_equal(take(p, 0, &n_waits, 100), -ECANCELED);
    ring = RING_GOOD;
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

/* It waits for a file, when asked for its place: it is to read on after a while. */
static void a_place_that_nobody_leaves_is_not_waited_for(void **state)
{
    struct mr_dataset *d = small_set(*state);
    consumer = pthread_self();
    ring = WORKER_WAITS;
    struct mr_pipeline *p = endless_by_ring(d, 4);
    assert_true(take(p, 1000, &n_rings, 0) >= 0);
    ring = RING_GOOD;
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

static void *take_in_a_thread(void *pipeline)
{
    consumer = pthread_self();
    return take(pipeline, 300, &n_by_consumer, 300) < 0 ? pipeline : NULL;
}

static void *take_more_in_a_thread(void *pipeline)
{
    consumer = pthread_self();
    return take(pipeline, 300, &n_by_consumer, 0) < 0 ? pipeline : NULL;
}

/* A ring is its maker's: the next thread, which may well have the first one's address, uses none.
 */
static void a_consumer_in_another_thread_leaves_files_to_workers(void **state)
{
    struct mr_dataset *d = small_set(*state);
    struct mr_pipeline *p = endless_by_ring(d, 4);
    void *(*const body[])(void *) = {take_in_a_thread, take_more_in_a_thread};
    unsigned by_first = 0;
    for (size_t i = 0; i < ARRAY_LEN(body); i++) {
        pthread_t t;
        void *failed;
        by_first = atomic_load(&n_by_consumer);
        assert_int_equal(pthread_create(&t, NULL, body[i], p), 0);
        assert_int_equal(pthread_join(t, &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(atomic_load(&n_by_consumer), by_first);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prompt_consumer_stands_in),
        cmocka_unit_test(a_consumer_that_goes_away_is_not_waited_for),
        WITH_TEMPDIR(batches_do_not_depend_on_who_fills_them),
        WITH_TEMPDIR(a_consumer_without_descriptors_leaves_files_to_workers),
        WITH_TEMPDIR(a_consumer_without_a_ring_leaves_files_to_workers),
        WITH_TEMPDIR(a_ring_that_fails_ends_the_run),
        WITH_TEMPDIR(a_consumer_that_waits_for_files_leaves_them_to_workers),
        WITH_TEMPDIR(a_consumer_whose_files_do_not_come_can_be_stopped),
        WITH_TEMPDIR(a_place_that_nobody_leaves_is_not_waited_for),
        WITH_TEMPDIR(a_consumer_in_another_thread_leaves_files_to_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
