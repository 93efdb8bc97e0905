/* params.c - the table of parameters and its four allocations; see params.h.
 *
 * Initial weights are keyed draws, one for two neighbours, turned into a normal distribution by its
 * inverse, so that no value is rejected and drawn again and any thread can make any part. */
#include "params.h"

#include "big_memory.h"
#include "draw.h"
#include "errtext.h"

#include <errno.h>
#include <stdlib.h>

#define ALIGN_VALUES 16 /* 64 bytes */
#define INIT_SD      0.01

/* Where a standard normal distribution is below x with probability p, for p in 0.0227 .. 0.9773:
 * the middle part of P. J. Acklam's rational approximation, off by less than 1e-8 there. */
static double normal_inverse(double p)
{
    double q = p - 0.5, r = q * q;
    double a = ((((-39.69683028665376 * r + 220.9460984245205) * r - 275.9285104469687) * r +
                 138.3577518672690) *
                    r -
                30.66479806614716) *
                   r +
               2.506628277459239;
    double b = ((((-54.47609879822406 * r + 161.5858368580409) * r - 155.6989798598866) * r +
                 66.80131188771972) *
                    r -
                13.28068155288572) *
                   r +
               1;
    return a * q / b;
}

/* A normal value between -2 and 2 from 32 random bits. */
static double truncated_normal(uint32_t bits)
{
    const double below = 0.02275013194817921; /* the share below -2 */
    double u = (bits + 0.5) / 4294967296.0;
    return normal_inverse(below + u * (1 - 2 * below));
}

static void add_tensor(struct mr_params *p, const char *name, unsigned n_dims,
                       const uint64_t dims[4])
{
    struct mr_param *t = &p->tensors[p->n_tensors++];
    *t = (struct mr_param){.name = name, .n_dims = n_dims, .n = 1};
    for (unsigned i = 0; i < n_dims; i++) {
        t->dims[i] = dims[i];
        t->n *= dims[i];
    }
    t->offset = p->bytes / sizeof(float);
    p->n_values += t->n;
    p->bytes += (t->n + ALIGN_VALUES - 1) / ALIGN_VALUES * ALIGN_VALUES * sizeof(float);
}

static void add_layer(struct mr_params *p, const struct mr_layer *l, struct mr_shape in)
{
    if (l->kind == MR_LAYER_CONVOLUTION)
        add_tensor(p, l->weights, 4, (uint64_t[4]){l->kernel, l->kernel, in.channels, l->n_out});
    else
        add_tensor(p, l->weights, 2, (uint64_t[4]){mr_shape_size(in), l->n_out});
    add_tensor(p, l->bias, 1, (uint64_t[4]){l->n_out});
}

static int allocate(struct mr_params *p)
{
    float **const part[] = {&p->weights, &p->gradients, &p->moments1, &p->moments2};
    for (unsigned i = 0; i < 4; i++)
        if (!(*part[i] = mr_big_alloc(p->bytes)))
            return -ENOMEM;
    for (unsigned i = 0; i < p->n_tensors; i++) {
        struct mr_param *t = &p->tensors[i];
        t->weights = p->weights + t->offset;
        t->gradient = p->gradients + t->offset;
        t->moment1 = p->moments1 + t->offset;
        t->moment2 = p->moments2 + t->offset;
    }
    return 0;
}

int mr_params_new(const struct mr_net_spec *spec, struct mr_params **out, struct mr_error *err)
{
    struct mr_params *p = calloc(1, sizeof *p);
    struct mr_shape *shapes = calloc(spec->n_layers, sizeof *shapes);
    struct mr_shape in = {spec->height, spec->width, spec->channels};
    int r = p && shapes ? 0 : mr_fail(err, -ENOMEM, "no memory for the table of parameters");
    if (!r)
        r = mr_net_spec_shapes(spec, shapes, err);
    if (!r && !(p->tensors = calloc(2 * (size_t)spec->n_layers, sizeof *p->tensors)))
        r = mr_fail(err, -ENOMEM, "no memory for the table of parameters");
    for (unsigned i = 0; !r && i < spec->n_layers; in = shapes[i++])
        if (mr_layer_has_weights(&spec->layers[i]))
            add_layer(p, &spec->layers[i], in);
    if (!r && (r = allocate(p)))
        mr_fail(err, r, "no memory: weights, gradients and moments need %lu bytes", 4 * p->bytes);
    free(shapes);
    if (r)
        mr_params_free(p);
    else
        *out = p;
    return r;
}

struct init {
    struct mr_param *tensor;
    unsigned index;
    uint64_t seed;
};

static void draw_part(void *arg, unsigned rank, unsigned n)
{
    const struct init *in = arg;
    float *w = in->tensor->weights;
    uint64_t end = mr_team_share(in->tensor->n, 2, rank + 1, n);
    for (uint64_t i = mr_team_share(in->tensor->n, 2, rank, n); i < end; i += 2) {
        uint64_t bits = mr_draw(in->seed, MR_DRAW_WEIGHT, in->index, i / 2, 0);
        w[i] = (float)(INIT_SD * truncated_normal((uint32_t)bits));
        if (i + 1 < end)
            w[i + 1] = (float)(INIT_SD * truncated_normal((uint32_t)(bits >> 32)));
    }
}

void mr_params_init(struct mr_params *p, const struct mr_net_spec *spec, uint64_t seed,
                    struct mr_team *team)
{
    float *const part[] = {p->weights, p->gradients, p->moments1, p->moments2};
    for (unsigned i = 0; i < 4; i++)
        mr_big_touch(part[i], p->bytes, team);
    struct mr_param *t = p->tensors;
    for (unsigned i = 0; i < spec->n_layers; i++) {
        const struct mr_layer *l = &spec->layers[i];
        if (!mr_layer_has_weights(l))
            continue;
        struct init in = {t, (unsigned)(t - p->tensors), seed};
        mr_team_run(team, draw_part, &in);
        for (uint64_t k = 0; k < t[1].n; k++)
            t[1].weights[k] = l->bias_init;
        t += 2;
    }
    p->beta1_power = 0.9f;
    p->beta2_power = 0.999f;
    p->n_updates = 0;
}

void mr_params_free(struct mr_params *p)
{
    if (!p)
        return;
    mr_big_free(p->weights);
    mr_big_free(p->gradients);
    mr_big_free(p->moments1);
    mr_big_free(p->moments2);
    free(p->tensors);
    free(p);
}
