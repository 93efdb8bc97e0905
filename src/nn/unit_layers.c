/* unit_layers.c - layers that treat each value by itself: ReLU and dropout; and the images.
 *
 * ReLU behind a convolution or a dense layer is computed by that layer.  Its gradient is decided
 * by its output (y > 0), which dropout may have changed in place: what dropout sets to zero has a
 * zero gradient already, and what it keeps keeps its sign. */
#include "layers.h"

#include "draw.h"

#include <string.h>

/* y = max(x, 0), any shape. */
struct tensor *relu_forward(struct graph *g, struct layer *l, struct tensor *x)
{
    dnnl_eltwise_desc_t d;
    graph_check(g,
                dnnl_eltwise_forward_desc_init(&d, dnnl_forward_training,
                                               dnnl_eltwise_relu_use_dst_for_bwd, &x->md, 0, 0),
                l->spec->name);
    l->forward_pd = graph_pd(g, l->spec->name, &d, g->plain, NULL);
    l->dst = l->fused ? x : graph_tensor(g, &x->md, REGION_OWN);
    if (!l->fused)
        graph_primitive(g, OPS_FORWARD, l->spec->name, "forward", l->forward_pd, 0, 2, DNNL_ARG_SRC,
                        x, DNNL_ARG_DST, l->dst);
    return l->dst;
}

/* dx = y > 0 ? dy : 0, in place. */
struct tensor *relu_backward(struct graph *g, struct layer *l, struct tensor *dy)
{
    dnnl_eltwise_desc_t d;
    dy = graph_adapt(g, OPS_BACKWARD, l->spec->name, dy, &l->dst->md, region_across(dy));
    graph_check(g,
                dnnl_eltwise_backward_desc_init(&d, dnnl_eltwise_relu_use_dst_for_bwd, &dy->md,
                                                &l->dst->md, 0, 0),
                l->spec->name);
    graph_primitive(g, OPS_BACKWARD, l->spec->name, "backward",
                    graph_pd(g, l->spec->name, &d, g->plain, l->forward_pd), 0, 3, DNNL_ARG_DST,
                    l->dst, DNNL_ARG_DIFF_DST, dy, DNNL_ARG_DIFF_SRC, dy);
    return dy;
}

/* ---- dropout ---- */

#define PER_DRAW 4 /* values that one draw of 64 bits decides, 16 bits each */

struct dropout {
    struct tensor *values, *mask; /* [N, values]; the mask is 1 byte a value */
    uint64_t n;
    float rate;
    unsigned layer;
};

struct dropout_run {
    const struct dropout *dropout;
    const struct batch_state *now;
    int draw; /* forward: make the mask; backward: use it */
};

static void draw_mask(const struct dropout_run *r, uint8_t *mask, uint64_t at, uint64_t end)
{
    const struct batch_state *now = r->now;
    unsigned limit = (unsigned)(r->dropout->rate * 65536);
    for (uint64_t i = at; i < end; i += PER_DRAW) {
        uint64_t bits =
            mr_draw(now->seed, MR_DRAW_DROPOUT, now->step, r->dropout->layer, i / PER_DRAW);
        for (unsigned k = 0; k < PER_DRAW && i + k < end; k++, bits >>= 16)
            mask[i + k] = (bits & 0xffff) >= limit;
    }
}

static void dropout_part(void *arg, unsigned rank, unsigned n)
{
    const struct dropout_run *r = arg;
    float scale = 1 / (1 - r->dropout->rate), *v = tensor_data(r->dropout->values);
    uint8_t *mask = tensor_data(r->dropout->mask);
    uint64_t at = mr_team_share(r->dropout->n, PER_DRAW, rank, n);
    uint64_t end = mr_team_share(r->dropout->n, PER_DRAW, rank + 1, n);
    if (r->draw)
        draw_mask(r, mask, at, end);
    for (uint64_t i = at; i < end; i++)
        v[i] = mask[i] ? v[i] * scale : 0;
}

static void run_dropout_forward(struct graph *g, void *ctx)
{
    struct dropout_run r = {ctx, &g->now, 1};
    if (g->now.training)
        mr_team_run(g->team, dropout_part, &r);
}

static void run_dropout_backward(struct graph *g, void *ctx)
{
    struct dropout_run r = {ctx, &g->now, 0};
    mr_team_run(g->team, dropout_part, &r);
}

static struct dropout *dropout_of(struct graph *g, const struct layer *l, struct tensor *values,
                                  struct tensor *mask)
{
    struct dropout *d = graph_own(g, sizeof *d);
    if (d)
        *d = (struct dropout){values, mask, g->batch * mr_shape_size(l->out), l->spec->rate,
                              l->index};
    return d;
}

/* Which value is dropped depends on its place in memory, so images are put into NHWC. */
static struct tensor *plain_layout(struct graph *g, const struct layer *l, enum op_list list,
                                   struct tensor *t, enum region region)
{
    if (t->md.ndims != 4)
        return t;
    dnnl_memory_desc_t md = image_md(g, l->out, dnnl_nhwc);
    return graph_adapt(g, list, l->spec->name, t, &md, region);
}

/* x = mask ? x / (1 - rate) : 0, in place; the mask is a function of seed, step, layer, place. */
struct tensor *dropout_forward(struct graph *g, struct layer *l, struct tensor *x)
{
    dnnl_memory_desc_t mask_md = {0};
    dnnl_dims_t dims = {(dnnl_dim_t)(g->batch * mr_shape_size(l->out))};
    graph_check(g, dnnl_memory_desc_init_by_tag(&mask_md, 1, dims, dnnl_u8, dnnl_a), "mask");
    l->dst = plain_layout(g, l, OPS_FORWARD, x, REGION_OWN);
    l->workspace = graph_tensor(g, &mask_md, REGION_OWN);
    graph_run_own(g, OPS_FORWARD, l->spec->name, "forward", run_dropout_forward,
                  dropout_of(g, l, l->dst, l->workspace));
    return l->dst;
}

/* dx = mask ? dy / (1 - rate) : 0, in place. */
struct tensor *dropout_backward(struct graph *g, struct layer *l, struct tensor *dy)
{
    dy = plain_layout(g, l, OPS_BACKWARD, dy, region_across(dy));
    graph_run_own(g, OPS_BACKWARD, l->spec->name, "backward", run_dropout_backward,
                  dropout_of(g, l, dy, l->workspace));
    return dy;
}

/* ---- images ---- */

dnnl_memory_desc_t image_md(struct graph *g, struct mr_shape s, dnnl_format_tag_t tag)
{
    return graph_md(g, 4, (dnnl_dim_t[]){g->batch, s.channels, s.height, s.width}, tag);
}

struct images {
    struct tensor *dst;
    uint64_t size; /* values of one */
};

static void run_images(struct graph *g, void *ctx)
{
    const struct images *i = ctx;
    float *dst = tensor_data(i->dst);
    uint64_t n = g->now.n * i->size, all = g->batch * i->size;
    memcpy(dst, g->now.images, n * sizeof *dst);
    memset(dst + n, 0, (all - n) * sizeof *dst);
}

struct tensor *images_forward(struct graph *g, const struct mr_net_spec *spec)
{
    struct mr_shape shape = {spec->height, spec->width, spec->channels};
    dnnl_memory_desc_t md = image_md(g, shape, dnnl_nhwc);
    struct images *i = graph_own(g, sizeof *i);
    if (!i)
        return &g->none;
    *i = (struct images){graph_tensor(g, &md, REGION_OWN), mr_shape_size(shape)};
    graph_run_own(g, OPS_FORWARD, "images", "copy", run_images, i);
    return i->dst;
}
