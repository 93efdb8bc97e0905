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

/* Take all there is and check that it is first, first + 1, ...; how many. */
static uint64_t take_all(struct mr_span_ring *r, uint64_t first)
{
    const struct mr_event *e;
    uint64_t n = 0;
    for (size_t k; (k = mr_span_ring_peek(r, 3, &e)); n += k, mr_span_ring_took(r, k))
        for (size_t i = 0; i < k; i++)
            assert_int_equal(e[i].begin_ns, first + n + i);
    return n;
}

static void a_full_ring_drops_and_counts(void **state)
{
    (void)state;
    struct mr_span_ring r = {0};
    const struct mr_event *e;
    assert_int_equal(mr_span_ring_init(&r, 20), 0); /* 8 blocks of 4 */
    for (uint64_t i = 0; i < 40; i++)
        assert_int_equal(put(&r, i), i < 32);
    assert_int_equal(atomic_load(&r.dropped), 8);
    assert_int_equal(mr_span_ring_peek(&r, 2, &e), 2);
    assert_int_equal(mr_span_ring_peek(&r, 100, &e), 4); /* to the end of the block */
    assert_int_equal(e[3].begin_ns, 3);
    mr_span_ring_took(&r, 4);
    assert_int_equal(mr_span_ring_peek(&r, 3, &e), 3);
    mr_span_ring_took(&r, 3); /* gives no room back yet */
    for (uint64_t i = 32; i < 40; i++)
        assert_int_equal(put(&r, i), i < 36);
    assert_int_equal(atomic_load(&r.dropped), 12);
    assert_int_equal(take_all(&r, 7), 29);
    for (uint64_t i = 36; i < 36 + 32; i++)
        assert_int_equal(put(&r, i), 1);
    assert_int_equal(put(&r, 99), 0);
    mr_span_ring_clear(&r);
    assert_int_equal(mr_span_ring_peek(&r, 100, &e), 0);
    assert_int_equal(put(&r, 100), 1);
    assert_int_equal(take_all(&r, 100), 1);
    mr_span_ring_fini(&r);
    mr_span_ring_fini(&r);
}

/* Whatever the consumer leaves inside: less than a block, so that two blocks do for ever. */
static void a_ring_that_is_emptied_in_time_touches_little_memory(void **state)
{
    (void)state;
    struct mr_span_ring r = {0};
    const struct mr_event *e;
    uint64_t n_taken = 0;
    ptrdiff_t furthest = 0;
    assert_int_equal(mr_span_ring_init(&r, 16384), 0);
    for (uint64_t i = 0; i < 100000; i++) {
        ptrdiff_t at = mr_span_ring_next(&r) - r.slot;
        furthest = at > furthest ? at : furthest;
        assert_int_equal(put(&r, i), 1);
        if (i % 200 == 7)
            n_taken += take_all(&r, n_taken);
    }
    n_taken += take_all(&r, n_taken);
    assert_int_equal(n_taken, 100000);
    assert_int_equal(mr_span_ring_peek(&r, 1, &e), 0);
    assert_in_range(furthest, 1, 2 * 256 - 1);
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
    assert_int_equal(n, 8);
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
        cmocka_unit_test(a_ring_that_is_emptied_in_time_touches_little_memory),
        cmocka_unit_test(the_consumer_is_woken_now_and_then),
        cmocka_unit_test(a_ring_beyond_memory_is_refused),
        cmocka_unit_test(between_two_threads_events_arrive_whole_and_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
