/* test_pipeline_api.c - what a binding's author needs of a pipeline: fields, memory of one's own,
 * calls that do not wait, a descriptor to poll, and fork(). */
#include "unit.h"

#include "memory_store.h"
#include "photo_set.h"
#include "sample_set.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- fields ---- */

/* Two fields: the index as a float pair, and three bytes of the key. */
static int two_fields(void *ctx, const struct mr_map_input *in, void *slot)
{
    (void)ctx;
    float *pair = in->field[0];
    uint8_t *bytes = in->field[1];
    assert_ptr_equal(slot, in->field[0]);
    pair[0] = (float)in->index;
    pair[1] = -1;
    for (unsigned i = 0; i < 3; i++)
        bytes[i] = (uint8_t)(in->index + i);
    return 0;
}

static const struct mr_field declared[] = {
    {.name = "pair", .dtype = MR_DT_F32, .n_dims = 1, .shape = {2}},
    {.name = "bytes", .dtype = MR_DT_U8, .n_dims = 1, .shape = {3}},
};

static void a_map_fills_the_fields_that_it_declares(void **state)
{
    struct mr_dataset *d;
    (void)state;
    assert_int_equal(mr_dataset_range(50, &d, NULL), 0);
    struct mr_pipeline *p = photo_set_pipeline(d, &(struct mr_pipeline_opts){.batch = 7,
                                                                             .map = two_fields,
                                                                             .map_without_bytes = 1,
                                                                             .fields = declared,
                                                                             .n_fields = 2});
    struct mr_batch *b;
    assert_int_equal(mr_pipeline_next(p, &b), 1);
    assert_int_equal(b->n_fields, 3);
    assert_int_equal(b->sample_bytes, 8);
    const struct mr_field *pair = mr_batch_field(b, "pair"), *bytes = mr_batch_field(b, "bytes");
    const struct mr_field *label = mr_batch_field(b, "label");
    assert_ptr_equal(pair, &b->fields[0]);
    assert_ptr_equal(label, &b->fields[2]);
    assert_null(mr_batch_field(b, "none"));
    assert_true(label->dtype == MR_DT_I64 && label->n_dims == 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal((uintptr_t)b->fields[i].data % 64, 0);
    assert_ptr_equal(b->data, pair->data);
    for (unsigned i = 0; i < b->n; i++) {
        uint64_t index = b->samples[i].index;
        assert_true(((float *)pair->data)[2 * i] == (float)index);
        assert_int_equal(((uint8_t *)bytes->data)[3 * i + 2], (uint8_t)(index + 2));
        assert_int_equal(((int64_t *)label->data)[i], 0);
        assert_ptr_equal(b->samples[i].data, (float *)pair->data + 2 * i);
    }
    mr_batch_unref(b);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

static void labels_of_whole_files_are_a_field(void **state)
{
    struct mr_dataset *d;
    struct mr_pipeline *p;
    struct mr_batch *b;
    struct mr_store *m;
    (void)state;
    assert_int_equal(mr_memory_store_new(&m), 0);
    assert_int_equal(mr_memory_store_add(m, "s/a/1", "x", 1), 0);
    assert_int_equal(mr_memory_store_add(m, "s/b/1", "y", 1), 0);
    assert_int_equal(mr_dataset_open_in(m, "s", NULL, &d, NULL), 0);
    p = photo_set_pipeline(d, &(struct mr_pipeline_opts){.batch = 2, .shuffle = MR_SHUFFLE_NONE});
    assert_int_equal(mr_pipeline_next(p, &b), 1);
    assert_int_equal(b->n_fields, 1); /* whole files: the label alone */
    assert_null(b->data);
    static const int64_t labels[] = {0, 1};
    assert_memory_equal(b->fields[0].data, labels, sizeof labels);
    mr_batch_unref(b);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
    mr_store_unref(m);
}

static void fields_that_cannot_be_are_refused(void **state)
{
    static const struct mr_field bad[] = {
        {.name = "label", .dtype = MR_DT_F32},
        {.name = "", .dtype = MR_DT_F32},
        {.name = "x", .dtype = MR_DT_NONE},
        {.name = "x", .dtype = MR_DT_STRING},
        {.name = "x", .dtype = MR_DT_F32, .n_dims = 9},
        {.name = "x", .dtype = MR_DT_F32, .n_dims = 1},
        {.name = "x", .dtype = MR_DT_F64, .n_dims = 2, .shape = {1u << 31, UINT64_C(1) << 40}},
        {.name = "a name of more than thirty-one bytes", .dtype = MR_DT_F32},
    };
    struct mr_dataset *d;
    struct mr_pipeline *p = NULL;
    (void)state;
    assert_int_equal(mr_dataset_range(50, &d, NULL), 0);
    struct mr_pipeline_opts o = {
        .batch = 5, .map = two_fields, .map_without_bytes = 1, .n_fields = 1};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct mr_error err = {0};
        o.fields = &bad[i];
        assert_int_equal(mr_pipeline_open(d, &o, &p, &err), -EINVAL);
        assert_non_null(strstr(err.text, "field"));
    }
    o.fields = declared;
    o.map_bytes = 9;
    assert_int_equal(mr_pipeline_open(d, &o, &p, NULL), -EINVAL);
    o.map = NULL;
    o.map_without_bytes = 0;
    assert_int_equal(mr_pipeline_open(d, &o, &p, NULL), -EINVAL);
    assert_null(p);
    mr_dataset_unref(d);
}

/* ---- memory ---- */

struct heap {
    atomic_long n_live, n_calls;
};

static void *heap_alloc(void *ctx, size_t size, size_t alignment)
{
    struct heap *h = ctx;
    assert_int_equal(size % alignment, 0);
    atomic_fetch_add(&h->n_live, 1);
    atomic_fetch_add(&h->n_calls, 1);
    return aligned_alloc(alignment, size);
}

static void heap_free(void *ctx, void *memory, size_t size)
{
    struct heap *h = ctx;
    (void)size;
    atomic_fetch_sub(&h->n_live, 1);
    free(memory);
}

static void batch_memory_is_the_callers_until_the_last_batch_is_back(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 40);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    for (int mapped = 0; mapped < 2; mapped++) {
        struct heap h = {0};
        struct mr_batch *b;
        struct mr_pipeline_opts o = {
            .threads = 2, .batch = 5, .map = mapped ? photo_set_number : NULL, .map_bytes = 8};
        int r;
        uint64_t want = photo_set_hash(d, &o, &r);
        o.allocator = (struct mr_allocator){heap_alloc, heap_free, &h};
        assert_true(photo_set_hash(d, &o, &r) == want);
        assert_true(atomic_load(&h.n_calls) >= 3);
        assert_int_equal(atomic_load(&h.n_live), 0);
        struct mr_pipeline *p = photo_set_pipeline(d, &o);
        assert_int_equal(mr_pipeline_next(p, &b), 1);
        mr_pipeline_close(p);
        assert_true(atomic_load(&h.n_live) > 0);
        mr_batch_unref(b);
        assert_int_equal(atomic_load(&h.n_live), 0);
        o.allocator.free = NULL;
        assert_int_equal(mr_pipeline_open(d, &o, &p, NULL), -EINVAL);
    }
    mr_dataset_unref(d);
}

/* ---- waiting ---- */

static atomic_int gate;

static int wait_at_gate(void *ctx, const struct mr_map_input *in, void *slot)
{
    (void)ctx;
    (void)in;
    *(uint8_t *)slot = 1;
    while (!atomic_load(&gate))
        usleep(100);
    return 0;
}

static struct mr_pipeline *gated(struct mr_dataset *d, unsigned prefetch)
{
    atomic_store(&gate, 0);
    return photo_set_pipeline(d, &(struct mr_pipeline_opts){.threads = 2,
                                                            .batch = 4,
                                                            .prefetch = prefetch,
                                                            .epochs = 2,
                                                            .map = wait_at_gate,
                                                            .map_bytes = 1,
                                                            .map_without_bytes = 1,
                                                            .pollable = 1});
}

static int readable(struct mr_pipeline *p, int wait_ms)
{
    struct pollfd at = {.fd = mr_pipeline_fd(p), .events = POLLIN};
    assert_true(at.fd >= 0);
    return poll(&at, 1, wait_ms);
}

static void calls_that_may_not_wait_come_back(void **state)
{
    struct mr_dataset *d;
    (void)state;
    assert_int_equal(mr_dataset_range(8, &d, NULL), 0);
    for (int none = 0; none < 2; none++) {
        struct mr_pipeline *p = gated(d, none ? MR_NONE : 1);
        struct mr_batch *b = NULL;
        assert_int_equal(mr_pipeline_next_within(p, 0, &b), -EAGAIN);
        assert_int_equal(mr_pipeline_next_within(p, 3000000, &b), -ETIMEDOUT);
        assert_int_equal(readable(p, 0), 0);
        atomic_store(&gate, 1);
        assert_int_equal(readable(p, 10000), 1);
        assert_int_equal(mr_pipeline_next_within(p, 0, &b), 1);
        assert_int_equal(b->number, 0);
        mr_batch_unref(b);
        assert_int_equal(mr_pipeline_next_within(p, UINT64_MAX, &b), 1);
        mr_batch_unref(b);
        assert_int_equal(readable(p, 0), 1); /* the end of an epoch needs no wait */
        assert_int_equal(mr_pipeline_next_within(p, 0, &b), 0);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(mr_pipeline_next(p, &b), 1);
            mr_batch_unref(b);
        }
        for (int i = 0; i < 3; i++) { /* nor does the end of all */
            assert_int_equal(readable(p, 0), 1);
            assert_int_equal(mr_pipeline_next_within(p, 0, &b), 0);
        }
        mr_pipeline_close(p);
    }
    mr_dataset_unref(d);
}

static void an_event_loop_gets_everything(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 40);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct mr_pipeline_opts o = {.threads = 2, .batch = 3, .epochs = 20, .pollable = 1};
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    uint64_t n = mr_pipeline_n_samples(p), seen = 0;
    struct mr_batch *b;
    while (seen < n) {
        assert_int_equal(readable(p, 10000), 1);
        int r = mr_pipeline_next_within(p, 0, &b);
        assert_in_range(r, 0, 1);
        if (r) {
            seen += b->n;
            mr_batch_unref(b);
        }
    }
    mr_pipeline_close(p);
    o.pollable = 0;
    p = photo_set_pipeline(d, &o);
    assert_int_equal(mr_pipeline_fd(p), -ENOTSUP);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

/* ---- fork ---- */

/* In the child: what may be called neither hangs nor works. */
static int in_child(struct mr_pipeline *p, struct mr_batch *b, uint64_t hash)
{
    struct mr_batch *other = NULL;
    if (photo_set_batch_hash(b) != hash) /* its copy can be read */
        return 1;
    if (mr_pipeline_next(p, &other) != -ECHILD || mr_pipeline_next_within(p, 0, &other) != -ECHILD)
        return 2;
    mr_batch_unref(b);
    mr_pipeline_close(p);
    return 0;
}

static void a_child_that_closes_does_not_disturb_its_parent(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 40);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    for (int e = 0; e < 2; e++) {
        struct mr_pipeline_opts o = {.engine = e ? MR_ENGINE_URING : MR_ENGINE_THREADS,
                                     .threads = 2,
                                     .batch = 4,
                                     .epochs = 10};
        struct mr_pipeline *p;
        struct mr_batch *b;
        uint64_t n = 0;
        int r, status;
        if (mr_pipeline_open(d, &o, &p, NULL) == -ENOTSUP)
            continue;
        for (unsigned k = 0; (r = mr_pipeline_next(p, &b)) == 1 || n < 400; k++) {
            if (!r)
                continue;
            assert_int_equal(r, 1);
            n += b->n;
            if (k % 16 == 0) {
                uint64_t hash = photo_set_batch_hash(b);
                pid_t child = fork();
                assert_true(child >= 0);
                if (!child)
                    _exit(in_child(p, b, hash));
                assert_int_equal(waitpid(child, &status, 0), child);
                assert_int_equal(status, 0);
            }
            mr_batch_unref(b);
        }
        assert_int_equal(n, 400);
        mr_pipeline_close(p);
    }
    mr_dataset_unref(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_map_fills_the_fields_that_it_declares),
        cmocka_unit_test(labels_of_whole_files_are_a_field),
        cmocka_unit_test(fields_that_cannot_be_are_refused),
        WITH_TEMPDIR(batch_memory_is_the_callers_until_the_last_batch_is_back),
        cmocka_unit_test(calls_that_may_not_wait_come_back),
        WITH_TEMPDIR(an_event_loop_gets_everything),
        WITH_TEMPDIR(a_child_that_closes_does_not_disturb_its_parent),
    };
    alarm(100); /* what hangs is to fail */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
