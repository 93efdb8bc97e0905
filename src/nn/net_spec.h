/* net_spec.h - a network described: a list of layers, and the shapes that follow from it.
 *
 * Images are [N, height, width, channels], f32.  Between the layers a shape is the same without N;
 * a dense layer flattens what it gets, row by row, channels last, to [N, height * width * channels]
 * and yields [N, n_out].  The last layer is dense and its outputs are the logits of the classes;
 * softmax cross entropy follows by itself. */
#ifndef MR_NET_SPEC_H
#define MR_NET_SPEC_H

#include <millrace/api.h>

enum mr_layer_kind {
    MR_LAYER_CONVOLUTION = 1, /* padding as TensorFlow's SAME */
    MR_LAYER_RELU,
    MR_LAYER_LRN,      /* local response normalization across channels, TensorFlow's formula */
    MR_LAYER_MAX_POOL, /* padding as TensorFlow's VALID */
    MR_LAYER_DENSE,
    MR_LAYER_DROPOUT, /* what is kept is scaled by 1 / (1 - rate); nothing in evaluation */
};

/* How a convolution is computed.  The choice by measurement (docs/nn.md) is the default; the others
 * are there to be measured. */
enum mr_conv_plan {
    MR_PLAN_BEST,
    MR_PLAN_WINOGRAD,      /* 3x3, stride 1 only */
    MR_PLAN_CHANNELS_LAST, /* NHWC; the data gradient is a convolution with turned weights */
    MR_PLAN_LIBRARY,       /* whatever layout oneDNN proposes */
};

struct mr_layer { /* fields that a kind does not name are 0 */
    enum mr_layer_kind kind;
    const char *name;            /* for messages: "conv1" */
    const char *weights, *bias;  /* convolution, dense: names of the variables */
    unsigned n_out;              /* convolution: channels; dense: units */
    unsigned kernel, stride;     /* convolution, pool; stride 0 = 1 */
    float bias_init;             /* convolution, dense */
    float rate;                  /* dropout */
    unsigned radius;             /* LRN: y = x / (lrn_bias + alpha * sum of squares)^beta, ... */
    float lrn_bias, alpha, beta; /* ... the sum over 2 * radius + 1 channels */
    enum mr_conv_plan plan;
};

struct mr_net_spec {
    const char *name;
    unsigned height, width, channels; /* of an image */
    unsigned n_layers;
    const struct mr_layer *layers;
};

struct mr_shape {
    unsigned height, width, channels;
};

static inline uint64_t mr_shape_size(struct mr_shape s)
{
    return (uint64_t)s.height * s.width * s.channels;
}

static inline int mr_layer_has_weights(const struct mr_layer *l)
{
    return l->kind == MR_LAYER_CONVOLUTION || l->kind == MR_LAYER_DENSE;
}

/* TensorFlow's SAME: zeros before the first row or column of a convolution. */
unsigned mr_same_pad_before(unsigned in, unsigned kernel, unsigned stride);

/* The shape after each layer: shapes[i], i < n_layers.  -EINVAL says which layer is impossible. */
int mr_net_spec_shapes(const struct mr_net_spec *spec, struct mr_shape *shapes,
                       struct mr_error *err);
/* Outputs of the last layer. */
unsigned mr_net_spec_classes(const struct mr_net_spec *spec);

#endif
