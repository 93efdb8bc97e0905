/* uring_engine.c - each worker keeps its share of the I/O depth under way in a ring of its own.
 *
 *     claim slots while the ring has room -> submit -> wait for completions -> map -> finish
 *
 * A ring per worker needs no hand-over between threads: a file is read, mapped and finished where
 * it was claimed, and cached files, which io_uring copies in the submitting thread, are copied by
 * all workers at once.  Before each map the free places are refilled and submitted, so that the
 * device stays busy while the worker computes.
 *
 * Without a map a file is read straight into its slot; with one, into the flight's own buffer.  The
 * room is the file's size where the reader can tell it ahead or an earlier epoch has seen it, else
 * what most files fit in.
 *
 * With an emulated device a file that has arrived is held back until the device would have
 * delivered it: in a heap, the earliest on top.  The worker then waits for the ring or for that
 * moment, whichever comes first, so reads go on being submitted and taken in.  Flights that are
 * held count towards the I/O depth, as they are what the device is busy with. */
#include "pipeline_state.h"

#include "clock.h"
#include "device.h"
#include "errtext.h"
#include "ledger.h"
#include "sample_set.h"
#include "uring_reader.h"
#include "whole_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct flight { /* one file under way */
    struct mr_uring_op op;
    struct mr_task task;
    uint8_t *room;         /* with a map: for the file, */
    struct mr_buffer file; /* and for a larger one */
    /* Without a map: a room that the last file did not need, and the batch that it is part of */
    struct mr_slot_place spare;
    struct {
        const struct mr_work_batch *batch; /* NULL: there is none */
        uint64_t epoch, number;
    } spare_of;
    uint64_t asked_ns; /* when it was begun, */
    uint64_t start_ns; /* or would have been, had the one before not been late */
    uint64_t due_ns;   /* when the emulated device delivers it */
    uint64_t late_ns;  /* how late the one before in this place was */
    struct flight *next_free;
    char path[PATH_MAX];
};

struct rings {
    struct mr_uring_reader *reader;
    int failed; /* the ring has: what is under way there is lost */
    unsigned depth, n_under_way;
    struct flight *flight, *free;
    struct mr_uring_op **done; /* [depth] */
    struct flight **held;      /* [depth] a heap by due_ns; the first n_held */
    unsigned n_held;
};

static void fini(struct mr_worker *w)
{
    struct rings *r = w->engine;
    if (!r)
        return;
    mr_uring_reader_close(r->reader);
    for (unsigned i = 0; r->flight && i < r->depth; i++) {
        mr_uring_op_drop(&r->flight[i].op); /* still there only if the ring failed */
        mr_buffer_fini(&r->flight[i].file);
    }
    free(r->flight);
    free(r->done);
    free(r->held);
    free(r);
    w->engine = NULL;
}

static int init(struct mr_worker *w, struct mr_error *err)
{
    struct mr_pipeline *p = w->p;
    struct rings *r = calloc(1, sizeof *r);
    if (!r)
        return mr_fail(err, -ENOMEM, "no memory for a worker");
    w->engine = r;
    r->depth = (p->o.io_depth + p->n_workers - 1 - w->number) / p->n_workers;
    if (!r->depth)
        r->depth = 1;
    r->flight = calloc(r->depth, sizeof *r->flight);
    r->done = calloc(r->depth, sizeof *r->done);
    r->held = p->o.storage ? calloc(r->depth, sizeof *r->held) : NULL;
    if (!r->flight || !r->done || (p->o.storage && !r->held))
        return mr_fail(err, -ENOMEM, "no memory for a worker");
    for (unsigned i = 0; i < r->depth; i++) {
        struct flight *f = &r->flight[i];
        f->next_free = r->free;
        r->free = f;
        f->room = mr_worker_take_room(p);
    }
    return 0;
}

/* Room for `size` bytes, keeping what has been read; 0 or -ENOMEM. */
static int make_room(struct mr_worker *w, struct flight *f, size_t size)
{
    struct mr_pipeline *p = w->p;
    if (p->pool->whole_files) {
        size_t cap;
        uint8_t *at = mr_slot_room(f->task.batch, f->task.slot, size, f->op.buf, f->op.have, &cap);
        if (!at)
            return -ENOMEM;
        f->op.buf = at;
        f->op.cap = cap;
        return 0;
    }
    if (size <= f->op.cap)
        return 0;
    if (size <= MR_FIRST_ROOM) {
        f->op.buf = f->room;
        f->op.cap = MR_FIRST_ROOM;
        return 0;
    }
    size_t before = f->file.cap;
    if (mr_buffer_reserve(&f->file, mr_worker_room_bytes(p, size)))
        return -ENOMEM;
    mr_batch_pool_count(p->pool, before, f->file.cap);
    if (f->op.have && f->op.buf == f->room)
        memcpy(f->file.data, f->room, f->op.have);
    f->op.buf = f->file.data;
    f->op.cap = f->file.cap;
    return 0;
}

static void land(struct mr_worker *w, struct flight *f, uint8_t *data, size_t len)
{
    struct rings *r = w->engine;
    mr_slot_finish(w, &f->task, data, len);
    f->next_free = r->free;
    r->free = f;
}

/* Make the op that reads the task's file; one whose size is not known is opened ahead if it can be:
 * 1 if it was, 0 or -errno. */
static int find(struct mr_worker *w, struct flight *f)
{
    struct mr_pipeline *p = w->p;
    struct rings *r = w->engine;
    int code = mr_dataset_path(p->data, f->task.index, f->path, sizeof f->path);
    if (code < 0)
        return code;
    f->op = (struct mr_uring_op){.dir = mr_dataset_folder(p->data),
                                 .path = f->path,
                                 .max = p->o.max_file_bytes,
                                 .known = mr_worker_known_bytes(p, f->task.index)};
    return f->op.known ? 0 : mr_uring_reader_find(r->reader, &f->op);
}

static size_t room_for(struct mr_worker *w, const struct flight *f, int found)
{
    if (found)
        return f->op.direct ? mr_direct_round(f->op.size) : f->op.size;
    if (f->op.known)
        return f->op.known + 1;
    return w->p->pool->whole_files ? w->p->pool->slot_bytes : MR_FIRST_ROOM;
}

/* A file of unknown size may have the room that the one before left over. */
static void lend_spare(struct flight *f)
{
    const struct mr_work_batch *b = f->task.batch;
    if (f->spare_of.batch == b && f->spare_of.epoch == b->pub.epoch &&
        f->spare_of.number == b->pub.number &&
        !mr_slot_lend(f->task.batch, f->task.slot, &f->spare))
        return;
    f->spare_of.batch = NULL;
}

/* Where the file ends up, in just the room that it needs. */
static uint8_t *pack(struct flight *f)
{
    struct mr_work_batch *b = f->task.batch;
    uint8_t *at = mr_slot_pack(b, f->task.slot, f->op.buf, f->op.size, &f->spare);
    if (!at)
        return f->op.buf;
    f->spare_of.batch = b;
    f->spare_of.epoch = b->pub.epoch;
    f->spare_of.number = b->pub.number;
    return at;
}

/* Begin to read the sample that the task names now, or give the slot up. */
static void take_off(struct mr_worker *w, struct flight *f)
{
    struct rings *r = w->engine;
    struct mr_pipeline *p = w->p;
    int code;
    f->asked_ns = mr_clock_ns();
    f->start_ns = f->asked_ns - f->late_ns;
    f->late_ns = 0;
    while ((code = find(w, f)) < 0)
        if (mr_ledger_note(p, &f->task, "open", code, "")) {
            land(w, f, NULL, 0);
            return;
        }
    if (p->pool->whole_files && !code && !f->op.known)
        lend_spare(f);
    if (make_room(w, f, room_for(w, f, code))) {
        mr_uring_op_drop(&f->op);
        mr_ledger_give_up(p, &f->task, "read", -ENOMEM);
        land(w, f, NULL, 0);
        return;
    }
    mr_uring_reader_start(r->reader, &f->op);
    r->n_under_way++;
}

/* With a flight that is free. */
static void set_out(struct mr_worker *w, const struct mr_task *t)
{
    struct rings *r = w->engine;
    struct flight *f = r->free;
    r->free = f->next_free;
    f->task = *t;
    f->task.lane = (unsigned)(f - r->flight) + 1;
    take_off(w, f);
}

/* Claim slots for the free flights; blocks only when nothing is under way or held.  -1 = stop. */
static int refill(struct mr_worker *w)
{
    struct rings *r = w->engine;
    struct mr_task t;
    while (r->free && !r->failed) {
        int claimed = mr_slot_claim(w, r->n_under_way + r->n_held == 0, &t);
        if (claimed != 1)
            return claimed;
        set_out(w, &t);
    }
    return r->failed ? -1 : 0;
}

static void retry_or_give_up(struct mr_worker *w, struct flight *f, const char *stage, int code,
                             const char *detail)
{
    if (stage[0] != 'm' && mr_ledger_is_ours(code)) {
        mr_ledger_give_up(w->p, &f->task, stage, code);
        land(w, f, NULL, 0);
    } else if (mr_ledger_note(w->p, &f->task, stage, code, detail)) {
        land(w, f, NULL, 0);
    } else {
        take_off(w, f);
    }
}

/* A file is there: map it and fill its slot. */
static void deliver(struct mr_worker *w, struct flight *f, uint64_t now_ns)
{
    struct mr_pipeline *p = w->p;
    uint8_t *data = f->op.buf;
    size_t len = f->op.size;
    struct mr_slot_cost *cost = &f->task.batch->cost[f->task.slot];
    cost->read_at = f->asked_ns;
    cost->read_end = now_ns + f->late_ns;
    cost->read_ns = now_ns - f->start_ns;
    cost->file_bytes = len;
    if (len != f->op.known)
        mr_dataset_know_bytes(p->data, f->task.index, len);
    if (!p->pool->whole_files) {
        int code = mr_worker_map(w, &f->task, data, len);
        if (code) {
            retry_or_give_up(w, f, "map", code, mr_worker_map_error(w));
            return;
        }
        data = f->task.batch->slab.data + f->task.slot * p->pool->slot_bytes;
        len = p->pool->slot_bytes;
    } else if (!f->op.known) {
        data = pack(f);
    }
    land(w, f, data, len);
}

/* Reserve the emulated device from the moment when the file was asked for, and hold it back. */
static void hold(struct mr_worker *w, struct flight *f)
{
    struct mr_device *storage = w->p->o.storage;
    struct rings *r = w->engine;
    struct mr_device_place place;
    mr_device_place_path(storage, f->op.dir, f->path, f->op.inode, &place);
    f->due_ns = mr_device_reserve_file(storage, f->start_ns, &place, f->op.size);
    f->task.batch->cost[f->task.slot].overdue =
        f->op.done_ns > f->due_ns + (f->asked_ns - f->start_ns);
    unsigned at = r->n_held++;
    for (unsigned up; at && r->held[up = (at - 1) / 2]->due_ns > f->due_ns; at = up)
        r->held[at] = r->held[up];
    r->held[at] = f;
}

/* The one that is due first, out of the heap. */
static struct flight *let_go(struct rings *r)
{
    struct flight *first = r->held[0], *last = r->held[--r->n_held];
    unsigned at = 0, down;
    while ((down = 2 * at + 1) < r->n_held) {
        if (down + 1 < r->n_held && r->held[down + 1]->due_ns < r->held[down]->due_ns)
            down++;
        if (r->held[down]->due_ns >= last->due_ns)
            break;
        r->held[at] = r->held[down];
        at = down;
    }
    r->held[at] = last;
    return first;
}

/* A file has arrived (or not). */
static void arrive(struct mr_worker *w, struct flight *f)
{
    struct rings *r = w->engine;
    struct mr_uring_op *op = &f->op;
    r->n_under_way--;
    if (op->result < 0) {
        retry_or_give_up(w, f, op->stage, op->result, "");
    } else if (op->result == 1) {
        if (make_room(w, f, op->size)) {
            retry_or_give_up(w, f, "read", -ENOMEM, "");
            return;
        }
        mr_uring_reader_start(r->reader, op);
        r->n_under_way++;
    } else if (w->p->o.storage) {
        hold(w, f);
    } else {
        deliver(w, f, op->done_ns);
    }
}

/* A ring belongs to the thread that made it. */
static int begin(struct mr_worker *w, struct mr_error *err)
{
    struct rings *r = w->engine;
    int code = mr_uring_reader_open(r->depth, w->p->o.direct, &r->reader, err);
    if (!code)
        mr_uring_reader_let_block(r->reader, r->depth);
    return code;
}

/* The ring itself has failed: nothing more will arrive. */
static void fail(struct mr_worker *w, int code)
{
    struct rings *r = w->engine;
    r->failed = 1;
    r->n_under_way = 0;
    mr_worker_break(w->p, code);
}

/* Wait for files to arrive: for ever, or until the first of those held is nearly due. */
static int wait_for_ring(struct mr_worker *w)
{
    struct rings *r = w->engine;
    if (!r->n_held)
        return mr_uring_reader_wait(r->reader, r->done, r->depth);
    uint64_t due = r->held[0]->due_ns, slice = mr_clock_ns() + MR_DEVICE_SLICE_NS;
    uint64_t until = due > MR_DEVICE_SPIN_NS ? due - MR_DEVICE_SPIN_NS : 0;
    return mr_uring_reader_wait_until(r->reader, r->done, r->depth, until < slice ? until : slice);
}

/* Deliver what is due; when nothing is on its way in, or will be in time, wait for the first. */
static void deliver_due(struct mr_worker *w)
{
    struct rings *r = w->engine;
    atomic_int *stopping = &w->p->stopping;
    while (r->n_held && !atomic_load_explicit(stopping, memory_order_relaxed)) {
        uint64_t due = r->held[0]->due_ns, now = mr_clock_ns();
        if (due > now + MR_DEVICE_SPIN_NS && r->n_under_way)
            return;
        if (mr_device_wait_unless(due, stopping))
            return;
        struct flight *f = let_go(r);
        now = mr_clock_ns();
        f->late_ns = mr_device_late_ns(due, f->op.done_ns, now, f->asked_ns - f->start_ns,
                                       mr_worker_most_late(w->p));
        deliver(w, f, now - f->late_ns);
        /* Take new work before the next one is mapped, and see what has arrived. */
        if (refill(w) < 0 || r->n_under_way)
            return;
    }
}

static void run(struct mr_worker *w)
{
    struct rings *r = w->engine;
    for (;;) {
        int stop = refill(w) < 0;
        if (r->n_held && atomic_load_explicit(&w->p->stopping, memory_order_relaxed)) {
            stop = 1;
            r->n_held = 0; /* nobody will look at them */
        }
        if (!r->n_under_way && !r->n_held) {
            if (stop)
                return;
            continue;
        }
        int n = r->n_under_way ? wait_for_ring(w) : 0;
        if (n < 0) {
            fail(w, n);
            return;
        }
        for (int i = 0; i < n; i++) {
            arrive(w, (struct flight *)r->done[i]);
            /* Before the next map, hand the kernel what there is to do. */
            if (!w->p->pool->whole_files && i + 1 < n && !stop && r->n_under_way) {
                stop = refill(w) < 0;
                mr_uring_reader_submit(r->reader);
            }
        }
        if (r->n_held)
            deliver_due(w);
    }
}

const struct mr_engine_ops mr_uring_engine = {init, begin, run, fini};
