/* test_stand_in.c - a consumer that comes back at once does a worker's work, and nobody's sample
 * suffers: not when it goes away, not when it has no descriptors. */
#include "unit.h"

#include "photo_set.h"

#include "clock.h"
#include "digest.h"
#include "sanitizers.h"
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LONGEST_NS 60000000000u /* for what must come about, however busy the machine */
#define BATCH      8
#define THREADS    3

static pthread_t consumer;
static atomic_uint in_use[THREADS]; /* by worker number */
static atomic_uint twice;           /* a number was used by two at once */
static atomic_uint_fast64_t by_consumer, by_workers;

static int note_who(void *ctx, const struct mr_map_input *in, void *slot)
{
    (void)ctx;
    if (atomic_fetch_add(&in_use[in->worker], 1))
        atomic_fetch_add(&twice, 1);
    memcpy(slot, &in->index, sizeof in->index);
    atomic_fetch_add(pthread_equal(pthread_self(), consumer) ? &by_consumer : &by_workers, 1);
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
    assert_int_equal(mr_dataset_range(1000, &d), 0);
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
    assert_int_equal(mr_dataset_range(1000, &d), 0);
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
static atomic_uint n_by_consumer; /* and those that it could */

int __real_mr_whole_file_again(int dir, const char *path, void *buf, size_t size);
int __wrap_mr_whole_file_again(int dir, const char *path, void *buf, size_t size);
int __wrap_mr_whole_file_again(int dir, const char *path, void *buf, size_t size)
{
    int done = __real_mr_whole_file_again(dir, path, buf, size);
    if (done && pthread_equal(pthread_self(), consumer))
        atomic_fetch_add(&n_by_consumer, 1);
    return done;
}

int __real_mr_whole_file_open(int dir, const char *path, int direct, uint64_t max, size_t *size);
int __wrap_mr_whole_file_open(int dir, const char *path, int direct, uint64_t max, size_t *size);
int __wrap_mr_whole_file_open(int dir, const char *path, int direct, uint64_t max, size_t *size)
{
    int fd = __real_mr_whole_file_open(dir, path, direct, max, size);
    if (fd == -EMFILE && pthread_equal(pthread_self(), consumer))
        atomic_fetch_add(&n_refused, 1);
    return fd;
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
static uint64_t hash_of(struct mr_dataset *d, unsigned threads, unsigned n, int prompt)
{
    struct mr_pipeline_opts o = {.threads = threads,
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

/* Bytes, substitutes and what is said of bad files. */
static void batches_do_not_depend_on_who_fills_them(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 30);
    struct mr_dataset *d = photo_set_open(photo_set_list(t, 30, 7));
    consumer = pthread_self();
    uint64_t want = hash_of(d, 2, 3, 0);
    for (unsigned threads = 1; threads <= THREADS; threads++) {
        uint64_t end = mr_clock_ns() + LONGEST_NS;
        atomic_store(&n_by_consumer, 0);
        while (atomic_load(&n_by_consumer) < 100) {
            assert_true(mr_clock_ns() < end);
            assert_int_equal(hash_of(d, threads, 3, 1), want);
        }
    }
    mr_dataset_unref(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prompt_consumer_stands_in),
        cmocka_unit_test(a_consumer_that_goes_away_is_not_waited_for),
        WITH_TEMPDIR(batches_do_not_depend_on_who_fills_them),
        WITH_TEMPDIR(a_consumer_without_descriptors_leaves_files_to_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
