/* feed.h - the inside of a pipeline: what its engines share.
 *
 *   consumer                       workers (threads_engine.c or uring_engine.c)
 *   mr_pipeline_next  <- ready --  claim a slot -> read -> map -> finish
 *        |                              ^    |
 *        `-- unref -> pool -- open -----'    `-- bad: note it, draw a substitute, try again
 *
 * Batches are numbered by sequence from the start position.  Sequence s may be opened when a free
 * batch is there and s < next_out + prefetch + 1; without prefetch, when the consumer is waiting
 * for exactly that one.
 *
 * A consumer that would wait may do a worker's part: stand_in.h.
 *
 * Lock: pool->mu.  Claiming a slot of an open batch and finishing one are atomic counters, and so
 * is `changes`, which whoever waits for a quick batch watches without the lock. */
#ifndef MR_FEED_H
#define MR_FEED_H

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

/* Batches filled faster than that are claimed in chunks, and a consumer with a core to itself waits
 * for them by the clock. */
#define MR_QUICK_NS 2000000

/* How waiting by watching went, of one thread. */
struct mr_watch {
    unsigned skip, in_vain; /* times that it is not tried, and how many it was the last time */
};

/* One slot to be filled. */
struct mr_task {
    struct mr_work_batch *batch;
    unsigned slot, attempt;
    unsigned lane;  /* of the trace: 0 = the worker's own line; else files under way overlap */
    uint64_t index; /* the sample that is tried now */
};

struct mr_worker {
    _Alignas(MR_CACHE_LINES) struct mr_pipeline *p; /* workers write here for every sample */
    pthread_t thread;
    unsigned number;
    struct mr_work_batch *batch;  /* from which it claims */
    unsigned chunk;               /* how many slots it claims at once, */
    unsigned next, end;           /* those that it has claimed and not begun, */
    struct mr_work_batch *filled; /* and those that it has finished and not yet counted: */
    unsigned n_filled;            /* how many, and of which batch */
    int has_left;                 /* who stood in could not fill */
    struct mr_task left;          /* this one */
    struct mr_watch watch;        /* for work */
    void *engine;                 /* what the engine keeps for this worker */
};

struct mr_pipeline {
    struct mr_pipeline_opts o; /* defaults filled in */
    struct mr_dataset *data;
    struct mr_batch_pool *pool;
    struct mr_buffer rooms;       /* for files that a map is given, one a file under way; in one */
    unsigned n_rooms_taken;       /* piece, so that they are in huge pages (docs/baseline.md) */
    struct mr_decode_map *decode; /* NULL: a callback or whole files */
    uint64_t n_start;             /* sequences in the first epoch, */
    uint64_t n_seq;               /* and in all */
    uint64_t window;              /* batches begun and not yet delivered, at the most */
    unsigned quick_chunk;         /* slots claimed at once when batches are quick */
    unsigned n_cpus;              /* that this process may use */
    pthread_cond_t ready, on_again;
    atomic_int stopping;
    atomic_uint changes; /* counted: a batch is ready, one was taken, or it is time to end */
    atomic_int asks;     /* the consumer, for a worker's place: stand_in.h */

    /* Guarded by pool->mu */
    struct mr_order order;
    uint64_t next_open, next_out;
    struct mr_work_batch *open;     /* has unclaimed slots, or NULL */
    struct mr_work_batch **in_work; /* [window], by sequence % window */
    int begun;
    int wanted, asleep; /* the consumer is in mr_pipeline_next; it needs a signal */
    uint64_t fill_ns;   /* what the batch that was finished last took */
    unsigned n_idle;    /* workers that wait for work and have not been called, */
    unsigned n_called;  /* and those that have been called and are about to wake up */
    /* Whose thread sleeps, as the consumer does its work at times, and whether it does so now; the
     * first is looked at without the lock, too. */
    struct mr_worker *_Atomic off;
    int standing_in;
    int broken;         /* -errno: a worker could not go on */
    unsigned n_started; /* workers whose begin has returned */
    struct mr_error start_error;

    const struct mr_engine_ops *engine;
    struct mr_worker *worker; /* [n_workers] */
    unsigned n_workers;

    /* Consumer's thread only */
    int at_epoch_end;
    struct mr_watch consumer_watch;
    uint64_t ask_ns;   /* when should_stop is to be asked again */
    uint64_t left_ns;  /* when it got its last batch, */
    unsigned n_prompt; /* how often in a row it came back at once, */
    unsigned n_needed; /* and how often it must before it asks for a worker's place */
    struct mr_error error;
    struct mr_pipeline_stats stats;
    struct mr_histogram read_ns, batch_ns;
    uint64_t n_bad;
};

/* 1 = *t is claimed; 0 = nothing to do now (only when !block); -1 = stop. */
int mr_feed_claim(struct mr_worker *w, int block, struct mr_task *t);
/* Another slot of the batch from which it claimed last; 0 = there is none. */
int mr_feed_claim_another(struct mr_worker *w, struct mr_task *t);
/* Consumer's thread, without the lock: whether it was told to stop, if it is time to ask.  Then
 * p->error says so. */
int mr_feed_asked_to_stop(struct mr_pipeline *p);
/* With the lock held: the consumer need not wait any longer. */
int mr_feed_can_deliver(const struct mr_pipeline *p);
/* The slot is filled with `len` bytes at `data`, or given up. */
void mr_feed_finish(struct mr_worker *w, const struct mr_task *t, uint8_t *data, size_t len);
/* A worker cannot go on for a reason that is no sample's: the run ends with `code`. */
void mr_feed_break(struct mr_pipeline *p, int code);
/* Decode the bytes of a file, or run the user's map on them: 0 or -errno; words for the failure, ""
 * when there are none. */
int mr_feed_map(struct mr_worker *w, const struct mr_task *t, const uint8_t *bytes, size_t len);
const char *mr_feed_map_error(const struct mr_worker *w);

/* How long the sample's file was when it was last read, if that may be believed: an emulated device
 * asks where it lies, and direct reads need whole blocks.  0: not known. */
size_t mr_feed_known_bytes(const struct mr_pipeline *p, uint64_t index);

/* How much of a late wait for an emulated device the next read may be spared. */
static inline uint64_t mr_feed_most_late(const struct mr_pipeline *p)
{
    return p->pool->whole_files ? MR_DEVICE_LATE_NS : MR_DEVICE_LATE_BUSY_NS;
}

/* How much to reserve for `size` bytes of files: direct reads want huge pages, one at least. */
static inline size_t mr_feed_room_bytes(const struct mr_pipeline *p, size_t size)
{
    return p->o.direct && size < MR_HUGE_BYTES ? MR_HUGE_BYTES : size;
}

/* MR_FIRST_ROOM bytes for a file under way, before the workers start; they stay the pipeline's.
 * NULL where files go to their slots, or a map does without them. */
uint8_t *mr_feed_take_room(struct mr_pipeline *p);

/* An engine. */
struct mr_engine_ops {
    int (*init)(struct mr_worker *w, struct mr_error *err);  /* in the opener's thread */
    int (*begin)(struct mr_worker *w, struct mr_error *err); /* in the worker's own thread */
    void (*run)(struct mr_worker *w);                        /* until there is no more to do */
    /* In a thread that is not w's, which sleeps: fill the slot, and others of its batch if it is
     * better to have some at once.  0: w's thread should go on, with this slot if it is w->left. */
    int (*stand_in)(struct mr_worker *w, struct mr_task *t);
    void (*fini)(struct mr_worker *w); /* also after a failed init */
};
extern const struct mr_engine_ops mr_threads_engine, mr_uring_engine;

#endif
