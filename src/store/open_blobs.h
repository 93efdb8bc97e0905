/* open_blobs.h - descriptors of blobs of which parts are read, kept open for the next part.
 *
 * Small and of one thread.  There are places for MR_OPEN_BLOBS blobs and for each read that may be
 * under way: so one is always free that nobody uses. */
#ifndef MR_OPEN_BLOBS_H
#define MR_OPEN_BLOBS_H

#include <stddef.h>
#include <stdint.h>

#define MR_OPEN_BLOBS 16

struct mr_open_blob {
    int fd; /* -1: none */
    unsigned n_users;
    uint64_t blob, bytes, inode;
};

struct mr_open_blobs {
    struct mr_open_blob *place; /* [n] */
    unsigned n, next;
};

/* For `depth` reads at once; 0 or -ENOMEM. */
int mr_open_blobs_init(struct mr_open_blobs *t, unsigned depth);
/* Closes all. */
void mr_open_blobs_fini(struct mr_open_blobs *t);
/* A user more of the blob, which is called `name` from the folder `dir`: 0 with *out, of which the
 * caller takes 1 off n_users when it is done, or -errno. */
int mr_open_blobs_take(struct mr_open_blobs *t, uint64_t blob, int dir, const char *name,
                       int direct, struct mr_open_blob **out);

#endif
