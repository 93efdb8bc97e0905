/* lease.h - who writes in a folder, visible to every host that sees the folder.
 *
 * One owner at a time.  An owner that is gone is replaced only with proof (lease.c); one that lives
 * is never disturbed.  An owner that was silent for too long may have been replaced: whoever
 * changes names in the folder asks mr_lease_check right before.
 *
 * Lifetime: acquire -> check* -> release.  Any thread checks.  A forked child owns nothing. */
#ifndef MR_LEASE_H
#define MR_LEASE_H

#include <millrace/api.h>

#include <stdint.h>

#define MR_LEASE_NAME       ".millrace-lease"
#define MR_LEASE_SILENCE_MS 60000

struct mr_lease_opts {   /* zero means default */
    unsigned silence_ms; /* how long an owner elsewhere must be silent; 0 = MR_LEASE_SILENCE_MS */
    /* Called once when acquire has to wait for that. */
    void (*waiting)(void *ctx, const char *text);
    void *ctx;
};

struct mr_lease;

/* Own the folder `dir_fd` (borrowed until release); `path` is for words.  -EBUSY: somebody else
 * owns it; -EINTR: a signal came while it waited. */
int mr_lease_acquire(int dir_fd, const char *path, const struct mr_lease_opts *o,
                     struct mr_lease **out, struct mr_error *err);
/* 0: still ours; -EBUSY: not any more; or -errno of looking. */
int mr_lease_check(struct mr_lease *l);
/* Differs between any two owners; part of the names of temporaries. */
uint32_t mr_lease_token(const struct mr_lease *l);
/* NULL is a no-op. */
void mr_lease_release(struct mr_lease *l);

#endif
