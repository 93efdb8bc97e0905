/* test_source.c - sources over the memory store: scripted delays, failures and short reads, alone,
 * below an emulated device, and under a whole pipeline, whatever the depth. */
#include "unit.h"

#include "clock.h"
#include "device.h"
#include "memory_store.h"
#include "photo_set.h"
#include "sample_set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define N 40

static struct mr_store *store_of(unsigned n)
{
    struct mr_store *m;
    char name[32], text[32];
    assert_int_equal(mr_memory_store_new(&m), 0);
    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof name, "set/%c/%04u", 'a' + i % 3, i);
        int len = snprintf(text, sizeof text, "sample %u", i);
        assert_int_equal(mr_memory_store_add(m, name, text, (size_t)len), 0);
    }
    return m;
}

static struct mr_dataset *open_in(struct mr_store *m)
{
    struct mr_dataset *d;
    struct mr_error err = {0};
    if (mr_dataset_open_in(m, "set", NULL, &d, &err))
        fail_msg("%s", err.text);
    return d;
}

static void folders_and_lists_are_found_in_any_store(void **state)
{
    struct mr_store *m = store_of(N);
    struct mr_dataset *d = open_in(m);
    char name[64];
    (void)state;
    assert_int_equal(mr_dataset_size(d), N);
    assert_int_equal(mr_dataset_n_classes(d), 3);
    assert_string_equal(mr_dataset_class_name(d, 1), "b");
    assert_int_equal(mr_dataset_name(d, 0, name, sizeof name), strlen("set/a/0000"));
    assert_string_equal(name, "set/a/0000");
    mr_dataset_unref(d);
    assert_int_equal(mr_memory_store_add(m, "l.csv", "set/a/0003,5\n", 13), 0);
    assert_int_equal(mr_dataset_open_in(m, "l.csv", NULL, &d, NULL), 0);
    assert_int_equal(mr_dataset_label(d, 0), 5);
    mr_dataset_unref(d);
    assert_int_equal(mr_dataset_open_in(m, "none", NULL, &d, NULL), -ENOENT);
    mr_store_unref(m);
}

/* Start reads of samples 0 .. n-1 and wait for all: their order of completion. */
static void run(struct mr_source *s, struct mr_dataset *d, struct mr_read *read, unsigned n,
                unsigned *order)
{
    static uint8_t room[8][64];
    struct mr_read *done[8];
    for (unsigned i = 0; i < n; i++) {
        read[i].slot = i;
        read[i].extent = mr_dataset_extent(d, i);
        read[i].asked_ns = mr_clock_ns();
        assert_int_equal(mr_source_prepare(s, &read[i]), 0);
        read[i].buf = room[i];
        read[i].cap = sizeof room[i];
        mr_source_start(s, &read[i]);
    }
    for (unsigned k = 0; k < n;) {
        int got = mr_source_wait(s, UINT64_MAX, done, 8);
        assert_in_range(got, 1, n - k);
        for (int i = 0; i < got; i++)
            order[k++] = (unsigned)(done[i] - read);
    }
    assert_int_equal(mr_source_wait(s, 0, done, 8), 0);
}

static void delays_decide_the_order_of_completions(void **state)
{
    struct mr_store *m = store_of(N);
    struct mr_dataset *d = open_in(m);
    struct mr_source *s;
    struct mr_read read[4] = {0};
    unsigned order[4];
    (void)state;
    static const char *const names[] = {"set/a/0000", "set/a/0003", "set/a/0006", "set/a/0009"};
    static const unsigned ms[] = {30, 0, 20, 10};
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(mr_memory_store_script(
                             m, names[i], &(struct mr_memory_script){.delay_ns = ms[i] * 1000000u}),
                         0);
    assert_int_equal(
        mr_dataset_source(d, &(struct mr_source_opts){.depth = 4, .max_bytes = 99}, &s, NULL), 0);
    run(s, d, read, 4, order);
    static const unsigned want[] = {1, 3, 2, 0};
    assert_memory_equal(order, want, sizeof want);
    assert_true(read[0].took_ns >= 30000000);
    assert_int_equal(read[0].len, strlen("sample 0"));
    assert_memory_equal(read[0].data, "sample 0", read[0].len);
    assert_int_equal(mr_memory_store_reads(m, "set/a/0000"), 1);
    mr_source_close(s);
    mr_dataset_unref(d);
    mr_store_unref(m);
}

static void a_device_wraps_any_source_and_charges_by_extent(void **state)
{
    static const struct mr_device_profile slow = {.name = "slow",
                                                  .read_bytes_per_s = 1000000000,
                                                  .write_bytes_per_s = 1000000000,
                                                  .metadata_ns = 20000000,
                                                  .read_latency_ns = 5000000,
                                                  .queue_depth = 1,
                                                  .targets = 1,
                                                  .stripe_bytes = 1 << 20};
    struct mr_store *m = store_of(N);
    struct mr_dataset *d = open_in(m);
    struct mr_device *device;
    struct mr_source *s;
    struct mr_read read[2] = {0}, *done;
    uint8_t room[64];
    unsigned order[2];
    (void)state;
    assert_int_equal(mr_device_new(&slow, &device, NULL), 0);
    assert_int_equal(
        mr_dataset_source(d, &(struct mr_source_opts){.depth = 2, .max_bytes = 99}, &s, NULL), 0);
    assert_int_equal(mr_device_source_open(s, device, 0, &s, NULL), 0);
    run(s, d, read, 2, order);
    for (unsigned i = 0; i < 2; i++) /* both at once: their latency overlaps */
        assert_true(read[i].took_ns >= 25000000 && !read[i].overdue);
    /* Part of a blob costs no metadata, and a wait may end before. */
    struct mr_extent part = {0, 2, 4};
    read[0].extent = part;
    read[0].asked_ns = mr_clock_ns();
    assert_int_equal(mr_source_prepare(s, &read[0]), 0);
    read[0].buf = room;
    read[0].cap = sizeof room;
    mr_source_start(s, &read[0]);
    assert_int_equal(mr_source_wait(s, 0, &done, 1), 0);
    assert_int_equal(mr_source_wait(s, UINT64_MAX, &done, 1), 1);
    assert_in_range(read[0].due_ns - read[0].asked_ns, 5000000, 6000000);
    assert_memory_equal(read[0].data, "mple", 4);
    mr_source_close(s);
    mr_device_close(device);
    mr_dataset_unref(d);
    mr_store_unref(m);
}

struct tally {
    unsigned n;
    char reason[16], stage[16];
};

static void count(void *ctx, const struct mr_bad_sample *bad)
{
    struct tally *t = ctx;
    t->n++;
    snprintf(t->reason, sizeof t->reason, "%s", bad->reason);
    snprintf(t->stage, sizeof t->stage, "%s", bad->stage);
}

/* One script at a time: what the ledger says is the same for both engines and any depth. */
static void every_failure_is_told_with_its_stage(void **state)
{
    static const struct {
        struct mr_memory_script script;
        const char *reason, *stage;
        unsigned n;
    } cases[] = {
        {{.code = -ENOENT, .stage = MR_STAGE_OPEN}, "missing", "open", 1},
        {{.code = -EACCES, .stage = MR_STAGE_OPEN}, "permission", "open", 1},
        {{.code = -EIO, .stage = MR_STAGE_READ}, "I/O error", "read", 1},
        {{.missing = 3}, "truncated", "read", 1},
        {{.delay_ns = 2000000}, "", "", 0},
    };
    (void)state;
    for (unsigned k = 0; k < ARRAY_LEN(cases); k++)
        for (unsigned uring = 0; uring < 2; uring++) {
            struct mr_store *m = store_of(N);
            struct mr_dataset *d = open_in(m);
            struct tally t = {0};
            struct mr_pipeline_opts o = {.engine = uring ? MR_ENGINE_URING : MR_ENGINE_THREADS,
                                         .threads = 2,
                                         .io_depth = 7,
                                         .batch = 5,
                                         .seed = 2,
                                         .on_error = count,
                                         .on_error_ctx = &t};
            int r;
            assert_int_equal(mr_memory_store_script(m, "set/b/0004", &cases[k].script), 0);
            uint64_t hash = photo_set_hash(d, &o, &r);
            assert_int_equal(r, 0);
            assert_int_equal(t.n, cases[k].n);
            assert_string_equal(t.reason, cases[k].reason);
            assert_string_equal(t.stage, cases[k].stage);
            o.engine = MR_ENGINE_THREADS;
            o.threads = 1;
            assert_true(photo_set_hash(d, &o, &r) == hash);
            mr_dataset_unref(d);
            mr_store_unref(m);
        }
}

/* No descriptors is not the sample's fault: one request at a time waits for others. */
static void what_is_not_the_samples_fault_is_tried_again(void **state)
{
    struct mr_store *m = store_of(N);
    struct mr_dataset *d = open_in(m);
    struct tally t = {0};
    struct mr_pipeline_opts o = {.threads = 2, .batch = 5, .on_error = count, .on_error_ctx = &t};
    struct mr_memory_script busy = {.code = -EMFILE, .stage = MR_STAGE_OPEN, .times = 3};
    int r;
    (void)state;
    assert_int_equal(mr_memory_store_script(m, "set/b/0004", &busy), 0);
    photo_set_hash(d, &o, &r);
    assert_int_equal(r, 0);
    assert_int_equal(t.n, 0);
    busy.times = 0;
    assert_int_equal(mr_memory_store_script(m, "set/b/0004", &busy), 0);
    photo_set_hash(d, &o, &r);
    assert_int_equal(r, -EMFILE);
    mr_dataset_unref(d);
    mr_store_unref(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_and_lists_are_found_in_any_store),
        cmocka_unit_test(delays_decide_the_order_of_completions),
        cmocka_unit_test(a_device_wraps_any_source_and_charges_by_extent),
        cmocka_unit_test(every_failure_is_told_with_its_stage),
        cmocka_unit_test(what_is_not_the_samples_fault_is_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
