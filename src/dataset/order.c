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
 * Substitutes are drawn from all local positions, so they stay within epoch and shard.  They build
 * the permutation of their epoch anew: bad samples are rare, and a shared one would need a lock. */
#include "order.h"

#include "draw.h"

#include <errno.h>
#include <stdlib.h>

int mr_order_init(struct mr_order *q, const struct mr_order_opts *o)
{
    *q = (struct mr_order){.o = *o, .epoch = UINT64_MAX};
    uint64_t round = (uint64_t)o->batch * o->world;
    uint64_t rest = o->n_samples % round;
    q->n_full = o->n_samples / round;
    uint64_t tail = rest * (o->rank + 1) / o->world - rest * o->rank / o->world;
    q->n_shard = q->n_full * o->batch + tail;
    q->n_batches = q->n_full + (o->keep_last && tail);
    if (o->shuffle == MR_SHUFFLE_WINDOW) {
        uint64_t size = o->window < q->n_shard ? o->window : q->n_shard;
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

static uint64_t global_position(const struct mr_order *q, uint64_t local)
{
    const struct mr_order_opts *o = &q->o;
    uint64_t round = (uint64_t)o->batch * o->world, number = local / o->batch;
    if (number < q->n_full)
        return number * round + (uint64_t)o->rank * o->batch + local % o->batch;
    uint64_t rest = o->n_samples % round;
    return q->n_full * round + rest * o->rank / o->world + (local - q->n_full * o->batch);
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
    while (q->n_win < q->o.window && q->win_in < q->n_shard)
        q->win[q->n_win++] = q->win_in++;
    uint64_t bits = mr_draw(q->o.seed, MR_DRAW_WINDOW, q->epoch, q->win_out++, 0);
    uint64_t at = mr_below(bits, q->n_win), drawn = q->win[at];
    if (q->win_in < q->n_shard)
        q->win[at] = q->win_in++;
    else
        q->win[at] = q->win[--q->n_win];
    return drawn;
}

unsigned mr_order_batch(struct mr_order *q, uint64_t epoch, uint64_t number, uint64_t *out)
{
    set_epoch(q, epoch);
    uint64_t first = number * q->o.batch;
    uint64_t left = q->n_shard - first;
    unsigned n = left < q->o.batch ? (unsigned)left : q->o.batch;
    switch (q->o.shuffle) {
    case MR_SHUFFLE_NONE:
        for (unsigned i = 0; i < n; i++)
            out[i] = global_position(q, first + i);
        break;
    case MR_SHUFFLE_GLOBAL: {
        /* A batch is contiguous in the global order, so one division serves all of it. */
        uint64_t at = global_position(q, first);
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
            out[i] = global_position(q, draw_from_window(q));
        break;
    }
    return n;
}

uint64_t mr_order_substitute(const struct mr_order *q, uint64_t epoch, uint64_t number,
                             unsigned slot, unsigned attempt)
{
    uint64_t position = number * q->o.batch + slot;
    uint64_t bits = mr_draw(q->o.seed, MR_DRAW_SUBSTITUTE, epoch, position, attempt);
    uint64_t global = global_position(q, mr_below(bits, q->n_shard));
    if (q->o.shuffle != MR_SHUFFLE_GLOBAL)
        return global;
    struct mr_permutation perm;
    mr_permutation_init(&perm, q->o.n_samples, mr_draw(q->o.seed, MR_DRAW_ORDER, epoch, 0, 0));
    return mr_permutation_at(&perm, global);
}

uint64_t mr_order_key(const struct mr_order *q, uint64_t epoch, uint64_t number, unsigned slot)
{
    uint64_t position = global_position(q, number * q->o.batch + slot);
    return mr_draw(q->o.seed, MR_DRAW_SAMPLE, epoch, position, 0);
}
