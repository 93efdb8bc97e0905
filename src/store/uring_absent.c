/* uring_absent.c - takes the place of uring_reader.c and raw_ring.c in builds without liburing. */
#include "raw_ring.h"
#include "uring_reader.h"

#include "errtext.h"

#include <errno.h>

int mr_uring_reader_open(unsigned depth, int direct, struct mr_uring_reader **out,
                         struct mr_error *err)
{
    (void)depth;
    (void)direct;
    (void)out;
    return mr_fail(err, -ENOTSUP, "io_uring: this build has no liburing; use the threads engine");
}

void mr_uring_reader_let_block(struct mr_uring_reader *r, unsigned n)
{
    (void)r;
    (void)n;
}

int mr_uring_reader_find(struct mr_uring_reader *r, struct mr_uring_op *op)
{
    (void)r;
    (void)op;
    return 0;
}

void mr_uring_op_part(struct mr_uring_reader *r, struct mr_uring_op *op, int fd, uint64_t offset,
                      size_t size)
{
    (void)r;
    (void)op;
    (void)fd;
    (void)offset;
    (void)size;
}

void mr_uring_op_drop(struct mr_uring_op *op)
{
    (void)op;
}

void mr_uring_reader_start(struct mr_uring_reader *r, struct mr_uring_op *op)
{
    (void)r;
    (void)op;
}

int mr_uring_reader_submit(struct mr_uring_reader *r)
{
    (void)r;
    return -ENOTSUP;
}

int mr_uring_reader_wait(struct mr_uring_reader *r, struct mr_uring_op **done, unsigned max)
{
    (void)r;
    (void)done;
    (void)max;
    return -ENOTSUP;
}

int mr_uring_reader_wait_until(struct mr_uring_reader *r, struct mr_uring_op **done, unsigned max,
                               uint64_t until_ns)
{
    (void)until_ns;
    return mr_uring_reader_wait(r, done, max);
}

void mr_uring_reader_close(struct mr_uring_reader *r)
{
    (void)r;
}

int mr_raw_ring_open(unsigned depth, struct mr_raw_ring **out, struct mr_error *err)
{
    (void)depth;
    (void)out;
    return mr_fail(err, -ENOTSUP, "io_uring: this build has no liburing");
}

void mr_raw_ring_start(struct mr_raw_ring *r, struct mr_raw_op *op)
{
    (void)r;
    (void)op;
}

int mr_raw_ring_wait(struct mr_raw_ring *r, uint64_t until_ns, struct mr_raw_op **done,
                     unsigned max)
{
    (void)r;
    (void)until_ns;
    (void)done;
    (void)max;
    return -ENOTSUP;
}

void mr_raw_ring_close(struct mr_raw_ring *r)
{
    (void)r;
}
