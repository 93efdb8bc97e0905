/* nn_reference.c - see nn_reference.h.  Forward beside backward, one pair a kind of layer. */
#include "nn_reference.h"

#include "draw.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One layer of a batch: shapes and arrays.  x [N, in], y [N, out], w and b its parameters. */
struct view {
    const struct mr_layer *l;
    unsigned n, index;
    struct mr_shape in, out;
    const double *x, *w, *b, *dy;
    double *y, *dx, *dw, *db;
    uint64_t seed, step;
    int training;
};

static size_t at(struct mr_shape s, unsigned n, unsigned y, unsigned x)
{
    return (((size_t)n * s.height + y) * s.width + x) * s.channels;
}

/* ---- convolution: y(n, r, c, o) = b(o) + sum x(n, r s + i - top, c s + j - left, k) w(i,j,k,o)
 *      `visit` is called for every pair of output pixel, tap and input pixel that exist. */
typedef void visit_fn(const struct view *v, size_t x, size_t w, size_t y);

static void each_tap(const struct view *v, visit_fn *visit)
{
    unsigned k = v->l->kernel, s = v->l->stride ? v->l->stride : 1;
    int top = (int)mr_same_pad_before(v->in.height, k, s);
    int left = (int)mr_same_pad_before(v->in.width, k, s);
    for (unsigned n = 0; n < v->n; n++)
        for (unsigned r = 0; r < v->out.height; r++)
            for (unsigned c = 0; c < v->out.width; c++)
                for (unsigned i = 0; i < k; i++)
                    for (unsigned j = 0; j < k; j++) {
                        int row = (int)(r * s + i) - top, column = (int)(c * s + j) - left;
                        if (row < 0 || row >= (int)v->in.height || column < 0 ||
                            column >= (int)v->in.width)
                            continue;
                        visit(v, at(v->in, n, (unsigned)row, (unsigned)column),
                              ((size_t)i * k + j) * v->in.channels * v->out.channels,
                              at(v->out, n, r, c));
                    }
}

static void tap_forward(const struct view *v, size_t x, size_t w, size_t y)
{
    unsigned n_out = v->out.channels;
    for (unsigned k = 0; k < v->in.channels; k++)
        for (unsigned o = 0; o < n_out; o++)
            v->y[y + o] += v->x[x + k] * v->w[w + (size_t)k * n_out + o];
}

static void tap_backward(const struct view *v, size_t x, size_t w, size_t y)
{
    unsigned n_out = v->out.channels;
    for (unsigned k = 0; k < v->in.channels; k++) {
        double sum = 0, value = v->x[x + k];
        for (unsigned o = 0; o < n_out; o++) {
            v->dw[w + (size_t)k * n_out + o] += value * v->dy[y + o];
            sum += v->w[w + (size_t)k * n_out + o] * v->dy[y + o];
        }
        v->dx[x + k] += sum;
    }
}

/* The bias, for convolution and dense alike: the last dimension of y. */
static void bias_forward(const struct view *v)
{
    for (size_t i = 0; i < v->n * mr_shape_size(v->out); i++)
        v->y[i] = v->b[i % v->out.channels];
}

static void bias_backward(const struct view *v)
{
    for (size_t i = 0; i < v->n * mr_shape_size(v->out); i++)
        v->db[i % v->out.channels] += v->dy[i];
}

/* ---- dense: y(n, o) = b(o) + sum x(n, i) w(i, o) ---- */
static void dense_one(const struct view *v, visit_fn *visit)
{
    struct view flat = *v;
    flat.in = (struct mr_shape){1, 1, (unsigned)mr_shape_size(v->in)};
    for (unsigned n = 0; n < v->n; n++)
        visit(&flat, (size_t)n * flat.in.channels, 0, (size_t)n * v->out.channels);
}

/* ---- ReLU ---- */
static void relu_one_forward(const struct view *v)
{
    for (size_t i = 0; i < v->n * mr_shape_size(v->out); i++)
        v->y[i] = v->x[i] > 0 ? v->x[i] : 0;
}

static void relu_one_backward(const struct view *v)
{
    for (size_t i = 0; i < v->n * mr_shape_size(v->out); i++)
        v->dx[i] = v->x[i] > 0 ? v->dy[i] : 0;
}

/* ---- LRN: y(c) = x(c) / s(c)^beta, s(c) = bias + alpha * sum of x^2 over c - r .. c + r ---- */
static double lrn_scale(const struct view *v, size_t pixel, int c)
{
    int r = (int)v->l->radius, n = (int)v->in.channels;
    double sum = 0;
    for (int k = c - r < 0 ? 0 : c - r; k <= c + r && k < n; k++)
        sum += v->x[pixel + (size_t)k] * v->x[pixel + (size_t)k];
    return v->l->lrn_bias + (double)v->l->alpha * sum;
}

static void lrn_one_forward(const struct view *v)
{
    int n = (int)v->in.channels;
    for (size_t p = 0; p < v->n * mr_shape_size(v->in); p += (size_t)n)
        for (int c = 0; c < n; c++)
            v->y[p + (size_t)c] = v->x[p + (size_t)c] * pow(lrn_scale(v, p, c), -v->l->beta);
}

static void lrn_one_backward(const struct view *v)
{
    int n = (int)v->in.channels, r = (int)v->l->radius;
    double alpha = v->l->alpha, beta = v->l->beta;
    for (size_t p = 0; p < v->n * mr_shape_size(v->in); p += (size_t)n)
        for (int c = 0; c < n; c++) {
            double slope = v->dy[p + (size_t)c] * pow(lrn_scale(v, p, c), -beta);
            for (int k = c - r < 0 ? 0 : c - r; k <= c + r && k < n; k++)
                slope -= v->dy[p + (size_t)k] * v->x[p + (size_t)k] * 2 * alpha * beta *
                         pow(lrn_scale(v, p, k), -beta - 1) * v->x[p + (size_t)c];
            v->dx[p + (size_t)c] = slope;
        }
}

/* ---- max-pool ---- */
static size_t largest(const struct view *v, unsigned n, unsigned r, unsigned c, unsigned channel)
{
    unsigned s = v->l->stride ? v->l->stride : 1;
    size_t best = at(v->in, n, r * s, c * s) + channel;
    for (unsigned i = 0; i < v->l->kernel; i++)
        for (unsigned j = 0; j < v->l->kernel; j++) {
            size_t k = at(v->in, n, r * s + i, c * s + j) + channel;
            best = v->x[k] > v->x[best] ? k : best;
        }
    return best;
}

static void pool_one(const struct view *v, int backward)
{
    for (unsigned n = 0; n < v->n; n++)
        for (unsigned r = 0; r < v->out.height; r++)
            for (unsigned c = 0; c < v->out.width; c++)
                for (unsigned k = 0; k < v->out.channels; k++) {
                    size_t from = largest(v, n, r, c, k), to = at(v->out, n, r, c) + k;
                    if (backward)
                        v->dx[from] += v->dy[to];
                    else
                        v->y[to] = v->x[from];
                }
}

/* ---- dropout: one keyed draw decides four neighbours, 16 bits each ---- */
static void dropout_one(const struct view *v, const double *in, double *out)
{
    for (size_t i = 0; i < v->n * mr_shape_size(v->out); i++) {
        uint64_t bits = mr_draw(v->seed, MR_DRAW_DROPOUT, v->step, v->index, i / 4) >> (i % 4 * 16);
        int kept = !v->training || (bits & 0xffff) >= (unsigned)(v->l->rate * 65536);
        out[i] = kept ? in[i] / (v->training ? 1 - (double)v->l->rate : 1) : 0;
    }
}

static void layer_one_forward(const struct view *v)
{
    memset(v->y, 0, v->n * mr_shape_size(v->out) * sizeof *v->y);
    switch (v->l->kind) {
    case MR_LAYER_CONVOLUTION:
        bias_forward(v);
        each_tap(v, tap_forward);
        break;
    case MR_LAYER_DENSE:
        bias_forward(v);
        dense_one(v, tap_forward);
        break;
    case MR_LAYER_RELU:
        relu_one_forward(v);
        break;
    case MR_LAYER_LRN:
        lrn_one_forward(v);
        break;
    case MR_LAYER_MAX_POOL:
        pool_one(v, 0);
        break;
    case MR_LAYER_DROPOUT:
        dropout_one(v, v->x, v->y);
        break;
    }
}

static void layer_one_backward(const struct view *v)
{
    memset(v->dx, 0, v->n * mr_shape_size(v->in) * sizeof *v->dx);
    switch (v->l->kind) {
    case MR_LAYER_CONVOLUTION:
        bias_backward(v);
        each_tap(v, tap_backward);
        break;
    case MR_LAYER_DENSE:
        bias_backward(v);
        dense_one(v, tap_backward);
        break;
    case MR_LAYER_RELU:
        relu_one_backward(v);
        break;
    case MR_LAYER_LRN:
        lrn_one_backward(v);
        break;
    case MR_LAYER_MAX_POOL:
        pool_one(v, 1);
        break;
    case MR_LAYER_DROPOUT:
        dropout_one(v, v->dy, v->dx);
        break;
    }
}

/* ---- softmax cross entropy, its gradient into `slopes` ---- */
static void loss_one(struct reference *r, const struct mr_net_input *in)
{
    unsigned k = mr_net_spec_classes(r->spec), last = r->spec->n_layers;
    r->loss = 0;
    r->n_correct = 0;
    for (unsigned i = 0; i < in->n; i++) {
        const double *z = r->values[last] + (size_t)i * k;
        double *dz = r->slopes[last] + (size_t)i * k, sum = 0;
        unsigned best = 0;
        for (unsigned j = 0; j < k; j++) {
            sum += exp(z[j]);
            best = z[j] > z[best] ? j : best;
        }
        for (unsigned j = 0; j < k; j++)
            dz[j] = (exp(z[j]) / sum - (j == in->labels[i])) / in->n;
        r->loss += (log(sum) - z[in->labels[i]]) / in->n;
        r->n_correct += best == in->labels[i];
    }
}

static struct view view_of(struct reference *r, const struct mr_net_input *in, unsigned i,
                           unsigned tensor)
{
    struct view v = {.l = &r->spec->layers[i],
                     .n = in->n,
                     .index = i,
                     .in =
                         i ? r->shapes[i - 1]
                           : (struct mr_shape){r->spec->height, r->spec->width, r->spec->channels},
                     .out = r->shapes[i],
                     .x = r->values[i],
                     .y = r->values[i + 1],
                     .dx = r->slopes[i],
                     .dy = r->slopes[i + 1],
                     .seed = r->seed,
                     .step = in->step,
                     .training = !in->evaluate};
    if (mr_layer_has_weights(v.l)) {
        v.w = r->weights[tensor];
        v.b = r->weights[tensor + 1];
        v.dw = r->gradients[tensor];
        v.db = r->gradients[tensor + 1];
    }
    return v;
}

void reference_forward(struct reference *r, const struct mr_net_input *in)
{
    unsigned tensor = 0;
    for (size_t i = 0; i < (size_t)in->n * r->spec->height * r->spec->width * r->spec->channels;
         i++)
        r->values[0][i] = in->images[i];
    for (unsigned i = 0; i < r->spec->n_layers; i++) {
        struct view v = view_of(r, in, i, tensor);
        layer_one_forward(&v);
        tensor += mr_layer_has_weights(v.l) ? 2 : 0;
    }
    loss_one(r, in);
}

void reference_backward(struct reference *r, const struct mr_net_input *in)
{
    unsigned tensor = r->n_tensors;
    for (unsigned i = 0; i < r->n_tensors; i++)
        memset(r->gradients[i], 0, r->sizes[i] * sizeof(double));
    for (unsigned i = r->spec->n_layers; i-- > 0;) {
        tensor -= mr_layer_has_weights(&r->spec->layers[i]) ? 2 : 0;
        struct view v = view_of(r, in, i, tensor);
        layer_one_backward(&v);
    }
}

static double *numbers(uint64_t n)
{
    double *p = calloc(n, sizeof *p);
    assert(p);
    return p;
}

struct reference *reference_new(const struct mr_net_spec *spec, unsigned batch, uint64_t seed)
{
    struct reference *r = calloc(1, sizeof *r);
    struct mr_params *p = NULL;
    unsigned n = spec->n_layers;
    r->spec = spec;
    r->batch = batch;
    r->seed = seed;
    r->shapes = calloc(n, sizeof *r->shapes);
    r->values = calloc(n + 1, sizeof *r->values);
    r->slopes = calloc(n + 1, sizeof *r->slopes);
    if (mr_net_spec_shapes(spec, r->shapes, NULL) || mr_params_new(spec, &p, NULL))
        abort();
    for (unsigned i = 0; i <= n; i++) {
        uint64_t size = i ? mr_shape_size(r->shapes[i - 1])
                          : (uint64_t)spec->height * spec->width * spec->channels;
        r->values[i] = numbers(batch * size);
        r->slopes[i] = numbers(batch * size);
    }
    r->n_tensors = p->n_tensors;
    r->sizes = calloc(p->n_tensors, sizeof *r->sizes);
    r->weights = calloc(p->n_tensors, sizeof *r->weights);
    r->gradients = calloc(p->n_tensors, sizeof *r->gradients);
    for (unsigned i = 0; i < p->n_tensors; i++) {
        r->sizes[i] = p->tensors[i].n;
        r->weights[i] = numbers(p->tensors[i].n);
        r->gradients[i] = numbers(p->tensors[i].n);
    }
    mr_params_free(p);
    return r;
}

void reference_load(struct reference *r, const struct mr_params *p)
{
    for (unsigned i = 0; i < r->n_tensors; i++)
        for (uint64_t k = 0; k < r->sizes[i]; k++)
            r->weights[i][k] = p->tensors[i].weights[k];
}

void reference_free(struct reference *r)
{
    for (unsigned i = 0; i <= r->spec->n_layers; i++) {
        free(r->values[i]);
        free(r->slopes[i]);
    }
    for (unsigned i = 0; i < r->n_tensors; i++) {
        free(r->weights[i]);
        free(r->gradients[i]);
    }
    free(r->shapes);
    free(r->values);
    free(r->slopes);
    free(r->sizes);
    free(r->weights);
    free(r->gradients);
    free(r);
}
