/* op_log.h - record what a run did to its files, and build what a power cut might leave of it.
 *
 * Operations that were not followed by a sync may have reached the disk or not, each for itself and
 * in any order; a write does so by blocks of 4 KiB.  A sync of a file keeps its bytes and its size,
 * a sync of the folder keeps names.  That is less than any real file system keeps. */
#ifndef MR_TEST_OP_LOG_H
#define MR_TEST_OP_LOG_H

#include "out_dir.h"

#define OP_LOG_TIERS 2

struct op_log;

struct op_log *op_log_new(void);
void op_log_free(struct op_log *l);
/* The hook that records; borrowed from the log. */
const struct mr_out_hook *op_log_hook(struct op_log *l);
/* Note that a checkpoint has been reported durable at this point, on folder `tier` alone, or
 * (OP_LOG_ANY) on some. */
void op_log_durable(struct op_log *l, unsigned tier, uint64_t step, uint64_t version);
#define OP_LOG_ANY OP_LOG_TIERS
/* Begin an empty log with the state that was built of `from`, all of it on the disk. */
void op_log_seed(struct op_log *l, const struct op_log *from);

size_t op_log_n(const struct op_log *l);
/* The last (step, version) reported durable on `tier` in the first n records: 1, or 0 when there is
 * none. */
int op_log_durable_at(const struct op_log *l, size_t n, unsigned tier, uint64_t *step,
                      uint64_t *version);
/* Parts of operations among the first n that no sync has followed. */
size_t op_log_n_loose(struct op_log *l, size_t n);
/* The state after n records when loose parts with keep[i] == 0 are lost.  Returns a fingerprint of
 * all that a reader could tell apart. */
uint64_t op_log_build(struct op_log *l, size_t n, const uint8_t *keep);
/* Write the state that was built into these folders, which are emptied. */
int op_log_write(const struct op_log *l, const char *const dirs[OP_LOG_TIERS]);

#endif
