/* nn_small.c - see nn_small.h. */
#include "nn_small.h"

#include "draw.h"

#include <math.h>
#include <stdlib.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif

int under_tsan(void)
{
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
    return 1;
#else
    return 0;
#endif
}

int under_sanitizer(void)
{
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
    return 1;
#else
    return under_tsan();
#endif
}

#define CONVOLUTION(label, channels, size, step, how)                                              \
    {                                                                                              \
        .kind = MR_LAYER_CONVOLUTION, .name = label, .weights = label "/w", .bias = label "/b",    \
        .n_out = channels, .kernel = size, .stride = step, .plan = how                             \
    }
#define DENSE(label, units)                                                                        \
    {                                                                                              \
        .kind = MR_LAYER_DENSE, .name = label, .weights = label "/w", .bias = label "/b",          \
        .n_out = units                                                                             \
    }
#define RELU                                                                                       \
    {                                                                                              \
        .kind = MR_LAYER_RELU, .name = "relu"                                                      \
    }
#define LRN                                                                                        \
    {                                                                                              \
        .kind = MR_LAYER_LRN, .name = "lrn", .radius = 2, .lrn_bias = 1, .alpha = 0.05f,           \
        .beta = 0.75f                                                                              \
    }
#define POOL(size, step)                                                                           \
    {                                                                                              \
        .kind = MR_LAYER_MAX_POOL, .name = "pool", .kernel = size, .stride = step                  \
    }
#define DROPOUT(share)                                                                             \
    {                                                                                              \
        .kind = MR_LAYER_DROPOUT, .name = "dropout", .rate = share                                 \
    }

/* AlexNet in small: folded first layer, NHWC, Winograd, LRN in both layouts. */
static const struct mr_layer whole[] = {
    CONVOLUTION("c1", 16, 11, 4, MR_PLAN_BEST),
    RELU,
    LRN,
    POOL(3, 2),
    CONVOLUTION("c2", 32, 5, 1, MR_PLAN_BEST),
    RELU,
    LRN,
    POOL(3, 2),
    CONVOLUTION("c3", 16, 3, 1, MR_PLAN_BEST),
    RELU,
    DENSE("d1", 24),
    RELU,
    DROPOUT(0.5f),
    DENSE("d2", 7),
};
/* Winograd with both gradients. */
static const struct mr_layer winograd[] = {
    CONVOLUTION("c1", 32, 3, 1, MR_PLAN_WINOGRAD),
    RELU,
    CONVOLUTION("c2", 32, 3, 1, MR_PLAN_WINOGRAD),
    RELU,
    DENSE("d1", 5),
};
/* Layouts that the library proposes, a ReLU that follows a pool, dropout of an image. */
static const struct mr_layer library[] = {
    CONVOLUTION("c1", 16, 5, 2, MR_PLAN_LIBRARY), POOL(2, 2), RELU,           DROPOUT(0.25f),
    CONVOLUTION("c2", 16, 3, 1, MR_PLAN_LIBRARY), LRN,        DENSE("d1", 4),
};
/* NHWC with an even kernel, whose padding is uneven; no ReLU; channels that fill no block. */
static const struct mr_layer uneven[] = {
    CONVOLUTION("c1", 12, 4, 1, MR_PLAN_CHANNELS_LAST),
    POOL(3, 1),
    CONVOLUTION("c2", 9, 2, 1, MR_PLAN_CHANNELS_LAST),
    RELU,
    DENSE("d1", 3),
};
/* No convolution: images are flattened; dropout without ReLU, whose input may be negative. */
static const struct mr_layer dense_only[] = {DENSE("d1", 19), DROPOUT(0.3f), DENSE("d2", 11), RELU,
                                             DENSE("d3", 6)};
static const struct mr_layer one_layer[] = {DENSE("d1", 2)};
/* What has no weights may come first. */
static const struct mr_layer pool_first[] = {
    POOL(2, 2), RELU, CONVOLUTION("c1", 8, 3, 1, MR_PLAN_CHANNELS_LAST), RELU, DENSE("d1", 4)};

#define NET(name, h, w, c, list)                                                                   \
    {                                                                                              \
        name, h, w, c, sizeof list / sizeof *list, list                                            \
    }
static const struct mr_net_spec nets[N_SMALL_NETS] = {
    NET("whole", 64, 48, 3, whole),           NET("winograd", 12, 10, 16, winograd),
    NET("library", 20, 20, 3, library),       NET("uneven", 9, 11, 5, uneven),
    NET("dense_only", 5, 4, 3, dense_only),   NET("one_layer", 1, 1, 13, one_layer),
    NET("pool_first", 12, 12, 4, pool_first),
};

const struct mr_net_spec *small_net(unsigned i)
{
    return &nets[i];
}

int small_net_runs(unsigned i)
{
#if defined(__x86_64__)
    int has = __builtin_cpu_supports("avx512f") != 0;
#else
    int has = 0;
#endif
    return has || nets[i].layers != winograd;
}

static double uniform(uint64_t seed, uint64_t a, uint64_t b)
{
    return (double)(mr_draw(seed, MR_DRAW_SYNTHETIC, a, b, 0) >> 11) / 9007199254740992.0;
}

void small_weights(struct mr_params *p, uint64_t seed)
{
    for (unsigned i = 0; i < p->n_tensors; i++) {
        struct mr_param *t = &p->tensors[i];
        double fan_in = (double)t->n / (double)t->dims[t->n_dims - 1];
        double reach = t->n_dims == 1 ? 0.2 : sqrt(6 / fan_in);
        for (uint64_t k = 0; k < t->n; k++)
            t->weights[k] = (float)((2 * uniform(seed, i, k) - 1) * reach);
    }
}

struct small_batch small_batch_new(const struct mr_net_spec *spec, unsigned n, uint64_t seed)
{
    size_t values = (size_t)n * spec->height * spec->width * spec->channels;
    struct small_batch b = {malloc(values * sizeof *b.images), malloc(n * sizeof *b.labels), {0}};
    for (size_t i = 0; i < values; i++)
        b.images[i] = (float)uniform(seed, 1000, i);
    for (unsigned i = 0; i < n; i++)
        b.labels[i] = (uint32_t)(uniform(seed, 1001, i) * mr_net_spec_classes(spec));
    b.in = (struct mr_net_input){.n = n, .images = b.images, .labels = b.labels, .step = 3};
    return b;
}

void small_batch_free(struct small_batch *b)
{
    free(b->images);
    free(b->labels);
}

double relative_error(const float *a, const double *b, uint64_t n)
{
    double off = 0, size = 0;
    for (uint64_t i = 0; i < n; i++) {
        off += (a[i] - b[i]) * (a[i] - b[i]);
        size += b[i] * b[i];
    }
    return size > 0 ? sqrt(off / size) : sqrt(off);
}
