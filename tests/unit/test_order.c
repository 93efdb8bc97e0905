/* test_order.c - epochs, shuffles and shards: everybody once, nobody twice, the same every time. */
#include "order.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct mr_order_opts plain = {
    .n_samples = 1000, .window = 64, .seed = 1, .batch = 7, .world = 1, .keep_last = 1};

static const enum mr_shuffle shuffles[] = {MR_SHUFFLE_GLOBAL, MR_SHUFFLE_WINDOW, MR_SHUFFLE_NONE};

/* A shard's samples of one epoch, in order; the caller frees them. */
static uint64_t *epoch_of(const struct mr_order_opts *o, uint64_t epoch, uint64_t *n)
{
    struct mr_order q;
    assert_int_equal(mr_order_init(&q, o), 0);
    uint64_t *out = malloc((q.cut.n_batches + 1) * o->batch * sizeof *out);
    assert_non_null(out);
    *n = 0;
    for (uint64_t k = 0; k < q.cut.n_batches; k++) {
        unsigned got = mr_order_batch(&q, epoch, k, out + *n);
        assert_int_equal(got,
                         k < q.cut.n_full ? o->batch : q.cut.n_shard - q.cut.n_full * o->batch);
        assert_true(got > 0);
        *n += got;
    }
    mr_order_fini(&q);
    return out;
}

/* Count the samples of all ranks; returns how many there were. */
static uint64_t count_samples(struct mr_order_opts o, uint64_t epoch, unsigned char *count)
{
    uint64_t total = 0;
    memset(count, 0, o.n_samples);
    for (o.rank = 0; o.rank < o.world; o.rank++) {
        uint64_t n, *out = epoch_of(&o, epoch, &n);
        for (uint64_t i = 0; i < n; i++) {
            assert_true(out[i] < o.n_samples);
            count[out[i]]++;
        }
        total += n;
        free(out);
    }
    return total;
}

static void check_cover(struct mr_order_opts o)
{
    unsigned char *count = malloc(o.n_samples);
    assert_non_null(count);
    uint64_t n = count_samples(o, 3, count);
    assert_int_equal(n, o.n_samples);
    for (uint64_t i = 0; i < o.n_samples; i++)
        if (count[i] != 1)
            fail_msg("shuffle %d, n %llu, batch %u, world %u: sample %llu comes %u times",
                     o.shuffle, (unsigned long long)o.n_samples, o.batch, o.world,
                     (unsigned long long)i, count[i]);
    o.keep_last = 0;
    uint64_t round = (uint64_t)o.batch * o.world;
    assert_int_equal(count_samples(o, 3, count), o.n_samples / round * round);
    for (uint64_t i = 0; i < o.n_samples; i++)
        assert_in_range(count[i], 0, 1);
    free(count);
}

static void an_epoch_covers_every_sample_once(void **state)
{
    static const uint64_t sizes[] = {1, 2, 3, 5, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100, 257, 1000};
    static const unsigned batches[] = {1, 2, 3, 8, 64, 2000}, worlds[] = {1, 2, 3, 4, 7, 16};
    for (size_t s = 0; s < ARRAY_LEN(shuffles); s++)
        for (size_t n = 0; n < ARRAY_LEN(sizes); n++)
            for (size_t b = 0; b < ARRAY_LEN(batches); b++)
                for (size_t w = 0; w < ARRAY_LEN(worlds); w++)
                    check_cover((struct mr_order_opts){.n_samples = sizes[n],
                                                       .shuffle = shuffles[s],
                                                       .window = 10,
                                                       .seed = 5,
                                                       .batch = batches[b],
                                                       .world = worlds[w],
                                                       .keep_last = 1});
}

static void ranks_have_equally_many_full_batches(void **state)
{
    for (uint64_t n = 1; n < 300; n += 7)
        for (unsigned world = 1; world <= 9; world++)
            for (unsigned batch = 1; batch <= 16; batch += 5) {
                struct mr_order_opts o = plain;
                o.n_samples = n, o.world = world, o.batch = batch;
                uint64_t total = 0, least = UINT64_MAX, most = 0;
                for (o.rank = 0; o.rank < world; o.rank++) {
                    struct mr_order q;
                    assert_int_equal(mr_order_init(&q, &o), 0);
                    assert_int_equal(q.cut.n_full, n / (world * batch));
                    assert_in_range(q.cut.n_batches, q.cut.n_full, q.cut.n_full + 1);
                    uint64_t tail = q.cut.n_shard - q.cut.n_full * batch;
                    assert_in_range(tail, 0, batch);
                    least = tail < least ? tail : least;
                    most = tail > most ? tail : most;
                    total += q.cut.n_shard;
                    mr_order_fini(&q);
                }
                assert_int_equal(total, n);
                assert_in_range(most - least, 0, 1); /* the remainder is divided evenly */
            }
}

/* Batch k of all ranks, one after the other, is batch k of one rank with batches of world times the
 * size: not only as a set, but in order. */
static void the_world_does_not_change_what_a_round_holds(void **state)
{
    static const enum mr_shuffle kinds[] = {MR_SHUFFLE_GLOBAL, MR_SHUFFLE_NONE};
    static const uint64_t sizes[] = {240, 241, 250, 263, 24, 23, 5};
    for (size_t s = 0; s < ARRAY_LEN(kinds); s++)
        for (size_t z = 0; z < ARRAY_LEN(sizes); z++)
            for (unsigned world = 1; world <= 24; world++) {
                if (24 % world)
                    continue;
                struct mr_order_opts o = plain;
                o.shuffle = kinds[s], o.n_samples = sizes[z], o.batch = 24;
                struct mr_order whole;
                assert_int_equal(mr_order_init(&whole, &o), 0);
                o.batch = 24 / world, o.world = world;
                for (uint64_t k = 0; k < whole.cut.n_batches; k++) {
                    uint64_t want[24], got[24];
                    unsigned n = mr_order_batch(&whole, 2, k, want), m = 0;
                    for (o.rank = 0; o.rank < world; o.rank++) {
                        struct mr_order q;
                        assert_int_equal(mr_order_init(&q, &o), 0);
                        if (k < q.cut.n_batches)
                            m += mr_order_batch(&q, 2, k, got + m);
                        mr_order_fini(&q);
                    }
                    assert_int_equal(m, n);
                    assert_memory_equal(got, want, n * sizeof *got);
                }
                mr_order_fini(&whole);
            }
}

static void check_random_access(struct mr_order_opts o)
{
    struct mr_order q;
    uint64_t n, *sequence[3], got[64];
    for (uint64_t e = 0; e < 3; e++)
        sequence[e] = epoch_of(&o, e, &n);
    assert_int_equal(mr_order_init(&q, &o), 0);
    uint64_t x = 12345;
    for (int i = 0; i < 400; i++) {
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint64_t epoch = (x >> 33) % 3, number = (x >> 40) % q.cut.n_batches;
        unsigned m = mr_order_batch(&q, epoch, number, got);
        assert_memory_equal(got, sequence[epoch] + number * o.batch, m * sizeof *got);
    }
    for (uint64_t e = 0; e < 3; e++)
        free(sequence[e]);
    mr_order_fini(&q);
}

static void any_batch_can_be_asked_for_at_any_time(void **state)
{
    static const unsigned windows[] = {1, 2, 10, 100, 5000};
    for (size_t s = 0; s < ARRAY_LEN(shuffles); s++)
        for (unsigned rank = 0; rank < 3; rank++)
            for (size_t w = 0; w < ARRAY_LEN(windows); w++) {
                struct mr_order_opts o = plain;
                o.shuffle = shuffles[s], o.world = 3, o.rank = rank, o.window = windows[w];
                check_random_access(o);
            }
}

static unsigned n_equal(struct mr_order_opts a, uint64_t epoch_a, struct mr_order_opts b,
                        uint64_t epoch_b)
{
    uint64_t n, m, *x = epoch_of(&a, epoch_a, &n), *y = epoch_of(&b, epoch_b, &m);
    unsigned same = 0;
    assert_int_equal(n, m);
    for (uint64_t i = 0; i < n; i++)
        same += x[i] == y[i];
    free(x);
    free(y);
    return same;
}

static void seeds_and_epochs_make_new_orders(void **state)
{
    for (size_t s = 0; s < 2; s++) {
        struct mr_order_opts a = plain, b = plain;
        a.shuffle = b.shuffle = shuffles[s];
        unsigned few = shuffles[s] == MR_SHUFFLE_GLOBAL ? 10 : 60;
        for (uint64_t e = 0; e < 5; e++) {
            assert_int_equal(n_equal(a, e, a, e), 1000);
            assert_in_range(n_equal(a, e, a, e + 1), 0, few);
            assert_in_range(n_equal(a, e, a, e + (UINT64_C(1) << 40)), 0, few);
            b.seed = 2 + e;
            assert_in_range(n_equal(a, e, b, e), 0, few);
            assert_in_range(n_equal(a, e + 1, b, e), 0, few);
        }
    }
}

static void without_shuffle_the_order_is_the_lists(void **state)
{
    struct mr_order_opts o = plain;
    o.shuffle = MR_SHUFFLE_NONE;
    for (uint64_t e = 0; e < 2; e++) {
        uint64_t n, *out = epoch_of(&o, e, &n);
        assert_int_equal(n, 1000);
        for (uint64_t i = 0; i < n; i++)
            assert_int_equal(out[i], i);
        free(out);
    }
}

static void a_window_is_local(void **state)
{
    static const unsigned windows[] = {1, 2, 3, 16, 100, 999, 1000, 1001, 4096};
    for (size_t w = 0; w < ARRAY_LEN(windows); w++) {
        struct mr_order_opts o = plain;
        o.shuffle = MR_SHUFFLE_WINDOW, o.window = windows[w];
        uint64_t n, *out = epoch_of(&o, 0, &n), moved = 0;
        for (uint64_t i = 0; i < n; i++) {
            assert_true(out[i] < i + windows[w]); /* at most window - 1 places early */
            moved += out[i] != i;
        }
        if (windows[w] == 1)
            assert_int_equal(moved, 0);
        else
            assert_true(moved > 500);
        free(out);
    }
}

static void a_window_as_large_as_the_data_mixes_all_of_it(void **state)
{
    struct mr_order_opts o = plain;
    o.shuffle = MR_SHUFFLE_WINDOW, o.window = 1000;
    uint64_t n, *out = epoch_of(&o, 0, &n), from_second_half = 0;
    for (uint64_t i = 0; i < 500; i++)
        from_second_half += out[i] >= 500;
    assert_in_range(from_second_half, 180, 320); /* 250 expected, deviation 11 */
    free(out);
}

static void a_window_shard_does_not_depend_on_the_seed(void **state)
{
    unsigned char *a = malloc(1000), *b = malloc(1000);
    assert_true(a && b);
    for (unsigned rank = 0; rank < 4; rank++) {
        for (int k = 0; k < 2; k++) {
            struct mr_order_opts o = plain;
            o.shuffle = MR_SHUFFLE_WINDOW, o.world = 4, o.rank = rank, o.seed = 10 + (unsigned)k;
            uint64_t n, *out = epoch_of(&o, (uint64_t)k, &n);
            unsigned char *seen = k ? b : a;
            memset(seen, 0, 1000);
            for (uint64_t i = 0; i < n; i++)
                seen[out[i]] = 1;
            free(out);
        }
        assert_memory_equal(a, b, 1000);
    }
    free(a);
    free(b);
}

/* 0 .. n-1, from a state that the caller keeps. */
static uint64_t below(uint64_t *x, uint64_t n)
{
    *x = *x * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (*x >> 33) % n;
}

/* All ranks' batches from the start on, round by round, to the end of the epoch: compared with the
 * order of one sample at a time. */
static void check_rounds(struct mr_order_opts o, const uint64_t *want)
{
    struct mr_order q[8];
    uint64_t at = o.start_samples, first = at / ((uint64_t)o.batch * o.world), got[64];
    for (o.rank = 0; o.rank < o.world; o.rank++)
        assert_int_equal(mr_order_init(&q[o.rank], &o), 0);
    for (uint64_t k = first; k < q[o.world - 1].start.n_batches; k++) {
        assert_int_equal(mr_order_samples(&q[0], o.start_epoch, k), at);
        for (unsigned r = 0; r < o.world; r++) {
            unsigned n =
                k < q[r].start.n_batches ? mr_order_batch(&q[r], o.start_epoch, k, got) : 0;
            if (memcmp(got, want + at, n * sizeof *got))
                fail_msg("n %llu, batch %u, world %u, from %llu: rank %u has others in round %llu",
                         (unsigned long long)o.n_samples, o.batch, o.world,
                         (unsigned long long)o.start_samples, r, (unsigned long long)k);
            at += n;
        }
    }
    if (o.keep_last)
        assert_int_equal(at, o.n_samples);
    else
        assert_true(o.n_samples - at < q[0].round);
    /* The next epoch begins where it always does. */
    for (unsigned r = 0; r < o.world; r++) {
        assert_int_equal(mr_order_samples(&q[r], o.start_epoch + 1, 0), 0);
        mr_order_fini(&q[r]);
    }
}

static void a_run_goes_on_anywhere_with_any_batch_and_world(void **state)
{
    static const enum mr_shuffle kinds[] = {MR_SHUFFLE_GLOBAL, MR_SHUFFLE_NONE};
    uint64_t x = 99;
    for (unsigned i = 0; i < 3000; i++) {
        struct mr_order_opts o = {.n_samples = 1 + below(&x, 200),
                                  .shuffle = kinds[i % 2],
                                  .seed = i,
                                  .batch = 1 + (unsigned)below(&x, 40),
                                  .world = 1 + (unsigned)below(&x, 8),
                                  .keep_last = (int)below(&x, 2),
                                  .start_epoch = below(&x, 3)};
        o.start_samples = below(&x, o.n_samples + 1);
        struct mr_order_opts single = o;
        single.batch = single.world = 1;
        single.start_samples = 0;
        uint64_t n, *want = epoch_of(&single, o.start_epoch, &n);
        check_rounds(o, want);
        free(want);
    }
}

/* Where in the data set the substitutes of one position come from does not depend on who asks. */
static void substitutes_are_the_same_whatever_the_batch_and_the_world(void **state)
{
    uint64_t x = 7;
    for (unsigned i = 0; i < 500; i++) {
        struct mr_order_opts o = plain;
        struct mr_order q, single;
        o.shuffle = shuffles[i % 3];
        o.n_samples = 1 + below(&x, 300);
        o.batch = 1;
        assert_int_equal(mr_order_init(&single, &o), 0);
        o.batch = 1 + (unsigned)below(&x, 20);
        o.world = 1 + (unsigned)below(&x, 5);
        o.rank = (unsigned)below(&x, o.world);
        if (o.shuffle != MR_SHUFFLE_WINDOW)
            o.start_samples = below(&x, o.n_samples + 1);
        o.start_epoch = 4;
        assert_int_equal(mr_order_init(&q, &o), 0);
        for (uint64_t k = o.start_samples / q.round; k < q.start.n_full; k++)
            for (unsigned slot = 0; slot < o.batch; slot++) {
                uint64_t at = mr_order_samples(&q, 4, k) + o.rank * o.batch + slot;
                for (unsigned attempt = 1; attempt < 4; attempt++)
                    assert_int_equal(mr_order_substitute(&q, 4, k, slot, attempt),
                                     mr_order_substitute(&single, 4, at, 0, attempt));
            }
        mr_order_fini(&q);
        mr_order_fini(&single);
    }
}

static void every_sample_of_the_set_can_be_a_substitute(void **state)
{
    for (size_t s = 0; s < ARRAY_LEN(shuffles); s++) {
        struct mr_order_opts o = plain;
        struct mr_order q;
        unsigned char drawn[1000] = {0};
        unsigned n = 0;
        o.shuffle = shuffles[s], o.world = 3, o.rank = 1;
        assert_int_equal(mr_order_init(&q, &o), 0);
        for (uint64_t k = 0; k < q.cut.n_full; k++)
            for (unsigned i = 0; i < 7 * 40; i++) {
                uint64_t who = mr_order_substitute(&q, 4, k, i % 7, 1 + i / 7);
                assert_true(who < 1000);
                n += !drawn[who];
                drawn[who] = 1;
            }
        assert_int_equal(n, 1000);
        mr_order_fini(&q);
    }
}

static void substitutes_do_not_disturb_the_order(void **state)
{
    struct mr_order_opts o = plain;
    o.shuffle = MR_SHUFFLE_WINDOW;
    uint64_t n, *want = epoch_of(&o, 0, &n), got[7];
    struct mr_order q;
    assert_int_equal(mr_order_init(&q, &o), 0);
    for (uint64_t k = 0; k < q.cut.n_batches; k++) {
        unsigned m = mr_order_batch(&q, 0, k, got);
        assert_memory_equal(got, want + k * 7, m * sizeof *got);
        mr_order_substitute(&q, 9, k, 0, 1);
    }
    mr_order_fini(&q);
    free(want);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* 2 epochs, 3 ranks, 2 seeds: each position has a key of its own. */
static void every_position_has_its_own_key(void **state)
{
    uint64_t *key = malloc(4 * 1000 * sizeof *key);
    size_t n = 0;
    assert_non_null(key);
    for (unsigned rank = 0; rank < 3; rank++)
        for (uint64_t seed = 0; seed < 2; seed++) {
            struct mr_order_opts o = plain;
            o.world = 3, o.rank = rank, o.seed = seed;
            struct mr_order q;
            assert_int_equal(mr_order_init(&q, &o), 0);
            for (uint64_t e = 0; e < 2; e++)
                for (uint64_t i = 0; i < q.cut.n_shard; i++)
                    key[n++] = mr_order_key(&q, e, i / 7, (unsigned)(i % 7));
            mr_order_fini(&q);
        }
    assert_int_equal(n, 4000);
    qsort(key, n, sizeof *key, by_value);
    for (size_t i = 1; i < n; i++)
        assert_true(key[i - 1] < key[i]);
    free(key);
}

/* The key belongs to the place in the global order, whoever reads it. */
static void the_key_does_not_depend_on_the_world(void **state)
{
    struct mr_order_opts o = plain;
    struct mr_order whole, part;
    o.batch = 24;
    assert_int_equal(mr_order_init(&whole, &o), 0);
    o.batch = 8, o.world = 3;
    for (o.rank = 0; o.rank < 3; o.rank++) {
        assert_int_equal(mr_order_init(&part, &o), 0);
        for (uint64_t k = 0; k < part.cut.n_full; k++)
            for (unsigned slot = 0; slot < 8; slot++)
                assert_true(mr_order_key(&part, 1, k, slot) ==
                            mr_order_key(&whole, 1, k, o.rank * 8 + slot));
        mr_order_fini(&part);
    }
    mr_order_fini(&whole);
}

static void a_huge_data_set_takes_no_memory_and_no_time(void **state)
{
    struct mr_order_opts o = plain;
    o.n_samples = UINT64_C(1) << 40, o.batch = 4096, o.world = 1024, o.rank = 1023;
    for (size_t s = 0; s < ARRAY_LEN(shuffles); s++) {
        static uint64_t out[4096];
        struct mr_order q;
        o.shuffle = shuffles[s];
        assert_int_equal(mr_order_init(&q, &o), 0);
        uint64_t number = shuffles[s] == MR_SHUFFLE_WINDOW ? 10 : q.cut.n_full - 1;
        assert_int_equal(mr_order_batch(&q, 1, number, out), 4096);
        for (unsigned i = 0; i < 4096; i++)
            assert_true(out[i] < o.n_samples);
        mr_order_fini(&q);
        mr_order_fini(&q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_epoch_covers_every_sample_once),
        cmocka_unit_test(ranks_have_equally_many_full_batches),
        cmocka_unit_test(the_world_does_not_change_what_a_round_holds),
        cmocka_unit_test(any_batch_can_be_asked_for_at_any_time),
        cmocka_unit_test(seeds_and_epochs_make_new_orders),
        cmocka_unit_test(without_shuffle_the_order_is_the_lists),
        cmocka_unit_test(a_window_is_local),
        cmocka_unit_test(a_window_as_large_as_the_data_mixes_all_of_it),
        cmocka_unit_test(a_window_shard_does_not_depend_on_the_seed),
        cmocka_unit_test(a_run_goes_on_anywhere_with_any_batch_and_world),
        cmocka_unit_test(substitutes_are_the_same_whatever_the_batch_and_the_world),
        cmocka_unit_test(every_sample_of_the_set_can_be_a_substitute),
        cmocka_unit_test(substitutes_do_not_disturb_the_order),
        cmocka_unit_test(every_position_has_its_own_key),
        cmocka_unit_test(the_key_does_not_depend_on_the_world),
        cmocka_unit_test(a_huge_data_set_takes_no_memory_and_no_time),
    };
    return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
