/* test_advice_faults.c - every fallible call of the differential runs and of the advice fails once:
 * a clean error or a sample that is replaced, and nothing is left behind.  There are thousands of
 * calls, most of them the same reads again and again, so later ones are tried further apart. */
#include "unit.h"

#include "advice.h"
#include "device.h"
#include "faults.h"
#include "smaller_advice.h"
#include "train_set.h"

#include <errno.h>
#include <string.h>

static const struct mr_decoder_opts decode = {.width = 8, .height = 8};

static struct mr_advice_opts example(struct tempdir *t)
{
    static const char text[] = "name = any\nread_mb_per_s = 5000\nwrite_mb_per_s = 1\n";
    struct mr_advice_opts o = {.data = train_set_new(t, "set", 8, 2),
                               .decode = &decode,
                               .now = {.threads = 1, .batch = 4, .prefetch = 1},
                               .scratch = t->path,
                               .runs = 1,
                               .box_s = 1e-6};
    struct mr_device_profile p;
    assert_int_equal(mr_device_profile_parse(text, strlen(text), "profile", &p, NULL), 0);
    assert_int_equal(mr_device_new(&p, &o.storage, NULL), 0);
    return o;
}

static void clean_up(struct mr_advice_opts *o)
{
    mr_dataset_unref(o->data);
    mr_device_close(o->storage);
}

/* Until a run gets through without a fault. */
static void loop(const struct mr_advice_opts *o,
                 int (*run)(const struct mr_advice_opts *o, struct mr_error *err))
{
    unsigned entries = tempdir_count(o->scratch);
    for (uint64_t at = 1;; at += 1 + at / 16) {
        struct mr_error err = {0};
        int64_t before = faults_live();
        faults_begin(FAULT_FAIL, at);
        int code = run(o, &err), hit = faults_end();
        if (code && !hit)
            fail_msg("call %llu: %s", (unsigned long long)at, err.text);
        if (code)
            assert_true(err.code == code && err.text[0]);
        if (faults_live() != before)
            fail_msg("call %llu leaves %lld things behind", (unsigned long long)at,
                     (long long)(faults_live() - before));
        assert_int_equal(tempdir_count(o->scratch), entries);
        if (!hit)
            return;
        assert_in_range(at, 1, 10000000);
    }
}

static int take(const struct mr_advice_opts *o, struct mr_error *err)
{
    struct mr_findings f = {.cores = 4711};
    int r = mr_findings_take(o, &f, err);
    assert_true(!r == (f.cores != 4711)); /* written on success only */
    return r;
}

static int prove(const struct mr_advice_opts *o, struct mr_error *err)
{
    struct mr_findings f = {.cores = 2,
                            .image_cpu_s = 1e-4,
                            .read_cpu_s = 1e-5,
                            .file_bytes = 14e3,
                            .curve = {6, {1, 2, 4, 8, 16, 32}, {100, 200, 400, 800, 1600, 3200}}};
    struct mr_advice a = {.measured.per_s = -1};
    int r = mr_advice_prove(o, &f, &a, err);
    assert_true(!r == (a.measured.per_s > 0));
    return r;
}

static int prove_smaller(const struct mr_advice_opts *o, struct mr_error *err)
{
    struct mr_findings f = {.cores = 2, .image_cpu_s = 1, .warm_cpu_s = 1, .crowded_cpu_s = 1};
    struct mr_advice a = {.best = o->now, .predicted_per_s = 1e-9};
    struct mr_smaller_advice s = {.side = 4711};
    int r = mr_smaller_prove(o, &f, &a, &s, err);
    assert_true(!r == (s.side != 4711));
    assert_true(r || s.measured.per_s > 0);
    return r;
}

static void every_call_of_the_differential_runs_may_fail_once(void **state)
{
    struct mr_advice_opts o = example(*state);
    loop(&o, take);
    clean_up(&o);
}

static void every_call_of_the_proof_may_fail_once(void **state)
{
    struct mr_advice_opts o = example(*state);
    loop(&o, prove);
    o.step_s = 1e-5;
    loop(&o, prove);
    clean_up(&o);
}

static void every_call_with_smaller_images_may_fail_once(void **state)
{
    struct mr_advice_opts o = example(*state);
    loop(&o, prove_smaller);
    clean_up(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(every_call_of_the_differential_runs_may_fail_once),
        WITH_TEMPDIR(every_call_of_the_proof_may_fail_once),
        WITH_TEMPDIR(every_call_with_smaller_images_may_fail_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
