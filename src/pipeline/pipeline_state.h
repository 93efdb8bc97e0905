/* pipeline_state.h - the inside of a pipeline: what its files share.
 *
 *   consumer                       workers
 *   mr_pipeline_next  <- ready --  claim a slot -> read -> map -> finish
 *        |                              ^    |
 *        `-- unref -> pool -- open -----'    `-- bad: note it, draw a substitute, try again
 *
 * Batches are numbered by sequence from the start position.  Sequence s may be opened when a free
 * batch is there and s < next_out + prefetch + 1; without prefetch, when the consumer is waiting
 * for exactly that one.
 *
 * Lock: pool->mu.  Claiming a slot of an open batch and finishing one are atomic counters. */
#ifndef MR_PIPELINE_STATE_H
#define MR_PIPELINE_STATE_H

#include <millrace/pipeline.h>

#include "batch_pool.h"
#include "decode_map.h"
#include "device.h"
#include "histogram.h"
#include "order.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

/* Room that a file buffer has from the start: most photos fit. */
#define MR_FIRST_ROOM ((size_t)256 << 10)

/* One slot to be filled. */
struct mr_task {
    struct mr_work_batch *batch;
    unsigned slot, attempt;
    unsigned lane;  /* of the trace: 0 = the worker's own line; else requests overlap */
    uint64_t index; /* the sample that is tried now */
};

struct mr_worker {
    _Alignas(MR_CACHE_LINES) struct mr_pipeline *p; /* workers write here for every sample */
    pthread_t thread;
    unsigned number;
    struct mr_work_batch *batch; /* from which it claims */
    void *engine;                /* what the engine keeps for this worker */
};

struct mr_pipeline {
    struct mr_pipeline_opts o; /* defaults filled in */
    struct mr_dataset *data;
    struct mr_batch_pool *pool;
    struct mr_buffer rooms;       /* for files that a map is given, one a request; in one piece, */
    unsigned n_rooms_taken;       /* so that they are in huge pages (docs/baseline.md) */
    struct mr_decode_map *decode; /* NULL: a callback or whole files */
    uint64_t n_start;             /* sequences in the first epoch, */
    uint64_t n_seq;               /* and in all */
    uint64_t window;              /* batches begun and not yet delivered, at the most */
    pthread_cond_t ready;
    atomic_int stopping;

    /* Guarded by pool->mu */
    struct mr_order order;
    uint64_t next_open, next_out;
    struct mr_work_batch *open;     /* has unclaimed slots, or NULL */
    struct mr_work_batch **in_work; /* [window], by sequence % window */
    int begun;
    int wanted;         /* the consumer is in mr_pipeline_next */
    unsigned n_idle;    /* workers that wait for work and have not been called, */
    unsigned n_called;  /* and those that have been called and are about to wake up */
    int broken;         /* -errno: a worker could not go on */
    unsigned n_started; /* workers whose begin has returned */
    struct mr_error start_error;

    const struct mr_engine_ops *engine;
    struct mr_worker *worker; /* [n_workers] */
    unsigned n_workers;

    /* Consumer's thread only */
    int at_epoch_end;
    uint64_t ask_ns; /* when should_stop is to be asked again */
    struct mr_error error;
    struct mr_pipeline_stats stats;
    struct mr_histogram read_ns, batch_ns;
    uint64_t n_bad;
};

/* ---- pipeline_opts.c ---- */

/* Fill in the defaults. */
void mr_pipeline_opts_complete(struct mr_pipeline_opts *o);
/* 0, or -EINVAL with words. */
int mr_pipeline_opts_check(const struct mr_pipeline_opts *o, struct mr_error *err);
/* p->order and the number of sequences, from complete options; 0 or -errno. */
int mr_pipeline_init_order(struct mr_pipeline *p, struct mr_error *err);
/* Epoch and batch number of a sequence. */
void mr_pipeline_place_of(const struct mr_pipeline *p, uint64_t seq, uint64_t *epoch,
                          uint64_t *number);

/* ---- slot_queue.c ---- */

/* 1 = *t is claimed; 0 = nothing to do now (only when !block); -1 = stop. */
int mr_slot_claim(struct mr_worker *w, int block, struct mr_task *t);
/* The slot is filled with `len` bytes at `data`, or given up. */
void mr_slot_finish(struct mr_worker *w, const struct mr_task *t, uint8_t *data, size_t len);
/* With the lock held: the next batch may be opened, and a worker sleeps that is to do so. */
int mr_slot_must_call(struct mr_pipeline *p);
/* With the lock held: the consumer's next batch is finished. */
int mr_slot_is_ready(const struct mr_pipeline *p);

/* ---- worker.c ---- */

/* A worker cannot go on for a reason that is no sample's: the run ends with `code`. */
void mr_worker_break(struct mr_pipeline *p, int code);
/* Decode the bytes of a file, or run the user's map on them: 0 or -errno; words for the failure, ""
 * when there are none. */
int mr_worker_map(struct mr_worker *w, const struct mr_task *t, const uint8_t *bytes, size_t len);
const char *mr_worker_map_error(const struct mr_worker *w);
/* All workers, running; 0 or -errno, and then some may have to be stopped. */
int mr_workers_start(struct mr_pipeline *p, struct mr_error *err);
/* p->stopping is set: wake, join, free. */
void mr_workers_stop(struct mr_pipeline *p);

/* How long the sample's file was when it was last read, if that may be believed: an emulated device
 * asks where it lies, and direct reads need whole blocks.  0: not known. */
size_t mr_worker_known_bytes(const struct mr_pipeline *p, uint64_t index);

/* How much of a late wait for an emulated device the next read may be spared. */
static inline uint64_t mr_worker_most_late(const struct mr_pipeline *p)
{
    return p->pool->whole_files ? MR_DEVICE_LATE_NS : MR_DEVICE_LATE_BUSY_NS;
}

/* How much to reserve for `size` bytes of files: direct reads want huge pages, one at least. */
static inline size_t mr_worker_room_bytes(const struct mr_pipeline *p, size_t size)
{
    return p->o.direct && size < MR_HUGE_BYTES ? MR_HUGE_BYTES : size;
}

/* MR_FIRST_ROOM bytes for a request, before the workers start; they stay the pipeline's.
 * NULL where files go to their slots, or a map does without them. */
uint8_t *mr_worker_take_room(struct mr_pipeline *p);

/* An engine. */
struct mr_engine_ops {
    int (*init)(struct mr_worker *w, struct mr_error *err);  /* in the opener's thread */
    int (*begin)(struct mr_worker *w, struct mr_error *err); /* in the worker's own thread */
    void (*run)(struct mr_worker *w);                        /* until there is no more to do */
    void (*fini)(struct mr_worker *w);                       /* also after a failed init */
};
extern const struct mr_engine_ops mr_threads_engine, mr_uring_engine;

#endif
