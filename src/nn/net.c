/* net.c - a network built from its description, and its steps; see net.h.
 *
 * open builds the forward operations layer by layer, the loss, then the backward operations from
 * the last layer to the first; only then is it known how much memory is needed, and only if there
 * is enough is any taken.  A step runs three lists: prepare (weights into oneDNN's layouts),
 * forward, backward. */
#include "net.h"

#include "big_memory.h"
#include "compute_threads.h"
#include "graph.h"
#include "layers.h"

#include "errtext.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define DEFAULT_BATCH 64
#define MAX_BATCH     65536
#define MAX_THREADS   1024

struct mr_net {
    unsigned threads, n_classes;
    uint64_t seed, bytes;
    int can_go_back; /* the last forward was for training */
    struct mr_team *team;
    struct mr_params *params;
    struct graph graph;
    struct layer *layers;
    unsigned n_layers;
    struct mr_layer *specs; /* our copy of the description */
    struct tensor *logits;
};

static const struct {
    layer_forward_fn *forward;
    layer_backward_fn *backward;
} kinds[] = {
    [MR_LAYER_CONVOLUTION] = {convolution_forward, convolution_backward},
    [MR_LAYER_RELU] = {relu_forward, relu_backward},
    [MR_LAYER_LRN] = {lrn_forward, lrn_backward},
    [MR_LAYER_MAX_POOL] = {pool_forward, pool_backward},
    [MR_LAYER_DENSE] = {dense_forward, dense_backward},
    [MR_LAYER_DROPOUT] = {dropout_forward, dropout_backward},
};

int mr_net_available(void)
{
    return 1;
}

/* ---- building ---- */

/* Layers with their shapes, parameters, and which ReLU is computed by the layer before it. */
static int make_layers(struct mr_net *net, const struct mr_net_spec *spec, struct mr_error *err)
{
    struct mr_shape *shapes = calloc(spec->n_layers, sizeof *shapes);
    struct mr_shape in = {spec->height, spec->width, spec->channels};
    const struct mr_param *param = net->params->tensors;
    int learns = 0;
    net->layers = calloc(spec->n_layers, sizeof *net->layers);
    net->specs = calloc(spec->n_layers, sizeof *net->specs);
    if (!shapes || !net->layers || !net->specs) {
        free(shapes);
        return mr_fail(err, -ENOMEM, "no memory for the layers");
    }
    mr_net_spec_shapes(spec, shapes, NULL); /* params have checked it */
    net->n_layers = spec->n_layers;
    for (unsigned i = 0; i < spec->n_layers; in = shapes[i++]) {
        struct layer *l = &net->layers[i];
        net->specs[i] = spec->layers[i];
        *l = (struct layer){.spec = &net->specs[i], .index = i, .in = in, .out = shapes[i]};
        if (!mr_layer_has_weights(l->spec))
            continue;
        l->weights = param++;
        l->bias = param++;
        l->ends_here = !learns;
        learns = 1;
        l->fuse_relu = i + 1 < spec->n_layers && spec->layers[i + 1].kind == MR_LAYER_RELU;
    }
    for (unsigned i = 1; i < net->n_layers; i++)
        net->layers[i].fused = net->layers[i - 1].fuse_relu;
    free(shapes);
    return 0;
}

static int build(struct mr_net *net, const struct mr_net_spec *spec, struct mr_error *err)
{
    struct graph *g = &net->graph;
    struct layer *first = net->layers;
    int takes_images = first->spec->kind == MR_LAYER_CONVOLUTION && convolution_takes_images(first);
    struct tensor *x = takes_images ? NULL : images_forward(g, spec);
    for (unsigned i = 0; i < net->n_layers && !graph_error(g); i++)
        x = kinds[net->layers[i].spec->kind].forward(g, &net->layers[i], x);
    if (graph_error(g))
        return mr_fail(err, g->error.code, "%s", g->error.text);
    net->logits = x;
    struct tensor *dy = softmax_loss(g, x);
    for (unsigned i = net->n_layers; i-- && dy && !graph_error(g);)
        dy = kinds[net->layers[i].spec->kind].backward(g, &net->layers[i], dy);
    if (graph_error(g))
        return mr_fail(err, g->error.code, "%s", g->error.text);
    return 0;
}

/* Everything but the memory for activations. */
static int plan(const struct mr_net_spec *spec, const struct mr_net_opts *opts, struct mr_net **out,
                struct mr_error *err)
{
    unsigned batch = opts->batch ? opts->batch : DEFAULT_BATCH;
    unsigned threads = opts->threads ? opts->threads : compute_threads_default();
    struct mr_net *net;
    int r;
    if (batch > MAX_BATCH || threads > MAX_THREADS)
        return mr_fail(err, -EINVAL, "a batch of %u, %u threads: at most %u and %u", batch, threads,
                       MAX_BATCH, MAX_THREADS);
    net = calloc(1, sizeof *net);
    if (!net)
        return mr_fail(err, -ENOMEM, "no memory for the network");
    net->threads = threads;
    net->seed = opts->seed;
    compute_threads_set(threads);
    r = mr_params_new(spec, &net->params, err);
    if (!r && (r = mr_team_open(threads, &net->team)))
        mr_fail(err, r, "%u compute threads: %s", threads, mr_errno_text(r));
    if (!r)
        r = graph_init(&net->graph, batch, net->team, err);
    if (!r)
        r = make_layers(net, spec, err);
    if (!r)
        r = build(net, spec, err);
    if (r) {
        mr_net_close(net);
        return r;
    }
    net->n_classes = mr_net_spec_classes(spec);
    net->bytes = 4 * net->params->bytes + graph_bytes(&net->graph);
    *out = net;
    return 0;
}

int mr_net_bytes_needed(const struct mr_net_spec *spec, const struct mr_net_opts *opts,
                        uint64_t *out, struct mr_error *err)
{
    static const struct mr_net_opts defaults;
    struct mr_net *net = NULL;
    int r = plan(spec, opts ? opts : &defaults, &net, err);
    if (!r)
        *out = net->bytes;
    mr_net_close(net);
    return r;
}

static int enough_memory(const struct mr_net *net, const char *name, uint64_t max_bytes,
                         struct mr_error *err)
{
    uint64_t available = max_bytes ? max_bytes : mr_big_available();
    if (net->bytes <= available)
        return 0;
    return mr_fail(err, -ENOMEM,
                   "%s at batch %u needs %lu bytes of memory, of which %lu are parameters; %lu are "
                   "%s: take a smaller batch",
                   name, net->graph.batch, net->bytes, 4 * net->params->bytes, available,
                   max_bytes ? "allowed" : "available");
}

int mr_net_open(const struct mr_net_spec *spec, const struct mr_net_opts *opts, struct mr_net **out,
                struct mr_error *err)
{
    static const struct mr_net_opts defaults;
    struct mr_net *net = NULL;
    if (!opts)
        opts = &defaults;
    int r = plan(spec, opts, &net, err);
    if (!r)
        r = enough_memory(net, spec->name, opts->max_bytes, err);
    if (!r && (r = graph_allocate(&net->graph)))
        mr_fail(err, r, "%s", net->graph.error.text);
    if (r) {
        mr_net_close(net);
        return r;
    }
    mr_params_init(net->params, spec, opts->seed, net->team);
    *out = net;
    return 0;
}

void mr_net_close(struct mr_net *net)
{
    if (!net)
        return;
    graph_fini(&net->graph);
    mr_team_close(net->team);
    mr_params_free(net->params);
    free(net->layers);
    free(net->specs);
    free(net);
}

/* ---- steps ---- */

static int check_input(const struct mr_net *net, const struct mr_net_input *in,
                       struct mr_error *err)
{
    if (!in->n || in->n > net->graph.batch)
        return mr_fail(err, -EINVAL, "%u images for a network built for 1 to %u", in->n,
                       net->graph.batch);
    for (unsigned i = 0; i < in->n; i++)
        if (in->labels[i] >= net->n_classes)
            return mr_fail(err, -EINVAL,
                           "image %u of the batch has label %u; the network has %u "
                           "classes, 0 to %u",
                           i, in->labels[i], net->n_classes, net->n_classes - 1);
    return 0;
}

int mr_net_forward(struct mr_net *net, const struct mr_net_input *in, struct mr_net_result *out,
                   struct mr_error *err)
{
    struct graph *g = &net->graph;
    int r = check_input(net, in, err);
    if (r)
        return r;
    compute_threads_set(net->threads);
    net->can_go_back = 0;
    g->now = (struct batch_state){.n = in->n,
                                  .images = in->images,
                                  .labels = in->labels,
                                  .seed = net->seed,
                                  .step = in->step,
                                  .training = !in->evaluate};
    r = graph_run_list(g, OPS_PREPARE);
    if (!r)
        r = graph_run_list(g, OPS_FORWARD);
    if (r)
        return mr_fail(err, r, "forward: oneDNN failed: %s", mr_errno_text(r));
    if (!isfinite(g->now.loss))
        return mr_fail(err, -EDOM,
                       "the loss is %s at step %lu: training has diverged; take a lower learning "
                       "rate",
                       isnan(g->now.loss) ? "not a number" : "infinite", in->step);
    net->can_go_back = !in->evaluate;
    *out = (struct mr_net_result){g->now.loss, g->now.n_correct};
    return 0;
}

int mr_net_backward(struct mr_net *net)
{
    if (!net->can_go_back)
        return -EINVAL;
    net->can_go_back = 0; /* gradients flow through buffers that forward has filled */
    compute_threads_set(net->threads);
    return graph_run_list(&net->graph, OPS_BACKWARD);
}

int mr_net_update(struct mr_net *net, const struct mr_adam_opts *opts)
{
    return mr_adam_update(net->params, opts, net->team);
}

/* ---- what it is ---- */

struct mr_params *mr_net_params(struct mr_net *net)
{
    return net->params;
}

struct mr_team *mr_net_team(struct mr_net *net)
{
    return net->team;
}

unsigned mr_net_threads(const struct mr_net *net)
{
    return net->threads;
}

unsigned mr_net_batch(const struct mr_net *net)
{
    return net->graph.batch;
}

uint64_t mr_net_bytes(const struct mr_net *net)
{
    return net->bytes;
}

const float *mr_net_logits(const struct mr_net *net)
{
    return tensor_data(net->logits);
}

unsigned mr_net_n_ops(const struct mr_net *net)
{
    unsigned n = 0;
    for (int list = 0; list < N_OP_LISTS; list++)
        n += net->graph.n_ops[list];
    return n;
}

static const struct op *find_op(const struct mr_net *net, unsigned i, int *list)
{
    for (*list = 0; i >= net->graph.n_ops[*list]; (*list)++)
        i -= net->graph.n_ops[*list];
    return &net->graph.ops[*list][i];
}

void mr_net_op(const struct mr_net *net, unsigned i, struct mr_net_op *out)
{
    int list;
    const struct op *op = find_op(net, i, &list);
    *out = (struct mr_net_op){op->name, op->code, list == OPS_BACKWARD, op->flop};
}

int mr_net_run_op(struct mr_net *net, unsigned i)
{
    int list;
    compute_threads_set(net->threads);
    return graph_run(&net->graph, find_op(net, i, &list));
}
