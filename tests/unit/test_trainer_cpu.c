/* test_trainer_cpu.c - the training loop with the real network: batches of two images, few steps.
 * SKIP without oneDNN, and under sanitizers, where a network of 59 million parameters takes too
 * long (tests/unit/test_net.c has small ones there). */
#include "unit.h"

#include "net.h"
#include "nn_small.h"
#include "train_set.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define STEPS 2

static struct mr_train_opts on_cpu(struct mr_dataset *d)
{
    struct mr_train_opts o = train_set_opts(d, "cpu");
    o.pipe.batch = 2;
    o.decode = (struct mr_decoder_opts){.width = 224, .height = 224};
    o.compute_threads = 1;
    o.steps = STEPS;
    return o;
}

static void losses(const struct mr_train_opts *o, double *out)
{
    struct mr_train_result r = train_set_run(o);
    assert_int_equal(r.steps, STEPS);
    assert_int_equal(r.cores.compute_threads, 1);
    for (unsigned i = 0; i < STEPS; i++) {
        assert_true(isfinite(r.step[i].loss) && r.step[i].loss > 0);
        assert_true(r.step[i].compute_s > 0);
        out[i] = r.step[i].loss;
    }
    assert_true(r.train_accuracy >= 0 && r.train_accuracy <= 1);
    mr_train_result_fini(&r);
}

static void one_thread_and_one_seed_give_the_same_losses_again(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", 12, 3);
    struct mr_train_opts o = on_cpu(d);
    double first[STEPS], again[STEPS];
    losses(&o, first);
    o.pipe.threads = 3; /* who decodes does not matter */
    o.pipe.prefetch = MR_NONE;
    losses(&o, again);
    assert_memory_equal(first, again, sizeof first);
    o.pipe.seed = 2;
    losses(&o, again);
    assert_memory_not_equal(first, again, sizeof first);
    mr_dataset_unref(d);
}

static void a_learning_rate_that_explodes_stops_with_the_step(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", 12, 3);
    struct mr_train_opts o = on_cpu(d);
    o.steps = 50;
    o.learning_rate = 1e30;
    train_set_fails(&o, -EDOM, "not a number any more at step 2", 2);
    struct mr_checkpoint_opts saving = {.dir = tempdir_path(*state, "run"),
                                        .mode = MR_CHECKPOINT_SYNC};
    o.checkpoint = &saving;
    o.checkpoint_every = 1;
    train_set_fails(&o, -EDOM, "the last good checkpoint is that of step 1", 2);
    mr_dataset_unref(d);
}

/* The same two images under both labels: whatever the network says, half of it is right. */
static void evaluation_counts_what_is_right_and_may_end_the_run(void **state)
{
    struct tempdir *t = *state;
    struct mr_dataset *d = train_set_new(t, "set", 12, 2), *held = NULL;
    struct mr_train_opts o = on_cpu(d);
    struct mr_error err = {0};
    const char *list = tempdir_text(t, "set/held.csv",
                                    "class_0000/00000000.jpg,0\nclass_0000/00000000.jpg,1\n"
                                    "class_0001/00000001.jpg,0\nclass_0001/00000001.jpg,1\n"
                                    "class_0000/00000002.jpg,0\nclass_0000/00000002.jpg,1\n");
    if (mr_dataset_open(list, &held, &err))
        fail_msg("%s", err.text);
    o.held = held;
    o.steps = 1;
    struct mr_train_result r = train_set_run(&o);
    assert_true(r.accuracy == 0.5);
    assert_true(r.eval_s > 0);
    assert_int_equal(r.reached, 0);
    mr_train_result_fini(&r);
    o.steps = 0;
    o.pipe.batch = 6; /* two steps an epoch */
    o.epochs = 50;
    o.until_accuracy = 0.5;
    r = train_set_run(&o);
    assert_int_equal(r.steps, 2);
    assert_int_equal(r.reached, 1);
    assert_true(r.reached_s >= r.seconds);
    mr_train_result_fini(&r);
    mr_dataset_unref(held);
    mr_dataset_unref(d);
}

static void synthetic_images_are_learned_by_heart(void **state)
{
    (void)state;
    struct mr_train_opts o = on_cpu(NULL);
    o.synthetic = 1;
    o.steps = 8;
    o.learning_rate = 1e-4;
    struct mr_train_result r = train_set_run(&o);
    assert_int_equal(r.steps, 8);
    assert_true(r.step[7].loss < r.step[0].loss);
    mr_train_result_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(one_thread_and_one_seed_give_the_same_losses_again),
        WITH_TEMPDIR(a_learning_rate_that_explodes_stops_with_the_step),
        WITH_TEMPDIR(evaluation_counts_what_is_right_and_may_end_the_run),
        cmocka_unit_test(synthetic_images_are_learned_by_heart),
    };
    if (!mr_net_available() || under_sanitizer()) {
        printf("SKIP: %s\n", mr_net_available() ? "too slow under a sanitizer" : "no oneDNN");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
