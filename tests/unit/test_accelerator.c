/* test_accelerator.c - what --device may say, who gets the cores, and accelerators that are not
 * there. */
#include "unit.h"

#include "accelerator.h"
#include "clock.h"
#include "cores.h"
#include "nn_small.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct mr_accelerator_spec parsed(const char *text)
{
    struct mr_accelerator_spec s;
    struct mr_error err = {0};
    if (mr_accelerator_spec_parse(text, &s, &err))
        fail_msg("%s: %s", text, err.text);
    assert_string_equal(s.name, text);
    return s;
}

static int near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

static void the_cpu_is_one_accelerator(void **state)
{
    (void)state;
    struct mr_accelerator_spec s = parsed("cpu");
    assert_int_equal(s.kind, MR_ON_CPU);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.own_batch, 0);
}

static void seconds_are_for_a_step_and_for_an_image(void **state)
{
    (void)state;
    struct mr_accelerator_spec s = parsed("emulated:0.5");
    assert_int_equal(s.kind, MR_EMULATED);
    assert_int_equal(s.n, 1);
    assert_true(near(mr_accelerator_spec_seconds(&s, 64), 0.5));
    assert_true(near(mr_accelerator_spec_seconds(&s, 1), 0.5));
    s = parsed("emulated:0.1+0.002");
    assert_true(near(mr_accelerator_spec_seconds(&s, 64), 0.1 + 64 * 0.002));
    s = parsed("emulated:0");
    assert_true(near(mr_accelerator_spec_seconds(&s, 64), 0));
    s = parsed("emulated:1e-3");
    assert_true(near(mr_accelerator_spec_seconds(&s, 64), 0.001));
    s = parsed("emulated:3600");
    assert_true(near(mr_accelerator_spec_seconds(&s, 64), 3600));
}

static void published_workloads_have_their_batch_and_scale_with_it(void **state)
{
    static const struct {
        const char *text;
        unsigned batch;
        double seconds;
    } known[] = {
        {"emulated:resnet50-v100", 64, 0.195},
        {"emulated:resnet50-a100", 400, 0.435},
        {"emulated:resnet50-h100", 400, 0.224},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct mr_accelerator_spec s = parsed(known[i].text);
        assert_int_equal(s.own_batch, known[i].batch);
        assert_int_equal(s.n, 1);
        assert_true(near(s.minimum_au, 0.9));
        assert_true(near(mr_accelerator_spec_seconds(&s, s.own_batch), known[i].seconds));
        assert_true(near(mr_accelerator_spec_seconds(&s, s.own_batch / 4), known[i].seconds / 4));
    }
}

static void several_of_them_take_a_batch_each(void **state)
{
    (void)state;
    struct mr_accelerator_spec s = parsed("emulated:resnet50-h100x8");
    assert_int_equal(s.n, 8);
    assert_int_equal(s.own_batch, 400);
    /* side by side: no longer than one of them */
    assert_true(near(mr_accelerator_spec_seconds(&s, 400), 0.224));
    assert_int_equal(parsed("emulated:resnet50-v100x4096").n, 4096);
    assert_int_equal(parsed("emulated:resnet50-v100x1").n, 1);
}

static void anything_else_is_refused_with_the_names(void **state)
{
    static const char *const bad[] = {
        "",
        "CPU",
        "cpu ",
        " cpu",
        "gpu",
        "emulated",
        "emulated:",
        "emulated: 1",
        "emulated:-1",
        "emulated:+1",
        "emulated:.5",
        "emulated:nan",
        "emulated:inf",
        "emulated:1e999",
        "emulated:3601",
        "emulated:1s",
        "emulated:1+",
        "emulated:1+-2",
        "emulated:1+nan",
        "emulated:1+2+3",
        "emulated:0.1 +0.2",
        "emulated:resnet50",
        "emulated:resnet50-",
        "emulated:resnet50-b200",
        "emulated:resnet50-v100x",
        "emulated:resnet50-v100x0",
        "emulated:resnet50-v100x-1",
        "emulated:resnet50-v100x+1",
        "emulated:resnet50-v100x4097",
        "emulated:resnet50-v100x2x2",
        "emulated:resnet50-v100 ",
        "emulated:resnet50-v100x1.5",
        "emulated:resnet50-v100x99999999999999999999",
        "emulated:1x2",
        "emulated:0x10",
        "emulated:1+0X2",
        "emulated:RESNET50-V100",
        "%s%n%d",
        "emulated:%s%s%s%s",
        "emulated:1.00000000000000000000000000000000000000000000000000000000000000000000001"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct mr_accelerator_spec s = {.n = 77};
        struct mr_error err = {0};
        if (mr_accelerator_spec_parse(bad[i], &s, &err) != -EINVAL)
            fail_msg("'%s' was taken", bad[i]);
        assert_int_equal(s.n, 77);
        assert_int_equal(err.code, -EINVAL);
        assert_non_null(strstr(err.text, "cpu"));
        assert_non_null(strstr(err.text, "emulated:SECONDS+PER_IMAGE"));
        assert_non_null(strstr(err.text, "resnet50-v100, resnet50-a100, resnet50-h100"));
        if (strlen(bad[i]) < 64)
            assert_non_null(strstr(err.text, bad[i]));
    }
}

static void an_endless_name_still_gets_the_list(void **state)
{
    static char text[100000];
    struct mr_accelerator_spec s;
    struct mr_error err = {0};
    (void)state;
    memset(text, 'x', sizeof text - 1);
    assert_int_equal(mr_accelerator_spec_parse(text, &s, &err), -EINVAL);
    assert_non_null(strstr(err.text, "resnet50-v100"));
}

static void an_accelerator_leaves_the_cores_to_the_input(void **state)
{
    (void)state;
    struct mr_accelerator_spec emulated = parsed("emulated:1"), cpu = parsed("cpu");
    struct mr_cores c;
    mr_cores_divide(&emulated, 0, 0, &c);
    assert_true(c.n >= 1);
    assert_int_equal(c.map_workers, c.n);
    assert_int_equal(c.compute_threads, 0);
    mr_cores_divide(&emulated, 5, 3, &c);
    assert_int_equal(c.map_workers, 5);
    assert_int_equal(c.compute_threads, 0);
    mr_cores_divide(&cpu, 0, 0, &c);
    assert_int_equal(c.compute_threads, c.n);
    assert_true(c.map_workers >= 1 && c.map_workers <= c.n);
    mr_cores_divide(&cpu, 5, 3, &c);
    assert_int_equal(c.map_workers, 5);
    assert_int_equal(c.compute_threads, 3);
}

static void only_cores_that_may_be_used_are_counted(void **state)
{
    cpu_set_t before, one;
    struct mr_accelerator_spec cpu = parsed("cpu");
    struct mr_cores c;
    (void)state;
    if (sched_getaffinity(0, sizeof before, &before))
        skip();
    CPU_ZERO(&one);
    for (unsigned i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &before))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    mr_cores_divide(&cpu, 0, 0, &c);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(c.n, 1);
    assert_int_equal(c.compute_threads, 1);
    assert_int_equal(c.map_workers, 1);
}

static struct mr_accelerator *opened(const char *spec, int with_state)
{
    struct mr_accelerator_opts o = {.spec = parsed(spec),
                                    .batch = 4,
                                    .image_size = 224,
                                    .n_classes = 3,
                                    .with_state = with_state};
    struct mr_accelerator *a = NULL;
    struct mr_error err = {0};
    if (mr_accelerator_open(&o, &a, &err))
        fail_msg("%s", err.text);
    return a;
}

static void an_emulated_step_takes_its_time_and_computes_nothing(void **state)
{
    struct mr_accelerator *a = opened("emulated:0.05", 0);
    struct mr_batch b = {.n = 4}, *batches[] = {&b, &b};
    struct mr_step_hooks hooks = {0};
    struct mr_step_outcome out;
    unsigned n = 1, correct;
    struct mr_error err = {0};
    (void)state;
    uint64_t start = mr_clock_ns();
    assert_int_equal(mr_accelerator_step(a, batches, 2, 1, &hooks, &out, &err), 0);
    assert_true(mr_clock_ns() - start >= 50000000);
    assert_int_equal(out.n_images, 8);
    assert_int_equal(out.n_correct, 0);
    assert_true(isnan(out.loss));
    mr_accelerator_state(a, &n);
    assert_int_equal(n, 0);
    assert_int_equal(mr_accelerator_evaluate(a, &b, &correct, &err), -ENOTSUP);
    assert_non_null(strstr(err.text, "learns nothing"));
    mr_accelerator_close(a);
    mr_accelerator_close(NULL);
}

static int stop_now(void *ctx)
{
    ++*(unsigned *)ctx;
    return 1;
}

static void a_long_step_can_be_stopped(void **state)
{
    struct mr_accelerator *a = opened("emulated:3600", 0);
    struct mr_batch b = {.n = 4}, *batches[] = {&b};
    unsigned asked = 0;
    struct mr_step_hooks hooks = {.should_stop = stop_now, .ctx = &asked};
    struct mr_step_outcome out;
    (void)state;
    assert_int_equal(mr_accelerator_step(a, batches, 1, 1, &hooks, &out, NULL), -ECANCELED);
    assert_int_equal(asked, 1);
    mr_accelerator_close(a);
}

struct writes {
    struct mr_accelerator *a;
    unsigned n;
    float expected; /* of the first word, before it is changed */
};

static void about_to_write(void *ctx, unsigned tensor)
{
    struct writes *w = ctx;
    unsigned n;
    const struct mr_state_tensor *t = mr_accelerator_state(w->a, &n);
    assert_int_equal(tensor, w->n++);
    assert_true(tensor < n);
    assert_true(t[tensor].data[0] == w->expected);
}

/* One word in every 4 KiB, and whoever copies is told before. */
static void an_emulated_update_touches_every_page_of_the_state(void **state)
{
    (void)state;
    if (under_sanitizer()) /* 700 MB of it */
        skip();
    struct mr_accelerator *a = opened("emulated:0", 1);
    struct mr_batch b = {.n = 4}, *batches[] = {&b};
    struct writes w = {.a = a};
    struct mr_step_hooks hooks = {.before_write = about_to_write, .ctx = &w};
    struct mr_step_outcome out;
    unsigned n;
    for (unsigned step = 1; step <= 2; step++) {
        w.n = 0;
        w.expected = (float)(step - 1);
        assert_int_equal(mr_accelerator_step(a, batches, 1, step, &hooks, &out, NULL), 0);
        const struct mr_state_tensor *t = mr_accelerator_state(a, &n);
        assert_int_equal(w.n, n);
        for (unsigned i = 0; i < n; i++) {
            uint64_t elements = 1;
            for (unsigned d = 0; d < t[i].n_dims; d++)
                elements *= t[i].dims[d];
            assert_int_equal(t[i].bytes, elements * sizeof(float));
            for (size_t at = 0; at < elements; at += 1024)
                assert_true(t[i].data[at] == (float)step);
            if (elements > 1)
                assert_true(t[i].data[1] == 0);
        }
    }
    mr_accelerator_close(a);
}

/* Three tensors a parameter, under the names that TensorFlow's Saver gives them. */
static void the_state_has_weights_and_both_moments(void **state)
{
    struct mr_accelerator *a = opened("emulated:0", 1);
    unsigned n;
    (void)state;
    const struct mr_state_tensor *t = mr_accelerator_state(a, &n);
    assert_true(n && n % 3 == 0);
    for (unsigned i = 0; i < n; i += 3) {
        char name[256];
        snprintf(name, sizeof name, "%s/Adam", t[i].name);
        assert_string_equal(t[i + 1].name, name);
        snprintf(name, sizeof name, "%s/Adam_1", t[i].name);
        assert_string_equal(t[i + 2].name, name);
        assert_int_equal(t[i].bytes, t[i + 1].bytes);
        assert_int_equal(t[i].bytes, t[i + 2].bytes);
        assert_ptr_not_equal(t[i].data, t[i + 1].data);
        assert_ptr_not_equal(t[i + 1].data, t[i + 2].data);
    }
    mr_accelerator_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cpu_is_one_accelerator),
        cmocka_unit_test(seconds_are_for_a_step_and_for_an_image),
        cmocka_unit_test(published_workloads_have_their_batch_and_scale_with_it),
        cmocka_unit_test(several_of_them_take_a_batch_each),
        cmocka_unit_test(anything_else_is_refused_with_the_names),
        cmocka_unit_test(an_endless_name_still_gets_the_list),
        cmocka_unit_test(an_accelerator_leaves_the_cores_to_the_input),
        cmocka_unit_test(only_cores_that_may_be_used_are_counted),
        cmocka_unit_test(an_emulated_step_takes_its_time_and_computes_nothing),
        cmocka_unit_test(a_long_step_can_be_stopped),
        cmocka_unit_test(an_emulated_update_touches_every_page_of_the_state),
        cmocka_unit_test(the_state_has_weights_and_both_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
