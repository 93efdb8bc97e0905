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
 * Across fork(), a pipeline and its batches stay the parent's.  The child has copies without
 * workers: mr_pipeline_next returns -ECHILD there, and mr_pipeline_close and mr_batch_unref do
 * nothing, so that neither waits for threads that are not there; memory and descriptors go with the
 * child, or with its exec.  A child that wants batches opens a pipeline of its own.
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
#include <millrace/dtype.h>
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

/* One array of a batch: an element, a vector, an image ... a sample. */
#define MR_MAX_FIELDS 32
#define MR_MAX_DIMS   8
#define MR_FIELD_NAME 32 /* bytes of a name, its closing NUL included */
struct mr_field {
    const char *name;
    enum mr_dtype dtype;
    unsigned n_dims;             /* 0: one element a sample */
    uint64_t shape[MR_MAX_DIMS]; /* of one sample, the slowest dimension first */
    void *data;                  /* one sample behind the other, from a multiple of 64 on */
};

/* What a map callback is given. */
struct mr_map_input {
    const uint8_t *bytes; /* the sample, NULL with `map_without_bytes` */
    size_t len;
    uint64_t index; /* in the data set */
    uint64_t key;   /* the sample's own random bits: f(seed, epoch, position in the epoch) */
    uint32_t label;
    unsigned worker;    /* 0 .. threads - 1, never by two at once: for a context each */
    void *const *field; /* where each of the declared fields of this sample goes */
};

/* Turn one sample into its slot of `map_bytes` bytes, or into its fields, of which `slot` is the
 * first; called by several workers at once.  A negative errno means a bad sample: its slot is
 * filled from another one. */
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

/* Where the memory of batches comes from: pinned memory, an arena, blocks that are kept from run to
 * run.  Called while a pipeline is opened, by workers for samples beyond the usual size, and by
 * whoever gives the last reference back; `ctx` must live until then.  Any thread. */
struct mr_allocator {
    void *(*alloc)(void *ctx, size_t size, size_t alignment); /* NULL: there is none */
    void (*free)(void *ctx, void *memory, size_t size);
    void *ctx;
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

    /* What becomes of a sample: with `decode`, an image of the size and type that it says (copied):
     * field `image`; with `map`, whatever the callback makes: the fields that it declares, or
     * `map_bytes` of field `data`; with neither, its bytes.  The label is a field in all cases. */
    const struct mr_decoder_opts *decode;
    mr_map_fn *map;
    void *map_ctx;
    size_t map_bytes; /* size of a slot that `map` fills, where it declares no fields */
    const struct mr_field *fields; /* what `map` fills (copied; `data` is not looked at), */
    unsigned n_fields;             /* less than MR_MAX_FIELDS; none is called `label` */
    int map_without_bytes;         /* do not read the file; `map` makes the sample */
    uint64_t max_file_bytes;       /* larger files are bad samples; 0 = 64 MiB */

    struct mr_allocator allocator; /* of batch memory; zero = our own, touched at opening */
    int pollable;                  /* have a descriptor to poll: mr_pipeline_fd */

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
    uint8_t *data;             /* n slots of sample_bytes in a row: the first field; NULL when
                                * samples are whole files */
    size_t sample_bytes;       /* 0 when samples are whole files */
    struct mr_sample *samples; /* [n] */
    unsigned n_fields;
    const struct mr_field *fields; /* [n_fields] arrays of n samples; the last is `label`, int64 */
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
/* The same, but wait at most `wait_ns`: then -ETIMEDOUT, or -EAGAIN when that is 0.  Work goes on
 * meanwhile; the next call is for the same batch. */
MR_API int mr_pipeline_next_within(struct mr_pipeline *p, uint64_t wait_ns, struct mr_batch **out);
/* A descriptor that poll() finds readable whenever the next call would not wait: for event loops.
 * Only to be polled, and only until close.  -ENOTSUP: it was not opened with `pollable`. */
MR_API int mr_pipeline_fd(const struct mr_pipeline *p);
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

/* The field of that name; NULL: there is none. */
MR_API const struct mr_field *mr_batch_field(const struct mr_batch *b, const char *name);
MR_API struct mr_batch *mr_batch_ref(struct mr_batch *b);
MR_API void mr_batch_unref(struct mr_batch *b);

#ifdef __cplusplus
}
#endif
#endif
