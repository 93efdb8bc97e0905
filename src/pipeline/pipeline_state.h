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
#include "histogram.h"
#include "order.h"
#include "sample_set.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

/* One slot to be filled. */
struct mr_task {
    struct mr_work_batch *batch;
    unsigned slot, attempt;
    unsigned lane;  /* of the trace: 0 = the worker's own line; else requests overlap */
    uint64_t index; /* the sample that is tried now, */
    uint32_t label; /* and its label, once its bytes are there */
};

struct mr_worker {
    _Alignas(MR_CACHE_LINES) struct mr_pipeline *p; /* workers write here for every sample */
    pthread_t thread;
    unsigned number;
    struct mr_work_batch *batch; /* from which it claims */
    struct mr_source *source;    /* of its own, NULL: a map does without bytes */
    unsigned depth;              /* requests that it has, */
    unsigned n_under_way;        /* and those that the source has */
    struct request *request;     /* [depth] */
    struct request *free;        /* those without a task */
    struct mr_read **done;       /* [depth] */
};

struct mr_pipeline {
    struct mr_pipeline_opts o; /* defaults filled in */
    struct mr_dataset *data;
    struct mr_batch_pool *pool;
    struct mr_buffer rooms; /* for samples that a map is given, one a request; in one piece, */
                            /* so that they are in huge pages (docs/baseline.md) */
    struct mr_decode_map *decode; /* NULL: a callback or whole files */
    uint64_t n_start;             /* sequences in the first epoch, */
    uint64_t n_seq;               /* and in all */
    uint64_t window;              /* batches begun and not yet delivered, at the most */
    pthread_cond_t ready;
    pid_t pid;   /* whose process it is */
    int poll_fd; /* an eventfd that is readable when the next call would not wait; -1: none */
    atomic_int stopping;

    /* Guarded by pool->mu */
    struct mr_order order;
    uint64_t next_open, next_out;
    struct mr_work_batch *open;     /* has unclaimed slots, or NULL */
    struct mr_work_batch **in_work; /* [window], by sequence % window */
    int begun;
    int wanted;         /* the consumer waits, or has waited in vain, for the next batch */
    int has_failed;     /* every further call returns p->error */
    int is_readable;    /* poll_fd, now */
    unsigned n_idle;    /* workers that wait for work and have not been called, */
    unsigned n_called;  /* and those that have been called and are about to wake up */
    int broken;         /* -errno: a worker could not go on */
    unsigned n_started; /* workers whose source is open, or could not be opened */
    struct mr_error start_error;

    struct mr_worker *worker;      /* [n_workers] */
    unsigned n_workers, n_running; /* n_running: whose threads are there */

    /* Consumer's thread only */
    int at_epoch_end; /* written with the lock held */
    uint64_t ask_ns;  /* when should_stop is to be asked again */
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
/* With the lock held: poll_fd says whether the consumer would have to wait. */
void mr_poll_fd_update(struct mr_pipeline *p);

/* ---- sample_map.c ---- */

/* Make a sample of its bytes: take the payload out, then decode it, or run the user's map on it.
 * 0 with the slot's contents in *data and *len, or -errno with the stage. */
int mr_sample_map(struct mr_worker *w, struct mr_task *t, const uint8_t *bytes, size_t n,
                  uint8_t **data, size_t *len, enum mr_stage *stage);
/* Words for its failure at stage MR_STAGE_MAP, "" when there are none. */
const char *mr_sample_map_error(const struct mr_worker *w);

/* ---- worker.c ---- */

/* All workers, running; 0 or -errno, and then some may have to be stopped. */
int mr_workers_start(struct mr_pipeline *p, struct mr_error *err);
/* Stop, wake, join, free. */
void mr_workers_stop(struct mr_pipeline *p);

#endif
