/* thread_team.h - a few threads that run one function together, again and again.
 *
 * The threads are created once and sleep between runs.  Parallel loops use it (each member takes
 * its share of a range), and so does blocking I/O at depth N (each member takes the next block).
 *
 * Lifetime: open -> run* -> close.  One caller at a time. */
#ifndef MR_THREAD_TEAM_H
#define MR_THREAD_TEAM_H

#include <stdint.h>

struct mr_team;

/* Member `rank` of `n`, 0 .. n - 1, does its part; all members run at once. */
typedef void mr_team_fn(void *ctx, unsigned rank, unsigned n);

/* A team of `n` members, at least 1: n - 1 threads and the caller of run.  0 or -errno. */
int mr_team_open(unsigned n, struct mr_team **out);
/* Run `fn` in every member, the caller as rank 0, and return when all have returned.  Without a
 * team (NULL) the caller is the only member. */
void mr_team_run(struct mr_team *t, mr_team_fn *fn, void *ctx);
/* NULL is a no-op. */
void mr_team_close(struct mr_team *t);

/* Where the share of `rank` begins when `total` is cut into `n` shares at multiples of `grain`.
 * The share ends where that of rank + 1 begins. */
static inline uint64_t mr_team_share(uint64_t total, uint64_t grain, unsigned rank, unsigned n)
{
    uint64_t at = (total + grain - 1) / grain * rank / n * grain;
    return at < total ? at : total;
}

#endif
