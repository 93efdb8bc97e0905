/* order.c - see order.h for the rules.
 *
 * A shard's own positions are numbered locally 0 .. n_shard-1, batch after batch.  Three small maps
 * lead from there to a sample:
 *
 *     local position  --shard-->  global position  --permutation-->  index in the data set
 *
 * With a window the local position is first replaced by the one that leaves the window at that
 * moment.  Drawing from the window is the only thing with a state; it is rebuilt by replaying the
 * epoch from its start, which costs a few nanoseconds a sample.
 *
 * Substitutes and keys are draws keyed by the global position. */
#include "order.h"

#include "draw.h"

#include <errno.h>
#include <stdlib.h>

static struct mr_cut cut_from(const struct mr_order *q, uint64_t phase)
{
    const struct mr_order_opts *o = &q->o;
    struct mr_cut c = {.phase = phase};
    uint64_t left = phase < o->n_samples ? o->n_samples - phase : 0, rest = left % q->round;
    uint64_t tail = rest * (o->rank + 1) / o->world - rest * o->rank / o->world;
    c.n_full = left / q->round;
    c.n_shard = c.n_full * o->batch + tail;
    c.n_batches = c.n_full + (o->keep_last && tail);
    return c;
}

int mr_order_init(struct mr_order *q, const struct mr_order_opts *o)
{
    *q = (struct mr_order){.o = *o, .round = (uint64_t)o->batch * o->world, .epoch = UINT64_MAX};
    q->cut = cut_from(q, 0);
    q->start = cut_from(q, o->start_samples % q->round);
    if (o->shuffle == MR_SHUFFLE_WINDOW) {
        uint64_t size = o->window < q->cut.n_shard ? o->window : q->cut.n_shard;
        q->win = malloc((size + 1) * sizeof *q->win);
        if (!q->win)
            return -ENOMEM;
    }
    return 0;
}

void mr_order_fini(struct mr_order *q)
{
    free(q->win);
    q->win = NULL;
}

static uint64_t global_position(const struct mr_order *q, const struct mr_cut *c, uint64_t local)
{
    const struct mr_order_opts *o = &q->o;
    uint64_t number = local / o->batch;
    if (number < c->n_full)
        return c->phase + number * q->round + (uint64_t)o->rank * o->batch + local % o->batch;
    uint64_t tail = c->phase + c->n_full * q->round, rest = o->n_samples - tail;
    return tail + rest * o->rank / o->world + (local - c->n_full * o->batch);
}

static void set_epoch(struct mr_order *q, uint64_t epoch)
{
    if (q->epoch == epoch)
        return;
    q->epoch = epoch;
    q->n_win = q->win_in = q->win_out = 0;
    mr_permutation_init(&q->perm, q->o.n_samples, mr_draw(q->o.seed, MR_DRAW_ORDER, epoch, 0, 0));
}

/* Draw the next local position from the window. */
static uint64_t draw_from_window(struct mr_order *q)
{
    while (q->n_win < q->o.window && q->win_in < q->cut.n_shard)
        q->win[q->n_win++] = q->win_in++;
    uint64_t bits = mr_draw(q->o.seed, MR_DRAW_WINDOW, q->epoch, q->win_out++, 0);
    uint64_t at = mr_below(bits, q->n_win), drawn = q->win[at];
    if (q->win_in < q->cut.n_shard)
        q->win[at] = q->win_in++;
    else
        q->win[at] = q->win[--q->n_win];
    return drawn;
}

unsigned mr_order_batch(struct mr_order *q, uint64_t epoch, uint64_t number, uint64_t *out)
{
    const struct mr_cut *c = mr_order_cut(q, epoch);
    set_epoch(q, epoch);
    uint64_t first = number * q->o.batch;
    uint64_t left = c->n_shard - first;
    unsigned n = left < q->o.batch ? (unsigned)left : q->o.batch;
    switch (q->o.shuffle) {
    case MR_SHUFFLE_NONE:
        for (unsigned i = 0; i < n; i++)
            out[i] = global_position(q, c, first + i);
        break;
    case MR_SHUFFLE_GLOBAL: {
        /* A batch is contiguous in the global order, so one division serves all of it. */
        uint64_t at = global_position(q, c, first);
        for (unsigned i = 0; i < n; i++)
            out[i] = mr_permutation_at(&q->perm, at + i);
        break;
    }
    case MR_SHUFFLE_WINDOW:
        if (q->win_out > first)
            q->n_win = q->win_in = q->win_out = 0;
        while (q->win_out < first)
            draw_from_window(q);
        for (unsigned i = 0; i < n; i++)
            out[i] = global_position(q, c, draw_from_window(q));
        break;
    }
    return n;
}

/* A slot's position in the epoch. */
static uint64_t position_of(const struct mr_order *q, uint64_t epoch, uint64_t number,
                            unsigned slot)
{
    return global_position(q, mr_order_cut(q, epoch), number * q->o.batch + slot);
}

uint64_t mr_order_substitute(const struct mr_order *q, uint64_t epoch, uint64_t number,
                             unsigned slot, unsigned attempt)
{
    uint64_t position = position_of(q, epoch, number, slot);
    uint64_t bits = mr_draw(q->o.seed, MR_DRAW_SUBSTITUTE, epoch, position, attempt);
    return mr_below(bits, q->o.n_samples);
}

uint64_t mr_order_key(const struct mr_order *q, uint64_t epoch, uint64_t number, unsigned slot)
{
    uint64_t position = position_of(q, epoch, number, slot);
    return mr_draw(q->o.seed, MR_DRAW_SAMPLE, epoch, position, 0);
}
