/* AlexNet: its shape, its memory, and one step of it against the reference. */
#include "unit.h"

#include "alexnet.h"
#include "net.h"
#include "nn_reference.h"
#include "nn_small.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void it_has_the_variables_of_the_study(void **state)
{
    static const struct {
        const char *name;
        unsigned n_dims;
        uint64_t dims[4];
    } all[] = {
        {"alexnet_cnn/alexnet_cnn_conv1/wcnn1", 4, {11, 11, 3, 96}},
        {"alexnet_cnn/alexnet_cnn_conv1/bcnn1", 1, {96}},
        {"alexnet_cnn/alexnet_cnn_conv2/wcnn2", 4, {5, 5, 96, 256}},
        {"alexnet_cnn/alexnet_cnn_conv2/bcnn2", 1, {256}},
        {"alexnet_cnn/alexnet_cnn_conv3/wcnn3", 4, {3, 3, 256, 384}},
        {"alexnet_cnn/alexnet_cnn_conv3/bcnn3", 1, {384}},
        {"alexnet_cnn/alexnet_cnn_conv4/wcnn4", 4, {3, 3, 384, 384}},
        {"alexnet_cnn/alexnet_cnn_conv4/bcnn4", 1, {384}},
        {"alexnet_cnn/alexnet_cnn_conv5/wcnn5", 4, {3, 3, 384, 256}},
        {"alexnet_cnn/alexnet_cnn_conv5/bcnn5", 1, {256}},
        {"alexnet_classifier/alexnet_classifier_fc1/wfc1", 2, {9216, 4096}},
        {"alexnet_classifier/alexnet_classifier_fc1/bfc1", 1, {4096}},
        {"alexnet_classifier/alexnet_classifier_fc2/wfc2", 2, {4096, 4096}},
        {"alexnet_classifier/alexnet_classifier_fc2/bfc2", 1, {4096}},
        {"alexnet_classifier/alexnet_classifier_output/wfc3", 2, {4096, 102}},
        {"alexnet_classifier/alexnet_classifier_output/bfc3", 1, {102}},
    };
    struct mr_alexnet a;
    struct mr_params *p = NULL;
    (void)state;
    mr_alexnet_init(&a, NULL);
    assert_int_equal(mr_params_new(&a.spec, &p, NULL), 0);
    assert_int_equal(p->n_values, 58699238);
    assert_int_equal(p->n_tensors, ARRAY_LEN(all));
    for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
        assert_string_equal(p->tensors[i].name, all[i].name);
        assert_int_equal(p->tensors[i].n_dims, all[i].n_dims);
        assert_memory_equal(p->tensors[i].dims, all[i].dims, sizeof all[i].dims);
    }
    mr_params_free(p);
}

static void options_change_classes_and_lrn(void **state)
{
    struct mr_alexnet plain, other;
    struct mr_alexnet_opts opts = {.n_classes = 7, .without_lrn = 1};
    (void)state;
    mr_alexnet_init(&plain, NULL);
    mr_alexnet_init(&other, &opts);
    assert_int_equal(mr_net_spec_classes(&plain.spec), 102);
    assert_int_equal(mr_net_spec_classes(&other.spec), 7);
    assert_int_equal(other.spec.n_layers + 2, plain.spec.n_layers);
    for (unsigned i = 0; i < other.spec.n_layers; i++)
        assert_int_not_equal(other.spec.layers[i].kind, MR_LAYER_LRN);
}

static void a_batch_of_64_needs_less_than_three_and_a_half_gigabytes(void **state)
{
    struct mr_alexnet a;
    struct mr_net_opts opts = {.batch = 64, .threads = under_tsan() ? 1 : 2};
    struct mr_error err = {0};
    uint64_t bytes = 0;
    (void)state;
    if (!mr_net_available())
        skip();
    mr_alexnet_init(&a, NULL);
    if (mr_net_bytes_needed(&a.spec, &opts, &bytes, &err))
        fail_msg("%s", err.text);
    assert_true(bytes > 4 * 4 * 58699238ull); /* the parameters alone */
    assert_true(bytes < 3500000000ull);
}

/* Differences come from f32, Winograd, and near ties in the pools that fall the other way. */
static void one_step_equals_the_reference(void **state)
{
    struct mr_alexnet a;
    struct mr_net_opts opts = {.batch = 2, .threads = 2, .seed = 5};
    struct mr_error err = {0};
    struct mr_net *net = NULL;
    struct mr_net_result got;
    (void)state;
    if (under_sanitizer() || !mr_net_available())
        skip();
    mr_alexnet_init(&a, NULL);
    if (mr_net_open(&a.spec, &opts, &net, &err))
        fail_msg("%s", err.text);
    struct reference *r = reference_new(&a.spec, 2, 5);
    struct small_batch b = small_batch_new(&a.spec, 2, 9);
    struct mr_params *p = mr_net_params(net);
    small_weights(p, 2);
    reference_load(r, p);
    reference_forward(r, &b.in);
    reference_backward(r, &b.in);
    assert_int_equal(mr_net_forward(net, &b.in, &got, &err), 0);
    assert_int_equal(mr_net_backward(net), 0);
    assert_true(fabs(got.loss - r->loss) < 1e-4 * r->loss);
    for (unsigned i = 0; i < p->n_tensors; i++) {
        double off = relative_error(p->tensors[i].gradient, r->gradients[i], r->sizes[i]);
        print_message("%-52s off by %.1e\n", p->tensors[i].name, off);
        assert_true(off < 1e-2);
    }
    small_batch_free(&b);
    reference_free(r);
    mr_net_close(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_has_the_variables_of_the_study),
        cmocka_unit_test(options_change_classes_and_lrn),
        cmocka_unit_test(a_batch_of_64_needs_less_than_three_and_a_half_gigabytes),
        cmocka_unit_test(one_step_equals_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
