/* conv_stem.c - space to depth for images, weights and gradients; see conv_stem.h. */
#include "conv_stem.h"

#include <string.h>

#define MAX_FOLDED 256 /* channels of a folded image */

int stem_fits(const struct layer *l, struct stem *out)
{
    unsigned s = l->spec->stride, k = l->spec->kernel;
    if (l->index || s < 2 || l->in.height % s || l->in.width % s)
        return 0;
    unsigned channels = s * s * l->in.channels;
    unsigned top = mr_same_pad_before(l->in.height, k, s);
    unsigned left = mr_same_pad_before(l->in.width, k, s);
    /* Blocks of 16 channels, and one kernel size for both directions. */
    if (channels % 16 || channels > MAX_FOLDED || top % s != left % s)
        return 0;
    unsigned lead = (s - top % s) % s;
    *out = (struct stem){.stride = s,
                         .kernel = k,
                         .channels = l->in.channels,
                         .lead_rows = lead,
                         .lead_columns = lead,
                         .in = {l->in.height / s, l->in.width / s, channels},
                         .folded_kernel = (k + lead + s - 1) / s,
                         .pad_top = (top + lead) / s,
                         .pad_left = (left + lead) / s,
                         .n_out = l->spec->n_out};
    return 1;
}

/* ---- images ---- */

struct fold_images {
    struct stem stem;
    struct tensor *dst;
    unsigned block; /* channels that lie together: [N, channels / block, H/s, W/s, block] */
};

/* Row `y` of the folded image `i`. */
static void fold_row(const struct fold_images *f, const float *images, unsigned i, unsigned y,
                     float *dst)
{
    const struct stem *s = &f->stem;
    unsigned piece = s->stride * s->channels, row = s->in.width * piece;
    const float *top = images + ((uint64_t)i * s->in.height + y) * s->stride * row;
    uint64_t plane = (uint64_t)s->in.height * s->in.width * f->block;
    float *out = dst + (uint64_t)i * mr_shape_size(s->in) + (uint64_t)y * s->in.width * f->block;
    float pixel[MAX_FOLDED];
    for (unsigned x = 0; x < s->in.width; x++) {
        for (unsigned dy = 0; dy < s->stride; dy++)
            memcpy(pixel + dy * piece, top + (uint64_t)dy * row + (uint64_t)x * piece,
                   piece * sizeof *pixel);
        for (unsigned c = 0; c < s->in.channels; c += f->block)
            memcpy(out + c / f->block * plane + (uint64_t)x * f->block, pixel + c,
                   f->block * sizeof *pixel);
    }
}

struct fold_run {
    const struct fold_images *fold;
    const struct batch_state *now;
    unsigned batch;
};

static void fold_part(void *arg, unsigned rank, unsigned n)
{
    const struct fold_run *r = arg;
    const struct fold_images *f = r->fold;
    uint64_t rows = (uint64_t)r->batch * f->stem.in.height;
    uint64_t end = mr_team_share(rows, f->stem.in.height, rank + 1, n);
    float *dst = tensor_data(f->dst);
    for (uint64_t at = mr_team_share(rows, f->stem.in.height, rank, n); at < end; at++) {
        unsigned i = (unsigned)(at / f->stem.in.height), y = (unsigned)(at % f->stem.in.height);
        if (i < r->now->n)
            fold_row(f, r->now->images, i, y, dst);
        else if (y == 0)
            memset(dst + i * mr_shape_size(f->stem.in), 0, mr_shape_size(f->stem.in) * sizeof *dst);
    }
}

static void run_fold_images(struct graph *g, void *ctx)
{
    struct fold_run r = {ctx, &g->now, g->batch};
    mr_team_run(g->team, fold_part, &r);
}

struct tensor *stem_images(struct graph *g, const struct stem *s, const dnnl_memory_desc_t *md)
{
    static const struct {
        dnnl_format_tag_t tag;
        unsigned block;
    } layouts[] = {{dnnl_nChw16c, 16}, {dnnl_nChw8c, 8}};
    struct fold_images *f = graph_own(g, sizeof *f);
    if (!f)
        return &g->none;
    dnnl_memory_desc_t mine = image_md(g, s->in, dnnl_nhwc);
    f->stem = *s;
    f->block = s->in.channels;
    for (unsigned i = 0; i < 2; i++) {
        dnnl_memory_desc_t blocked = image_md(g, s->in, layouts[i].tag);
        if (dnnl_memory_desc_equal(&blocked, md)) {
            mine = blocked;
            f->block = layouts[i].block;
        }
    }
    f->dst = graph_tensor(g, &mine, REGION_OWN);
    graph_run_own(g, OPS_FORWARD, "images", "fold", run_fold_images, f);
    return f->dst;
}

/* ---- weights ---- */

struct fold_weights {
    struct stem stem;
    struct tensor *folded;
    float *master;
};

/* The `channels * n_out` values of one tap lie together in both. */
static float *folded_tap(const struct fold_weights *f, unsigned y, unsigned x)
{
    const struct stem *s = &f->stem;
    unsigned fy = y + s->lead_rows, fx = x + s->lead_columns;
    uint64_t block = fy / s->stride * s->folded_kernel + fx / s->stride;
    uint64_t within = fy % s->stride * s->stride + fx % s->stride;
    float *data = tensor_data(f->folded);
    return data + (block * s->in.channels + within * s->channels) * s->n_out;
}

static void copy_taps(const struct fold_weights *f, int to_master)
{
    const struct stem *s = &f->stem;
    size_t n = (size_t)s->channels * s->n_out;
    for (unsigned y = 0; y < s->kernel; y++)
        for (unsigned x = 0; x < s->kernel; x++) {
            float *master = f->master + ((size_t)y * s->kernel + x) * n;
            float *folded = folded_tap(f, y, x);
            memcpy(to_master ? master : folded, to_master ? folded : master, n * sizeof *master);
        }
}

static void run_fold_weights(struct graph *g, void *ctx)
{
    (void)g;
    copy_taps(ctx, 0);
}

static void run_collapse(struct graph *g, void *ctx)
{
    (void)g;
    copy_taps(ctx, 1);
}

static struct fold_weights *fold_of(struct graph *g, const struct stem *s, struct tensor *folded,
                                    const float *master)
{
    struct fold_weights *f = graph_own(g, sizeof *f);
    if (f)
        *f = (struct fold_weights){*s, folded, (float *)master};
    return f;
}

/* [K, K, s*s*C, out], as TensorFlow would lay it out.  Taps that no weight has begin as zeros and
 * nobody writes them. */
struct tensor *stem_gradient(struct graph *g, const struct stem *s)
{
    dnnl_dim_t dims[] = {s->n_out, s->in.channels, s->folded_kernel, s->folded_kernel};
    dnnl_memory_desc_t md = graph_md(g, 4, dims, dnnl_hwio);
    return graph_tensor(g, &md, REGION_OWN);
}

struct tensor *stem_weights(struct graph *g, const struct stem *s, const float *master)
{
    struct tensor *folded = stem_gradient(g, s);
    graph_run_own(g, OPS_PREPARE, "images", "fold weights", run_fold_weights,
                  fold_of(g, s, folded, master));
    return folded;
}

void stem_collapse(struct graph *g, const struct stem *s, struct tensor *folded, float *master)
{
    graph_run_own(g, OPS_BACKWARD, "images", "unfold gradient", run_collapse,
                  fold_of(g, s, folded, master));
}
