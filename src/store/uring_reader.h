/* uring_reader.h - many reads of files under way at once in one thread, by io_uring.
 *
 * Lifetime: open -> ((find? start)* submit wait*)* -> close.  One thread per reader. */
#ifndef MR_URING_READER_H
#define MR_URING_READER_H

#include <millrace/api.h>

#include "stage.h"

#include <stddef.h>
#include <stdint.h>

struct mr_uring_reader;

/* One file being read.  The caller owns it and fills the first part; it must stay in place from
 * start until wait returns it. */
struct mr_uring_op {
    int dir;          /* where a relative path begins, or AT_FDCWD; stays open until done */
    const char *path; /* borrows until done */
    uint8_t *buf;     /* where byte `have` of the file goes is buf + have */
    size_t cap, have; /* `have` bytes are there already */
    uint64_t max;     /* largest size allowed */
    size_t known;     /* bytes that it had before, which saves asking; 0, or less than cap */

    /* When done: */
    int result;     /* 0, -errno, or 1: the file has `size` bytes, more than `cap`: make room and
                     * start again */
    size_t size;    /* when result >= 0 */
    uint64_t inode; /* when result >= 0 */
    enum mr_stage stage; /* when result < 0: open or read */
    uint64_t done_ns;    /* when it arrived */
    int direct;          /* it was read around the page cache */

    /* Private */
    unsigned slot, n_pending, n_retries;
    int no_direct;
    int is_found, fd; /* it was opened ahead of the ring, as fd, */
    int is_kept;      /* which stays open: mr_uring_op_part, */
    uint64_t offset;  /* and is read from there on */
    int open_res, read_res;
};

/* A ring for up to `depth` files; with `direct` they are read around the page cache where the file
 * system can, and buffers and their sizes must be multiples of 4096. -ENOTSUP when io_uring is
 * switched off, too old or not built in.
 */
int mr_uring_reader_open(unsigned depth, int direct, struct mr_uring_reader **out,
                         struct mr_error *err);
/* Opening a cold file blocks in a kernel worker: let as many as that block.  It holds for all rings
 * of this thread, so that is for threads of our own. */
void mr_uring_reader_let_block(struct mr_uring_reader *r, unsigned n);
/* Open the file here and now if that needs no I/O: 1 when op->size is known and the file waits to
 * be started with cap >= size, rounded up to 4096 for a direct reader; -errno when its type or size
 * is refused (a failure of stage "open"); 0: start it, it is all the ring's. */
int mr_uring_reader_find(struct mr_uring_reader *r, struct mr_uring_op *op);
/* Read `size` bytes from `offset` on of a file that is open and stays so, in place of find; as for
 * mr_uring_reader_find, direct readers need whole blocks. */
void mr_uring_op_part(struct mr_uring_reader *r, struct mr_uring_op *op, int fd, uint64_t offset,
                      size_t size);
/* Close what was found and will not be started, or was under way when the ring failed. */
void mr_uring_op_drop(struct mr_uring_op *op);
/* Queue a file; never more than `depth` at once.  The kernel sees it at the next submit or wait. */
void mr_uring_reader_start(struct mr_uring_reader *r, struct mr_uring_op *op);
int mr_uring_reader_submit(struct mr_uring_reader *r);
/* Submit, wait for one or more to finish, store up to `max` of them: their number, or -errno. */
int mr_uring_reader_wait(struct mr_uring_reader *r, struct mr_uring_op **done, unsigned max);
/* The same, but 0 when none has finished by `until_ns`; the kernel may be late by 50 us. */
int mr_uring_reader_wait_until(struct mr_uring_reader *r, struct mr_uring_op **done, unsigned max,
                               uint64_t until_ns);
/* What is under way, because the ring failed, is cancelled; afterwards the kernel has let go of it
 * and its buffers may be freed.  From any thread. */
void mr_uring_reader_close(struct mr_uring_reader *r);

#endif
