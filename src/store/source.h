/* source.h - read extents of blobs: start up to `depth` reads, wait for some.
 *
 *     mr_source_prepare(s, r)         r->extent is set: find the blob; r->room = what it needs
 *     r->buf, r->cap = ...            the caller finds the room
 *     mr_source_start(s, r)
 *     n = mr_source_wait(s, until, done, max)
 *         r->result == MR_READ_ROOM   the blob is larger than cap: more room, start again
 *         r->result == 0              r->data, r->len
 *         r->result < 0               r->stage
 *
 * Sources: posix (one read at a time, blocking), uring (many), memory (for tests), and an emulated
 * device that wraps any of them.  The thread that opened a source is the one that uses it and
 * closes it. */
#ifndef MR_SOURCE_H
#define MR_SOURCE_H

#include "blob_store.h"

#define MR_READ_ROOM 1

/* One read.  All zero before its first use; it must not move while it is under way, and may be used
 * again for another extent. */
struct mr_read {
    /* The caller's */
    struct mr_extent extent;
    uint64_t asked_ns; /* when it was asked for */
    unsigned slot;     /* 0 .. depth - 1: no two reads of a source have the same */
    uint8_t *buf;      /* direct sources: a multiple of 4096, and so is cap */
    size_t cap;        /* at least `room`, or what most blobs fit in where that is 0 */

    /* From prepare, and with MR_READ_ROOM */
    size_t room; /* bytes that buf must have; 0: the size is unknown */
    size_t have; /* of buf that must be carried over to a larger one */

    /* Completion */
    int result;
    enum mr_stage stage; /* of a failure, also of prepare */
    uint8_t *data;       /* the extent's bytes, within buf, */
    size_t len;          /* and how many */
    uint64_t took_ns;    /* without lateness that is the host's and not an emulated device's */
    uint64_t end_ns;     /* when it was there */
    int overdue; /* it was really there only after the emulated device would have delivered it */

    /* The source's own */
    int fd;                             /* of a blob that is open for this read alone; -1: none */
    int is_charged;                     /* due_ns is known before the bytes are there */
    int is_known;                       /* `size` is what the blob had the last time */
    size_t size;                        /* of the extent, once it is known */
    uint64_t inode;                     /* 0: unknown */
    uint64_t start_ns, due_ns, late_ns; /* of an emulated device */
};

struct mr_source_opts {
    struct mr_blob_table *blobs; /* borrows: what the extents' numbers mean */
    unsigned depth;              /* reads at once; more than 1 needs `async` */
    int async;                   /* by io_uring, or what the store has for it */
    int direct;                  /* around the page cache where that can be */
    int own_descriptors;         /* the thread may leave the process's table of descriptors, */
    int keep_fd;                 /* but for the first three and this one; -1: no other */
    int ask_sizes;               /* do not trust sizes from earlier reads: a device is charged */
    uint64_t max_bytes;          /* larger extents are refused: -EFBIG */
    const atomic_int *stop;      /* NULL, or: a wait for a device ends with -ECANCELED */
};

struct mr_source {
    const struct mr_source_ops *ops;
    struct mr_store *store; /* a reference */
    struct mr_source_opts o;
};

struct mr_source_ops {
    /* 0 or -errno with r->stage. */
    int (*prepare)(struct mr_source *s, struct mr_read *r);
    /* Forget a read that was prepared and will not be started. */
    void (*drop)(struct mr_source *s, struct mr_read *r);
    void (*start)(struct mr_source *s, struct mr_read *r);
    /* Hand over what was started, without waiting; optional. */
    void (*submit)(struct mr_source *s);
    /* Reads that are done, at least one unless until_ns comes first (0: that has come): their
     * number, or -errno when the source itself has failed. */
    int (*wait)(struct mr_source *s, uint64_t until_ns, struct mr_read **done, unsigned max);
    /* Ends what is under way, if the source has failed; frees s. */
    void (*close)(struct mr_source *s);
};

static inline int mr_source_prepare(struct mr_source *s, struct mr_read *r)
{
    return s->ops->prepare(s, r);
}

static inline void mr_source_drop(struct mr_source *s, struct mr_read *r)
{
    s->ops->drop(s, r);
}

static inline void mr_source_start(struct mr_source *s, struct mr_read *r)
{
    s->ops->start(s, r);
}

static inline void mr_source_submit(struct mr_source *s)
{
    if (s->ops->submit)
        s->ops->submit(s);
}

static inline int mr_source_wait(struct mr_source *s, uint64_t until_ns, struct mr_read **done,
                                 unsigned max)
{
    return s->ops->wait(s, until_ns, done, max);
}

/* A source of the store: what its row's `source` makes. */
int mr_source_open(struct mr_store *store, const struct mr_source_opts *o, struct mr_source **out,
                   struct mr_error *err);
void mr_source_close(struct mr_source *s);

/* A source that delivers what `inner` (takes, also on failure) reads when device `d` (borrows)
 * would. A read may begin up to `most_late_ns` earlier when the one before it in its slot came
 * late. */
int mr_device_source_open(struct mr_source *inner, struct mr_device *d, uint64_t most_late_ns,
                          struct mr_source **out, struct mr_error *err);

/* Of the posix store, for `async` and not; the rows' own. */
int mr_posix_source_open(struct mr_store *store, const struct mr_source_opts *o,
                         struct mr_source **out, struct mr_error *err);
int mr_uring_source_open(struct mr_store *store, const struct mr_source_opts *o,
                         struct mr_source **out, struct mr_error *err);

#endif
