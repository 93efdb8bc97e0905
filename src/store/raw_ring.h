/* raw_ring.h - reads and writes at given places of open files, many at once, by io_uring.
 *
 * Start up to `depth` ops, then wait for one or more; a finished op may be started again.  One
 * thread uses a ring.  The caller owns the ops, which must not move while under way, and the
 * buffers, which O_DIRECT wants aligned. */
#ifndef MR_RAW_RING_H
#define MR_RAW_RING_H

#include <millrace/api.h>

struct mr_raw_op {
    /* in */
    int fd;
    int write;
    uint64_t offset;
    uint32_t len;
    uint8_t *buf;
    /* out */
    int result;       /* 0: all of it; -ENODATA: the file ends before; -errno */
    uint64_t done_ns; /* when its completion was seen */
    /* the ring's own */
    uint32_t have;
    unsigned n_retries;
};

struct mr_raw_ring;

/* -ENOTSUP where io_uring is unavailable; the text says why. */
int mr_raw_ring_open(unsigned depth, struct mr_raw_ring **out, struct mr_error *err);
void mr_raw_ring_start(struct mr_raw_ring *r, struct mr_raw_op *op);
/* Submit, wait for one or more to finish, store up to `max` of them: their number, or -errno.
 * Not longer than until `until_ns` (0: as long as it takes): 0 when nothing was finished by then.
 * It may return up to MR_RAW_RING_EARLY_NS early, for a caller who needs the moment exactly. */
#define MR_RAW_RING_EARLY_NS 100000
int mr_raw_ring_wait(struct mr_raw_ring *r, uint64_t until_ns, struct mr_raw_op **done,
                     unsigned max);
/* Waits for what is still under way. */
void mr_raw_ring_close(struct mr_raw_ring *r);

#endif
