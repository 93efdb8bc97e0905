/* test_predict.c - predictions against what can be worked out by hand, and their direction. */
#include "predict.h"

#include "device_profile.h"
#include "unit.h"

#include <math.h>

#define NEAR(a, b) assert_true(fabs((a) - (b)) <= 1e-6 * (b))

/* A storage that delivers 100 files a second for each read under way, up to 400. */
static struct mr_predict_input example(void)
{
    return (struct mr_predict_input){.storage = {4, {1, 2, 4, 8}, {100, 200, 400, 400.04}},
                                     .image_cpu_s = 0.01,
                                     .cores = 2,
                                     .workers = 2,
                                     .batch = 64,
                                     .prefetch = 1};
}

static void cores_are_a_limit(void **state)
{
    (void)state;
    struct mr_predict_input in = example();
    in.storage.n = 0; /* a storage that costs nothing */
    NEAR(mr_predict_input_rate(&in), 200);
    in.workers = 1;
    NEAR(mr_predict_input_rate(&in), 100);
    in.workers = 16;
    NEAR(mr_predict_input_rate(&in), 200);
    in.image_cpu_s = 0;
    assert_true(isinf(mr_predict_input_rate(&in)));
}

static void storage_is_a_limit(void **state)
{
    (void)state;
    struct mr_predict_input in = example();
    in.image_cpu_s = 0;
    in.workers = 2;
    NEAR(mr_predict_input_rate(&in), 200);
    in.workers = 64;
    NEAR(mr_predict_input_rate(&in), 400.04);
    in.io_depth = 4;
    NEAR(mr_predict_input_rate(&in), 400);
    in.io_depth = 64;
    NEAR(mr_predict_input_rate(&in), 400.04);
}

static void a_worker_that_reads_does_not_decode(void **state)
{
    (void)state;
    struct mr_predict_input in = example();
    NEAR(mr_predict_input_rate(&in), 100); /* 10 ms to read, 10 to decode, two workers */
    in.workers = 4;
    NEAR(mr_predict_input_rate(&in), 200); /* all cores busy */
    in.workers = 2;
    in.io_depth = 8;
    NEAR(mr_predict_input_rate(&in), 200); /* reads need no worker */
}

static void a_flight_of_the_ring_is_held_until_it_is_decoded(void **state)
{
    (void)state;
    struct mr_predict_input in = example();
    in.io_depth = 1;
    NEAR(mr_predict_input_rate(&in), 50); /* 10 ms to read and 10 to decode, one after the other */
    in.io_depth = 3;
    NEAR(mr_predict_input_rate(&in), 150);
    in.io_depth = 4;
    NEAR(mr_predict_input_rate(&in), 200);
}

static void reading_takes_its_cpu_time_once(void **state)
{
    (void)state;
    struct mr_predict_input in = example();
    in.workers = 1;
    in.read_cpu_s = 0.005; /* of the 10 ms that a read takes, and of the 10 ms of CPU time */
    NEAR(mr_predict_input_rate(&in), 1 / 0.015);
    in.read_cpu_s = 0.01; /* the CPU does nothing but read */
    NEAR(mr_predict_input_rate(&in), 100);
}

static void batches_under_way_have_to_have_room(void **state)
{
    (void)state;
    struct mr_predict_input in = example();
    in.storage = (struct mr_read_curve){4, {1, 2, 4, 8}, {100, 200, 400, 800}};
    in.image_cpu_s = 0;
    in.workers = 16;
    in.batch = 2;
    NEAR(mr_predict_input_rate(&in), 400); /* one batch ahead: four samples */
    in.prefetch = 3;
    NEAR(mr_predict_input_rate(&in), 800);
    in.prefetch = 0;
    NEAR(mr_predict_input_rate(&in), 200);
    in.io_depth = 32;
    NEAR(mr_predict_input_rate(&in), 200);
    in.batch = 0; /* as many as are wanted */
    NEAR(mr_predict_input_rate(&in), 800);
}

static void prefetch_overlaps_and_its_lack_adds(void **state)
{
    (void)state;
    struct mr_predict_input in = example(); /* delivers 100 */
    in.step_s = 64 / 50.0;                  /* takes 50 */
    NEAR(mr_predict_training_rate(&in), 50);
    in.step_s = 64 / 300.0;
    NEAR(mr_predict_training_rate(&in), 100);
    in.prefetch = 0;
    NEAR(mr_predict_training_rate(&in), 75); /* 1 / (1/100 + 1/300) */
    in.step_s = 0;
    NEAR(mr_predict_training_rate(&in), 100);
}

static void more_of_anything_never_makes_it_slower(void **state)
{
    (void)state;
    struct mr_device_profile p;
    const char *text, *name;
    for (unsigned i = 0; (name = mr_device_profile_builtin(i, &text)); i++) {
        assert_int_equal(mr_device_profile_load(name, &p, NULL), 0);
        struct mr_predict_input in = example();
        mr_predict_curve(&p, 110e3, &in.storage);
        for (in.cores = 1; in.cores <= 8; in.cores++) {
            double before = 0;
            for (in.workers = 1; in.workers <= 32; in.workers++) {
                double rate = mr_predict_input_rate(&in);
                assert_true(rate >= before * (1 - 1e-9));
                before = rate;
                struct mr_predict_input more = in;
                more.cores++;
                assert_true(mr_predict_input_rate(&more) >= rate * (1 - 1e-9));
                more = in;
                more.image_cpu_s *= 2;
                assert_true(mr_predict_input_rate(&more) <= rate * (1 + 1e-9));
                more = in;
                more.step_s = 1;
                more.prefetch = 0;
                double apart = mr_predict_training_rate(&more);
                more.prefetch = 1;
                assert_true(mr_predict_training_rate(&more) >= apart);
            }
        }
    }
    assert_true(name == NULL);
}

static void curves_of_profiles_rise_and_stay_below_the_bandwidth(void **state)
{
    (void)state;
    struct mr_device_profile p;
    const char *text, *name;
    unsigned i;
    for (i = 0; (name = mr_device_profile_builtin(i, &text)); i++) {
        assert_int_equal(mr_device_profile_load(name, &p, NULL), 0);
        for (double bytes = 1e3; bytes < 1e8; bytes *= 10) {
            struct mr_read_curve c;
            mr_predict_curve(&p, bytes, &c);
            assert_int_equal(c.n, MR_CURVE_POINTS);
            for (unsigned k = 0; k < c.n; k++) {
                assert_true(c.depth[k] == (double)(1u << k));
                assert_true(c.per_s[k] > 0);
                assert_true(!k || c.per_s[k] >= c.per_s[k - 1] * (1 - 1e-12));
                assert_true(c.per_s[k] * bytes <= (double)p.read_bytes_per_s * (1 + 1e-9));
            }
        }
    }
    assert_true(i >= 4);
}

static void a_plain_profile_is_what_can_be_worked_out(void **state)
{
    (void)state;
    struct mr_device_profile p = {
        .read_bytes_per_s = 100000000, .read_latency_ns = 9000000, .queue_depth = 1, .targets = 1};
    struct mr_read_curve c;
    mr_predict_curve(&p, 100e3, &c); /* 1 ms of transfer behind 9 ms of latency */
    NEAR(c.per_s[0], 100);
    NEAR(c.per_s[1], 200);
    NEAR(c.per_s[3], 800);
    NEAR(c.per_s[4], 1000); /* 16 would be 1,600: the bandwidth ends it */
    p.metadata_ns = 1000000;
    p.metadata_parallel = 1;
    p.read_latency_ns = 8000000;
    p.read_bytes_per_s = 1000000000;
    mr_predict_curve(&p, 1e3, &c);
    NEAR(c.per_s[7], 1000); /* one open at a time, a millisecond each */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cores_are_a_limit),
        cmocka_unit_test(storage_is_a_limit),
        cmocka_unit_test(a_worker_that_reads_does_not_decode),
        cmocka_unit_test(a_flight_of_the_ring_is_held_until_it_is_decoded),
        cmocka_unit_test(reading_takes_its_cpu_time_once),
        cmocka_unit_test(batches_under_way_have_to_have_room),
        cmocka_unit_test(prefetch_overlaps_and_its_lack_adds),
        cmocka_unit_test(more_of_anything_never_makes_it_slower),
        cmocka_unit_test(curves_of_profiles_rise_and_stay_below_the_bandwidth),
        cmocka_unit_test(a_plain_profile_is_what_can_be_worked_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
