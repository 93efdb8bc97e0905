/* raw_io.c - see raw_io.h.  Here: buffers, accounting, and the engine that uses io_uring.
 *
 *     begin -> ring -> came back -> (emulated: heap by due time) -> counted -> begin ...
 *
 * With an emulated device an operation is over when the real storage has done it and the emulated
 * one would have: those that came back early wait in a heap, and the loop sleeps for the first
 * completion or the first due time, whichever is earlier.  `depth` counts both kinds.  The real
 * storage is then a mere container that is not to be waited for, so nothing is synced to it either:
 * the sync is charged.
 *
 * Each page that is written begins with a number of its own, so that storage which compresses or
 * stores equal blocks once does not look faster than it is.
 *
 * Invariant: when mr_raw_io_run returns, nothing is under way, except after an error of the ring
 * itself; closing waits for that before the buffers go. */
#include "raw_io.h"

#include "buffer.h"
#include "clock.h"
#include "device.h"
#include "draw.h"
#include "errtext.h"
#include "raw_slot.h"
#include "write_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRESS_NS 100000000
#define STAMP_EVERY 4096

struct mr_raw_io {
    enum mr_raw_engine engine;
    struct mr_raw_ring *ring;  /* NULL: threads */
    struct mr_buffer buf;      /* in huge pages */
    struct mr_buffer ordinary; /* the same in ordinary ones, once a job has asked for that */
    size_t n_bytes;
    unsigned max_depth;
    struct mr_raw_slot *slots;  /* [max_depth] */
    struct mr_raw_slot **idle;  /* [max_depth], and so on: the loop's three sets */
    struct mr_raw_slot **early; /* heap, the first due on top */
    struct mr_raw_op **done;
};

void mr_noise_fill(uint8_t *buf, size_t n, uint64_t seed)
{
    uint64_t x = mr_mix(seed + 1);
    for (size_t i = 0; i < n; i += sizeof x) {
        /* xorshift: mr_mix would be slower than memory */
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        memcpy(buf + i, &x, n - i < sizeof x ? n - i : sizeof x);
    }
}

void mr_raw_slot_begin(struct mr_raw_slot *s, const struct mr_raw_job *job, uint64_t i)
{
    job->place(job->place_ctx, i, &s->op.offset, &s->op.len);
    s->op.fd = job->fd;
    s->op.write = job->write;
    s->start_ns = mr_clock_ns();
    if (job->write)
        for (uint32_t at = 0; at + sizeof s->start_ns <= s->op.len; at += STAMP_EVERY) {
            uint64_t stamp = mr_mix(s->start_ns ^ mr_mix(s->op.offset + at));
            memcpy(s->op.buf + at, &stamp, sizeof stamp);
        }
    s->due_ns = 0;
    if (job->device) {
        struct mr_device_place where = {.file = job->inode, .offset = s->op.offset};
        s->due_ns = mr_device_reserve_at(
            job->device, s->start_ns, job->write ? MR_DEV_WRITE : MR_DEV_READ, &where, s->op.len);
    }
}

void mr_raw_slot_count(const struct mr_raw_slot *s, struct mr_raw_result *into)
{
    uint64_t end = s->op.done_ns > s->due_ns ? s->op.done_ns : s->due_ns;
    into->n_ops++;
    into->bytes += s->op.len;
    into->n_late += s->due_ns && s->op.done_ns > s->due_ns;
    mr_histogram_add(&into->latency, end - s->start_ns);
}

int mr_raw_slot_fail(const struct mr_raw_slot *s, const struct mr_raw_job *job,
                     struct mr_error *err)
{
    int code = s->op.result;
    return mr_fail(err, code, "%s: %s of %u bytes at %llu: %s", job->name,
                   job->write ? "write" : "read", s->op.len, (unsigned long long)s->op.offset,
                   code == -ENODATA ? "the file ends before that" : mr_errno_text(code));
}

/* Memory that a device cannot compress, all of it touched. */
static int make_buffer(struct mr_buffer *b, size_t bytes, int ordinary, struct mr_error *err)
{
    int r = mr_buffer_reserve(b, bytes);
    if (r)
        return mr_fail(err, r, "no memory for %zu bytes of buffers", bytes);
    if (ordinary)
        mr_buffer_ordinary(b);
    mr_noise_fill(b->data, bytes, mr_clock_ns());
    return 0;
}

int mr_raw_io_open(enum mr_raw_engine engine, unsigned max_depth, size_t bytes,
                   struct mr_raw_io **out, struct mr_error *err)
{
    struct mr_error why = {0};
    struct mr_raw_io *io = calloc(1, sizeof *io);
    if (!io)
        return mr_fail(err, -ENOMEM, "no memory");
    io->max_depth = max_depth;
    io->n_bytes = bytes;
    io->slots = calloc(max_depth, sizeof *io->slots);
    io->idle = calloc(max_depth, sizeof *io->idle);
    io->early = calloc(max_depth, sizeof *io->early);
    io->done = calloc(max_depth, sizeof *io->done);
    int r = io->slots && io->idle && io->early && io->done ? make_buffer(&io->buf, bytes, 0, err)
                                                           : mr_fail(err, -ENOMEM, "no memory");
    if (r)
        goto failed;
    io->engine = MR_RAW_THREADS;
    if (engine != MR_RAW_THREADS) {
        r = mr_raw_ring_open(max_depth, &io->ring, &why);
        if (!r)
            io->engine = MR_RAW_URING;
        else if (r != -ENOTSUP || engine == MR_RAW_URING) {
            mr_fail(err, r, "%s", why.text);
            goto failed;
        }
    }
    *out = io;
    return 0;
failed:
    mr_raw_io_close(io);
    return r;
}

enum mr_raw_engine mr_raw_io_engine(const struct mr_raw_io *io)
{
    return io->engine;
}

uint8_t *mr_raw_io_buffer(struct mr_raw_io *io)
{
    return io->buf.data;
}

void mr_raw_io_close(struct mr_raw_io *io)
{
    if (!io)
        return;
    mr_raw_ring_close(io->ring);
    mr_buffer_fini(&io->buf);
    mr_buffer_fini(&io->ordinary);
    free(io->slots);
    free(io->idle);
    free(io->early);
    free(io->done);
    free(io);
}

/* A run of the ring engine. */
struct loop {
    struct mr_raw_io *io;
    const struct mr_raw_job *job;
    struct mr_raw_result *out;
    struct mr_error *err;
    uint64_t next;    /* operation to begin */
    uint64_t end_ns;  /* none begins after that; 0: no limit */
    uint64_t told_ns; /* of the last report */
    unsigned n_idle;  /* slots in io->idle */
    unsigned n_early; /* slots in io->early */
    unsigned n_in_ring;
    int code; /* the first error: nothing begins any more */
};

static void push_early(struct loop *l, struct mr_raw_slot *s)
{
    struct mr_raw_slot **heap = l->io->early;
    unsigned at = l->n_early++;
    for (; at && heap[(at - 1) / 2]->due_ns > s->due_ns; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = s;
}

static struct mr_raw_slot *pop_early(struct loop *l)
{
    struct mr_raw_slot **heap = l->io->early, *first = heap[0], *last = heap[--l->n_early];
    unsigned at = 0, child;
    while ((child = 2 * at + 1) < l->n_early) {
        if (child + 1 < l->n_early && heap[child + 1]->due_ns < heap[child]->due_ns)
            child++;
        if (heap[child]->due_ns >= last->due_ns)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return first;
}

static void finish(struct loop *l, struct mr_raw_slot *s)
{
    mr_raw_slot_count(s, l->out);
    l->io->idle[l->n_idle++] = s;
}

/* What came back from the ring: over, early, or failed. */
static void take_back(struct loop *l, struct mr_raw_slot *s)
{
    l->n_in_ring--;
    if (s->op.result) {
        if (!l->code)
            l->code = mr_raw_slot_fail(s, l->job, l->err);
        l->io->idle[l->n_idle++] = s;
    } else if (s->due_ns > s->op.done_ns) {
        push_early(l, s);
    } else {
        finish(l, s);
    }
}

/* Fill the ring up to the depth, as long as there is something to do and time. */
static void begin_more(struct loop *l)
{
    const struct mr_raw_job *job = l->job;
    while (!l->code && l->n_idle && l->next < job->n_ops) {
        struct mr_raw_slot *s = l->io->idle[l->n_idle - 1];
        if (l->end_ns && mr_clock_ns() >= l->end_ns) {
            l->out->cut = 1;
            return;
        }
        l->n_idle--;
        mr_raw_slot_begin(s, job, l->next++);
        mr_raw_ring_start(l->io->ring, &s->op);
        l->n_in_ring++;
    }
}

/* Sleep until something happens, and sort what came. */
static int wait_for_some(struct loop *l)
{
    uint64_t due = l->n_early ? l->io->early[0]->due_ns : 0;
    int n = 0;
    if (l->n_in_ring)
        n = mr_raw_ring_wait(l->io->ring, due, l->io->done, l->io->max_depth);
    if (n < 0)
        return mr_fail(l->err, n, "%s: io_uring: %s", l->job->name, mr_errno_text(n));
    for (int i = 0; i < n; i++)
        take_back(
            l, (struct mr_raw_slot *)((char *)l->io->done[i] - offsetof(struct mr_raw_slot, op)));
    if (!n && due)
        mr_device_wait_until(due);
    while (l->n_early && l->io->early[0]->due_ns <= mr_clock_ns())
        finish(l, pop_early(l));
    return 0;
}

static void report(struct loop *l)
{
    const struct mr_raw_job *job = l->job;
    uint64_t now;
    if (!job->progress || l->code || (now = mr_clock_ns()) - l->told_ns < PROGRESS_NS)
        return;
    l->told_ns = now;
    if (job->progress(job->progress_ctx, l->out->n_ops, job->n_ops))
        l->code = -ECANCELED;
}

static int ring_run(struct mr_raw_io *io, const struct mr_raw_job *job, struct mr_raw_result *out,
                    struct mr_error *err)
{
    struct loop l = {.io = io, .job = job, .out = out, .err = err};
    for (unsigned i = job->depth; i > 0; i--)
        io->idle[l.n_idle++] = &io->slots[i - 1];
    l.end_ns = job->box_ns ? mr_clock_ns() + job->box_ns : 0;
    report(&l);
    for (begin_more(&l); l.n_in_ring || l.n_early; begin_more(&l)) {
        int r = wait_for_some(&l);
        if (r)
            return r;
        report(&l);
    }
    return l.code;
}

/* The end of a run of writes. */
static int sync_file(const struct mr_raw_job *job, struct mr_error *err)
{
    if (job->sync && job->device)
        mr_device_wait_until(mr_device_reserve(job->device, MR_DEV_SYNC, NULL, 0));
    int r = job->sync && !job->device ? mr_sync_file(job->fd) : 0;
    return r ? mr_fail(err, r, "%s: fsync: %s", job->name, mr_errno_text(r)) : 0;
}

int mr_raw_io_run(struct mr_raw_io *io, const struct mr_raw_job *job, struct mr_raw_result *out,
                  struct mr_error *err)
{
    if (!job->depth || job->depth > io->max_depth ||
        (uint64_t)job->depth * job->max_len > io->n_bytes)
        return mr_fail(err, -EINVAL, "%s: depth %u of %u bytes does not fit", job->name, job->depth,
                       job->max_len);
    memset(out, 0, sizeof *out);
    struct mr_buffer *buf = job->ordinary ? &io->ordinary : &io->buf;
    int r = buf->cap ? 0 : make_buffer(buf, io->n_bytes, 1, err);
    if (r)
        return r;
    for (unsigned i = 0; i < job->depth; i++)
        io->slots[i].op.buf = buf->data + (size_t)i * job->max_len;
    uint64_t start = mr_clock_ns();
    r = io->ring ? ring_run(io, job, out, err) : mr_raw_threads_run(io->slots, job, out, err);
    if (!r)
        r = sync_file(job, err);
    out->seconds = (double)(mr_clock_ns() - start) / 1e9;
    return r;
}
