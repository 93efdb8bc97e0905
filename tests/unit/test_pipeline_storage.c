/* test_pipeline_storage.c - a pipeline behind an emulated device: the same batches, never sooner
 * than the device delivers, and what the real storage has later is counted.  Once for each engine,
 * as test_pipeline.c. */
#include "unit.h"

#include "device.h"
#include "photo_set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define N 300

static int always(void *ctx)
{
    (void)ctx;
    return 1;
}

static int reject_some(void *ctx, const struct mr_map_input *in, void *slot)
{
    int r = photo_set_number(ctx, in, slot);
    memcpy((char *)slot + 8, &in->key, sizeof in->key);
    return r ? r : in->index % 3 == 2 ? -EBADMSG : 0;
}

static struct mr_device *device(uint64_t mb_per_s, uint64_t latency_ns, uint64_t seek_ns)
{
    struct mr_device_profile p = {.name = "test",
                                  .read_bytes_per_s = mb_per_s * 1000000,
                                  .write_bytes_per_s = mb_per_s * 1000000,
                                  .read_latency_ns = latency_ns,
                                  .seek_ns = seek_ns,
                                  .queue_depth = 8,
                                  .targets = 2,
                                  .stripe_bytes = 1 << 20};
    struct mr_device *d = NULL;
    struct mr_error err = {0};
    if (mr_device_new(&p, &d, &err))
        fail_msg("%s", err.text);
    return d;
}

static void an_emulated_device_changes_no_batch(void **state)
{
    static const unsigned threads[] = {1, 3, 8}, depths[] = {1, 8, 64};
    struct tempdir *t = *state;
    photo_set_write(t, N);
    struct mr_dataset *d = photo_set_open(photo_set_list(t, N, 7));
    struct mr_pipeline_opts o = photo_set_opts();
    int r;
    o.max_error_share = 0.5;
    uint64_t want = photo_set_hash(d, &o, &r);
    o.storage = device(2000, 100000, 50000);
    for (unsigned i = 0; i < 3; i++) {
        o.threads = threads[i];
        o.io_depth = depths[i];
        assert_int_equal(photo_set_hash(d, &o, &r), want);
        assert_int_equal(r, 0);
    }
    o.direct = 1;
    assert_int_equal(photo_set_hash(d, &o, &r), want);
    mr_device_close(o.storage);
    mr_dataset_unref(d);
}

static void maps_and_their_failures_are_the_same_behind_an_emulated_device(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, N);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct mr_pipeline_opts o = photo_set_opts();
    int r;
    o.map = reject_some;
    o.map_bytes = 16;
    o.max_error_share = 1;
    uint64_t want = photo_set_hash(d, &o, &r);
    o.storage = device(2000, 100000, 0);
    assert_int_equal(photo_set_hash(d, &o, &r), want);
    assert_int_equal(r, 0);
    mr_device_close(o.storage);
    mr_dataset_unref(d);
}

/* Bounds from below only: nothing may arrive sooner than the device delivers, however slow or busy
 * this machine is. */
static void every_byte_is_charged_and_the_latency_is_in_the_statistics(void **state)
{
    static const unsigned depths[] = {1, 8, 64};
    struct tempdir *t = *state;
    photo_set_write(t, 64);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    for (unsigned k = 0; k < 3; k++) {
        struct mr_pipeline_opts o = photo_set_opts();
        struct mr_batch *b;
        o.threads = photo_set_engine == MR_ENGINE_URING ? 1 : depths[k];
        o.io_depth = depths[k];
        o.start_on_next = 1;
        o.epochs = 2; /* the second is in the page cache for sure */
        o.storage = device(50, 2000000, 0);
        struct mr_pipeline *p = photo_set_pipeline(d, &o);
        struct mr_pipeline_stats s;
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (unsigned ends = 0; ends < 2;) {
            int r = mr_pipeline_next(p, &b);
            assert_in_range(r, 0, 1);
            if (r)
                mr_batch_unref(b);
            ends += !r;
        }
        clock_gettime(CLOCK_MONOTONIC, &end);
        mr_pipeline_get_stats(p, &s);
        double seconds =
            (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
        assert_int_equal(s.samples, 128);
        assert_true(s.delivered_bytes > 1000000);
        assert_true((double)s.delivered_bytes / seconds <= 50e6);
        assert_true(s.read.p50 >= 0.95 * 2000); /* the histogram's buckets have a width */
        assert_true(s.read_s >= 128 * 2e-3);
        assert_true(s.overdue <= s.samples);
        mr_pipeline_close(p);
        mr_device_close(o.storage);
    }
    mr_dataset_unref(d);
}

/* No real storage, and no cache, is as fast as this one. */
static void samples_that_the_real_storage_has_later_are_counted(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 64);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    for (unsigned emulated = 0; emulated < 2; emulated++) {
        struct mr_pipeline_opts o = photo_set_opts();
        struct mr_pipeline_stats s;
        struct mr_batch *b;
        o.storage = emulated ? device(1000000000, 0, 0) : NULL;
        struct mr_pipeline *p = photo_set_pipeline(d, &o);
        while (mr_pipeline_next(p, &b) == 1)
            mr_batch_unref(b);
        mr_pipeline_get_stats(p, &s);
        assert_true(s.samples > 0);
        /* Most: what comes after one that was waited for too long may still be in time. */
        assert_in_range(s.overdue, emulated ? s.samples / 2 : 0, emulated ? s.samples : 0);
        mr_pipeline_close(p);
        mr_device_close(o.storage);
    }
    mr_dataset_unref(d);
}

static void closing_does_not_wait_for_a_slow_device(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 64);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    for (unsigned io_depth = 1; io_depth <= 64; io_depth *= 8) {
        struct mr_pipeline_opts o = photo_set_opts();
        struct mr_batch *b;
        o.io_depth = io_depth;
        o.storage = device(1, 3600000000000u, 0); /* an hour */
        o.should_stop = always;
        struct mr_pipeline *p = photo_set_pipeline(d, &o);
        assert_int_equal(mr_pipeline_next(p, &b), -ECANCELED);
        mr_pipeline_close(p); /* the test's time limit sees to the rest */
        mr_device_close(o.storage);
    }
    mr_dataset_unref(d);
}

int main(void)
{
    if (photo_set_choose_engine()) {
        printf("SKIP: io_uring is not available here\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(an_emulated_device_changes_no_batch),
        WITH_TEMPDIR(maps_and_their_failures_are_the_same_behind_an_emulated_device),
        WITH_TEMPDIR(every_byte_is_charged_and_the_latency_is_in_the_statistics),
        WITH_TEMPDIR(samples_that_the_real_storage_has_later_are_counted),
        WITH_TEMPDIR(closing_does_not_wait_for_a_slow_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
