/* accelerator_cpu.c - the study's network, trained for real on the cores (src/nn). */
#include "accelerator.h"

#include "alexnet.h"
#include "clock.h"
#include "errtext.h"
#include "net.h"
#include "state_list.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct on_cpu {
    struct mr_accelerator pub;
    struct mr_alexnet network;
    struct mr_net *net;
    uint32_t *labels; /* [batch] */
};

/* The optimizer is about to change parameter `index`: three tensors of the state. */
static void before_update(void *ctx, unsigned index)
{
    const struct mr_step_hooks *hooks = ctx;
    for (unsigned i = 0; i < MR_STATE_PER_PARAM; i++)
        hooks->before_write(hooks->ctx, index * MR_STATE_PER_PARAM + i);
}

static void input_of(struct on_cpu *c, const struct mr_batch *b, struct mr_net_input *in)
{
    for (unsigned i = 0; i < b->n; i++)
        c->labels[i] = b->samples[i].label;
    *in = (struct mr_net_input){.n = b->n, .images = (const float *)b->data, .labels = c->labels};
}

static int step(struct mr_accelerator *a, struct mr_batch *const *batches, unsigned n,
                uint64_t number, const struct mr_step_hooks *hooks, struct mr_step_outcome *out,
                struct mr_error *err)
{
    struct on_cpu *c = (struct on_cpu *)a;
    struct mr_net_input in;
    struct mr_net_result result;
    struct mr_adam_opts adam = {.lr = (float)a->o.learning_rate,
                                .before = hooks->before_write ? before_update : NULL,
                                .ctx = (void *)hooks};
    (void)n; /* one: the CPU is one accelerator */
    input_of(c, batches[0], &in);
    in.step = number;
    uint64_t start = mr_clock_ns();
    struct mr_error why = {0};
    int r = mr_net_forward(c->net, &in, &result, &why);
    uint64_t forward = mr_clock_ns();
    if (r == -EDOM) { /* nothing is changed by such a step; the caller sees the loss and stops */
        *out =
            (struct mr_step_outcome){.loss = NAN, .n_images = in.n, .forward_ns = forward - start};
        return 0;
    }
    if (r)
        return mr_fail(err, r, "training step %llu: %s", (unsigned long long)number, why.text);
    r = mr_net_backward(c->net);
    uint64_t backward = mr_clock_ns();
    if (!r)
        r = mr_net_update(c->net, &adam);
    if (r)
        return mr_fail(err, r, "training step %llu: %s", (unsigned long long)number,
                       mr_errno_text(r));
    *out = (struct mr_step_outcome){.loss = result.loss,
                                    .n_correct = result.n_correct,
                                    .n_images = in.n,
                                    .forward_ns = forward - start,
                                    .backward_ns = backward - forward,
                                    .update_ns = mr_clock_ns() - backward};
    return 0;
}

static int evaluate(struct mr_accelerator *a, const struct mr_batch *batch, unsigned *n_correct,
                    struct mr_error *err)
{
    struct on_cpu *c = (struct on_cpu *)a;
    struct mr_net_input in;
    struct mr_net_result result;
    input_of(c, batch, &in);
    in.evaluate = 1;
    int r = mr_net_forward(c->net, &in, &result, err);
    if (!r)
        *n_correct = result.n_correct;
    return r;
}

static void close_it(struct mr_accelerator *a)
{
    struct on_cpu *c = (struct on_cpu *)a;
    mr_state_list_free(a->state, a->n_state);
    mr_net_close(c->net);
    free(c->labels);
    free(c);
}

static const struct mr_accelerator_ops ops = {step, evaluate, close_it};

int mr_cpu_open(const struct mr_accelerator_opts *o, struct mr_accelerator **out,
                struct mr_error *err)
{
    struct mr_alexnet_opts network = {.n_classes = o->n_classes};
    struct mr_net_opts net = {.batch = o->batch, .threads = o->compute_threads, .seed = o->seed};
    if (!mr_net_available())
        return mr_fail(err, -ENOTSUP,
                       "this build has no oneDNN, so it cannot train on the CPU: build with it, or "
                       "use --device emulated:SECONDS");
    struct on_cpu *c = calloc(1, sizeof *c);
    if (!c)
        return mr_fail(err, -ENOMEM, "no memory");
    c->pub.ops = &ops;
    c->pub.o = *o;
    c->labels = calloc(o->batch, sizeof *c->labels);
    mr_alexnet_init(&c->network, &network);
    int r = c->labels ? mr_net_open(&c->network.spec, &net, &c->net, err)
                      : mr_fail(err, -ENOMEM, "no memory");
    if (!r)
        c->pub.params = mr_net_params(c->net);
    if (!r && mr_state_list_new(c->pub.params, &c->pub.state, &c->pub.n_state))
        r = mr_fail(err, -ENOMEM, "no memory");
    if (r) {
        close_it(&c->pub);
        return r;
    }
    *out = &c->pub;
    return 0;
}
