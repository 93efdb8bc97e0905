/* layers.h - one pair of functions per kind of layer: forward appends what computes the output,
 * backward what turns the gradient of the output into that of the input and of the weights.
 *
 * Shapes in comments are [N, height, width, channels], N = g->batch.  oneDNN names dimensions in
 * the order N, channels, height, width whatever the layout in memory. */
#ifndef MR_LAYERS_H
#define MR_LAYERS_H

#include "graph.h"
#include "net_spec.h"
#include "params.h"

struct layer {
    const struct mr_layer *spec;
    unsigned index;
    struct mr_shape in, out;
    const struct mr_param *weights, *bias; /* convolution, dense */
    int fuse_relu;                         /* a ReLU follows and is computed along */
    int fused;                             /* this is that ReLU */
    int ends_here;                         /* nothing below it learns: no gradient of the input */
    struct tensor *src, *dst, *workspace;
    dnnl_primitive_desc_t forward_pd;
    struct convolution *convolution;
};

/* x: [N, in]; returns [N, out]. */
typedef struct tensor *layer_forward_fn(struct graph *g, struct layer *l, struct tensor *x);
/* dy: [N, out]; returns [N, in]. */
typedef struct tensor *layer_backward_fn(struct graph *g, struct layer *l, struct tensor *dy);

/* The convolution of images takes x = NULL when convolution_takes_images. */
int convolution_takes_images(const struct layer *l);
layer_forward_fn convolution_forward, relu_forward, lrn_forward, pool_forward, dense_forward,
    dropout_forward;
layer_backward_fn convolution_backward, relu_backward, lrn_backward, pool_backward, dense_backward,
    dropout_backward;

/* The images of the batch, [N, height, width, channels], empty ones zero. */
struct tensor *images_forward(struct graph *g, const struct mr_net_spec *spec);
/* logits [N, classes] -> their gradient [N, classes]; loss and hits into g->now. */
struct tensor *softmax_loss(struct graph *g, struct tensor *logits);

/* The description of [N, shape] in a layout. */
dnnl_memory_desc_t image_md(struct graph *g, struct mr_shape shape, dnnl_format_tag_t tag);

#endif
