/* uring_reader.c - files by io_uring: a chain of open, read and close, or a read alone.
 *
 * A file that may have to be looked for on the device is one chain of linked requests:
 *
 *     openat -> slot s of the ring's own file table      IOSQE_IO_LINK: if it fails, the rest is
 *     read   <- slot s                                    cancelled
 *     close  slot s                                       IOSQE_IO_HARDLINK on the read: the close
 *                                                         runs also after a short or failed read
 *
 * The descriptor lives in the ring's table and never in the process's, so the three can be queued
 * before the open has run, and RLIMIT_NOFILE is not consumed.  Slot s belongs to one op at a time
 * and is free again when all three completions have arrived: a chain cannot leak a descriptor.
 *
 * The chain's read asks for as much as the buffer holds.  How long the file is supposed to be is
 * asked afterwards (statx by path: the inode is in memory then, so it costs no I/O), and the bytes
 * must match, as in whole_file.c.  A file larger than the buffer is reported to the caller, who
 * makes room and starts the op again: the part that is there is kept.
 *
 * A file that the caller has read before is not asked for its size when it delivers just the bytes
 * that it had then, though there was room for more: see whole_file.c.
 *
 * A file of unknown size whose name and inode are in memory is opened before (openat2 with
 * RESOLVE_CACHED, which gives up rather than wait; the ring's own open tries the same first).  Then
 * fstat tells its size for a fraction of what a second walk along its path costs, the caller gives
 * it just the room it needs, and the ring has one request to run in place of three that wait for
 * each other.  The rule is that of whole_file.c to the letter: the size before the read is what the
 * read must deliver, so a file that shrinks meanwhile is noticed wherever the read stood, and one
 * that grows is cut at the size it had.  A pipe is refused before anything waits for its bytes; the
 * name of one that somebody else has open is in memory.  (Where openat2 is forbidden, an empty pipe
 * with a writer holds its chain up.)  What cannot be opened ahead, for whatever reason, is left to
 * the chain, and so is saying what is wrong with it.
 *
 * Files are opened with O_NONBLOCK so that a pipe in the data set blocks nobody.  File systems
 * without non-blocking reads (FUSE, for one) then answer -EAGAIN; the first such answer for a
 * regular file makes this reader open without the flag from there on.
 *
 * With O_DIRECT the device writes into the buffer itself: no page cache is filled and no CPU
 * copies. A file that refuses it (-EINVAL) is read again without; if that works, so are those after
 * it.
 *
 * user_data of a request = address of its op | which of the three it is (ops are 8-byte aligned).
 */
#include "uring_reader.h"

#include "clock.h"
#include "errtext.h"
#include "ring_setup.h"
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum part { PART_OPEN, PART_READ, PART_CLOSE, N_PARTS };

/* So many times "not now" are enough. */
#define MAX_RETRIES 1000

/* One read may ask for this much; the kernel cuts larger ones anyway. */
#define MAX_READ 0x7ffff000u

struct mr_uring_reader {
    struct io_uring ring;
    int witness;          /* see ring_setup.c */
    unsigned n_under_way; /* ops that the kernel may write to memory for */
    int open_flags;
    int never_cached; /* files cannot be opened ahead here */
    unsigned n_free;
    unsigned free_slot[]; /* [depth], the first n_free are free */
};

/* Chains that read from a slot opened by the same chain need Linux 5.19 or so; there is no flag to
 * ask for, hence a trial with a file that is always there: our own program. */
static int trial(struct mr_uring_reader *r, struct mr_uring_op *op)
{
    struct mr_uring_op *done;
    mr_uring_reader_start(r, op);
    int n = mr_uring_reader_wait(r, &done, 1);
    return n < 0 ? n : op->open_res < 0 ? op->open_res : op->read_res < 0 ? op->read_res : 0;
}

int mr_uring_reader_open(unsigned depth, int direct, struct mr_uring_reader **out,
                         struct mr_error *err)
{
    uint8_t bytes[64];
    struct mr_uring_op op = {
        .dir = AT_FDCWD, .path = "/proc/self/exe", .buf = bytes, .cap = sizeof bytes, .max = 1};
    struct mr_uring_reader *r = malloc(sizeof *r + depth * sizeof *r->free_slot);
    if (!r)
        return mr_fail(err, -ENOMEM, "io_uring: no memory");
    r->n_free = depth;
    r->never_cached = 0;
    r->n_under_way = 0;
    r->open_flags = O_RDONLY | O_NONBLOCK;
    for (unsigned i = 0; i < depth; i++)
        r->free_slot[i] = i;
    int code = mr_ring_init(&r->ring, depth * N_PARTS);
    if (code) {
        free(r);
        if (code == -EMFILE || code == -ENFILE || code == -ENOMEM)
            return mr_fail(err, code, "io_uring: cannot create a ring: %s", mr_errno_text(code));
        return mr_fail(err, -ENOTSUP, "io_uring is not available here (%s); use the threads engine",
                       mr_errno_text(code));
    }
    code = mr_ring_add_witness(&r->ring, depth, &r->witness);
    if (code) {
        io_uring_queue_exit(&r->ring);
        free(r);
        return mr_fail(err, code, "io_uring: cannot register %u files: %s (ulimit -n)", depth,
                       mr_errno_text(code));
    }
    code = trial(r, &op);
    if (code) {
        mr_fail(err, -ENOTSUP, "io_uring: this kernel cannot chain open and read (%s)",
                mr_errno_text(code));
        mr_uring_reader_close(r);
        return -ENOTSUP;
    }
    r->open_flags = O_RDONLY | O_NONBLOCK | (direct ? O_DIRECT : 0);
    *out = r;
    return 0;
}

void mr_uring_reader_let_block(struct mr_uring_reader *r, unsigned n)
{
    unsigned workers[2] = {n, n};
    io_uring_register_iowq_max_workers(&r->ring, workers);
}

static void tag(struct io_uring_sqe *sqe, struct mr_uring_op *op, enum part part, unsigned flags)
{
    io_uring_sqe_set_data64(sqe, (uintptr_t)op | part);
    sqe->flags |= flags;
}

int mr_uring_reader_find(struct mr_uring_reader *r, struct mr_uring_op *op)
{
    struct stat st;
    if (r->never_cached)
        return 0;
    int fd = mr_open_cached(op->dir, op->path, r->open_flags & O_DIRECT, &st);
    r->never_cached = fd == -ENOTSUP;
    if (fd < 0)
        return 0;
    int code = mr_whole_file_allowed(st.st_mode, (uint64_t)st.st_size, op->max);
    if (!code && !(r->open_flags & O_NONBLOCK) && fcntl(fd, F_SETFL, r->open_flags))
        code = -errno;
    if (code) {
        close(fd);
        return code;
    }
    op->is_found = 1;
    op->fd = fd;
    op->direct = (r->open_flags & O_DIRECT) != 0;
    op->size = (size_t)st.st_size;
    op->inode = st.st_ino;
    return 1;
}

void mr_uring_op_part(struct mr_uring_reader *r, struct mr_uring_op *op, int fd, uint64_t offset,
                      size_t size)
{
    op->is_found = op->is_kept = 1;
    op->fd = fd;
    op->offset = offset;
    op->size = size;
    op->direct = (r->open_flags & O_DIRECT) != 0;
}

void mr_uring_op_drop(struct mr_uring_op *op)
{
    if (op->is_found && !op->is_kept)
        close(op->fd);
    op->is_found = 0;
}

/* Queue the read of a file that was opened ahead. */
static void start_found(struct mr_uring_reader *r, struct mr_uring_op *op)
{
    size_t left = (op->direct ? mr_direct_round(op->size) : op->size) - op->have;
    op->n_pending = 1;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&r->ring);
    io_uring_prep_read(sqe, op->fd, op->buf + op->have, left > MAX_READ ? MAX_READ : (unsigned)left,
                       op->offset + op->have);
    tag(sqe, op, PART_READ, 0);
}

void mr_uring_reader_start(struct mr_uring_reader *r, struct mr_uring_op *op)
{
    r->n_under_way++;
    if (op->is_found) {
        start_found(r, op);
        return;
    }
    op->slot = r->free_slot[--r->n_free];
    op->n_pending = N_PARTS;
    size_t room = op->cap - op->have;
    int flags = op->no_direct ? r->open_flags & ~O_DIRECT : r->open_flags;
    op->direct = (flags & O_DIRECT) != 0;

    /* The ring has room for depth chains, and no more are ever queued: sqe is never NULL. */
    struct io_uring_sqe *sqe = io_uring_get_sqe(&r->ring);
    io_uring_prep_openat_direct(sqe, op->dir, op->path, flags, 0, op->slot);
    tag(sqe, op, PART_OPEN, IOSQE_IO_LINK);

    sqe = io_uring_get_sqe(&r->ring);
    io_uring_prep_read(sqe, (int)op->slot, op->buf + op->have,
                       room > MAX_READ ? MAX_READ : (unsigned)room, op->have);
    tag(sqe, op, PART_READ, IOSQE_FIXED_FILE | IOSQE_IO_HARDLINK);

    sqe = io_uring_get_sqe(&r->ring);
    io_uring_prep_close_direct(sqe, op->slot);
    tag(sqe, op, PART_CLOSE, 0);
}

int mr_uring_reader_submit(struct mr_uring_reader *r)
{
    int n;
    do
        n = io_uring_submit_and_get_events(
            &r->ring); /* lets chains under way take their next step */
    while (n == -EINTR);
    return n < 0 && n != -EAGAIN && n != -EBUSY ? n : 0;
}

static int fail(struct mr_uring_op *op, enum mr_stage stage, int code)
{
    op->stage = stage;
    return code;
}

/* The read of a file that was opened ahead is through.  Returns op->result, or 2 = read on. */
static int judge_found(struct mr_uring_reader *r, struct mr_uring_op *op)
{
    int n = op->read_res;
    int refused = n == -EINVAL && op->direct; /* perhaps this file system has no direct I/O */
    if (n < 0 && !refused && !mr_ring_is_passing(n))
        return fail(op, MR_STAGE_READ, n);
    if (n < 0 && ++op->n_retries > MAX_RETRIES)
        return fail(op, MR_STAGE_READ, -EAGAIN);
    if (n == -EAGAIN) /* a regular file: it is the flag, see above */
        r->open_flags &= ~O_NONBLOCK;
    if (n >= 0 && op->no_direct) /* it was that */
        r->open_flags &= ~O_DIRECT;
    if (n > 0)
        op->have += (size_t)n;
    if (op->have >= op->size) /* more: a direct read asks for whole blocks, and the file grew */
        return 0;
    if (n == 0)
        return fail(op, MR_STAGE_READ, -ENODATA);
    op->no_direct |= refused;
    if (refused || op->have % MR_DIRECT_ALIGN) /* cannot go on between two blocks */
        op->direct = 0;
    int flags = (r->open_flags & O_NONBLOCK) | (op->direct ? O_DIRECT : 0);
    return fcntl(op->fd, F_SETFL, flags) ? fail(op, MR_STAGE_READ, -errno) : 2;
}

/* All three parts are through: what came of the file?  Returns op->result, or 2 = read on. */
static int judge(struct mr_uring_reader *r, struct mr_uring_op *op)
{
    int result = op->open_res < 0 ? op->open_res : op->read_res;
    enum mr_stage stage = op->open_res < 0 || result == -EISDIR ? MR_STAGE_OPEN : MR_STAGE_READ;
    if (result == -EINVAL && op->direct) { /* perhaps this file system has no direct I/O */
        op->no_direct = 1;
        return 2;
    }
    if (result < 0 && !mr_ring_is_passing(result))
        return fail(op, stage, result);
    if (result < 0 && ++op->n_retries > MAX_RETRIES)
        return fail(op, stage, -EAGAIN);
    if (op->open_res < 0)
        return 2;
    if (op->read_res >= 0 && op->known && op->have + (size_t)op->read_res == op->known &&
        op->cap > op->known) {
        op->size = op->have = op->known;
        return 0;
    }
    struct statx st;
    if (statx(op->dir, op->path, 0, STATX_SIZE | STATX_TYPE | STATX_INO, &st))
        return fail(op, MR_STAGE_OPEN, -errno);
    int code = mr_whole_file_allowed(st.stx_mode, st.stx_size, op->max);
    if (code)
        return fail(op, MR_STAGE_OPEN, code);
    if (op->read_res == -EAGAIN)
        r->open_flags &= ~O_NONBLOCK;
    if (op->read_res < 0)
        return 2;
    if (op->no_direct) /* it was that: a regular file that reads without */
        r->open_flags &= ~O_DIRECT;
    op->have += (size_t)op->read_res;
    op->size = st.stx_size;
    op->inode = st.stx_ino;
    if (op->have == op->size)
        return 0;
    if (op->have > op->size || op->read_res == 0)
        return fail(op, MR_STAGE_READ, -ENODATA);
    if (op->have == op->cap)
        return 1;
    op->no_direct |= op->have % MR_DIRECT_ALIGN != 0; /* cannot go on between two blocks */
    return 2;
}

static void finish_part(struct mr_uring_reader *r, const struct io_uring_cqe *cqe,
                        struct mr_uring_op **op)
{
    uintptr_t data = (uintptr_t)io_uring_cqe_get_data64(cqe);
    *op = (struct mr_uring_op *)(data & ~(uintptr_t)7);
    enum part part = data & 7;
    if (part == PART_OPEN)
        (*op)->open_res = cqe->res;
    else if (part == PART_READ)
        (*op)->read_res = cqe->res;
    if (--(*op)->n_pending)
        return;
    r->n_under_way--;
    if (!(*op)->is_found)
        r->free_slot[r->n_free++] = (*op)->slot;
}

/* Take the completions that are there. */
static unsigned collect(struct mr_uring_reader *r, struct mr_uring_op **done, unsigned max)
{
    unsigned n_done = 0;
    struct io_uring_cqe *cqe;
    while (n_done < max && io_uring_peek_cqe(&r->ring, &cqe) == 0) {
        struct mr_uring_op *op;
        finish_part(r, cqe, &op);
        io_uring_cqe_seen(&r->ring, cqe);
        if (op->n_pending)
            continue;
        op->result = op->is_found ? judge_found(r, op) : judge(r, op);
        if (op->result != 2)
            mr_uring_op_drop(op);
        op->done_ns = mr_clock_ns();
        if (op->result == 2)
            mr_uring_reader_start(r, op);
        else
            done[n_done++] = op;
    }
    return n_done;
}

int mr_uring_reader_wait(struct mr_uring_reader *r, struct mr_uring_op **done, unsigned max)
{
    unsigned n_done = 0;
    while (!n_done) {
        int code = io_uring_submit_and_wait(&r->ring, 1);
        if (code < 0 && code != -EINTR && code != -EAGAIN && code != -EBUSY)
            return code;
        n_done = collect(r, done, max);
    }
    return (int)n_done;
}

int mr_uring_reader_wait_until(struct mr_uring_reader *r, struct mr_uring_op **done, unsigned max,
                               uint64_t until_ns)
{
    unsigned n_done = 0;
    uint64_t now;
    do {
        now = mr_clock_ns();
        uint64_t left = until_ns > now ? until_ns - now : 0;
        struct __kernel_timespec ts = {.tv_sec = (int64_t)(left / 1000000000u),
                                       .tv_nsec = (long long)(left % 1000000000u)};
        struct io_uring_cqe *cqe;
        int code = io_uring_submit_and_wait_timeout(&r->ring, &cqe, 1, &ts, NULL);
        if (code < 0 && code != -EINTR && code != -EAGAIN && code != -EBUSY && code != -ETIME)
            return code;
        n_done = collect(r, done, max);
    } while (!n_done && now < until_ns);
    return (int)n_done;
}

void mr_uring_reader_close(struct mr_uring_reader *r)
{
    if (!r)
        return;
    mr_ring_exit(&r->ring, r->witness, r->n_under_way != 0);
    free(r);
}
