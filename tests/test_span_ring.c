/* test_span_ring.c - a ring loses nothing but what it says. */
#include "unit.h"

#include "span_ring.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

/* Put an event with this number; 0 when the ring is full. */
static int put(struct mr_span_ring *r, uint64_t n)
{
    struct mr_event *e = mr_span_ring_next(r);
    if (!e)
        return 0;
    *e = (struct mr_event){.begin_ns = n, .bytes = ~n};
    mr_span_ring_put(r);
    return 1;
}

static void a_full_ring_drops_and_counts(void **state)
{
    (void)state;
    struct mr_span_ring r = {0};
    const struct mr_event *e;
    assert_int_equal(mr_span_ring_init(&r, 20), 0); /* 32 */
    for (uint64_t i = 0; i < 40; i++)
        assert_int_equal(put(&r, i), i < 32);
    assert_int_equal(atomic_load(&r.dropped), 8);
    assert_int_equal(mr_span_ring_peek(&r, 10, &e), 10);
    assert_int_equal(e[9].begin_ns, 9);
    mr_span_ring_took(&r, 10);
    for (uint64_t i = 0; i < 12; i++)
        assert_int_equal(put(&r, 100 + i), i < 10);
    assert_int_equal(atomic_load(&r.dropped), 10);
    assert_int_equal(mr_span_ring_peek(&r, 100, &e), 22); /* to the end of the memory */
    mr_span_ring_took(&r, 22);
    assert_int_equal(mr_span_ring_peek(&r, 100, &e), 10);
    assert_int_equal(e[0].begin_ns, 100);
    mr_span_ring_clear(&r);
    assert_int_equal(mr_span_ring_peek(&r, 100, &e), 0);
    mr_span_ring_fini(&r);
    mr_span_ring_fini(&r);
}

static void the_consumer_is_woken_now_and_then(void **state)
{
    (void)state;
    struct mr_span_ring r = {0};
    unsigned n = 0;
    assert_int_equal(mr_span_ring_init(&r, 64), 0);
    for (int i = 0; i < 64; i++)
        n += mr_span_ring_next(&r) && mr_span_ring_put(&r);
    assert_int_equal(n, 4);
    mr_span_ring_fini(&r);
}

static void a_ring_beyond_memory_is_refused(void **state)
{
    (void)state;
    struct mr_span_ring r = {0};
    assert_int_equal(mr_span_ring_init(&r, SIZE_MAX / 2), -ENOMEM);
    assert_null(r.slot);
}

#define MANY 300000

static void *produce(void *arg)
{
    struct mr_span_ring *r = arg;
    uint64_t n_put = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        n_put += (uint64_t)put(r, i);
        if (i % 97 == 0)
            sched_yield();
    }
    return (void *)(uintptr_t)n_put;
}

static void between_two_threads_events_arrive_whole_and_in_order(void **state)
{
    (void)state;
    struct mr_span_ring r = {0};
    pthread_t t;
    void *n_put;
    uint64_t last = 0, n_taken = 0;
    assert_int_equal(mr_span_ring_init(&r, 64), 0);
    assert_int_equal(pthread_create(&t, NULL, produce, &r), 0);
    /* The last event may be dropped, so the end is known by the counters. */
    while (atomic_load(&r.head) + atomic_load(&r.dropped) < MANY ||
           atomic_load(&r.head) != atomic_load(&r.tail)) {
        const struct mr_event *e;
        size_t n = mr_span_ring_peek(&r, 7, &e);
        for (size_t i = 0; i < n; i++) {
            assert_true(e[i].bytes == ~e[i].begin_ns);
            assert_true(!n_taken || e[i].begin_ns > last);
            last = e[i].begin_ns;
            n_taken++;
        }
        mr_span_ring_took(&r, n);
    }
    pthread_join(t, &n_put);
    assert_int_equal(n_taken, (uintptr_t)n_put);
    assert_int_equal(n_taken + atomic_load(&r.dropped), MANY);
    mr_span_ring_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_ring_drops_and_counts),
        cmocka_unit_test(the_consumer_is_woken_now_and_then),
        cmocka_unit_test(a_ring_beyond_memory_is_refused),
        cmocka_unit_test(between_two_threads_events_arrive_whole_and_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
