/* test_pipeline_position.c - a run that resumes at a position draws what an unbroken one would have
 * drawn, with any batch and world, over both engines (MILLRACE_ENGINE, as in test_pipeline.c). */
#include "unit.h"

#include "photo_set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void a_run_set_to_a_position_equals_the_unbroken_one(void **state)
{
    static const enum mr_shuffle orders[] = {MR_SHUFFLE_GLOBAL, MR_SHUFFLE_WINDOW, MR_SHUFFLE_NONE};
    struct tempdir *t = *state;
    photo_set_write(t, 100);
    struct mr_dataset *d = photo_set_open(photo_set_list(t, 100, 9));
    for (unsigned s = 0; s < 3; s++) {
        struct mr_pipeline_opts o = photo_set_opts();
        o.shuffle = orders[s];
        o.window = 20;
        o.epochs = 3;
        o.max_error_share = 0.5;
        uint64_t hash[64];
        struct mr_pipeline *p = photo_set_pipeline(d, &o);
        struct mr_batch *b;
        struct mr_position at[64];
        unsigned n = 0, n_ends = 0;
        int r;
        while (n_ends < 3 && (mr_pipeline_position(p, &at[n]), r = mr_pipeline_next(p, &b)) >= 0) {
            if (r == 0) {
                n_ends++;
                continue;
            }
            hash[n++] = photo_set_batch_hash(b);
            mr_batch_unref(b);
        }
        mr_pipeline_close(p);
        assert_int_equal(n, 18);
        for (unsigned from = 0; from < n; from += 5) {
            o.start = at[from];
            p = photo_set_pipeline(d, &o);
            for (unsigned k = from; k < n;) {
                r = mr_pipeline_next(p, &b);
                assert_in_range(r, 0, 1);
                if (!r)
                    continue;
                assert_int_equal(photo_set_batch_hash(b), hash[k]);
                mr_batch_unref(b);
                k++;
            }
            mr_pipeline_close(p);
        }
    }
    mr_dataset_unref(d);
}

#define MOST 400

/* What all ranks draw, in order: the samples' contents, substitutes included, and their keys. */
struct drawn {
    uint64_t which[MOST], key[MOST];
    unsigned n;
};

struct number_and_key {
    uint64_t which, key;
};

static int number_and_key(void *ctx, const struct mr_map_input *in, void *slot)
{
    struct number_and_key *out = slot;
    out->key = in->key;
    return photo_set_number(ctx, in, &out->which);
}

/* Draw up to `rounds` batches of each rank from o->start on, to which the next ones are set. */
static void draw_rounds(struct mr_dataset *d, struct mr_pipeline_opts *o, unsigned rounds,
                        struct drawn *out)
{
    struct mr_pipeline *p[4];
    struct mr_batch *b;
    for (o->rank = 0; o->rank < o->world; o->rank++)
        p[o->rank] = photo_set_pipeline(d, o);
    uint64_t left = mr_pipeline_n_left(p[0]);
    for (unsigned k = 0; k < rounds && k < left; k++)
        for (unsigned r = 0; r < o->world; r++) {
            int got = mr_pipeline_next(p[r], &b);
            if (!got) /* an epoch ended */
                got = mr_pipeline_next(p[r], &b);
            assert_int_equal(got, 1);
            const struct number_and_key *sample = (const void *)b->data;
            for (unsigned i = 0; i < b->n; i++, out->n++) {
                assert_true(out->n < MOST);
                out->which[out->n] = sample[i].which;
                out->key[out->n] = sample[i].key;
            }
            mr_batch_unref(b);
        }
    mr_pipeline_position(p[0], &o->start);
    for (unsigned r = 0; r < o->world; r++)
        mr_pipeline_close(p[r]);
}

static struct mr_pipeline_opts number_opts(enum mr_shuffle shuffle)
{
    struct mr_pipeline_opts o = photo_set_opts();
    o.shuffle = shuffle;
    o.window = 20;
    o.epochs = 3;
    o.world = 1;
    o.max_error_share = 0.5;
    o.map = number_and_key;
    o.map_bytes = sizeof(struct number_and_key);
    return o;
}

static void a_run_goes_on_with_another_batch_and_world(void **state)
{
    static const unsigned parts[][3] = {/* batch, world, rounds */
                                        {16, 1, 2},
                                        {5, 3, 1},
                                        {1, 4, 6},
                                        {7, 1, 4},
                                        {9, 1, 1}};
    static const enum mr_shuffle orders[] = {MR_SHUFFLE_GLOBAL, MR_SHUFFLE_NONE};
    struct tempdir *t = *state;
    photo_set_write(t, 120);
    struct mr_dataset *d = photo_set_open(photo_set_list(t, 120, 9));
    for (unsigned s = 0; s < 2; s++) {
        struct mr_pipeline_opts o = number_opts(orders[s]);
        struct drawn unbroken = {.n = 0}, joined = {.n = 0};
        o.batch = 1; /* of 120 each way, nothing is left out at the end of an epoch */
        draw_rounds(d, &o, 260, &unbroken);
        o.start = (struct mr_position){0};
        for (unsigned i = 0; i < ARRAY_LEN(parts); i++) {
            o.batch = parts[i][0], o.world = parts[i][1];
            draw_rounds(d, &o, parts[i][2], &joined);
            assert_int_equal(o.start.epoch, 0);
            assert_int_equal(o.start.samples, joined.n);
        }
        assert_int_equal(joined.n, 32 + 15 + 24 + 28 + 9);
        o.batch = 4, o.world = 3; /* the last 12, then whole epochs */
        draw_rounds(d, &o, 1 + 10 + 2, &joined);
        assert_int_equal(o.start.epoch, 2);
        assert_int_equal(o.start.samples, 24);
        assert_int_equal(joined.n, 264);
        for (unsigned i = 0; i < 260; i++) {
            assert_int_equal(joined.which[i], unbroken.which[i]);
            assert_true(joined.key[i] == unbroken.key[i]);
        }
    }
    mr_dataset_unref(d);
}

/* 120 samples, 100 consumed: a batch of 21 does not fit any more. */
static void what_does_not_fill_a_batch_is_left_out_after_resuming_too(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 120);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct mr_pipeline_opts o = photo_set_opts();
    struct mr_batch *b;
    o.epochs = 2;
    o.start.samples = 100;
    o.batch = 21;
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    assert_int_equal(mr_pipeline_n_left(p), 5);
    assert_int_equal(mr_pipeline_n_samples(p), 105);
    assert_int_equal(mr_pipeline_next(p, &b), 1);
    assert_int_equal(b->epoch, 1);
    assert_int_equal(b->number, 0);
    mr_batch_unref(b);
    mr_pipeline_close(p);
    o.keep_last = 1;
    p = photo_set_pipeline(d, &o);
    assert_int_equal(mr_pipeline_n_left(p), 7);
    assert_int_equal(mr_pipeline_n_samples(p), 140);
    assert_int_equal(mr_pipeline_next(p, &b), 1);
    assert_int_equal(b->epoch, 0);
    assert_int_equal(b->n, 20);
    mr_batch_unref(b);
    assert_int_equal(mr_pipeline_next(p, &b), 0);
    assert_int_equal(mr_pipeline_next(p, &b), 1);
    assert_int_equal(b->epoch, 1);
    mr_batch_unref(b);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

static void a_position_that_cannot_be_gone_on_from_is_refused(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 100);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct mr_pipeline_opts o = photo_set_opts();
    struct mr_pipeline *p = NULL;
    struct mr_error err = {0};
    o.start.samples = 101;
    assert_int_equal(mr_pipeline_open(d, &o, &p, &err), -EINVAL);
    assert_non_null(strstr(err.text, "an epoch has 100 samples, not 101"));
    err = (struct mr_error){0};
    o.shuffle = MR_SHUFFLE_WINDOW;
    o.start.samples = 24;
    assert_int_equal(mr_pipeline_open(d, &o, &p, &err), -EINVAL);
    assert_non_null(strstr(err.text, "24 samples are not whole batches of 16 in each of 1 shards"));
    assert_null(p);
    mr_dataset_unref(d);
}

int main(void)
{
    if (photo_set_choose_engine()) {
        printf("SKIP: io_uring is not available here\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(a_run_set_to_a_position_equals_the_unbroken_one),
        WITH_TEMPDIR(a_run_goes_on_with_another_batch_and_world),
        WITH_TEMPDIR(what_does_not_fill_a_batch_is_left_out_after_resuming_too),
        WITH_TEMPDIR(a_position_that_cannot_be_gone_on_from_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
