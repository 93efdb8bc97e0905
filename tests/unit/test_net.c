/* Small networks on oneDNN: against the reference, with bad input, and learning. */
#include "unit.h"

#include "draw.h"
#include "net.h"
#include "nn_reference.h"
#include "nn_small.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 6
/* Winograd's transforms cost digits; everything else is plain f32. */
#define TOLERANCE 2e-4

static struct mr_net *open_small(const struct mr_net_spec *spec, unsigned threads)
{
    struct mr_net_opts opts = {.batch = BATCH, .threads = threads, .seed = 5};
    struct mr_error err = {0};
    struct mr_net *net = NULL;
    if (mr_net_open(spec, &opts, &net, &err))
        fail_msg("%s: %s", spec->name, err.text);
    small_weights(mr_net_params(net), 2);
    return net;
}

static struct mr_net_result forward(struct mr_net *net, const struct mr_net_input *in)
{
    struct mr_net_result result = {0};
    struct mr_error err = {0};
    if (mr_net_forward(net, in, &result, &err))
        fail_msg("%s", err.text);
    return result;
}

static void compare(const struct mr_net_spec *spec, unsigned n, int evaluate)
{
    struct mr_net *net = open_small(spec, 1);
    struct mr_params *p = mr_net_params(net);
    struct reference *r = reference_new(spec, n, 5);
    struct small_batch b = small_batch_new(spec, n, 9);
    b.in.evaluate = evaluate;
    reference_load(r, p);
    reference_forward(r, &b.in);
    struct mr_net_result got = forward(net, &b.in);
    if (fabs(got.loss - r->loss) > 1e-5 * r->loss)
        fail_msg("%s: loss %.9g, should be %.9g", spec->name, got.loss, r->loss);
    assert_int_equal(got.n_correct, r->n_correct);
    assert_true(relative_error(mr_net_logits(net), r->values[spec->n_layers],
                               (uint64_t)n * mr_net_spec_classes(spec)) < TOLERANCE);
    if (!evaluate) {
        assert_int_equal(mr_net_backward(net), 0);
        reference_backward(r, &b.in);
        for (unsigned i = 0; i < p->n_tensors; i++) {
            double off = relative_error(p->tensors[i].gradient, r->gradients[i], r->sizes[i]);
            if (!(off < TOLERANCE))
                fail_msg("%s: the gradient of %s is off by %g", spec->name, p->tensors[i].name,
                         off);
        }
    }
    small_batch_free(&b);
    reference_free(r);
    mr_net_close(net);
}

static void loss_and_gradients_equal_the_reference(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_SMALL_NETS; i++)
        if (small_net_runs(i))
            compare(small_net(i), BATCH, 0);
}

static void a_short_batch_counts_only_its_images(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_SMALL_NETS; i++)
        if (small_net_runs(i))
            compare(small_net(i), BATCH - 4, 0);
}

static void evaluation_drops_nothing(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_SMALL_NETS; i++)
        if (small_net_runs(i))
            compare(small_net(i), BATCH, 1);
}

static void no_operation_is_the_reference_code(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_SMALL_NETS; i++) {
        if (!small_net_runs(i))
            continue;
        struct mr_net *net = open_small(small_net(i), 1);
        assert_true(mr_net_n_ops(net) > 0);
        for (unsigned k = 0; k < mr_net_n_ops(net); k++) {
            struct mr_net_op op;
            mr_net_op(net, k, &op);
            assert_null(strstr(op.code, "ref"));
        }
        mr_net_close(net);
    }
}

static void the_reference_code_is_refused(void **state)
{
    /* LRN over 3 channels has no vector code. */
    static const struct mr_layer layers[] = {
        {.kind = MR_LAYER_CONVOLUTION,
         .name = "c",
         .weights = "cw",
         .bias = "cb",
         .n_out = 3,
         .kernel = 3},
        {.kind = MR_LAYER_LRN, .name = "odd", .radius = 2, .lrn_bias = 1, .alpha = 1, .beta = 1},
        {.kind = MR_LAYER_DENSE, .name = "d", .weights = "w", .bias = "b", .n_out = 2}};
    const struct mr_net_spec spec = {"odd", 8, 8, 3, 3, layers};
    struct mr_net_opts opts = {.batch = 2, .threads = 1};
    struct mr_error err = {0};
    struct mr_net *net = NULL;
    (void)state;
    assert_int_equal(mr_net_open(&spec, &opts, &net, &err), -ENOTSUP);
    assert_non_null(strstr(err.text, "layer odd: oneDNN has only its slow reference code"));
    assert_null(net);
}

/* Train a few steps and note losses. */
static void losses(unsigned threads, double *out, unsigned n)
{
    struct mr_net *net = open_small(small_net(0), threads);
    struct small_batch b = small_batch_new(small_net(0), BATCH, 9);
    for (unsigned i = 0; i < n; i++) {
        b.in.step = i;
        out[i] = forward(net, &b.in).loss;
        assert_int_equal(mr_net_backward(net), 0);
        assert_int_equal(mr_net_update(net, NULL), 0);
    }
    small_batch_free(&b);
    mr_net_close(net);
}

static void one_thread_gives_the_same_bits_again(void **state)
{
    double a[8], b[8];
    (void)state;
    losses(1, a, 8);
    losses(1, b, 8);
    assert_memory_equal(a, b, sizeof a);
    assert_true(a[7] < a[0]);
}

static void two_threads_differ_by_rounding_only(void **state)
{
    (void)state;
    if (under_tsan())
        skip();
    for (unsigned i = 0; i < N_SMALL_NETS; i++) {
        const struct mr_net_spec *spec = small_net(i);
        if (!small_net_runs(i))
            continue;
        struct small_batch b = small_batch_new(spec, BATCH, 9);
        struct mr_net *one = open_small(spec, 1), *two = open_small(spec, 2);
        double l1 = forward(one, &b.in).loss, l2 = forward(two, &b.in).loss;
        assert_true(fabs(l1 - l2) <= 1e-5 * l1);
        assert_int_equal(mr_net_backward(one), 0);
        assert_int_equal(mr_net_backward(two), 0);
        for (unsigned k = 0; k < mr_net_params(one)->n_tensors; k++) {
            const struct mr_param *t1 = &mr_net_params(one)->tensors[k];
            const struct mr_param *t2 = &mr_net_params(two)->tensors[k];
            double *exact = malloc(t1->n * sizeof *exact);
            for (uint64_t j = 0; j < t1->n; j++)
                exact[j] = t1->gradient[j];
            assert_true(relative_error(t2->gradient, exact, t1->n) < 1e-5);
            free(exact);
        }
        mr_net_close(one);
        mr_net_close(two);
        small_batch_free(&b);
    }
}

static void weights_written_from_outside_are_used(void **state)
{
    struct mr_net *net = open_small(small_net(0), 1);
    struct small_batch b = small_batch_new(small_net(0), BATCH, 9);
    (void)state;
    double before = forward(net, &b.in).loss;
    small_weights(mr_net_params(net), 3); /* as a restored checkpoint would */
    double other = forward(net, &b.in).loss;
    small_weights(mr_net_params(net), 2);
    double again = forward(net, &b.in).loss;
    assert_true(other != before);
    assert_true(again == before);
    small_batch_free(&b);
    mr_net_close(net);
}

static void dropout_is_a_function_of_seed_and_step(void **state)
{
    struct mr_net *net = open_small(small_net(0), 1);
    struct small_batch b = small_batch_new(small_net(0), BATCH, 9);
    (void)state;
    double at3 = forward(net, &b.in).loss;
    b.in.step = 4;
    double at4 = forward(net, &b.in).loss;
    b.in.step = 3;
    assert_true(forward(net, &b.in).loss == at3);
    assert_true(at3 != at4);
    small_batch_free(&b);
    mr_net_close(net);
}

static void bad_input_is_refused_in_words(void **state)
{
    struct mr_net *net = open_small(small_net(0), 1);
    struct small_batch b = small_batch_new(small_net(0), BATCH, 9);
    struct mr_net_result result = {.loss = -1};
    struct mr_error err = {0};
    (void)state;
    b.labels[2] = 7;
    assert_int_equal(mr_net_forward(net, &b.in, &result, &err), -EINVAL);
    assert_string_equal(err.text, "image 2 of the batch has label 7; the network has 7 classes, 0 "
                                  "to 6");
    b.labels[2] = 6;
    b.in.n = BATCH + 1;
    assert_int_equal(mr_net_forward(net, &b.in, &result, NULL), -EINVAL);
    b.in.n = 0;
    assert_int_equal(mr_net_forward(net, &b.in, &result, NULL), -EINVAL);
    assert_true(result.loss == -1);
    assert_int_equal(mr_net_backward(net), -EINVAL); /* nothing to go back from */
    b.in.n = BATCH;
    b.in.evaluate = 1;
    forward(net, &b.in);
    assert_int_equal(mr_net_backward(net), -EINVAL);
    small_batch_free(&b);
    mr_net_close(net);
}

static void a_loss_that_is_no_number_is_an_error(void **state)
{
    const float bad[] = {NAN, INFINITY};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct mr_net *net = open_small(small_net(5), 1);
        struct small_batch b = small_batch_new(small_net(5), BATCH, 9);
        struct mr_net_result result;
        struct mr_error err = {0};
        b.images[7] = bad[i];
        assert_int_equal(mr_net_forward(net, &b.in, &result, &err), -EDOM);
        assert_non_null(strstr(err.text, "at step 3"));
        assert_int_equal(mr_net_backward(net), -EINVAL);
        small_batch_free(&b);
        mr_net_close(net);
    }
}

/* ReLU would hide it from the loss. */
static void a_weight_that_is_no_number_is_an_error(void **state)
{
    struct mr_net *net = open_small(small_net(0), 1);
    (void)state;
    assert_int_equal(mr_net_update(net, NULL), 0);
    mr_net_params(net)->tensors[4].gradient[5] = INFINITY;
    assert_int_equal(mr_net_update(net, NULL), -EDOM);
    mr_net_close(net);
}

static void too_little_memory_is_said_in_bytes(void **state)
{
    struct mr_net_opts opts = {.batch = BATCH, .threads = 1, .max_bytes = 1000};
    struct mr_error err = {0};
    struct mr_net *net = NULL;
    uint64_t needed = 0;
    char text[32];
    (void)state;
    assert_int_equal(mr_net_bytes_needed(small_net(0), &opts, &needed, &err), 0);
    assert_int_equal(mr_net_open(small_net(0), &opts, &net, &err), -ENOMEM);
    snprintf(text, sizeof text, " %lu bytes", needed);
    assert_non_null(strstr(err.text, text));
    opts.max_bytes = needed;
    assert_int_equal(mr_net_open(small_net(0), &opts, &net, NULL), 0);
    assert_int_equal(mr_net_bytes(net), needed);
    mr_net_close(net);
}

static void impossible_networks_are_refused(void **state)
{
    static const struct mr_layer dense = {
        .kind = MR_LAYER_DENSE, .name = "d", .weights = "w", .bias = "b", .n_out = 2};
    static const struct {
        struct mr_layer first;
        const char *says;
    } cases[] = {
        {{.kind = MR_LAYER_MAX_POOL, .name = "p", .kernel = 9}, "larger than the image"},
        {{.kind = MR_LAYER_CONVOLUTION, .name = "c", .weights = "w", .bias = "b"}, "kernel size"},
        {{.kind = MR_LAYER_CONVOLUTION, .name = "c", .kernel = 3, .n_out = 4}, "no names"},
        {{.kind = MR_LAYER_DROPOUT, .name = "x", .rate = 1}, "rate"},
        {{.kind = MR_LAYER_LRN, .name = "n", .radius = 1}, "above 0"},
        {{.name = "nothing"}, "no such kind"},
    };
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        struct mr_layer layers[] = {cases[i].first, dense};
        struct mr_net_spec spec = {"wrong", 8, 8, 16, 2, layers};
        struct mr_error err = {0};
        struct mr_net *net = NULL;
        assert_int_equal(mr_net_open(&spec, NULL, &net, &err), -EINVAL);
        assert_non_null(strstr(err.text, cases[i].says));
        spec.n_layers = 1; /* the last layer must be dense */
        assert_int_equal(mr_net_open(&spec, NULL, &net, NULL), -EINVAL);
    }
}

/* ---- learning ---- */

#define SIDE      16
#define N_CLASSES 4
#define N_IMAGES  96

/* Stripes in one of four directions, of random phase, period and colour, with noise. */
static void stripes(uint64_t seed, float *images, uint32_t *labels)
{
    for (unsigned i = 0; i < N_IMAGES; i++) {
        uint64_t bits = mr_draw(seed, MR_DRAW_SYNTHETIC, 7, i, 0);
        double angle = (labels[i] = i % N_CLASSES) * M_PI / N_CLASSES;
        double phase = (double)(bits & 255) / 40, period = 3 + (double)(bits >> 8 & 255) / 128;
        for (unsigned k = 0; k < SIDE * SIDE * 3; k++) {
            double x = k / 3 % SIDE, y = k / 3 / SIDE;
            double wave = sin((x * cos(angle) + y * sin(angle)) * 2 * M_PI / period + phase);
            double noise = (double)(mr_draw(seed, MR_DRAW_SYNTHETIC, 8, i, k) & 1023) / 1023 - 0.5;
            images[(size_t)i * SIDE * SIDE * 3 + k] = (float)(0.5 + 0.3 * wave + 0.3 * noise);
        }
    }
}

static void a_small_network_learns_to_tell_stripes_apart(void **state)
{
    static const struct mr_layer layers[] = {
        {.kind = MR_LAYER_CONVOLUTION,
         .name = "c1",
         .weights = "c1/w",
         .bias = "c1/b",
         .n_out = 16,
         .kernel = 5,
         .bias_init = 0.1f},
        {.kind = MR_LAYER_RELU, .name = "r1"},
        {.kind = MR_LAYER_LRN,
         .name = "n1",
         .radius = 2,
         .lrn_bias = 1,
         .alpha = 2e-5f,
         .beta = 0.75f},
        {.kind = MR_LAYER_MAX_POOL, .name = "p1", .kernel = 3, .stride = 2},
        {.kind = MR_LAYER_DENSE, .name = "d1", .weights = "d1/w", .bias = "d1/b", .n_out = 32},
        {.kind = MR_LAYER_RELU, .name = "r2"},
        {.kind = MR_LAYER_DROPOUT, .name = "x2", .rate = 0.25f},
        {.kind = MR_LAYER_DENSE,
         .name = "d2",
         .weights = "d2/w",
         .bias = "d2/b",
         .n_out = N_CLASSES},
    };
    const struct mr_net_spec spec = {"stripes", SIDE, SIDE, 3, 8, layers};
    struct mr_net_opts opts = {.batch = N_IMAGES, .threads = 1, .seed = 1};
    struct mr_adam_opts adam = {.lr = 0.003f};
    float *images = malloc(sizeof(float) * N_IMAGES * SIDE * SIDE * 3);
    uint32_t labels[N_IMAGES];
    struct mr_net_input in = {.n = N_IMAGES, .images = images, .labels = labels};
    struct mr_error err = {0};
    struct mr_net *net = NULL;
    struct mr_net_result seen = {0};
    (void)state;
    assert_int_equal(mr_net_open(&spec, &opts, &net, &err), 0);
    stripes(1, images, labels);
    for (in.step = 0; in.step < 80; in.step++) {
        seen = forward(net, &in);
        assert_int_equal(mr_net_backward(net), 0);
        assert_int_equal(mr_net_update(net, &adam), 0);
    }
    assert_true(seen.n_correct > 0.95 * N_IMAGES);
    stripes(2, images, labels); /* photos it has not seen */
    in.evaluate = 1;
    seen = forward(net, &in);
    if (!(seen.n_correct > 0.95 * N_IMAGES))
        fail_msg("%u of %u right, loss %g", seen.n_correct, N_IMAGES, seen.loss);
    mr_net_close(net);
    free(images);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_and_gradients_equal_the_reference),
        cmocka_unit_test(a_short_batch_counts_only_its_images),
        cmocka_unit_test(evaluation_drops_nothing),
        cmocka_unit_test(no_operation_is_the_reference_code),
        cmocka_unit_test(the_reference_code_is_refused),
        cmocka_unit_test(one_thread_gives_the_same_bits_again),
        cmocka_unit_test(two_threads_differ_by_rounding_only),
        cmocka_unit_test(weights_written_from_outside_are_used),
        cmocka_unit_test(dropout_is_a_function_of_seed_and_step),
        cmocka_unit_test(bad_input_is_refused_in_words),
        cmocka_unit_test(a_loss_that_is_no_number_is_an_error),
        cmocka_unit_test(a_weight_that_is_no_number_is_an_error),
        cmocka_unit_test(too_little_memory_is_said_in_bytes),
        cmocka_unit_test(impossible_networks_are_refused),
        cmocka_unit_test(a_small_network_learns_to_tell_stripes_apart),
    };
    if (!mr_net_available())
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
