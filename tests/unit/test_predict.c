/* test_predict.c - predictions against what can be worked out by hand, and their direction. */
#include "predict.h"

#include "device_profile.h"
#include "unit.h"

#include <math.h>

/* A simulation begins and ends in the middle of something. */
#define NEAR(a, b) assert_true(fabs((a) - (b)) <= 0.01 * (b))

static double rate(const struct mr_predict_input *in)
{
    double per_s;
    assert_int_equal(mr_predict_rate(in, &per_s), 0);
    return per_s;
}

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
    NEAR(rate(&in), 200);
    in.workers = 1;
    NEAR(rate(&in), 100);
    in.workers = 16;
    NEAR(rate(&in), 200);
    in.image_cpu_s = 0;
    assert_true(isinf(rate(&in)));
}

static void storage_is_a_limit(void **state)
{
    (void)state;
    struct mr_predict_input in = example();
    in.image_cpu_s = 0;
    in.workers = 2;
    NEAR(rate(&in), 200);
    in.workers = 64;
    NEAR(rate(&in), 400.04);
    in.io_depth = 4;
    NEAR(rate(&in), 400);
    in.io_depth = 64;
    NEAR(rate(&in), 400.04);
}

static void a_worker_that_reads_does_not_decode(void **state)
{
    (void)state;
    struct mr_predict_input in = example();
    NEAR(rate(&in), 100); /* 10 ms to read, 10 to decode, two workers */
    in.workers = 4;
    NEAR(rate(&in), 200); /* all cores busy */
    in.workers = 2;
    in.io_depth = 8;
    NEAR(rate(&in), 200); /* reads need no worker */
}

static void a_flight_of_the_ring_is_held_until_it_is_decoded(void **state)
{
    (void)state;
    struct mr_predict_input in = example();
    in.io_depth = in.workers = 1;
    NEAR(rate(&in), 50); /* 10 ms to read and 10 to decode, one after the other */
    in.workers = 2;
    NEAR(rate(&in), 100); /* every worker has a ring, and no ring is without a place */
    in.io_depth = 3;
    NEAR(rate(&in), 150);
    in.io_depth = 4;
    NEAR(rate(&in), 200);
}

static void reading_takes_its_cpu_time_once(void **state)
{
    (void)state;
    struct mr_predict_input in = example();
    in.workers = 1;
    in.read_cpu_s = 0.005; /* of the 10 ms that a read takes, and of the 10 ms of CPU time */
    NEAR(rate(&in), 1 / 0.015);
    in.read_cpu_s = 0.01; /* the CPU does nothing but read */
    in.storage.n = 3;
    NEAR(rate(&in), 100);
}

static void batches_under_way_have_to_have_room(void **state)
{
    (void)state;
    struct mr_predict_input in = example();
    in.storage = (struct mr_read_curve){4, {1, 2, 4, 8}, {100, 200, 400, 800}};
    in.image_cpu_s = 0;
    in.workers = 16;
    in.batch = 2;
    NEAR(rate(&in), 400); /* one batch ahead: four samples */
    in.prefetch = 3;
    NEAR(rate(&in), 800);
    in.prefetch = 0;
    NEAR(rate(&in), 200);
    in.io_depth = 32;
    NEAR(rate(&in), 200);
    in.batch = 3; /* less room than reads under way */
    in.prefetch = 1;
    in.step_s = 0;
    NEAR(rate(&in), 600);
}

static void prefetch_overlaps_and_its_lack_adds(void **state)
{
    (void)state;
    struct mr_predict_input in = example(); /* delivers 100 */
    in.step_s = 64 / 50.0;                  /* takes 50 */
    NEAR(rate(&in), 50);
    in.step_s = 64 / 300.0;
    NEAR(rate(&in), 100);
    in.prefetch = 0;
    NEAR(rate(&in), 75); /* 1 / (1/100 + 1/300) */
    in.step_s = 0;
    NEAR(rate(&in), 100);
}

static void one_place_does_one_thing_after_the_other(void **state)
{
    (void)state;
    struct mr_predict_input in = example();
    in.workers = 1;
    in.batch = 1;
    in.prefetch = 0;
    in.step_s = 0.005;
    NEAR(rate(&in), 1 / 0.025); /* 10 ms to read, 10 to decode, 5 to train */
    in.prefetch = 1;
    NEAR(rate(&in), 1 / 0.020);
    in.step_s = 0.03;
    NEAR(rate(&in), 1 / 0.030);
    in.storage.n = 0;
    in.image_cpu_s = 0;
    NEAR(rate(&in), 1 / 0.030);
}

/* Batches of a pipeline with a core for each worker and a storage of nothing but latency, by
 * recurrence: a sample begins when a worker is free and its batch is open, a batch is taken when
 * its samples are there and the step before is over. */
static double by_recurrence(const struct mr_predict_input *in, double read_s)
{
    enum { BATCHES = 400 };
    double free_at[8] = {0}, taken[BATCHES];
    for (unsigned b = 0; b < BATCHES; b++) {
        double last = b ? taken[b - 1] + in->step_s : 0, done = 0, open = 0;
        if (!in->prefetch)
            open = last;
        else if (b > in->prefetch)
            open = taken[b - in->prefetch - 1];
        for (unsigned i = 0; i < in->batch; i++) {
            unsigned w = 0;
            for (unsigned k = 1; k < in->workers; k++)
                w = free_at[k] < free_at[w] ? k : w;
            free_at[w] = fmax(free_at[w], open) + read_s + in->image_cpu_s;
            done = fmax(done, free_at[w]);
        }
        taken[b] = fmax(done, last);
    }
    return (BATCHES - 100.0) * in->batch / (taken[BATCHES - 1] - taken[99]);
}

static void mixed_cases_are_what_a_recurrence_says(void **state)
{
    (void)state;
    static const double steps[] = {0, 0.004, 0.03};
    for (unsigned i = 0; i < 8 * 5 * 4 * 3; i++) {
        struct mr_predict_input in = {.storage = {2, {1, 64}, {1 / 0.007, 64 / 0.007}},
                                      .image_cpu_s = 0.005,
                                      .cores = 8,
                                      .workers = 1 + i % 8,
                                      .batch = 1 + i / 8 % 5,
                                      .prefetch = i / 40 % 4,
                                      .step_s = steps[i / 160]};
        double expected = by_recurrence(&in, 0.007), got = rate(&in);
        if (fabs(got / expected - 1) > 0.015)
            fail_msg("%u workers, batch %u, prefetch %u, step %g: %g instead of %g", in.workers,
                     in.batch, in.prefetch, in.step_s, got, expected);
    }
}

/* Half of the images take a third of the others' time. */
static void unlike_images_leave_cores_idle(void **state)
{
    (void)state;
    struct mr_predict_input in = example();
    in.workers = 4; /* two read, two decode, if they are alike */
    NEAR(rate(&in), 200);
    in.spread = (struct mr_spread){2, {0.5, 1.5}};
    double unlike = rate(&in);
    assert_true(unlike < 195 && unlike > 150);
    assert_true(rate(&in) == unlike); /* nothing is left to chance */
    in.workers = 16;
    NEAR(rate(&in), 200);
}

static void many_workers_on_few_cores_need_room(void **state)
{
    (void)state;
    struct mr_predict_input in = example();
    in.storage = (struct mr_read_curve){2, {1, 64}, {100, 6400}};
    in.image_cpu_s = 0.005;
    in.workers = in.batch = 16;
    in.prefetch = 7;
    NEAR(rate(&in), 400);
    in.prefetch = 1;
    assert_true(rate(&in) < 395);
    in.prefetch = 0;
    double none = rate(&in);
    assert_true(none < 350 && none > 200);
}

static void a_consumer_that_wakes_late_takes_later(void **state)
{
    (void)state;
    struct mr_predict_input in = example();
    in.storage.n = 0;
    in.batch = 10;
    in.step_s = 0.05; /* as long as both cores take for a batch */
    double at_once = rate(&in);
    in.wake_s = 0.005;
    double late = rate(&in);
    assert_true(late <= at_once && late < 199 && late >= 10 / 0.0601);
    in.cores = in.workers = 4; /* one that is idle takes the consumer */
    in.workers = 3;
    in.image_cpu_s = 0.001;
    NEAR(rate(&in), 200);
}

/* With room in plenty; without it more workers may well do harm.  And with images that differ:
 * those that do not may keep in step, all of them reading or all of them decoding. */
static void more_of_anything_never_makes_it_slower(void **state)
{
    (void)state;
    struct mr_device_profile p;
    const char *text, *name;
    for (unsigned i = 0; (name = mr_device_profile_builtin(i, &text)); i++) {
        assert_int_equal(mr_device_profile_load(name, &p, NULL), 0);
        struct mr_predict_input in = example();
        mr_predict_curve(&p, 110e3, &in.storage);
        in.prefetch = 3;
        in.spread = (struct mr_spread){5, {0.4, 1.2, 0.7, 1.9, 0.8}};
        for (in.cores = 1; in.cores <= 8; in.cores *= 2) {
            double before = 0;
            for (in.workers = 1; in.workers <= 32; in.workers *= 2) {
                double now = rate(&in);
                assert_true(now >= before * 0.98);
                before = now;
                struct mr_predict_input more = in;
                more.cores++;
                assert_true(rate(&more) >= now * 0.98);
                more = in;
                more.image_cpu_s *= 2;
                assert_true(rate(&more) <= now * 1.02);
                more = in;
                more.prefetch *= 2;
                assert_true(rate(&more) >= now * 0.98);
                more = in;
                more.io_depth = 64;
                more.prefetch = 15;
                assert_true(rate(&more) >= now * 0.98);
                more = in;
                more.step_s = 1;
                more.prefetch = 0;
                double apart = rate(&more);
                more.prefetch = 1;
                assert_true(rate(&more) >= apart * 0.98);
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
        cmocka_unit_test(one_place_does_one_thing_after_the_other),
        cmocka_unit_test(mixed_cases_are_what_a_recurrence_says),
        cmocka_unit_test(unlike_images_leave_cores_idle),
        cmocka_unit_test(many_workers_on_few_cores_need_room),
        cmocka_unit_test(a_consumer_that_wakes_late_takes_later),
        cmocka_unit_test(more_of_anything_never_makes_it_slower),
        cmocka_unit_test(curves_of_profiles_rise_and_stay_below_the_bandwidth),
        cmocka_unit_test(a_plain_profile_is_what_can_be_worked_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
