/* net_spec.c - shapes from a list of layers; whatever cannot be built is refused here. */
#include "net_spec.h"

#include "errtext.h"

#include <errno.h>

/* Beyond this a side, a channel count or a layer's width is a mistake, and products stay small. */
#define MAX_EXTENT 65536u
#define MAX_VALUES ((uint64_t)1 << 31) /* of one tensor of one image, or of one layer's weights */

unsigned mr_same_pad_before(unsigned in, unsigned kernel, unsigned stride)
{
    unsigned out = (in + stride - 1) / stride;
    unsigned reach = (out - 1) * stride + kernel;
    return reach > in ? (reach - in) / 2 : 0;
}

static int wrong(const struct mr_layer *l, const char *what, struct mr_error *err)
{
    return mr_fail(err, -EINVAL, "layer %s: %s", l->name ? l->name : "without a name", what);
}

static int convolution_shape(const struct mr_layer *l, struct mr_shape *s, struct mr_error *err)
{
    unsigned stride = l->stride ? l->stride : 1;
    if (!l->kernel || !l->n_out || l->kernel > MAX_EXTENT || l->n_out > MAX_EXTENT)
        return wrong(l, "a convolution needs a kernel size and a number of channels", err);
    if ((uint64_t)l->kernel * l->kernel > MAX_VALUES / ((uint64_t)s->channels * l->n_out))
        return wrong(l, "too many weights", err);
    s->height = (s->height + stride - 1) / stride;
    s->width = (s->width + stride - 1) / stride;
    s->channels = l->n_out;
    return 0;
}

static int pool_shape(const struct mr_layer *l, struct mr_shape *s, struct mr_error *err)
{
    unsigned stride = l->stride ? l->stride : 1;
    if (!l->kernel || l->kernel > s->height || l->kernel > s->width)
        return wrong(l, "the pooling window is larger than the image", err);
    s->height = (s->height - l->kernel) / stride + 1;
    s->width = (s->width - l->kernel) / stride + 1;
    return 0;
}

static int dense_shape(const struct mr_layer *l, struct mr_shape *s, struct mr_error *err)
{
    if (!l->n_out || l->n_out > MAX_EXTENT)
        return wrong(l, "a dense layer needs a number of units", err);
    if (mr_shape_size(*s) > MAX_VALUES / l->n_out)
        return wrong(l, "too many weights", err);
    *s = (struct mr_shape){1, 1, l->n_out};
    return 0;
}

static int layer_shape(const struct mr_layer *l, int after_dense, struct mr_shape *s,
                       struct mr_error *err)
{
    int spatial =
        l->kind == MR_LAYER_CONVOLUTION || l->kind == MR_LAYER_LRN || l->kind == MR_LAYER_MAX_POOL;
    if (spatial && after_dense)
        return wrong(l, "it needs an image, and stands behind a dense layer", err);
    if (mr_layer_has_weights(l) && (!l->weights || !l->bias))
        return wrong(l, "its weights and bias have no names", err);
    switch (l->kind) {
    case MR_LAYER_CONVOLUTION:
        return convolution_shape(l, s, err);
    case MR_LAYER_MAX_POOL:
        return pool_shape(l, s, err);
    case MR_LAYER_DENSE:
        return dense_shape(l, s, err);
    case MR_LAYER_DROPOUT:
        return l->rate >= 0 && l->rate < 1 ? 0 : wrong(l, "the rate is not in 0 .. 1", err);
    case MR_LAYER_LRN:
        return l->lrn_bias > 0 ? 0 : wrong(l, "the bias of LRN must be above 0", err);
    case MR_LAYER_RELU:
        return 0;
    }
    return wrong(l, "no such kind of layer", err);
}

int mr_net_spec_shapes(const struct mr_net_spec *spec, struct mr_shape *shapes,
                       struct mr_error *err)
{
    struct mr_shape s = {spec->height, spec->width, spec->channels};
    int after_dense = 0, r;
    if (!s.height || !s.width || !s.channels || s.height > MAX_EXTENT || s.width > MAX_EXTENT ||
        s.channels > MAX_EXTENT)
        return mr_fail(err, -EINVAL, "network %s: images of %u x %u x %u", spec->name, s.height,
                       s.width, s.channels);
    if (!spec->n_layers || spec->layers[spec->n_layers - 1].kind != MR_LAYER_DENSE)
        return mr_fail(err, -EINVAL, "network %s: the last layer is not dense", spec->name);
    for (unsigned i = 0; i < spec->n_layers; i++) {
        r = layer_shape(&spec->layers[i], after_dense, &s, err);
        if (r)
            return r;
        if (mr_shape_size(s) > MAX_VALUES)
            return wrong(&spec->layers[i], "its output is too large", err);
        after_dense |= spec->layers[i].kind == MR_LAYER_DENSE;
        shapes[i] = s;
    }
    return 0;
}

unsigned mr_net_spec_classes(const struct mr_net_spec *spec)
{
    return spec->layers[spec->n_layers - 1].n_out;
}
