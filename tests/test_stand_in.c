/* test_stand_in.c - a consumer that comes back at once does a worker's work, and nobody's sample
 * suffers: not when it goes away, not when it has no descriptors. */
#include "unit.h"

#include "photo_set.h"

#include "clock.h"
#include "sanitizers.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
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

/* Its worker sees that it does not come, and fills what may be filled ahead. */
static void a_consumer_that_goes_away_is_not_waited_for(void **state)
{
    struct mr_dataset *d;
    struct mr_batch *b;
    (void)state;
    assert_int_equal(mr_dataset_range(1000, &d), 0);
    struct mr_pipeline *p = endless(d, 1);
    for (unsigned times = 0; times < 3; times++) {
        uint64_t end = mr_clock_ns() + LONGEST_NS;
        take_until_standing_in(p, atomic_load(&by_consumer) + 500);
        uint64_t before = atomic_load(&by_workers);
        while (mr_pipeline_next(p, &b) != 1)
            ;
        /* At most one batch was begun, and four more belong into the window. */
        while (atomic_load(&by_workers) < before + (uint64_t)3 * BATCH) {
            assert_true(mr_clock_ns() < end);
            sched_yield();
        }
        mr_batch_unref(b);
    }
    mr_pipeline_close(p);
    assert_int_equal(atomic_load(&twice), 0);
    mr_dataset_unref(d);
}

/* Workers have descriptors of their own; the process has none left. */
static void a_consumer_without_descriptors_leaves_files_to_workers(void **state)
{
    struct tempdir *t = *state;
    struct rlimit was;
    int r = 1, fd[4]; /* as many as a worker may want */
    if (MR_TSAN)
        skip(); /* there, all share a table */
    photo_set_write(t, 30);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct mr_pipeline_opts o = {.threads = 2, .batch = 2, .epochs = 200};
    struct mr_batch *b;
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    getrlimit(RLIMIT_NOFILE, &was);
    for (size_t i = 0; i < ARRAY_LEN(fd); i++)
        fd[i] = dup(0);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)fd[ARRAY_LEN(fd) - 1] + 1, was.rlim_max});
    uint64_t n = 0;
    while (n < (uint64_t)30 * o.epochs && (r = mr_pipeline_next(p, &b)) >= 0)
        if (r) {
            n += b->n;
            mr_batch_unref(b);
        }
    int is_full = dup(0) < 0;
    setrlimit(RLIMIT_NOFILE, &was);
    for (size_t i = 0; i < ARRAY_LEN(fd); i++)
        close(fd[i]);
    assert_true(r >= 0);
    assert_true(is_full);
    struct mr_pipeline_stats s;
    mr_pipeline_get_stats(p, &s);
    assert_int_equal(s.replaced, 0);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prompt_consumer_stands_in),
        cmocka_unit_test(a_consumer_that_goes_away_is_not_waited_for),
        WITH_TEMPDIR(a_consumer_without_descriptors_leaves_files_to_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
