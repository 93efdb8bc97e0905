/* test_trainer_faults.c - every fallible call of a training run fails once: a clean error or a
 * sample that is replaced, and nothing is left behind. */
#include "unit.h"

#include "faults.h"
#include "train_set.h"

#include <errno.h>

static void loop(const struct mr_train_opts *o, uint64_t images)
{
    for (uint64_t at = 1;; at++) {
        struct mr_train_result r;
        struct mr_error err = {0};
        int64_t before = faults_live();
        faults_begin(FAULT_FAIL, at);
        int code = mr_train_run(o, &r, &err), hit = faults_end();
        if (code && !hit)
            fail_msg("call %llu: %s", (unsigned long long)at, err.text);
        if (code)
            assert_true(err.code == code && err.text[0]);
        else
            assert_int_equal(r.images, images);
        mr_train_result_fini(&r);
        if (faults_live() != before)
            fail_msg("call %llu leaves %lld things behind", (unsigned long long)at,
                     (long long)(faults_live() - before));
        if (!hit)
            return;
        assert_in_range(at, 1, 100000);
    }
}

static void every_call_may_fail_once(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", 8, 2);
    struct mr_train_opts o = train_set_opts(d, "emulated:0");
    o.pipe.max_error_count = 8;
    loop(&o, 8);
    o = train_set_opts(d, "emulated:resnet50-v100x2");
    o.pipe.max_error_count = 8;
    o.synthetic = 1;
    loop(&o, 8);
    mr_dataset_unref(d);
}

static void every_call_may_fail_once_without_data(void **state)
{
    struct mr_train_opts o = train_set_opts(NULL, "emulated:0");
    (void)state;
    o.synthetic = 1;
    o.steps = 300; /* the record of the steps grows */
    loop(&o, 1200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(every_call_may_fail_once),
        cmocka_unit_test(every_call_may_fail_once_without_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
