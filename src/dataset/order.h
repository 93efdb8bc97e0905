/* order.h - which sample stands where: epochs, shuffling and shards.
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
 * A window shuffle is made after sharding, from the shard's own positions in list order, as
 * tf.data's shard().shuffle(N) does: the shard's samples do not depend on the seed there. */
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
};

struct mr_order {
    struct mr_order_opts o;
    uint64_t n_full;    /* full batches of this shard in an epoch */
    uint64_t n_batches; /* delivered: n_full, or one more */
    uint64_t n_shard;   /* positions of this shard, remainder included */
    uint64_t epoch;     /* what `perm` and the window are set up for */
    struct mr_permutation perm;
    uint64_t *win;                   /* the window's contents, local positions */
    uint64_t n_win, win_in, win_out; /* filled, taken from the shard, drawn */
};

/* 0 or -ENOMEM. */
int mr_order_init(struct mr_order *q, const struct mr_order_opts *o);
void mr_order_fini(struct mr_order *q);

/* Samples of batch `number` of `epoch`: the data set's indices to out[], their number returned.
 * Any order of calls is right; with a window shuffle only going forward is cheap (a jump replays
 * the epoch's draws up to there). */
unsigned mr_order_batch(struct mr_order *q, uint64_t epoch, uint64_t number, uint64_t *out);

/* Who replaces a bad sample: attempt 1, 2, ... for position `slot` of a batch; thread-safe. */
uint64_t mr_order_substitute(const struct mr_order *q, uint64_t epoch, uint64_t number,
                             unsigned slot, unsigned attempt);

/* The sample's own random bits; thread-safe. */
uint64_t mr_order_key(const struct mr_order *q, uint64_t epoch, uint64_t number, unsigned slot);

#endif
