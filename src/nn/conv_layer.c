/* conv_layer.c - convolution: y = x * w + b, forward, gradient of the data, gradient of the
 * weights.
 *
 *     x [N, in.height, in.width, in.channels]     y [N, out.height, out.width, out.channels]
 *     w [kernel, kernel, in.channels, out.channels]               b [out.channels]
 *
 * A plan fixes algorithm and layouts of all three; the first plan is taken for which oneDNN has
 * real code for all three.  The order comes from measurements (docs/nn.md): Winograd for 3x3; NHWC
 * for others, where oneDNN uses its fastest direct code (brgconv), but only when NHWC is asked for
 * on both sides, and only forward: the gradient of the data is therefore computed as a forward
 * convolution of dy with the weights turned by 180 degrees and in and out exchanged.
 *
 * The master weights are TensorFlow's.  What oneDNN wants is reordered from them before each
 * forward, so that a change of the master needs nothing else. */
#include "conv_stem.h"
#include "layers.h"

#include "errtext.h"

#include <errno.h>

struct geometry { /* in oneDNN's order */
    dnnl_dim_t src[4], weights[4], dst[4], bias[1];
    dnnl_dims_t stride, pad_before, pad_after; /* rows, columns */
};

struct convolution {
    struct geometry geo;
    int has_stem;
    struct stem stem;
    int turned; /* `data_pd` is a forward convolution with turned weights */
    dnnl_primitive_desc_t forward_pd, data_pd, weights_pd;
    struct tensor *weights; /* HWIO: the master, or its folded form */
    struct tensor *forward_weights;
    double flop;
};

static struct geometry geometry_of(const struct graph *g, const struct layer *l,
                                   const struct convolution *c)
{
    struct mr_shape in = c->has_stem ? c->stem.in : l->in;
    dnnl_dim_t k = c->has_stem ? c->stem.folded_kernel : l->spec->kernel;
    dnnl_dim_t s = c->has_stem || !l->spec->stride ? 1 : l->spec->stride;
    dnnl_dim_t top = c->has_stem ? c->stem.pad_top
                                 : mr_same_pad_before(l->in.height, l->spec->kernel, (unsigned)s);
    dnnl_dim_t left = c->has_stem ? c->stem.pad_left
                                  : mr_same_pad_before(l->in.width, l->spec->kernel, (unsigned)s);
    dnnl_dim_t height = l->out.height, width = l->out.width;
    return (struct geometry){
        .src = {g->batch, in.channels, in.height, in.width},
        .weights = {l->out.channels, in.channels, k, k},
        .dst = {g->batch, l->out.channels, height, width},
        .bias = {l->out.channels},
        .stride = {s, s},
        .pad_before = {top, left},
        .pad_after = {(height - 1) * s + k - in.height - top,
                      (width - 1) * s + k - in.width - left},
    };
}

/* ---- plans ---- */

struct wanted { /* layouts that a plan asks for */
    dnnl_memory_desc_t src, weights, dst, bias;
};

/* The gradient of the data as a forward convolution: dy is its source, dx its destination. */
static dnnl_primitive_desc_t turned_pd(struct graph *g, const struct geometry *geo,
                                       const struct wanted *w)
{
    dnnl_dim_t k = geo->weights[2];
    dnnl_dim_t dims[] = {geo->weights[1], geo->weights[0], k, k};
    dnnl_dims_t before = {k - 1 - geo->pad_before[0], k - 1 - geo->pad_before[1]};
    dnnl_dims_t after = {k - 1 - geo->pad_after[0], k - 1 - geo->pad_after[1]};
    dnnl_memory_desc_t weights = graph_md(g, 4, dims, dnnl_format_tag_any);
    dnnl_convolution_desc_t d;
    if (dnnl_convolution_forward_desc_init(&d, dnnl_forward_training, dnnl_convolution_direct,
                                           &w->dst, &weights, NULL, &w->src, geo->stride, before,
                                           after) != dnnl_success)
        return NULL;
    return graph_try_pd(g, &d, g->plain, NULL);
}

static dnnl_primitive_desc_t data_pd(struct graph *g, struct convolution *c, dnnl_alg_kind_t alg,
                                     const struct wanted *w)
{
    const struct geometry *geo = &c->geo;
    dnnl_convolution_desc_t d;
    if (c->turned)
        return turned_pd(g, geo, w);
    if (dnnl_convolution_backward_data_desc_init(&d, alg, &w->src, &w->weights, &w->dst,
                                                 geo->stride, geo->pad_before,
                                                 geo->pad_after) != dnnl_success)
        return NULL;
    return graph_try_pd(g, &d, g->plain, c->forward_pd);
}

/* 1 when all primitives exist and none is the reference. */
static int try_plan(struct graph *g, const struct layer *l, struct convolution *c,
                    enum mr_conv_plan plan)
{
    const struct geometry *geo = &c->geo;
    dnnl_alg_kind_t alg =
        plan == MR_PLAN_WINOGRAD ? dnnl_convolution_winograd : dnnl_convolution_direct;
    dnnl_format_tag_t tag = plan == MR_PLAN_CHANNELS_LAST ? dnnl_nhwc : dnnl_format_tag_any;
    struct wanted w = {graph_md(g, 4, geo->src, tag),
                       graph_md(g, 4, geo->weights, dnnl_format_tag_any),
                       graph_md(g, 4, geo->dst, tag), graph_md(g, 1, geo->bias, dnnl_a)};
    dnnl_convolution_desc_t d;
    if (dnnl_convolution_forward_desc_init(&d, dnnl_forward_training, alg, &w.src, &w.weights,
                                           &w.bias, &w.dst, geo->stride, geo->pad_before,
                                           geo->pad_after) != dnnl_success)
        return 0;
    c->forward_pd = graph_try_pd(g, &d, l->fuse_relu ? g->with_relu : g->plain, NULL);
    if (!c->forward_pd)
        return 0;
    if (dnnl_convolution_backward_weights_desc_init(&d, alg, &w.src, &w.weights, &w.bias, &w.dst,
                                                    geo->stride, geo->pad_before,
                                                    geo->pad_after) != dnnl_success)
        return 0;
    c->weights_pd = graph_try_pd(g, &d, g->plain, c->forward_pd);
    c->turned = plan == MR_PLAN_CHANNELS_LAST && geo->stride[0] == 1;
    c->data_pd = l->ends_here ? NULL : data_pd(g, c, alg, &w);
    return c->weights_pd && (l->ends_here || c->data_pd);
}

static int choose_plan(struct graph *g, const struct layer *l, struct convolution *c)
{
    static const enum mr_conv_plan order[] = {MR_PLAN_WINOGRAD, MR_PLAN_CHANNELS_LAST,
                                              MR_PLAN_LIBRARY};
    int small = c->geo.weights[2] == 3 && c->geo.stride[0] == 1;
    for (unsigned i = 0; i < 3; i++) {
        int asked = l->spec->plan ? l->spec->plan == order[i] : small || i > 0;
        if (asked && try_plan(g, l, c, order[i]))
            return 0;
    }
    return mr_fail(&g->error, -ENOTSUP,
                   "layer %s: oneDNN has no code but the slow reference for this convolution on "
                   "this processor",
                   l->spec->name);
}

/* ---- forward ---- */

int convolution_takes_images(const struct layer *l)
{
    struct stem s;
    return stem_fits(l, &s);
}

static struct tensor *master_weights(struct graph *g, const struct layer *l,
                                     const struct convolution *c)
{
    if (c->has_stem)
        return stem_weights(g, &c->stem, l->weights->weights);
    dnnl_memory_desc_t md = graph_md(g, 4, c->geo.weights, dnnl_hwio);
    return graph_fixed(g, &md, l->weights->weights);
}

struct tensor *convolution_forward(struct graph *g, struct layer *l, struct tensor *x)
{
    struct convolution *c = graph_own(g, sizeof *c);
    const char *name = l->spec->name;
    if (!c)
        return &g->none;
    l->convolution = c;
    c->has_stem = stem_fits(l, &c->stem);
    c->geo = geometry_of(g, l, c);
    c->flop = 2.0 * (double)mr_shape_size(l->out) * g->batch *
              (double)(c->geo.weights[1] * c->geo.weights[2] * c->geo.weights[3]);
    if (choose_plan(g, l, c))
        return &g->none;

    dnnl_memory_desc_t src_md = graph_query(c->forward_pd, dnnl_query_src_md);
    dnnl_memory_desc_t weights_md = graph_query(c->forward_pd, dnnl_query_weights_md);
    dnnl_memory_desc_t dst_md = graph_query(c->forward_pd, dnnl_query_dst_md);
    dnnl_memory_desc_t bias_md = graph_md(g, 1, c->geo.bias, dnnl_a);
    if (c->has_stem)
        x = stem_images(g, &c->stem, &src_md);
    l->src = graph_adapt(g, OPS_FORWARD, name, x, &src_md, REGION_OWN);
    c->weights = master_weights(g, l, c);
    c->forward_weights = graph_adapt(g, OPS_PREPARE, name, c->weights, &weights_md, REGION_OWN);
    l->dst = graph_tensor(g, &dst_md, REGION_OWN);
    graph_primitive(g, OPS_FORWARD, name, "forward", c->forward_pd, c->flop, 4, DNNL_ARG_SRC,
                    l->src, DNNL_ARG_WEIGHTS, c->forward_weights, DNNL_ARG_BIAS,
                    graph_fixed(g, &bias_md, l->bias->weights), DNNL_ARG_DST, l->dst);
    return l->dst;
}

/* ---- backward ---- */

/* dw [kernel, kernel, in, out] = sum over N and pixels of x * dy;  db [out] = sum of dy.
 * Returns dy in the layout that was needed. */
static struct tensor *gradient_of_weights(struct graph *g, struct layer *l, struct tensor *dy)
{
    struct convolution *c = l->convolution;
    const char *name = l->spec->name;
    dnnl_memory_desc_t src_md = graph_query(c->weights_pd, dnnl_query_src_md);
    dnnl_memory_desc_t dw_md = graph_query(c->weights_pd, dnnl_query_diff_weights_md);
    dnnl_memory_desc_t dy_md = graph_query(c->weights_pd, dnnl_query_diff_dst_md);
    dnnl_memory_desc_t bias_md = graph_md(g, 1, c->geo.bias, dnnl_a);
    struct tensor *x = graph_adapt(g, OPS_BACKWARD, name, l->src, &src_md, REGION_OWN);
    struct tensor *master = c->has_stem ? stem_gradient(g, &c->stem)
                                        : graph_fixed(g, &c->weights->md, l->weights->gradient);
    struct tensor *dw =
        dnnl_memory_desc_equal(&dw_md, &master->md) ? master : graph_tensor(g, &dw_md, REGION_OWN);
    dy = graph_adapt(g, OPS_BACKWARD, name, dy, &dy_md, region_across(dy));
    graph_primitive(g, OPS_BACKWARD, name, "backward weights", c->weights_pd, c->flop, 4,
                    DNNL_ARG_SRC, x, DNNL_ARG_DIFF_DST, dy, DNNL_ARG_DIFF_WEIGHTS, dw,
                    DNNL_ARG_DIFF_BIAS, graph_fixed(g, &bias_md, l->bias->gradient));
    if (dw != master)
        graph_reorder(g, OPS_BACKWARD, name, dw, master);
    if (c->has_stem)
        stem_collapse(g, &c->stem, master, l->weights->gradient);
    return dy;
}

struct turn {
    const float *weights;  /* [k, k, in, out] */
    struct tensor *turned; /* [k, k, out, in], taps in reverse order */
    unsigned n_taps, n_in, n_out;
};

/* out[j][i] = in[i][j], in tiles that stay in the cache. */
static void transpose(const float *in, float *out, unsigned rows, unsigned columns)
{
    const unsigned tile = 16;
    for (unsigned r = 0; r < rows; r += tile)
        for (unsigned c = 0; c < columns; c += tile)
            for (unsigned i = r; i < rows && i < r + tile; i++)
                for (unsigned j = c; j < columns && j < c + tile; j++)
                    out[(size_t)j * rows + i] = in[(size_t)i * columns + j];
}

static void turn_part(void *arg, unsigned rank, unsigned n)
{
    const struct turn *t = arg;
    size_t size = (size_t)t->n_in * t->n_out;
    float *out = tensor_data(t->turned);
    unsigned end = (unsigned)mr_team_share(t->n_taps, 1, rank + 1, n);
    for (unsigned i = (unsigned)mr_team_share(t->n_taps, 1, rank, n); i < end; i++)
        transpose(t->weights + (t->n_taps - 1 - i) * size, out + i * size, t->n_in, t->n_out);
}

static void run_turn(struct graph *g, void *ctx)
{
    mr_team_run(g->team, turn_part, ctx);
}

static struct tensor *turned_weights(struct graph *g, const struct layer *l,
                                     const struct convolution *c)
{
    const dnnl_dim_t *w = c->geo.weights;
    struct turn *t = graph_own(g, sizeof *t);
    if (!t)
        return &g->none;
    dnnl_dim_t dims[] = {w[1], w[0], w[2], w[3]};
    dnnl_memory_desc_t md = graph_md(g, 4, dims, dnnl_hwio);
    *t = (struct turn){l->weights->weights, graph_tensor(g, &md, REGION_OWN),
                       (unsigned)(w[2] * w[3]), (unsigned)w[1], (unsigned)w[0]};
    graph_run_own(g, OPS_PREPARE, l->spec->name, "turn weights", run_turn, t);
    return t->turned;
}

/* dx [N, in] = dy convolved with the turned weights.  `dy` and `also_dy` are the same gradient,
 * in the two regions or the same tensor. */
static struct tensor *gradient_of_data(struct graph *g, struct layer *l, struct tensor *dy,
                                       struct tensor *also_dy)
{
    struct convolution *c = l->convolution;
    const char *name = l->spec->name;
    dnnl_query_t src = c->turned ? dnnl_query_src_md : dnnl_query_diff_dst_md;
    dnnl_query_t dst = c->turned ? dnnl_query_dst_md : dnnl_query_diff_src_md;
    dnnl_memory_desc_t dy_md = graph_query(c->data_pd, src);
    dnnl_memory_desc_t dx_md = graph_query(c->data_pd, dst);
    dnnl_memory_desc_t w_md = graph_query(c->data_pd, dnnl_query_weights_md);
    struct tensor *w = c->turned ? turned_weights(g, l, c) : c->weights;
    if (!c->turned && dnnl_memory_desc_equal(&c->forward_weights->md, &w_md))
        w = c->forward_weights;
    w = graph_adapt(g, OPS_PREPARE, name, w, &w_md, REGION_OWN);
    if (dnnl_memory_desc_equal(&also_dy->md, &dy_md))
        dy = also_dy;
    dy = graph_adapt(g, OPS_BACKWARD, name, dy, &dy_md, region_across(dy));
    struct tensor *dx = graph_tensor(g, &dx_md, region_across(dy));
    graph_primitive(g, OPS_BACKWARD, name, "backward data", c->data_pd, c->flop, 3,
                    c->turned ? DNNL_ARG_SRC : DNNL_ARG_DIFF_DST, dy, DNNL_ARG_WEIGHTS, w,
                    c->turned ? DNNL_ARG_DST : DNNL_ARG_DIFF_SRC, dx);
    return dx;
}

struct tensor *convolution_backward(struct graph *g, struct layer *l, struct tensor *dy)
{
    struct tensor *also_dy = gradient_of_weights(g, l, dy);
    return l->ends_here ? NULL : gradient_of_data(g, l, dy, also_dy);
}
