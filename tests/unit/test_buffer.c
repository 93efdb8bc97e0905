/* test_buffer.c - buffers grow and shrink without losing what they hold; under ThreadSanitizer,
 * memory that one thread's buffer has left is free for another's. */
#include "buffer.h"

#include "mapping.h"
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static uint8_t pattern(size_t i)
{
    return (uint8_t)(i * 131 + (i >> 12));
}

static void check_pattern(const struct mr_buffer *b, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (b->data[i] != pattern(i))
            fail_msg("byte %zu changed", i);
}

static void growing_keeps_the_contents(void **state)
{
    struct mr_buffer b = {0};
    size_t filled = 0;
    for (size_t want = 1; want < ((size_t)16 << 20); want = want * 3 + 1) {
        assert_int_equal(mr_buffer_reserve(&b, want), 0);
        assert_true(b.cap >= want);
        check_pattern(&b, filled);
        for (; filled < want; filled++)
            b.data[filled] = pattern(filled);
    }
    mr_buffer_fini(&b);
}

static void data_is_aligned_to_a_page(void **state)
{
    struct mr_buffer b = {0};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t want = 1; want < 50 * page; want += page - 1) {
        assert_int_equal(mr_buffer_reserve(&b, want), 0);
        assert_int_equal((uintptr_t)b.data % page, 0);
        assert_int_equal(b.cap % page, 0);
    }
    mr_buffer_fini(&b);
}

/* Where huge pages may begin, whatever the kernel would choose for a size that is no multiple. */
static void large_data_is_aligned_to_a_huge_page(void **state)
{
    static const size_t more[] = {0, 4096, 1 << 20, (2 << 20) + 12288};
    struct mr_buffer b[8] = {0};
    for (size_t i = 0; i < ARRAY_LEN(b); i++) {
        size_t want = MR_HUGE_BYTES + more[i % ARRAY_LEN(more)];
        assert_int_equal(mr_buffer_reserve(&b[i], want), 0);
        assert_int_equal((uintptr_t)b[i].data % MR_HUGE_BYTES, 0);
        assert_true(b[i].cap >= want);
        memset(b[i].data, 1, b[i].cap);
    }
    for (size_t i = 0; i < ARRAY_LEN(b); i++)
        mr_buffer_fini(&b[i]);
}

static void pages_are_huge_unless_ordinary_ones_are_asked_for(void **state)
{
    struct mr_buffer huge = {0}, plain = {0}, small = {0};
    assert_int_equal(mr_buffer_reserve(&huge, 2 * MR_HUGE_BYTES), 0);
    assert_int_equal(mr_buffer_reserve(&plain, 2 * MR_HUGE_BYTES), 0);
    assert_int_equal(mr_buffer_reserve(&small, MR_HUGE_BYTES / 2), 0);
    mr_buffer_ordinary(&plain);
    mr_buffer_ordinary(&(struct mr_buffer){0});
    if (access("/sys/kernel/mm/transparent_hugepage", F_OK))
        skip();
    assert_true(mapping_has(huge.data, "hg"));
    assert_true(mapping_has(plain.data, "nh"));
    assert_false(mapping_has(small.data, "hg"));
    mr_buffer_fini(&huge);
    mr_buffer_fini(&plain);
    mr_buffer_fini(&small);
}

static void what_fits_changes_nothing(void **state)
{
    struct mr_buffer b = {0};
    assert_int_equal(mr_buffer_reserve(&b, 0), 0);
    assert_null(b.data);
    assert_int_equal(mr_buffer_reserve(&b, 10000), 0);
    uint8_t *data = b.data;
    size_t cap = b.cap;
    assert_int_equal(mr_buffer_reserve(&b, cap), 0);
    assert_ptr_equal(b.data, data);
    assert_int_equal(b.cap, cap);
    mr_buffer_fini(&b);
}

static void an_impossible_size_leaves_the_buffer_as_it_was(void **state)
{
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 4095, SIZE_MAX / 2, SIZE_MAX / 4 - 1};
    struct mr_buffer b = {0};
    for (int round = 0; round < 2; round++) {
        struct mr_buffer was = b;
        for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
            assert_int_equal(mr_buffer_reserve(&b, sizes[k]), -ENOMEM);
            assert_ptr_equal(b.data, was.data);
            assert_int_equal(b.cap, was.cap);
        }
        assert_int_equal(mr_buffer_reserve(&b, 5000), 0);
        b.data[4999] = 1;
    }
    mr_buffer_fini(&b);
}

static void prefaulting_keeps_the_contents(void **state)
{
    struct mr_buffer b = {0};
    mr_buffer_prefault(&b);
    assert_int_equal(mr_buffer_reserve(&b, 100000), 0);
    for (size_t i = 0; i < 100000; i++)
        b.data[i] = pattern(i);
    mr_buffer_prefault(&b);
    check_pattern(&b, 100000);
    mr_buffer_fini(&b);
}

static void finishing_twice_is_harmless(void **state)
{
    struct mr_buffer b = {0};
    mr_buffer_fini(&b);
    assert_int_equal(mr_buffer_reserve(&b, 1), 0);
    mr_buffer_fini(&b);
    mr_buffer_fini(&b);
    assert_null(b.data);
    assert_int_equal(b.cap, 0);
}

/* Two threads and the moments at which each goes on.  Nothing here orders their writes: they need
 * no order, as each thread writes to its own buffer alone. */
struct meeting {
    atomic_int moment;
};

static void reach(struct meeting *m, int moment)
{
    atomic_store_explicit(&m->moment, moment, memory_order_relaxed);
}

static void await(struct meeting *m, int moment)
{
    while (atomic_load_explicit(&m->moment, memory_order_relaxed) < moment)
        sched_yield();
}

/* The second buffer, which grows, finds the place that the first one has left. */
static void *moves_away(void *arg)
{
    struct meeting *m = arg;
    struct mr_buffer b = {0};
    int r = mr_buffer_reserve(&b, 1 << 20);
    reach(m, 1);
    await(m, 2);
    memset(b.data, 1, b.cap);
    if (!r)
        r = mr_buffer_reserve(&b, 16 << 20);
    reach(m, 3);
    await(m, 4);
    r = r ? r : b.data[0] - 1;
    mr_buffer_fini(&b);
    return r ? arg : NULL;
}

static void *moves_in(void *arg)
{
    struct meeting *m = arg;
    struct mr_buffer b = {0};
    await(m, 1);
    int r = mr_buffer_reserve(&b, 1 << 16);
    reach(m, 2);
    await(m, 3);
    if (!r)
        r = mr_buffer_reserve(&b, 1 << 20);
    memset(b.data, 2, b.cap);
    reach(m, 4);
    mr_buffer_fini(&b);
    return r ? arg : NULL;
}

static void what_one_thread_left_is_free_for_another(void **state)
{
    struct meeting m = {0};
    pthread_t first, second;
    void *failed;
    assert_int_equal(pthread_create(&first, NULL, moves_away, &m), 0);
    assert_int_equal(pthread_create(&second, NULL, moves_in, &m), 0);
    assert_int_equal(pthread_join(first, &failed), 0);
    assert_null(failed);
    assert_int_equal(pthread_join(second, &failed), 0);
    assert_null(failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(growing_keeps_the_contents),
        cmocka_unit_test(data_is_aligned_to_a_page),
        cmocka_unit_test(large_data_is_aligned_to_a_huge_page),
        cmocka_unit_test(pages_are_huge_unless_ordinary_ones_are_asked_for),
        cmocka_unit_test(what_fits_changes_nothing),
        cmocka_unit_test(an_impossible_size_leaves_the_buffer_as_it_was),
        cmocka_unit_test(prefaulting_keeps_the_contents),
        cmocka_unit_test(finishing_twice_is_harmless),
        cmocka_unit_test(what_one_thread_left_is_free_for_another),
    };
    return cmocka_run_group_tests_name("buffer", tests, NULL, NULL);
}
