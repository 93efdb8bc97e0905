/* dense_layer.c - y [N, out] = x [N, in] w [in, out] + b [out], straight on the master weights.
 *
 * matmul takes TensorFlow's [in, out] as it is, in all three directions, so that the layers with
 * most of the parameters are never reordered. */
#include "layers.h"

#include <string.h>

static dnnl_memory_desc_t matrix(struct graph *g, uint64_t rows, uint64_t columns,
                                 dnnl_format_tag_t tag)
{
    return graph_md(g, 2, (dnnl_dim_t[]){(dnnl_dim_t)rows, (dnnl_dim_t)columns}, tag);
}

static double flop(const struct graph *g, const struct layer *l)
{
    return 2.0 * g->batch * (double)l->weights->n;
}

struct tensor *dense_forward(struct graph *g, struct layer *l, struct tensor *x)
{
    const char *name = l->spec->name;
    uint64_t n_in = mr_shape_size(l->in), n_out = l->out.channels;
    dnnl_memory_desc_t x_md = matrix(g, g->batch, n_in, dnnl_ab);
    dnnl_memory_desc_t w_md = matrix(g, n_in, n_out, dnnl_ab);
    dnnl_memory_desc_t b_md = matrix(g, 1, n_out, dnnl_ab);
    dnnl_memory_desc_t y_md = matrix(g, g->batch, n_out, dnnl_ab);
    if (x->md.ndims == 4) { /* an image, flattened: channels last */
        dnnl_memory_desc_t flat = image_md(g, l->in, dnnl_nhwc);
        x = graph_adapt(g, OPS_FORWARD, name, x, &flat, REGION_OWN);
        x = graph_view(g, &x_md, x);
    }
    l->src = x;
    l->dst = graph_tensor(g, &y_md, REGION_OWN);
    dnnl_matmul_desc_t d;
    graph_check(g, dnnl_matmul_desc_init(&d, &x_md, &w_md, &b_md, &y_md), name);
    l->forward_pd = graph_pd(g, name, &d, l->fuse_relu ? g->with_relu : g->plain, NULL);
    graph_primitive(g, OPS_FORWARD, name, "forward", l->forward_pd, flop(g, l), 4, DNNL_ARG_SRC, x,
                    DNNL_ARG_WEIGHTS, graph_fixed(g, &w_md, l->weights->weights), DNNL_ARG_BIAS,
                    graph_fixed(g, &b_md, l->bias->weights), DNNL_ARG_DST, l->dst);
    return l->dst;
}

struct bias_sum {
    struct tensor *dy; /* [N, out] */
    float *db;         /* [out] */
    uint64_t n_out;
};

static void run_bias_sum(struct graph *g, void *ctx)
{
    const struct bias_sum *b = ctx;
    const float *dy = tensor_data(b->dy);
    memset(b->db, 0, b->n_out * sizeof *b->db);
    for (unsigned i = 0; i < g->batch; i++)
        for (uint64_t j = 0; j < b->n_out; j++)
            b->db[j] += dy[i * b->n_out + j];
}

/* db [out] = sum of dy over N. */
static void gradient_of_bias(struct graph *g, struct layer *l, struct tensor *dy)
{
    struct bias_sum *b = graph_own(g, sizeof *b);
    if (!b)
        return;
    *b = (struct bias_sum){dy, l->bias->gradient, l->out.channels};
    graph_run_own(g, OPS_BACKWARD, l->spec->name, "backward bias", run_bias_sum, b);
}

/* dw [in, out] = x' [in, N] dy [N, out]. */
static void gradient_of_weights(struct graph *g, struct layer *l, struct tensor *dy)
{
    uint64_t n_in = mr_shape_size(l->in);
    dnnl_memory_desc_t xt_md = matrix(g, n_in, g->batch, dnnl_ba);
    dnnl_memory_desc_t w_md = matrix(g, n_in, l->out.channels, dnnl_ab);
    dnnl_matmul_desc_t d;
    graph_check(g, dnnl_matmul_desc_init(&d, &xt_md, &dy->md, NULL, &w_md), l->spec->name);
    graph_primitive(g, OPS_BACKWARD, l->spec->name, "backward weights",
                    graph_pd(g, l->spec->name, &d, g->plain, NULL), flop(g, l), 3, DNNL_ARG_SRC,
                    graph_view(g, &xt_md, l->src), DNNL_ARG_WEIGHTS, dy, DNNL_ARG_DST,
                    graph_fixed(g, &w_md, l->weights->gradient));
}

/* dx [N, in] = dy [N, out] w' [out, in]. */
static struct tensor *gradient_of_data(struct graph *g, struct layer *l, struct tensor *dy)
{
    uint64_t n_in = mr_shape_size(l->in);
    dnnl_memory_desc_t wt_md = matrix(g, l->out.channels, n_in, dnnl_ba);
    dnnl_memory_desc_t dx_md = matrix(g, g->batch, n_in, dnnl_ab);
    dnnl_memory_desc_t image = image_md(g, l->in, dnnl_nhwc);
    struct tensor *dx = graph_tensor(g, &dx_md, region_across(dy));
    dnnl_matmul_desc_t d;
    graph_check(g, dnnl_matmul_desc_init(&d, &dy->md, &wt_md, NULL, &dx_md), l->spec->name);
    graph_primitive(g, OPS_BACKWARD, l->spec->name, "backward data",
                    graph_pd(g, l->spec->name, &d, g->plain, NULL), flop(g, l), 3, DNNL_ARG_SRC, dy,
                    DNNL_ARG_WEIGHTS, graph_fixed(g, &wt_md, l->weights->weights), DNNL_ARG_DST,
                    dx);
    /* What stands below may have an image; a dense layer's own output is a matrix. */
    return l->in.height * l->in.width > 1 ? graph_view(g, &image, dx) : dx;
}

struct tensor *dense_backward(struct graph *g, struct layer *l, struct tensor *dy)
{
    gradient_of_bias(g, l, dy);
    gradient_of_weights(g, l, dy);
    return l->ends_here ? NULL : gradient_of_data(g, l, dy);
}
