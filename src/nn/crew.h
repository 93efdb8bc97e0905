/* crew.h - a few threads that share one loop at a time.
 *
 * Lifetime: open -> run* -> close.  One caller at a time; it works too, as rank 0. */
#ifndef MR_CREW_H
#define MR_CREW_H

#include <stdint.h>

struct mr_crew;
/* Called once for each rank 0 .. n-1, at the same time. */
typedef void mr_crew_fn(void *arg, unsigned rank, unsigned n);

/* `n` workers, the caller included; at least 1. */
int mr_crew_open(unsigned n, struct mr_crew **out);
/* Returns when all ranks have.  A crew of NULL is the caller alone. */
void mr_crew_run(struct mr_crew *c, mr_crew_fn *fn, void *arg);
void mr_crew_close(struct mr_crew *c);

/* Where the part of `rank` begins when `total` is cut into `n` parts at multiples of `grain`; the
 * part ends where that of rank + 1 begins. */
static inline uint64_t mr_crew_begin(uint64_t total, uint64_t grain, unsigned rank, unsigned n)
{
    uint64_t at = (total + grain - 1) / grain * rank / n * grain;
    return at < total ? at : total;
}

#endif
