/* window_layers.c - layers without weights that look at a neighbourhood: local response
 * normalization and max-pooling.
 *
 * Both keep the layout of what they get, and a workspace from forward to backward: LRN its scales,
 * twice the data; the pool which of its pixels was the largest.  But in some layouts oneDNN has
 * only reference code for LRN's gradient, which graph_pd refuses: in NCHW, and without AVX-512 in
 * NHWC.  LRN then works on blocks of channels. */
#include "layers.h"

#include "errtext.h"

#include <errno.h>

/* oneDNN divides alpha by the number of channels in the window, TensorFlow does not. */
static dnnl_dim_t lrn_window(const struct layer *l)
{
    return 2 * (dnnl_dim_t)l->spec->radius + 1;
}

static float lrn_alpha(const struct layer *l)
{
    return l->spec->alpha * (float)lrn_window(l);
}

static int add_workspace(struct graph *g, struct layer *l)
{
    dnnl_memory_desc_t md = graph_query(l->forward_pd, dnnl_query_workspace_md);
    if (!dnnl_memory_desc_get_size(&md))
        return 0;
    l->workspace = graph_tensor(g, &md, REGION_OWN);
    return 1;
}

static dnnl_primitive_desc_t lrn_backward_pd(struct graph *g, const struct layer *l,
                                             const dnnl_memory_desc_t *md,
                                             dnnl_primitive_desc_t forward)
{
    const struct mr_layer *s = l->spec;
    dnnl_lrn_desc_t d;
    if (!forward || dnnl_lrn_backward_desc_init(&d, dnnl_lrn_across_channels, md, md, lrn_window(l),
                                                lrn_alpha(l), s->beta, s->lrn_bias) != dnnl_success)
        return NULL;
    return graph_try_pd(g, &d, g->plain, forward);
}

static dnnl_primitive_desc_t lrn_forward_pd(struct graph *g, const struct layer *l,
                                            const dnnl_memory_desc_t *md)
{
    const struct mr_layer *s = l->spec;
    dnnl_lrn_desc_t d;
    if (dnnl_lrn_forward_desc_init(&d, dnnl_forward_training, dnnl_lrn_across_channels, md,
                                   lrn_window(l), lrn_alpha(l), s->beta,
                                   s->lrn_bias) != dnnl_success)
        return NULL;
    return graph_try_pd(g, &d, g->plain, NULL);
}

/* The layout to work in: x's, or else blocks of 16 or 8 channels, whichever has code both ways. */
static dnnl_memory_desc_t lrn_layout(struct graph *g, struct layer *l, const struct tensor *x)
{
    dnnl_memory_desc_t layout[] = {x->md, image_md(g, l->out, dnnl_nChw16c),
                                   image_md(g, l->out, dnnl_nChw8c)};
    for (unsigned i = 0; i < sizeof layout / sizeof *layout; i++) {
        l->forward_pd = lrn_forward_pd(g, l, &layout[i]);
        if (lrn_backward_pd(g, l, &layout[i], l->forward_pd))
            return layout[i];
    }
    mr_fail(&g->error, -ENOTSUP,
            "layer %s: oneDNN has only its slow reference code for this normalization on this "
            "processor",
            l->spec->name);
    return x->md;
}

/* y [N, h, w, c] = x / (bias + alpha * sum of x^2 over channels c - radius .. c + radius)^beta */
struct tensor *lrn_forward(struct graph *g, struct layer *l, struct tensor *x)
{
    dnnl_memory_desc_t md = lrn_layout(g, l, x);
    x = graph_adapt(g, OPS_FORWARD, l->spec->name, x, &md, REGION_OWN);
    l->src = x;
    l->dst = graph_tensor(g, &md, REGION_OWN);
    int kept = add_workspace(g, l);
    graph_primitive(g, OPS_FORWARD, l->spec->name, "forward", l->forward_pd, 0, kept ? 3 : 2,
                    DNNL_ARG_SRC, x, DNNL_ARG_DST, l->dst, DNNL_ARG_WORKSPACE, l->workspace);
    return l->dst;
}

/* dx [N, h, w, c] from x, dy and the scales. */
struct tensor *lrn_backward(struct graph *g, struct layer *l, struct tensor *dy)
{
    const dnnl_memory_desc_t *md = &l->src->md;
    dy = graph_adapt(g, OPS_BACKWARD, l->spec->name, dy, md, region_across(dy));
    struct tensor *dx = graph_tensor(g, md, region_across(dy));
    graph_primitive(g, OPS_BACKWARD, l->spec->name, "backward",
                    lrn_backward_pd(g, l, md, l->forward_pd), 0, l->workspace ? 4 : 3, DNNL_ARG_SRC,
                    l->src, DNNL_ARG_DIFF_DST, dy, DNNL_ARG_DIFF_SRC, dx, DNNL_ARG_WORKSPACE,
                    l->workspace);
    return dx;
}

struct window {
    dnnl_dims_t kernel, stride, padding;
};

static struct window pool_window(const struct layer *l)
{
    dnnl_dim_t k = l->spec->kernel, s = l->spec->stride ? l->spec->stride : 1;
    return (struct window){{k, k}, {s, s}, {0, 0}};
}

/* y [N, out.h, out.w, c] = max of x [N, in.h, in.w, c] over kernel x kernel pixels; a last row or
 * column that no whole window reaches is left out. */
struct tensor *pool_forward(struct graph *g, struct layer *l, struct tensor *x)
{
    struct window w = pool_window(l);
    dnnl_memory_desc_t dst_md = image_md(g, l->out, dnnl_format_tag_any);
    dnnl_pooling_desc_t d;
    graph_check(g,
                dnnl_pooling_forward_desc_init(&d, dnnl_forward_training, dnnl_pooling_max, &x->md,
                                               &dst_md, w.stride, w.kernel, w.padding, w.padding),
                l->spec->name);
    l->forward_pd = graph_pd(g, l->spec->name, &d, g->plain, NULL);
    dst_md = graph_query(l->forward_pd, dnnl_query_dst_md);
    l->src = x;
    l->dst = graph_tensor(g, &dst_md, REGION_OWN);
    int kept = add_workspace(g, l);
    graph_primitive(g, OPS_FORWARD, l->spec->name, "forward", l->forward_pd, 0, kept ? 3 : 2,
                    DNNL_ARG_SRC, x, DNNL_ARG_DST, l->dst, DNNL_ARG_WORKSPACE, l->workspace);
    return l->dst;
}

/* dx [N, in.h, in.w, c]: each dy goes to the pixel that was the largest. */
struct tensor *pool_backward(struct graph *g, struct layer *l, struct tensor *dy)
{
    struct window w = pool_window(l);
    dnnl_pooling_desc_t d;
    dy = graph_adapt(g, OPS_BACKWARD, l->spec->name, dy, &l->dst->md, region_across(dy));
    graph_check(g,
                dnnl_pooling_backward_desc_init(&d, dnnl_pooling_max, &l->src->md, &dy->md,
                                                w.stride, w.kernel, w.padding, w.padding),
                l->spec->name);
    struct tensor *dx = graph_tensor(g, &l->src->md, region_across(dy));
    graph_primitive(g, OPS_BACKWARD, l->spec->name, "backward",
                    graph_pd(g, l->spec->name, &d, g->plain, l->forward_pd), 0, 3,
                    DNNL_ARG_DIFF_DST, dy, DNNL_ARG_WORKSPACE, l->workspace, DNNL_ARG_DIFF_SRC, dx);
    return dx;
}
