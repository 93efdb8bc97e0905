/* pipeline.h - samples in, shuffled batches out, read and mapped in the background.
 *
 * Lifetime: open -> next* -> close.  One consumer thread per pipeline.
 * Errors:   0 or a positive count is success, -errno is failure; mr_pipeline_error() has words.
 *
 * A batch is a function of (seed, epoch, batch number) and of nothing else: not of the number of
 * threads, the engine, the prefetch depth or the storage.  A sample that cannot be read or mapped
 * is replaced by a draw from the whole data set, keyed by its position in the epoch and so the same
 * for every batch size and world, and reported through `on_error`.
 *
 * With an emulated device as `storage` a file arrives when that device would have delivered it; the
 * read latency in the statistics includes the time that this takes. */
/* Example:
 *
 *     struct mr_dataset *data;
 *     struct mr_pipeline *p;
 *     struct mr_batch *b;
 *
 *     if (mr_dataset_open("photos", &data, NULL) ||
 *         mr_pipeline_open(data, &(struct mr_pipeline_opts){.batch = 4}, &p, NULL))
 *         return 1;
 *     while (mr_pipeline_next(p, &b) == 1) {
 *         for (unsigned i = 0; i < b->n; i++)
 *             printf("%zu bytes, label %u\n", b->samples[i].len, (unsigned)b->samples[i].label);
 *         mr_batch_unref(b);
 *     }
 *     mr_pipeline_close(p);
 *     mr_dataset_unref(data);
 */
#ifndef MILLRACE_PIPELINE_H
#define MILLRACE_PIPELINE_H

#include <millrace/api.h>
#include <millrace/dataset.h>
#include <millrace/image.h>
#include <millrace/store.h>

#ifdef __cplusplus
extern "C" {
#endif

enum mr_engine {
    MR_ENGINE_THREADS, /* each worker opens, reads, closes and maps one sample at a time */
    MR_ENGINE_URING,   /* each worker keeps its share of io_depth reads under way by io_uring */
};

enum mr_on_error {
    MR_ON_ERROR_SKIP, /* replace the sample, note it, go on until the budget is spent */
    MR_ON_ERROR_FAIL, /* the batch with the first bad sample fails */
};

/* What a map callback is given. */
struct mr_map_input {
    const uint8_t *bytes; /* the file, NULL with `map_without_bytes` */
    size_t len;
    uint64_t index; /* in the data set */
    uint64_t key;   /* the sample's own random bits: f(seed, epoch, position in the epoch) */
    uint32_t label;
    unsigned worker; /* 0 .. threads - 1, never by two at once: for a context each */
};

/* Turn one sample into its slot of `map_bytes` bytes; called by several workers at once.  A negative errno means a bad sample: its slot is filled from another one. */
typedef int mr_map_fn(void *ctx, const struct mr_map_input *in, void *slot);

/* A sample that was replaced.  Strings are valid during the call. */
struct mr_bad_sample {
    uint64_t epoch, batch, index;
    unsigned slot, attempt; /* attempt 0 is the sample that belonged there */
    const char *path, *stage, *reason;
    int code;               /* -errno */
    const char *detail;     /* the decoder's words, or those for `code` */
    const char *substitute; /* what fills the slot now; NULL when nothing does */
};

/* How far a run has come: all ranks together, which consume their batches in step.  Rounds of
 * world * batch samples are cut from there on, so a run with shuffle `global` or `none` may resume
 * with any batch and world and sees the samples that an unbroken one would have seen, in their
 * order.  With `window` both must be what they were, and the window too. */
struct mr_position {
    uint64_t epoch;   /* from 0 */
    uint64_t samples; /* of that epoch that have been consumed */
};

struct mr_pipeline;

struct mr_pipeline_opts { /* zero means default */
    enum mr_engine engine;
    unsigned threads;          /* map workers; 0 = one per online CPU */
    unsigned io_depth;         /* reads under way in all, uring engine; 0 = 32 */
    int direct;                /* read around the page cache (O_DIRECT) where the file system can */
    struct mr_device *storage; /* borrows until close: an emulated device that every file read is
                                * charged to, cached or not; NULL = the storage as it is */
    unsigned batch;            /* samples in a batch; 0 = 64 */
    unsigned prefetch;         /* finished batches kept ready while one more is filled; 0 = 1,
                                * MR_NONE = a batch is begun only when it is asked for */
    unsigned hold;             /* batches that the consumer may hold at once; 0 = 1 */

    enum mr_shuffle shuffle;
    unsigned window;      /* for MR_SHUFFLE_WINDOW; 0 = 1024 */
    uint64_t seed;        /* any value, 0 included */
    unsigned epochs;      /* 0 = 1 */
    uint64_t batches;     /* stop after this many from `start`; 0 = when the epochs end */
    unsigned rank, world; /* shard `rank` of `world`; world 0 = 1 */
    int keep_last;        /* deliver the last, short batch too */
    int untraced;         /* leave no spans in a trace: what runs beside the run that it is of */
    struct mr_position start; /* resume here */
    int start_on_next;        /* workers begin at the first mr_pipeline_next, not at open */

    /* What becomes of a file: with `decode`, an image of the size and type that it says (copied);
     * with `map`, whatever the callback makes; with neither, the file's bytes are the sample. */
    const struct mr_decoder_opts *decode;
    mr_map_fn *map;
    void *map_ctx;
    size_t map_bytes;        /* size of a slot that `map` fills */
    int map_without_bytes;   /* do not read the file; `map` makes the sample */
    uint64_t max_file_bytes; /* larger files are bad samples; 0 = 64 MiB */

    enum mr_on_error on_error_policy;
    double max_error_share;   /* bad samples allowed among those tried (or the first 1,000, or the
                               * shard, if that is more), counted from where this pipeline starts;
                               * 0 = 0.10, negative = none, 1 = any number: the run ends only
                               * where nothing at all can be read */
    uint64_t max_error_count; /* not 0: this many are allowed, whatever the share */
    /* Called by mr_pipeline_next in the consumer's thread, in the order of the samples. */
    void (*on_error)(void *ctx, const struct mr_bad_sample *bad);
    void *on_error_ctx;
    /* Asked about twenty times a second while mr_pipeline_next waits; nonzero makes it return
     * -ECANCELED, then and ever after. */
    int (*should_stop)(void *ctx);
    void *should_stop_ctx;
};

struct mr_sample {
    uint8_t *data;
    size_t len;
    uint64_t index; /* in the data set, after substitution */
    uint32_t label;
};

/* Read-only for the consumer.  Samples' memory is recycled after the last unref. */
struct mr_batch {
    uint64_t epoch, number;    /* number: what was consumed before, in whole world * batch */
    unsigned n;                /* samples */
    uint8_t *data;             /* n slots of sample_bytes in a row; NULL when samples are files */
    size_t sample_bytes;       /* 0 when samples are files */
    struct mr_sample *samples; /* [n] */
};

#define MR_N_REASONS 12 /* kinds of errors that are counted apart */

struct mr_latency { /* microseconds */
    double p50, p99, p999, max;
};

struct mr_pipeline_stats {
    uint64_t samples, batches, delivered_bytes; /* handed to the consumer; bytes of their files */
    uint64_t replaced;                          /* samples whose slot went to another one */
    uint64_t overdue; /* samples that were really there only after an emulated storage would have
                       * delivered them: it was not what they waited for */
    struct {
        const char *reason; /* NULL ends the list */
        uint64_t n;
    } errors[MR_N_REASONS];
    struct mr_latency read, batch;     /* open to close of a file; call to return of `next` */
    uint64_t decoded_by[MR_N_PATHS];   /* images, by enum mr_decoder_path */
    double read_s, decode_s, resize_s; /* summed over the samples and so over threads */
    uint64_t memory_bytes;             /* buffers held now, */
    uint64_t memory_peak_bytes;        /* and at the most */
    uint64_t pool_bytes;               /* of those, the batches: for whole files 64 MiB at most, or
                                        * what the files of as many batches need; those that are
                                        * too large come on top, in at most one buffer a slot */
};

MR_API int mr_pipeline_open_sized(struct mr_dataset *data, const struct mr_pipeline_opts *opts,
                                  size_t opts_size, size_t decode_size, struct mr_pipeline **out,
                                  struct mr_error *err);
/* Start the workers.  Borrows the callbacks' contexts until close, takes a reference to `data`. */
static inline int mr_pipeline_open(struct mr_dataset *data, const struct mr_pipeline_opts *opts,
                                   struct mr_pipeline **out, struct mr_error *err)
{
    return mr_pipeline_open_sized(data, opts, sizeof *opts, sizeof *opts->decode, out, err);
}
/* Wait for a batch: 1 = returns a reference in *out, 0 = end of an epoch (the next call begins the
 * next one; after the last epoch it is 0 again and again).  -EBUSY: `hold` batches are still held.
 */
MR_API int mr_pipeline_next(struct mr_pipeline *p, struct mr_batch **out);
/* What has been consumed when the next call is made: store it, and open with .start set to it.  The
 * same for all ranks that have had as many batches; with keep_last, when some ranks have no part of
 * an epoch's last samples, the smallest of all ranks' is the one to store. */
MR_API void mr_pipeline_position(const struct mr_pipeline *p, struct mr_position *out);
/* Batches that a whole epoch delivers to this shard, */
MR_API uint64_t mr_pipeline_n_batches(const struct mr_pipeline *p);
/* those that are still to come, over all epochs, */
MR_API uint64_t mr_pipeline_n_left(const struct mr_pipeline *p);
/* and samples from `start` to the very end. */
MR_API uint64_t mr_pipeline_n_samples(const struct mr_pipeline *p);
MR_API void mr_pipeline_get_stats_sized(struct mr_pipeline *p, struct mr_pipeline_stats *out,
                                        size_t size);
static inline void mr_pipeline_get_stats(struct mr_pipeline *p, struct mr_pipeline_stats *out)
{
    mr_pipeline_get_stats_sized(p, out, sizeof *out);
}
/* Words for the last failure of mr_pipeline_next. */
MR_API const char *mr_pipeline_error(const struct mr_pipeline *p);
/* Stop the workers, drop what was prefetched, free.  Batches still held stay valid until their
 * unref.  NULL is a no-op. */
MR_API void mr_pipeline_close(struct mr_pipeline *p);

MR_API struct mr_batch *mr_batch_ref(struct mr_batch *b);
MR_API void mr_batch_unref(struct mr_batch *b);

#ifdef __cplusplus
}
#endif
#endif
