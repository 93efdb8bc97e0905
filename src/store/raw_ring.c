/* raw_ring.c - see raw_ring.h.
 *
 * An op is one request at a time: a short transfer is continued where it stopped, "not now" is
 * asked again.  user_data of a request is the address of its op.  n_under_way counts requests that
 * the kernel may still write to memory for: closing waits for them, because a buffer that is freed
 * earlier would be written after it belongs to somebody else.  If the ring fails, they are
 * cancelled first. */
#include "raw_ring.h"

#include "clock.h"
#include "errtext.h"
#include "ring_setup.h"

#include <errno.h>
#include <stdlib.h>

/* So many times "not now" are enough. */
#define MAX_RETRIES 1000

struct mr_raw_ring {
    struct io_uring ring;
    int witness;
    unsigned n_under_way;
};

int mr_raw_ring_open(unsigned depth, struct mr_raw_ring **out, struct mr_error *err)
{
    struct mr_raw_ring *r = malloc(sizeof *r);
    if (!r)
        return mr_fail(err, -ENOMEM, "io_uring: no memory");
    r->n_under_way = 0;
    int code = mr_ring_init(&r->ring, depth);
    if (!code) {
        code = mr_ring_add_witness(&r->ring, 0, &r->witness);
        if (!code) {
            *out = r;
            return 0;
        }
        io_uring_queue_exit(&r->ring);
    }
    free(r);
    if (code == -EMFILE || code == -ENFILE || code == -ENOMEM)
        return mr_fail(err, code, "io_uring: cannot create a ring: %s", mr_errno_text(code));
    return mr_fail(err, -ENOTSUP, "io_uring is not available here (%s)", mr_errno_text(code));
}

/* The part of the op that is still missing becomes a request. */
static void queue(struct mr_raw_ring *r, struct mr_raw_op *op)
{
    /* The ring has room for depth requests, and no more are ever queued: sqe is never NULL. */
    struct io_uring_sqe *sqe = io_uring_get_sqe(&r->ring);
    if (op->write)
        io_uring_prep_write(sqe, op->fd, op->buf + op->have, op->len - op->have,
                            op->offset + op->have);
    else
        io_uring_prep_read(sqe, op->fd, op->buf + op->have, op->len - op->have,
                           op->offset + op->have);
    io_uring_sqe_set_data(sqe, op);
    r->n_under_way++;
}

void mr_raw_ring_start(struct mr_raw_ring *r, struct mr_raw_op *op)
{
    op->have = 0;
    op->n_retries = 0;
    queue(r, op);
}

/* Nonzero: the op is through, op->result says how.  0: go on with it. */
static int judge(struct mr_raw_op *op, int res)
{
    op->result = res < 0 ? res : 0;
    if (mr_ring_is_passing(res)) {
        op->result = -EAGAIN;
        return ++op->n_retries > MAX_RETRIES;
    }
    if (res < 0)
        return 1;
    if (!res)
        op->result = op->write ? -EIO : -ENODATA;
    op->have += (uint32_t)res;
    return !res || op->have == op->len;
}

static unsigned reap(struct mr_raw_ring *r, struct mr_raw_op **done, unsigned max)
{
    unsigned n = 0;
    struct io_uring_cqe *cqe;
    uint64_t now = mr_clock_ns();
    while (n < max && io_uring_peek_cqe(&r->ring, &cqe) == 0) {
        struct mr_raw_op *op = io_uring_cqe_get_data(cqe);
        int through = judge(op, cqe->res);
        io_uring_cqe_seen(&r->ring, cqe);
        r->n_under_way--;
        op->done_ns = now;
        if (through)
            done[n++] = op;
        else
            queue(r, op);
    }
    return n;
}

/* Submit and sleep until a completion or the time; a time that is too near is not slept for. */
static int submit(struct mr_raw_ring *r, uint64_t until_ns)
{
    if (!until_ns)
        return io_uring_submit_and_wait(&r->ring, 1);
    uint64_t now = mr_clock_ns();
    if (now + MR_RAW_RING_EARLY_NS >= until_ns)
        return io_uring_submit_and_get_events(&r->ring);
    uint64_t left = until_ns - now - MR_RAW_RING_EARLY_NS / 2;
    struct __kernel_timespec t = {(int64_t)(left / 1000000000), (int64_t)(left % 1000000000)};
    struct io_uring_cqe *cqe;
    int code = io_uring_submit_and_wait_timeout(&r->ring, &cqe, 1, &t, NULL);
    return code == -ETIME ? 0 : code;
}

int mr_raw_ring_wait(struct mr_raw_ring *r, uint64_t until_ns, struct mr_raw_op **done,
                     unsigned max)
{
    for (;;) {
        int code = submit(r, until_ns);
        if (code < 0 && code != -EINTR && code != -EAGAIN && code != -EBUSY)
            return code;
        unsigned n = reap(r, done, max);
        if (n || (until_ns && mr_clock_ns() + MR_RAW_RING_EARLY_NS >= until_ns))
            return (int)n;
    }
}

void mr_raw_ring_close(struct mr_raw_ring *r)
{
    if (!r)
        return;
    while (r->n_under_way) {
        struct io_uring_cqe *cqe;
        int code = io_uring_submit_and_wait(&r->ring, 1);
        if (code < 0 && code != -EINTR && code != -EAGAIN && code != -EBUSY)
            break;
        while (io_uring_peek_cqe(&r->ring, &cqe) == 0) {
            io_uring_cqe_seen(&r->ring, cqe);
            r->n_under_way--;
        }
    }
    mr_ring_exit(&r->ring, r->witness, r->n_under_way != 0);
    free(r);
}
