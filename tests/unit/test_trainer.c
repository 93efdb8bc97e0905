/* test_trainer.c - the training loop on an accelerator that is emulated: what it draws, how it
 * accounts, where it ends. */
#include "unit.h"

#include "nn_small.h"
#include "train_set.h"
#include "train_state.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 24

static int near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(1, fabs(b));
}

/* The sums are those of the steps, and a step's parts are the step. */
static void check_account(const struct mr_train_result *r)
{
    double seconds = 0, wait = 0, compute = 0, stall = 0;
    for (uint64_t i = 0; i < r->steps; i++) {
        const struct mr_step_record *s = &r->step[i];
        assert_true(s->wait_s >= 0 && s->compute_s >= 0 && s->stall_s >= 0);
        assert_true(near(s->wait_s + s->compute_s + s->stall_s, s->step_s));
        seconds += s->step_s;
        wait += s->wait_s;
        compute += s->compute_s;
        stall += s->stall_s;
    }
    assert_true(near(r->seconds, seconds));
    assert_true(near(r->input_wait_s, wait));
    assert_true(near(r->compute_s, compute));
    assert_true(near(r->checkpoint_stall_s, stall));
    if (r->steps) /* the first fill stands before the first step */
        assert_true(r->step[0].wait_s == 0 && r->first_fill_s >= 0);
    assert_true(near(mr_train_wait_share(r), r->seconds > 0 ? wait / seconds : 0));
}

static void expect(const struct mr_train_opts *o, uint64_t steps, uint64_t images)
{
    struct mr_train_result r = train_set_run(o);
    assert_int_equal(r.steps, steps);
    assert_int_equal(r.images, images);
    check_account(&r);
    mr_train_result_fini(&r);
    assert_null(r.step);
}

static void an_epoch_is_every_whole_batch_once(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 3);
    struct mr_train_opts o = train_set_opts(d, "emulated:0");
    expect(&o, 6, 24);
    o.epochs = 3;
    expect(&o, 18, 72);
    o.epochs = 0; /* one */
    expect(&o, 6, 24);
    o.pipe.batch = 7;
    expect(&o, 3, 21);
    o.pipe.keep_last = 1;
    expect(&o, 4, 24);
    o.epochs = 2;
    expect(&o, 8, 48);
    mr_dataset_unref(d);
}

static void steps_go_over_as_many_epochs_as_they_take(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 3);
    struct mr_train_opts o = train_set_opts(d, "emulated:0");
    o.steps = 4;
    expect(&o, 4, 16);
    o.steps = 15;
    expect(&o, 15, 60);
    o.pipe.prefetch = MR_NONE;
    expect(&o, 15, 60);
    o.pipe.prefetch = 5;
    expect(&o, 15, 60);
    mr_dataset_unref(d);
}

static void both_engines_feed_it(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 3);
    struct mr_train_opts o = train_set_opts(d, "emulated:0");
    struct mr_train_result r;
    o.pipe.engine = MR_ENGINE_URING;
    o.pipe.io_depth = 4;
    int code = mr_train_run(&o, &r, NULL);
    if (!code) {
        assert_int_equal(r.images, 24);
        assert_int_equal(r.stats.samples, 24);
    }
    mr_train_result_fini(&r);
    mr_dataset_unref(d);
    if (code)
        skip();
}

static void several_accelerators_take_a_batch_each_a_step(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 3);
    struct mr_train_opts o = train_set_opts(d, "emulated:resnet50-v100x3");
    expect(&o, 2, 24);
    o.epochs = 2;
    expect(&o, 4, 48);
    o.steps = 5; /* 15 batches, of epochs that have 6 */
    expect(&o, 5, 60);
    o = train_set_opts(d, "emulated:resnet50-v100x4"); /* 6 batches: one step, two are left */
    expect(&o, 1, 16);
    mr_dataset_unref(d);
}

static void a_step_may_span_epochs(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 3);
    struct mr_train_opts o = train_set_opts(d, "emulated:resnet50-v100x4"); /* of 6 batches */
    o.epochs = 2;
    expect(&o, 3, 48);
    o.epochs = 3; /* 18 batches: two are left at the very end */
    expect(&o, 4, 64);
    o = train_set_opts(d, "emulated:resnet50-v100x20"); /* 3 epochs and 2 batches more */
    expect(&o, 1, 80);
    o.epochs = 7; /* 42 */
    expect(&o, 2, 160);
    o.epochs = 1;
    o.steps = 3;
    expect(&o, 3, 240);
    o.pipe.keep_last = 1; /* batches of 7, 7, 7 and 3 images */
    o.pipe.batch = 7;
    o.steps = 1;
    expect(&o, 1, 5 * 24);
    mr_dataset_unref(d);
}

static void synthetic_draws_one_batch_only(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 3);
    struct mr_train_opts o = train_set_opts(d, "emulated:0");
    o.synthetic = 1;
    o.steps = 9;
    struct mr_train_result r = train_set_run(&o);
    assert_int_equal(r.steps, 9);
    assert_int_equal(r.images, 36);
    assert_int_equal(r.stats.samples, 4);
    check_account(&r);
    mr_train_result_fini(&r);
    o = train_set_opts(d, "emulated:resnet50-v100x2");
    o.synthetic = 1;
    r = train_set_run(&o);
    assert_int_equal(r.steps, 3);
    assert_int_equal(r.images, 24);
    assert_int_equal(r.stats.samples, 8);
    mr_train_result_fini(&r);
    mr_dataset_unref(d);
}

static void synthetic_needs_no_data(void **state)
{
    struct mr_train_opts o = train_set_opts(NULL, "emulated:0");
    (void)state;
    o.synthetic = 1;
    expect(&o, 100, 400);
    o.steps = 3;
    expect(&o, 3, 12);
    o.decode.dtype = MR_DT_U8;
    expect(&o, 3, 12);
    o = train_set_opts(NULL, "emulated:resnet50-v100x2");
    o.synthetic = 1;
    o.steps = 3;
    expect(&o, 3, 24);
}

static void a_batch_beyond_memory_is_refused(void **state)
{
    struct mr_train_opts o = train_set_opts(NULL, "emulated:0");
    (void)state;
    if (under_sanitizer()) /* whose allocators abort */
        skip();
    o.synthetic = 1;
    o.decode.width = o.decode.height = 16384;
    o.pipe.batch = 1u << 31;
    train_set_fails(&o, -ENOMEM, "memory", 0);
}

static void fewer_images_than_a_batch_are_said(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 3);
    struct mr_train_opts o = train_set_opts(d, "emulated:0");
    o.pipe.batch = 24;
    expect(&o, 1, 24);
    o.pipe.batch = 25;
    train_set_fails(&o, -EINVAL, "24 images do not fill one batch of 25", 0);
    o.pipe.keep_last = 1;
    expect(&o, 1, 24);
    o.pipe.keep_last = 0;
    o.pipe.batch = 13;
    o.pipe.world = 2;
    train_set_fails(&o, -EINVAL, "24 images do not fill one batch of 26", 0);
    mr_dataset_unref(d);
}

static void one_class_is_nothing_to_learn(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", 8, 1);
    struct mr_train_opts o = train_set_opts(d, "emulated:0");
    expect(&o, 2, 8); /* but input can be measured with it */
    o = train_set_opts(d, "cpu");
    train_set_fails(&o, -EINVAL, "all images are of one class", 0);
    mr_dataset_unref(d);
}

static void labels_of_the_evaluation_beyond_the_classes_are_named(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", 8, 2);
    struct mr_dataset *held = train_set_new(*state, "held", 9, 3);
    struct mr_train_opts o = train_set_opts(d, "cpu");
    o.held = held;
    train_set_fails(&o, -EINVAL, "label 2 of sample 2 is beyond the 2 classes", 0);
    mr_dataset_unref(held);
    mr_dataset_unref(d);
}

static void images_that_are_all_broken_end_the_run(void **state)
{
    struct tempdir *t = *state;
    for (unsigned i = 0; i < 8; i++) {
        char name[64];
        snprintf(name, sizeof name, "broken/%u/%u.jpg", i % 2, i);
        tempdir_text(t, name, "no image at all");
    }
    struct mr_dataset *d = NULL;
    assert_int_equal(mr_dataset_open(tempdir_path(t, "broken"), &d, NULL), 0);
    struct mr_train_opts o = train_set_opts(d, "emulated:0");
    train_set_fails(&o, -EBADMSG, "no readable substitute", 0);
    mr_dataset_unref(d);
}

static void a_broken_image_is_replaced_and_counted(void **state)
{
    struct tempdir *t = *state;
    struct mr_dataset *d = train_set_new(t, "set", N, 3);
    tempdir_text(t, "set/class_0001/00000004.jpg", "no image at all");
    struct mr_train_opts o = train_set_opts(d, "emulated:0");
    struct mr_train_result r = train_set_run(&o);
    assert_int_equal(r.images, 24);
    assert_true(r.stats.replaced >= 1);
    mr_train_result_fini(&r);
    o.pipe.on_error_policy = MR_ON_ERROR_FAIL;
    o.pipe.shuffle = MR_SHUFFLE_NONE;
    train_set_fails(&o, -EBADMSG, "00000004.jpg", 1); /* sample 4 is the second batch's first */
    mr_dataset_unref(d);
}

/* A checkpoint whose position counts batches: how large they were is not in it. */
static void a_checkpoint_that_counts_batches_is_refused(void **state)
{
    float weight = 1;
    int64_t step = 7, position[2] = {0, 7};
    const struct mr_array arrays[] = {{"weight", MR_DT_F32, 0, {0}, &weight},
                                      {MR_STATE_GLOBAL_STEP, MR_DT_I64, 0, {0}, &step},
                                      {MR_STATE_BATCH_POSITION, MR_DT_I64, 1, {2}, position}};
    char dir[512];
    struct mr_checkpoint_opts saving = {.dir = dir};
    struct mr_checkpoint *c = NULL;
    struct mr_error err = {0};
    snprintf(dir, sizeof dir, "%s", tempdir_path(*state, "run"));
    assert_int_equal(mr_checkpoint_open(arrays, ARRAY_LEN(arrays), &saving, &c, &err), 0);
    assert_int_equal(mr_checkpoint_begin(c, 7, NULL), 0);
    assert_int_equal(mr_checkpoint_close(c, &err), 0);
    struct mr_dataset *d = train_set_new(*state, "set", N, 3);
    struct mr_train_opts o = train_set_opts(d, "emulated:0");
    o.checkpoint = &saving;
    o.checkpoint_every = 1;
    o.resume = 1;
    train_set_fails(&o, -ENOTSUP, "model.ckpt-7 is of an earlier millrace, which counted batches",
                    0);
    mr_dataset_unref(d);
}

/* ---- stopping ---- */

struct stop {
    uint64_t at_step, asked;
    int now;
};

static void on_progress(void *ctx, const struct mr_train_progress *now)
{
    struct stop *s = ctx;
    assert_true(now->step <= now->steps);
    s->now = now->step >= s->at_step;
}

static int is_wanted(void *ctx)
{
    return ((struct stop *)ctx)->now;
}

static int at_the_second_question(void *ctx)
{
    return ++((struct stop *)ctx)->asked > 1;
}

static void it_stops_in_the_middle_with_what_was_done(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 3);
    struct mr_train_opts o = train_set_opts(d, "emulated:0");
    struct stop s = {.at_step = 3};
    struct mr_train_result r;
    o.steps = 1000000;
    o.progress = on_progress;
    o.pipe.should_stop = is_wanted;
    o.progress_ctx = o.pipe.should_stop_ctx = &s;
    assert_int_equal(mr_train_run(&o, &r, NULL), -ECANCELED);
    assert_int_equal(r.partial, 1);
    assert_int_equal(r.steps, 3);
    assert_int_equal(r.images, 12);
    check_account(&r);
    mr_train_result_fini(&r);
    mr_dataset_unref(d);
}

static void a_step_of_an_hour_is_left_at_once(void **state)
{
    struct mr_train_opts o = train_set_opts(NULL, "emulated:3600");
    struct stop s = {0};
    struct mr_train_result r;
    (void)state;
    o.synthetic = 1;
    o.pipe.should_stop = at_the_second_question;
    o.pipe.should_stop_ctx = &s;
    assert_int_equal(mr_train_run(&o, &r, NULL), -ECANCELED);
    assert_int_equal(r.partial, 1);
    assert_int_equal(r.steps, 0);
    mr_train_result_fini(&r);
}

/* ---- the account ---- */

static void utilization_is_the_share_of_the_accelerators_time(void **state)
{
    struct mr_train_opts o = train_set_opts(NULL, "emulated:0.02");
    (void)state;
    o.synthetic = 1;
    o.steps = 5;
    struct mr_train_result r = train_set_run(&o);
    double total = 0;
    for (uint64_t i = 1; i < 5; i++) {
        assert_true(r.step[i].compute_s >= 0.02);
        total += r.step[i].step_s - r.harness_s;
    }
    assert_true(near(r.au, fmin(4 * 0.02 / total, 1)));
    assert_true(r.au > 0 && r.au <= 1);
    assert_true(isnan(r.accuracy) && isnan(r.step[0].loss));
    assert_int_equal(r.cores.compute_threads, 0);
    mr_train_result_fini(&r);
    o.steps = 1; /* the first step does not count, so there is none */
    r = train_set_run(&o);
    assert_true(isnan(r.au));
    mr_train_result_fini(&r);
}

static void many_steps_are_all_recorded(void **state)
{
    struct mr_train_opts o = train_set_opts(NULL, "emulated:0");
    (void)state;
    o.synthetic = 1;
    o.steps = 1000;
    expect(&o, 1000, 4000);
}

struct seen {
    unsigned n_filling, n_training;
    uint64_t last, steps;
};

static void note(void *ctx, const struct mr_train_progress *now)
{
    struct seen *s = ctx;
    s->n_filling += !strcmp(now->what, "filling");
    s->n_training += !strcmp(now->what, "training");
    s->last = now->step;
    s->steps = now->steps;
}

static void progress_tells_every_step(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 3);
    struct mr_train_opts o = train_set_opts(d, "emulated:0");
    struct seen s = {0};
    o.progress = note;
    o.progress_ctx = &s;
    expect(&o, 6, 24);
    assert_int_equal(s.n_filling, 1);
    assert_int_equal(s.n_training, 6);
    assert_int_equal(s.last, 6);
    assert_int_equal(s.steps, 6);
    mr_dataset_unref(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(an_epoch_is_every_whole_batch_once),
        WITH_TEMPDIR(steps_go_over_as_many_epochs_as_they_take),
        WITH_TEMPDIR(both_engines_feed_it),
        WITH_TEMPDIR(several_accelerators_take_a_batch_each_a_step),
        WITH_TEMPDIR(a_step_may_span_epochs),
        WITH_TEMPDIR(synthetic_draws_one_batch_only),
        cmocka_unit_test(synthetic_needs_no_data),
        cmocka_unit_test(a_batch_beyond_memory_is_refused),
        WITH_TEMPDIR(fewer_images_than_a_batch_are_said),
        WITH_TEMPDIR(one_class_is_nothing_to_learn),
        WITH_TEMPDIR(labels_of_the_evaluation_beyond_the_classes_are_named),
        WITH_TEMPDIR(images_that_are_all_broken_end_the_run),
        WITH_TEMPDIR(a_broken_image_is_replaced_and_counted),
        WITH_TEMPDIR(a_checkpoint_that_counts_batches_is_refused),
        WITH_TEMPDIR(it_stops_in_the_middle_with_what_was_done),
        cmocka_unit_test(a_step_of_an_hour_is_left_at_once),
        cmocka_unit_test(utilization_is_the_share_of_the_accelerators_time),
        cmocka_unit_test(many_steps_are_all_recorded),
        WITH_TEMPDIR(progress_tells_every_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
