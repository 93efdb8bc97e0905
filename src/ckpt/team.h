/* team.h - a few threads that run the same function together, again and again.
 *
 * Blocking direct I/O at depth N is N threads that take the next block each: no ring, no call-back,
 * and every system call can be made to fail by itself.  The threads are made once. */
#ifndef MR_TEAM_H
#define MR_TEAM_H

struct mr_team;

/* Member `who` (0 .. n - 1) does its part; called by all of them at once. */
typedef void mr_team_fn(void *ctx, unsigned who);

/* A team of `n` >= 1: n - 1 threads and whoever calls run.  0 or -errno. */
int mr_team_open(unsigned n, struct mr_team **out);
/* Run `fn` in every member, the caller as member 0, and return when all are through.  One caller at
 * a time. */
void mr_team_run(struct mr_team *t, mr_team_fn *fn, void *ctx);
unsigned mr_team_size(const struct mr_team *t);
/* NULL is a no-op. */
void mr_team_close(struct mr_team *t);

#endif
