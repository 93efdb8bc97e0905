/* order.h - which sample comes when: epochs, shuffling, shards, and where a run begins.
 *
 * Sharding rule, for `world` ranks that each take batches of `batch` samples.  The epoch's global
 * order (the data set's own, or its permutation) is cut into rounds of world * batch positions;
 * in round k rank r takes the r-th piece of `batch` positions as its batch number k:
 *
 *     position   0 ..   | batch ..      | 2*batch ..    |      world = 3
 *     round 0    rank 0 | rank 1        | rank 2        |
 *     round 1    rank 0 | rank 1        | rank 2        |
 *     remainder  [ divided evenly: rank r gets positions r*m/world .. (r+1)*m/world of its m ]
 *
 * So the union of the ranks' batches number k depends on world * batch only, not on world; every
 * position belongs to one rank; and ranks have the same number of full batches.  The remainder is
 * left out unless keep_last is set.
 *
 * A run may begin after `start_samples` positions of epoch `start_epoch`, wherever a run with
 * another batch or world has stopped: the rounds of that epoch are cut from there.  They keep the
 * numbers of rounds of this size, so round k of that epoch begins at position
 * k * world * batch + start_samples % (world * batch); without a remainder, where it always does.
 * Later epochs are cut from position 0.
 *
 * A window shuffle is made after sharding, from the shard's own positions in list order, as
 * tf.data's shard().shuffle(N) does: the shard's samples do not depend on the seed there, but on
 * `batch` and `world`.  So it can begin only at a multiple of world * batch. */
#ifndef MR_ORDER_H
#define MR_ORDER_H

#include <stdint.h>

#include <millrace/dataset.h>

#include "permutation.h"

struct mr_order_opts {
    uint64_t n_samples; /* at least 1 */
    enum mr_shuffle shuffle;
    unsigned window;
    uint64_t seed;
    unsigned batch, rank, world;
    int keep_last;
    uint64_t start_epoch, start_samples; /* at most n_samples; see above for a window */
};

/* How an epoch is cut into this shard's batches. */
struct mr_cut {
    uint64_t phase;     /* position at which round 0 begins: less than world * batch */
    uint64_t n_full;    /* full batches of this shard, */
    uint64_t n_batches; /* those it delivers: n_full, or one more, */
    uint64_t n_shard;   /* and its positions from `phase` on, remainder included */
};

struct mr_order {
    struct mr_order_opts o;
    uint64_t round;           /* world * batch */
    struct mr_cut start, cut; /* of epoch start_epoch, and of every other */
    uint64_t epoch;           /* what `perm` and the window are set up for */
    struct mr_permutation perm;
    uint64_t *win;                   /* the window's contents, local positions */
    uint64_t n_win, win_in, win_out; /* filled, taken from the shard, drawn */
};

/* 0 or -ENOMEM. */
int mr_order_init(struct mr_order *q, const struct mr_order_opts *o);
void mr_order_fini(struct mr_order *q);

/* How `epoch` is cut. */
static inline const struct mr_cut *mr_order_cut(const struct mr_order *q, uint64_t epoch)
{
    return epoch == q->o.start_epoch ? &q->start : &q->cut;
}

/* The positions of all ranks before batch `number` of `epoch`. */
static inline uint64_t mr_order_samples(const struct mr_order *q, uint64_t epoch, uint64_t number)
{
    return mr_order_cut(q, epoch)->phase + number * q->round;
}

/* Samples of batch `number` of `epoch`: the data set's indices to out[], their number returned.
 * Any order of calls is right; with a window shuffle only going forward is cheap (a jump replays
 * the epoch's draws up to there). */
unsigned mr_order_batch(struct mr_order *q, uint64_t epoch, uint64_t number, uint64_t *out);

/* Which sample of the whole data set replaces a bad one: attempt 1, 2, ... for slot `slot` of a
 * batch.  Keyed by the slot's position in the epoch, so the same for every batch and world;
 * thread-safe. */
uint64_t mr_order_substitute(const struct mr_order *q, uint64_t epoch, uint64_t number,
                             unsigned slot, unsigned attempt);

/* The sample's own random bits; thread-safe. */
uint64_t mr_order_key(const struct mr_order *q, uint64_t epoch, uint64_t number, unsigned slot);

#endif
