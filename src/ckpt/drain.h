/* drain.h - copy a checkpoint from one tier to the other, verified on the way. */
#ifndef MR_DRAIN_H
#define MR_DRAIN_H

#include "tier.h"

struct mr_drain;

/* `bytes_per_s`: at most; 0 = as fast as it goes. */
int mr_drain_open(uint64_t bytes_per_s, struct mr_drain **out);
/* NULL is a no-op. */
void mr_drain_close(struct mr_drain *d);

/* Make checkpoint `step` of `from` (which is only read) durable on `to`, if it has `generation`.
 * Nothing is published of one that does not verify.  *bytes: of its files.  -ESTALE: it has another
 * generation by now, and nothing was done. */
int mr_drain_run(struct mr_drain *d, const struct mr_tier *from, struct mr_tier *to, uint64_t step,
                 uint64_t generation, uint64_t *bytes, struct mr_error *err);

/* Give the calling thread the lowest I/O priority and less CPU time. */
void mr_drain_be_modest(void);

#endif
