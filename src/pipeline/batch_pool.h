/* batch_pool.h - the fixed set of batches that a pipeline fills and its consumer gives back.
 *
 * The slot is the batch: workers write a sample where the consumer will read it.  The pool's size
 * bounds memory and is the back-pressure; its mutex is the pipeline's only one. */
#ifndef MR_BATCH_POOL_H
#define MR_BATCH_POOL_H

#include <millrace/pipeline.h>

#include "batch_layout.h"
#include "batch_memory.h"
#include "buffer.h"
#include "stage.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

/* Bytes between what one thread writes often and what another reads: CPUs fetch lines of 64
 * bytes in pairs. */
#define MR_CACHE_LINES 128

/* A sample that failed, noted by the worker and told to the consumer with the batch. */
struct mr_bad_note {
    uint64_t index;
    unsigned slot, attempt;
    int code;
    enum mr_stage stage;
    char detail[80]; /* a decoder's words; "" when there are none */
};

/* What a sample took and when; written by its worker, added up by the consumer. */
struct mr_slot_cost {
    uint64_t file_bytes;
    uint64_t read_ns;           /* open to close, without an emulated device's lateness */
    uint64_t read_at, read_end; /* the same by the clock: for the trace, where spans nest */
    uint64_t map_at;            /* decoding or the map began, and took: */
    uint64_t decode_ns, resize_ns;
    uint64_t map_ns; /* a callback; only while a trace is on */
    unsigned path;   /* enum mr_decoder_path: who decoded it */
    int overdue;     /* really there only after the emulated device would have delivered it */
};

/* Where in its batch's leaves a file lies, counted over all of them. */
struct mr_slot_place {
    size_t at, cap;
};

/* Memory for a file for which the leaves have no room. */
struct mr_big_file {
    struct mr_buffer buf;
    struct mr_big_file *next;
};

struct mr_work_batch {
    struct mr_batch pub; /* first, so that a struct mr_batch * is one of these */
    struct mr_batch_pool *pool;
    atomic_uint refs;
    uint64_t *index;           /* [batch] the samples that belong here, before substitution */
    struct mr_slot_cost *cost; /* [batch] */

    struct mr_buffer slab;  /* the fields: batch_layout.h */
    struct mr_field *field; /* [layout.n] */
    int64_t *label;         /* [batch] the last field */

    /* Without a map */
    uint8_t **leaf;              /* [leaves_each] memory for its files, the first n_leaves */
    struct mr_slot_place *place; /* [batch] which of it is whose; cap 0: none yet */
    struct mr_big_file **big;    /* [batch] for files beyond it */

    /* What workers change, away from what they only look at */
    _Alignas(MR_CACHE_LINES) _Atomic uint64_t claim; /* slots there are << 32 | slots handed out, */
                                                     /* which may run past them */
    atomic_uint finished;                            /* slots done */
    _Alignas(MR_CACHE_LINES) atomic_size_t used;     /* bytes of the leaves handed out */
    atomic_uint n_leaves;                            /* grows with pool->mu held */

    /* Guarded by pool->mu */
    _Alignas(MR_CACHE_LINES) int ready;
    struct mr_bad_note *bad;
    unsigned n_bad, cap_bad;
    int failed; /* -errno: a slot could not be filled */
    struct mr_work_batch *next_free;
};

struct mr_batch_pool {
    pthread_mutex_t mu;
    pthread_cond_t work; /* the window moved, or it is time to stop */
    pid_t pid;           /* whose process it is */
    struct mr_allocator allocator;
    unsigned batch;
    size_t slot_bytes; /* of the slab; without a map, what a slot has of the leaves on average */
    struct mr_batch_layout layout;
    int whole_files; /* no map: slots hold files and may spill into `big` */
    size_t align;    /* of a file's place: what direct I/O asks for, or cache lines */
    size_t leaf_bytes;
    unsigned leaves_each; /* that a batch may have */

    /* Guarded by mu */
    unsigned refs; /* the pipeline and every batch that is out */
    unsigned n_out;
    struct mr_work_batch *free;
    uint8_t **free_leaf; /* a stack */
    unsigned n_free_leaves;
    unsigned n_fresh;          /* the lowest of them, which nobody has touched yet */
    struct mr_big_file *spare; /* for the next large files */
    size_t spare_bytes;

    atomic_size_t memory, memory_peak; /* slabs, leaves, big buffers, the workers' file buffers */
    struct mr_buffer leaves;           /* all of them */
    struct mr_work_batch *all;         /* [n] */
    unsigned n;
};

/* `n` batches as complete options want them. */
int mr_batch_pool_new(unsigned n, const struct mr_pipeline_opts *o, struct mr_batch_pool **out,
                      struct mr_error *err);
/* Drop the pipeline's reference; the last batch that comes back frees the pool. */
void mr_batch_pool_unref(struct mr_batch_pool *pool);

/* Take pool->mu, trying for a while before sleeping. */
void mr_batch_pool_lock(struct mr_batch_pool *pool);
/* With pool->mu held: a free batch or NULL; giving one back.  The pool is made with a batch for
 * each that may be in work or out, so whoever may begin one finds one free. */
struct mr_work_batch *mr_batch_pool_take(struct mr_batch_pool *pool);
void mr_batch_pool_give(struct mr_batch_pool *pool, struct mr_work_batch *b);

/* Without a map: room for a file of `size` bytes, pool->slot_bytes when that is not known yet; the
 * first `keep` bytes of `from` are carried over if it has to be somewhere else.  NULL when there is
 * no memory. */
uint8_t *mr_slot_room(struct mr_work_batch *b, unsigned slot, size_t size, const uint8_t *from,
                      size_t keep, size_t *cap);

/* Without a map: the file in the slot's place has `len` bytes.  Where that is much less than the
 * room it was given before its size was known, move it to a place of just that size: its new
 * address, and the room in *spare, for another slot of the batch.  NULL: it stays where it is. */
uint8_t *mr_slot_pack(struct mr_work_batch *b, unsigned slot, const uint8_t *file, size_t len,
                      struct mr_slot_place *spare);
/* Give such a room to a slot that has none yet; nonzero when it took it. */
int mr_slot_lend(struct mr_work_batch *b, unsigned slot, const struct mr_slot_place *room);

/* Bytes of the batches' own memory, as far as it is in use or was. */
size_t mr_batch_pool_bytes(struct mr_batch_pool *pool);
/* Count memory that a buffer of a worker gained or lost. */
void mr_batch_pool_count(struct mr_batch_pool *pool, size_t before, size_t after);

#endif
