/* worker.c - the worker: claims slots, reads their samples, maps them, finishes the slots.
 *
 *     claim slots while a request is free -> start -> wait for completions -> map -> finish
 *
 * Each worker has a source of its own (store/source.h), with depth 1 or its share of the I/O depth:
 * a sample is read, mapped and finished where it was claimed, and nothing is handed over between
 * threads.  Before each map the free requests are refilled and submitted, so that the device stays
 * busy while the worker computes.
 *
 * Without a map a sample is read straight into its slot; with one, into the request's own room.
 *
 * When descriptors or memory run out, that says nothing about the sample.  A worker with one
 * request waits a moment and tries again, as others will give theirs back; the run fails only if
 * that goes on for about a second.
 *
 * Shutdown: stopping is set, everybody is woken, workers leave after what they have under way, and
 * whatever they did not claim is dropped with the pool. */
#include "pipeline_state.h"

#include "clock.h"
#include "device.h"
#include "errtext.h"
#include "ledger.h"

#include <millrace/trace.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FIRST_ROOM      ((size_t)256 << 10) /* of a request: most photos fit */
#define LONGEST_WAIT_NS 512000000           /* doubled from 1 ms: a second in all */

struct request {
    struct mr_read read; /* first, so that a read is its request */
    struct mr_task task;
    uint64_t pause_ns;     /* before it is tried again */
    uint8_t *room;         /* with a map: for the sample, */
    struct mr_buffer file; /* and for a larger one */
    /* Without a map: a room that the last sample did not need, and the batch that it is part of */
    int is_guess; /* the sample's room was given before its size was known */
    struct mr_slot_place spare;
    struct {
        const struct mr_work_batch *batch; /* NULL: there is none */
        uint64_t epoch, number;
    } spare_of;
    struct request *next_free;
};

/* ---- room ---- */

/* How much to reserve for `size` bytes: direct reads want huge pages, one at least. */
static size_t reserve_bytes(const struct mr_pipeline *p, size_t size)
{
    return p->o.direct && size < MR_HUGE_BYTES ? MR_HUGE_BYTES : size;
}

/* A sample of unknown size may have the room that the one before left over. */
static void lend_spare(struct request *q)
{
    const struct mr_work_batch *b = q->task.batch;
    if (q->spare_of.batch == b && q->spare_of.epoch == b->pub.epoch &&
        q->spare_of.number == b->pub.number &&
        !mr_slot_lend(q->task.batch, q->task.slot, &q->spare))
        return;
    q->spare_of.batch = NULL;
}

/* Where the sample ends up, in just the room that it needs. */
static uint8_t *pack(struct request *q)
{
    struct mr_work_batch *b = q->task.batch;
    uint8_t *at = mr_slot_pack(b, q->task.slot, q->read.data, q->read.len, &q->spare);
    if (!at)
        return q->read.data;
    q->spare_of.batch = b;
    q->spare_of.epoch = b->pub.epoch;
    q->spare_of.number = b->pub.number;
    return at;
}

static int make_slot_room(struct request *q)
{
    struct mr_read *r = &q->read;
    size_t size = r->room, cap;
    if (!size) {
        q->is_guess = 1;
        lend_spare(q);
        size = q->task.batch->pool->slot_bytes;
    }
    uint8_t *at = mr_slot_room(q->task.batch, q->task.slot, size, r->buf, r->have, &cap);
    if (!at)
        return -ENOMEM;
    r->buf = at;
    r->cap = cap;
    return 0;
}

/* Room for what the read needs, keeping what has been read; 0 or -ENOMEM. */
static int make_room(struct mr_worker *w, struct request *q)
{
    struct mr_pipeline *p = w->p;
    struct mr_read *r = &q->read;
    if (p->pool->whole_files)
        return make_slot_room(q);
    if (r->room <= FIRST_ROOM && !r->have) {
        r->buf = q->room;
        r->cap = FIRST_ROOM;
        return 0;
    }
    size_t before = q->file.cap;
    if (mr_buffer_reserve(&q->file, reserve_bytes(p, r->room)))
        return -ENOMEM;
    mr_batch_pool_count(p->pool, before, q->file.cap);
    if (r->have && r->buf == q->room)
        memcpy(q->file.data, q->room, r->have);
    r->buf = q->file.data;
    r->cap = q->file.cap;
    return 0;
}

/* ---- one request ---- */

static void finish(struct mr_worker *w, struct request *q, uint8_t *data, size_t len)
{
    mr_slot_finish(w, &q->task, data, len);
    q->next_free = w->free;
    w->free = q;
}

/* Sleep, longer each time; 0 when it has been long enough. */
static int wait_a_moment(const struct mr_worker *w, struct request *q)
{
    if (w->depth > 1 || q->pause_ns > LONGEST_WAIT_NS || atomic_load(&w->p->stopping))
        return 0;
    struct timespec pause = {.tv_nsec = (long)q->pause_ns};
    nanosleep(&pause, NULL);
    q->pause_ns *= 2;
    return 1;
}

/* The task's sample failed: 1 = try the one that the task names now, 0 = the slot is given up. */
static int try_again(struct mr_worker *w, struct request *q, enum mr_stage stage, int code)
{
    const char *detail = stage == MR_STAGE_MAP ? mr_sample_map_error(w) : "";
    if (!mr_ledger_is_ours(stage, code))
        return !mr_ledger_note(w->p, &q->task, stage, code, detail);
    if (wait_a_moment(w, q))
        return 1;
    mr_ledger_give_up(w->p, &q->task, stage, code);
    return 0;
}

/* Prepare and start the read of the task's sample; 0 or -errno with q->read.stage. */
static int start(struct mr_worker *w, struct request *q)
{
    struct mr_read *r = &q->read;
    r->extent = mr_dataset_extent(w->p->data, q->task.index);
    r->asked_ns = mr_clock_ns();
    q->is_guess = 0;
    int code = mr_source_prepare(w->source, r);
    if (code)
        return code;
    if (make_room(w, q)) {
        mr_source_drop(w->source, r);
        r->stage = MR_STAGE_READ;
        return -ENOMEM;
    }
    mr_source_start(w->source, r);
    w->n_under_way++;
    return 0;
}

/* Begin to read the sample that the task names, or a substitute, or give the slot up. */
static void begin(struct mr_worker *w, struct request *q)
{
    int code;
    while ((code = start(w, q)) != 0)
        if (!try_again(w, q, q->read.stage, code)) {
            finish(w, q, NULL, 0);
            return;
        }
}

static void begin_again(struct mr_worker *w, struct request *q, enum mr_stage stage, int code)
{
    if (try_again(w, q, stage, code))
        begin(w, q);
    else
        finish(w, q, NULL, 0);
}

/* A sample's bytes are there: map them and fill its slot. */
static void deliver(struct mr_worker *w, struct request *q)
{
    const struct mr_read *r = &q->read;
    struct mr_slot_cost *cost = &q->task.batch->cost[q->task.slot];
    uint8_t *bytes = r->data, *data;
    size_t len;
    enum mr_stage stage;
    cost->read_at = r->asked_ns;
    cost->read_end = r->end_ns;
    cost->read_ns = r->took_ns;
    cost->file_bytes = r->len;
    cost->overdue = r->overdue;
    if (q->is_guess)
        bytes = pack(q);
    int code = mr_sample_map(w, &q->task, bytes, r->len, &data, &len, &stage);
    if (code)
        begin_again(w, q, stage, code);
    else
        finish(w, q, data, len);
}

/* A read is through. */
static void complete(struct mr_worker *w, struct request *q)
{
    struct mr_read *r = &q->read;
    w->n_under_way--;
    if (r->result < 0) {
        begin_again(w, q, r->stage, r->result);
    } else if (!r->result) {
        deliver(w, q);
    } else if (make_room(w, q)) {
        mr_source_drop(w->source, r);
        begin_again(w, q, MR_STAGE_READ, -ENOMEM);
    } else {
        mr_source_start(w->source, r);
        w->n_under_way++;
    }
}

/* ---- the loop ---- */

/* Claim slots for the free requests; blocks only when nothing is under way.  -1 = stop. */
static int refill(struct mr_worker *w)
{
    struct mr_task t;
    while (w->free) {
        int claimed = mr_slot_claim(w, w->n_under_way == 0, &t);
        if (claimed != 1)
            return claimed;
        struct request *q = w->free;
        w->free = q->next_free;
        q->task = t;
        q->task.lane = w->p->o.engine == MR_ENGINE_URING ? q->read.slot + 1 : 0;
        q->pause_ns = 1000000;
        begin(w, q);
    }
    return 0;
}

/* The source itself has failed: the run ends. */
static void fail(struct mr_pipeline *p, int code)
{
    pthread_mutex_lock(&p->pool->mu);
    p->broken = code;
    mr_poll_fd_update(p);
    pthread_cond_signal(&p->ready);
    pthread_mutex_unlock(&p->pool->mu);
}

static void read_and_map(struct mr_worker *w)
{
    int stop = 0;
    while (!stop || w->n_under_way) {
        stop = refill(w) < 0;
        if (!w->n_under_way)
            continue;
        int n = mr_source_wait(w->source, UINT64_MAX, w->done, w->depth);
        if (n == -ECANCELED && atomic_load(&w->p->stopping))
            return; /* an emulated device holds what nobody will look at */
        if (n < 0) {
            fail(w->p, n);
            return;
        }
        for (int i = 0; i < n; i++) {
            complete(w, (struct request *)w->done[i]);
            /* Before the next map, hand the kernel what there is to do. */
            if (!w->p->pool->whole_files && i + 1 < n && !stop && w->n_under_way) {
                stop = refill(w) < 0;
                mr_source_submit(w->source);
            }
        }
    }
}

/* A map that does without bytes. */
static void map_only(struct mr_worker *w)
{
    struct mr_task t;
    uint8_t *data;
    size_t len;
    enum mr_stage stage;
    while (mr_slot_claim(w, 1, &t) == 1) {
        int code;
        while ((code = mr_sample_map(w, &t, NULL, 0, &data, &len, &stage)) != 0)
            if (mr_ledger_note(w->p, &t, stage, code, mr_sample_map_error(w)))
                break;
        mr_slot_finish(w, &t, code ? NULL : data, code ? 0 : len);
    }
}

/* ---- threads ---- */

/* In the worker's own thread, whose the source is. */
static int open_source(struct mr_worker *w, struct mr_error *err)
{
    struct mr_pipeline *p = w->p;
    const struct mr_pipeline_opts *o = &p->o;
    struct mr_source_opts opts = {
        .depth = w->depth,
        .async = o->engine == MR_ENGINE_URING,
        .direct = o->direct,
        .own_descriptors = !o->map, /* a user's function may know others by their numbers */
        .keep_fd = p->poll_fd,
        .ask_sizes = o->storage != NULL,
        .max_bytes = o->max_file_bytes,
        .stop = &p->stopping,
    };
    if (o->map_without_bytes)
        return 0;
    int r = mr_dataset_source(p->data, &opts, &w->source, err);
    if (r || !o->storage)
        return r;
    struct mr_source *inner = w->source;
    w->source = NULL;
    return mr_device_source_open(inner, o->storage,
                                 p->pool->whole_files ? MR_DEVICE_LATE_NS : MR_DEVICE_LATE_BUSY_NS,
                                 &w->source, err);
}

static void *worker_main(void *arg)
{
    struct mr_worker *w = arg;
    struct mr_pipeline *p = w->p;
    struct mr_error err = {0};
    char name[32];
    snprintf(name, sizeof name, "worker %u", w->number);
    mr_trace_thread_name(name);
    int r = open_source(w, &err);
    pthread_mutex_lock(&p->pool->mu);
    p->n_started++;
    if (r && !p->start_error.code)
        p->start_error = err;
    pthread_cond_signal(&p->ready);
    pthread_mutex_unlock(&p->pool->mu);
    if (!r && w->source)
        read_and_map(w);
    else if (!r)
        map_only(w);
    mr_source_close(w->source);
    return NULL;
}

/* How many requests worker `number` has. */
static unsigned depth_of(const struct mr_pipeline_opts *o, unsigned number)
{
    unsigned share = (o->io_depth + o->threads - 1 - number) / o->threads;
    return o->engine != MR_ENGINE_URING || !share ? 1 : share;
}

static void worker_fini(struct mr_worker *w)
{
    for (unsigned i = 0; w->request && i < w->depth; i++)
        mr_buffer_fini(&w->request[i].file);
    free(w->request);
    free(w->done);
}

static int worker_init(struct mr_worker *w, unsigned *n_rooms, struct mr_error *err)
{
    struct mr_pipeline *p = w->p;
    w->request = calloc(w->depth, sizeof *w->request);
    w->done = calloc(w->depth, sizeof *w->done);
    if (!w->request || !w->done)
        return mr_fail(err, -ENOMEM, "no memory for a worker");
    for (unsigned i = 0; i < w->depth; i++) {
        struct request *q = &w->request[i];
        q->read.slot = i;
        q->next_free = w->free;
        w->free = q;
        q->room = p->rooms.cap ? p->rooms.data + (*n_rooms)++ * FIRST_ROOM : NULL;
    }
    return 0;
}

/* Rooms for all requests, where their bytes are mapped. */
static int make_rooms(struct mr_pipeline *p, struct mr_error *err)
{
    size_t n = 0;
    if (p->pool->whole_files || p->o.map_without_bytes)
        return 0;
    for (unsigned i = 0; i < p->o.threads; i++)
        n += depth_of(&p->o, i);
    if (mr_buffer_reserve(&p->rooms, reserve_bytes(p, n * FIRST_ROOM)))
        return mr_fail(err, -ENOMEM, "no memory for %zu file buffers", n);
    mr_buffer_prefault(&p->rooms);
    mr_batch_pool_count(p->pool, 0, p->rooms.cap);
    return 0;
}

/* Create the threads and wait until each has opened its source; p->n_workers of them run. */
static int create_threads(struct mr_pipeline *p, struct mr_error *err)
{
    int r = 0;
    unsigned n = 0;
    for (; n < p->n_workers; n++) {
        r = -pthread_create(&p->worker[n].thread, NULL, worker_main, &p->worker[n]);
        if (r) {
            mr_fail(err, r, "cannot start worker %u: %s", n, mr_errno_text(r));
            break;
        }
    }
    pthread_mutex_lock(&p->pool->mu);
    while (p->n_started < n)
        pthread_cond_wait(&p->ready, &p->pool->mu);
    pthread_mutex_unlock(&p->pool->mu);
    p->n_running = n;
    if (!r && p->start_error.code)
        r = mr_fail(err, p->start_error.code, "%s", p->start_error.text);
    return r;
}

int mr_workers_start(struct mr_pipeline *p, struct mr_error *err)
{
    unsigned n = p->o.threads, n_rooms = 0;
    int r = make_rooms(p, err);
    if (r)
        return r;
    p->worker = aligned_alloc(MR_CACHE_LINES, n * sizeof *p->worker);
    if (!p->worker)
        return mr_fail(err, -ENOMEM, "no memory for %u workers", n);
    memset(p->worker, 0, n * sizeof *p->worker);
    p->n_workers = n;
    for (unsigned i = 0; !r && i < n; i++) {
        p->worker[i] = (struct mr_worker){.p = p, .number = i, .depth = depth_of(&p->o, i)};
        r = worker_init(&p->worker[i], &n_rooms, err);
    }
    return r ? r : create_threads(p, err);
}

void mr_workers_stop(struct mr_pipeline *p)
{
    if (p->pool) {
        pthread_mutex_lock(&p->pool->mu);
        atomic_store(&p->stopping, 1);
        pthread_cond_broadcast(&p->pool->work);
        pthread_mutex_unlock(&p->pool->mu);
    }
    for (unsigned i = 0; i < p->n_running; i++)
        pthread_join(p->worker[i].thread, NULL);
    for (unsigned i = 0; i < p->n_workers; i++)
        worker_fini(&p->worker[i]);
    mr_buffer_fini(&p->rooms);
    free(p->worker);
}
