/* accelerator_emulated.c - an accelerator as the host sees it: it takes a batch, is busy for
 * the step's seconds, and uses no core.
 *
 *     begin ............ wait ............ | update | rest |
 *     `------------------- the step's seconds -------------'
 *
 * With a state (for checkpoints) one word in every 4 KiB of every tensor changes at each update, so
 * that a torn copy shows.  The update belongs to the step's seconds, but it is the host's memory
 * that it walks through, which takes longer while others write to storage, as an accelerator's own
 * would not: it is begun earlier by what the last one took and some more.  Whoever delays it
 * (before_write) by more than that lengthens the step, as on a real one. */
#include "accelerator.h"

#include "alexnet.h"
#include "clock.h"
#include "errtext.h"
#include "state_list.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WORD_APART (4096 / sizeof(float))
#define SLICE_NS   50000000 /* how often somebody is asked whether to stop */

struct emulated {
    struct mr_accelerator pub;
    struct mr_alexnet network;
    uint64_t update_ns; /* what the last update took, waiting left out */
};

/* When to begin the update of a step: before its end by four times what the last update took,
 * but at most an eighth of the step earlier than needed. */
static uint64_t update_begins(const struct emulated *e, uint64_t start, uint64_t end)
{
    uint64_t most = (end - start) / 8, spare = 3 * e->update_ns;
    uint64_t early = e->update_ns + (spare < most ? spare : most);
    return end > start + early ? end - early : start;
}

/* Sleep until a moment: 0, or -ECANCELED. */
static int wait_until(uint64_t end_ns, const struct mr_step_hooks *hooks)
{
    for (uint64_t now; (now = mr_clock_ns()) < end_ns;) {
        uint64_t until = end_ns - now > SLICE_NS ? now + SLICE_NS : end_ns;
        struct timespec at = {.tv_sec = (time_t)(until / 1000000000),
                              .tv_nsec = (long)(until % 1000000000)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        if (hooks->should_stop && until < end_ns && hooks->should_stop(hooks->ctx))
            return -ECANCELED;
    }
    return 0;
}

/* Change the state; the time it took, waiting for others left out. */
static uint64_t update(struct mr_accelerator *a, uint64_t step, const struct mr_step_hooks *hooks)
{
    uint64_t busy = 0;
    for (unsigned t = 0; t < a->n_state; t++) {
        if (hooks->before_write)
            hooks->before_write(hooks->ctx, t);
        uint64_t start = mr_clock_ns();
        float *data = a->state[t].data;
        for (size_t i = 0; i < a->state[t].bytes / sizeof *data; i += WORD_APART)
            data[i] = (float)(step % 16777216);
        busy += mr_clock_ns() - start;
    }
    return busy;
}

static int step(struct mr_accelerator *a, struct mr_batch *const *batches, unsigned n,
                uint64_t number, const struct mr_step_hooks *hooks, struct mr_step_outcome *out,
                struct mr_error *err)
{
    struct emulated *e = (struct emulated *)a;
    uint64_t start = mr_clock_ns();
    double seconds = mr_accelerator_spec_seconds(&a->o.spec, a->o.batch);
    uint64_t end = start + (uint64_t)(seconds * 1e9);
    *out = (struct mr_step_outcome){.loss = NAN};
    for (unsigned i = 0; i < n; i++)
        out->n_images += batches[i]->n;
    int r = wait_until(update_begins(e, start, end), hooks);
    if (r)
        return mr_fail(err, r, "stopped");
    uint64_t begun = mr_clock_ns();
    e->update_ns = update(a, number, hooks);
    out->update_ns = mr_clock_ns() - begun;
    out->forward_ns = begun - start;
    wait_until(end, hooks); /* being stopped here cuts the step short; its update is done */
    return 0;
}

static int evaluate(struct mr_accelerator *a, const struct mr_batch *batch, unsigned *n_correct,
                    struct mr_error *err)
{
    (void)a;
    (void)batch;
    (void)n_correct;
    return mr_fail(err, -ENOTSUP, "an emulated accelerator learns nothing that could be evaluated");
}

static void close_it(struct mr_accelerator *a)
{
    struct emulated *e = (struct emulated *)a;
    mr_state_list_free(a->state, a->n_state);
    mr_params_free(a->params);
    free(e);
}

static const struct mr_accelerator_ops ops = {step, evaluate, close_it};

/* The network's whole state, in memory that is there. */
static int make_state(struct emulated *e, struct mr_error *err)
{
    struct mr_accelerator *a = &e->pub;
    struct mr_alexnet_opts network = {.n_classes = a->o.n_classes};
    mr_alexnet_init(&e->network, &network);
    int r = mr_params_new(&e->network.spec, &a->params, err);
    if (r)
        return r;
    if (mr_state_list_new(a->params, &a->state, &a->n_state))
        return mr_fail(err, -ENOMEM, "no memory");
    for (unsigned t = 0; t < a->n_state; t++)
        memset(a->state[t].data, 0, a->state[t].bytes);
    return 0;
}

int mr_emulated_open(const struct mr_accelerator_opts *o, struct mr_accelerator **out,
                     struct mr_error *err)
{
    struct emulated *e = calloc(1, sizeof *e);
    if (!e)
        return mr_fail(err, -ENOMEM, "no memory");
    e->pub.ops = &ops;
    e->pub.o = *o;
    int r = o->with_state ? make_state(e, err) : 0;
    if (r) {
        close_it(&e->pub);
        return r;
    }
    *out = &e->pub;
    return 0;
}
