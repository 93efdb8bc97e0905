/* checkpoint.h - save named arrays while they are being trained, and get them back.
 *
 * A checkpoint exists or it does not: a crash or a power cut at any moment leaves the ones before
 * it, and mr_checkpoint_restore finds the newest that is whole.  docs/checkpoint.md says why.
 *
 * Lifetime: open -> (begin, before_write, wait, get_stats)* -> close.
 * Threads:  one thread calls begin, wait and close; before_write any, of several tensors at once;
 *           get_stats and get any.
 * Errors:   0 or positive is success, -errno is failure.  What fails in the background is returned
 *           by the next begin or wait, once, and stays in the statistics. */
/* Example:
 *
 *     float w[512][10] = {0};
 *     int64_t step = 0;
 *     struct mr_array arrays[] = {{"w", MR_DT_F32, 2, {512, 10}, w},
 *                                 {"step", MR_DT_I64, 0, {0}, &step}};
 *     struct mr_checkpoint *c;
 *     struct mr_error err = {0};
 *
 *     if (mr_checkpoint_open(arrays, 2, &(struct mr_checkpoint_opts){.dir = "ckpt"}, &c, &err))
 *         return 1;
 *     while (step < 100) {
 *         // forward, backward: the snapshot is copied meanwhile
 *         mr_checkpoint_before_write(c, 0);
 *         w[0][0] += 1; // the update: "w" may change now
 *         mr_checkpoint_before_write(c, 1);
 *         if (++step % 20 == 0 && mr_checkpoint_begin(c, (uint64_t)step, &err) < 0)
 *             return 1; // it returns at once; err.text has the words
 *     }
 *     if (mr_checkpoint_close(c, &err)) // waits until the last one is durable
 *         return 1;
 *
 *     // One row of "w", from the newest checkpoint of the folder.
 *     struct mr_checkpoint_reader *r;
 *     float row[10];
 *     uint64_t start[] = {0, 0}, extent[] = {1, 10};
 *
 *     if (mr_checkpoint_reader_open("ckpt", &r, &err))
 *         return 1;
 *     int64_t i = mr_checkpoint_reader_find(r, "w");
 *     if (i < 0 || mr_checkpoint_reader_read_slice(r, (uint64_t)i, start, extent, row, sizeof row,
 *                                                  &err))
 *         return 1;
 *     printf("w[0][0] = %g\n", row[0]);
 *     mr_checkpoint_reader_close(r);
 */
#ifndef MILLRACE_CHECKPOINT_H
#define MILLRACE_CHECKPOINT_H

#include <millrace/api.h>
#include <millrace/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MR_TENSOR_MAX_DIMS 8

/* An array that is saved.  Row-major; its memory stays in place and allocated until close. */
struct mr_array {
    const char *name;
    int dtype; /* enum mr_dtype */
    unsigned n_dims;
    uint64_t dims[MR_TENSOR_MAX_DIMS];
    void *data;
};

enum mr_checkpoint_mode {
    MR_CHECKPOINT_LAZY,  /* begin returns at once; arrays are copied during the next step */
    MR_CHECKPOINT_BURST, /* begin returns when it is durable on the fast tier */
    MR_CHECKPOINT_SYNC,  /* begin returns when it is durable everywhere */
};

enum mr_checkpoint_format {
    MR_CHECKPOINT_TF, /* TensorFlow's V2 bundle: .index, .data-00000-of-00001, .meta */
    MR_CHECKPOINT_SAFETENSORS,
};

enum mr_if_busy {
    MR_IF_BUSY_WAIT, /* begin waits for a free buffer, and that is counted */
    MR_IF_BUSY_SKIP, /* begin returns 1, nothing is saved, and it is counted */
};

enum mr_checkpoint_level {
    MR_CHECKPOINT_SNAPSHOTTED,  /* every array may change */
    MR_CHECKPOINT_DURABLE_FAST, /* survives a power cut on the fast tier, or on the slow one */
    MR_CHECKPOINT_DURABLE_SLOW, /* on the slow tier; without one, as DURABLE_FAST */
};

enum mr_checkpoint_tier { MR_TIER_FAST, MR_TIER_SLOW, MR_N_TIERS };

struct mr_device; /* millrace/store.h */
struct mr_checkpoint;

struct mr_checkpoint_opts { /* zero means default */
    const char *dir;        /* the fast tier, or the only one; made if it is missing */
    const char *drain_dir;  /* the slow tier; NULL = none */
    const char *prefix;     /* files are called prefix-STEP...; NULL = "model.ckpt"; must not end in
                             * ".resaved", which names a step that is saved again */
    enum mr_checkpoint_mode mode;
    enum mr_checkpoint_format format;
    int packed;                 /* no padding: tensors are not aligned in the file */
    unsigned keep;              /* newest checkpoints that stay; 0 = 5, MR_NONE = all */
    uint64_t drain_bytes_per_s; /* at most; 0 = as fast as it goes */
    enum mr_if_busy if_busy;
    unsigned buffers; /* lazy: copies in memory; 0 = 2 (the next snapshot while one is written) */
    unsigned copy_threads;                     /* lazy: 0 = 1; before_write helps them */
    unsigned io_depth;                         /* writes under way at once; 0 = 4 */
    struct mr_device *storage, *drain_storage; /* emulated; borrowed; NULL = the real storage */
    int fresh; /* -EEXIST when a folder holds checkpoints that a run has saved under this prefix */
    unsigned lease_silence_ms; /* must be the same in all programs that write there */
    uint64_t run;              /* of a resumed run: mr_restored.run; 0 = a new run */
    /* Called by open, at most once for each folder, when it has to wait: the folder has an owner on
     * another host, which may be gone.  It is gone if it is silent for lease_silence_ms (0 =
     * 60,000).  A signal ends the wait with -EINTR. */
    void (*waiting)(void *ctx, const char *text);
    void *waiting_ctx;
};

/* One checkpoint.  Times are in seconds from begin, -1: not (or not yet) reached. */
struct mr_checkpoint_record {
    uint64_t step;
    uint64_t bytes; /* of all its files */
    double stall_s; /* spent by callers in begin and before_write */
    double snapshot_s, durable_fast_s, durable_slow_s;
    int fell_back; /* the fast tier failed; it went straight to the slow one */
    int code;      /* -errno when it failed, else 0 */
};

#define MR_CHECKPOINT_N_RECORDS 1024 /* that mr_checkpoint_get remembers */

struct mr_checkpoint_stats {
    uint64_t begun, skipped, failed, fell_back;
    uint64_t waited; /* calls of begin that found no room and waited for it */
    double waited_s; /* all these waits together; part of the stalls */
    uint64_t durable_fast, durable_slow;
    uint64_t saving;              /* lazy: begun, and not yet saved or failed */
    uint64_t drain_waiting;       /* on the fast tier and not yet on the slow one */
    int64_t last_fast, last_slow; /* the step that became durable there last, -1: none */
    int64_t last_verified;        /* newest step that was read back and found right, -1 */
    uint64_t memory_bytes;        /* buffers, all of them allocated at open */
    struct mr_error error;        /* the last failure; code 0: none so far */
    char notice[256];             /* something to know that is no failure; "" = nothing */
};

MR_API int mr_checkpoint_open_sized(const struct mr_array *arrays, unsigned n_arrays,
                                    const struct mr_checkpoint_opts *opts, size_t size,
                                    struct mr_checkpoint **out, struct mr_error *err);
/* Register the arrays, own the folders, remove what a crash left of ours and old checkpoints beyond
 * `keep`, allocate and touch all memory, start the threads.  What an earlier run left undrained is
 * drained.  Relative folders are opened now; a later chdir changes nothing.
 * Borrows the arrays' memory and the devices until close; copies the rest.
 * -EBUSY: another run writes there; -EINVAL: names that are not unique, a bad type. */
static inline int mr_checkpoint_open(const struct mr_array *arrays, unsigned n_arrays,
                                     const struct mr_checkpoint_opts *opts,
                                     struct mr_checkpoint **out, struct mr_error *err)
{
    return mr_checkpoint_open_sized(arrays, n_arrays, opts, sizeof *opts, out, err);
}
MR_API int mr_checkpoint_memory_sized(const struct mr_array *arrays, unsigned n_arrays,
                                      const struct mr_checkpoint_opts *opts, size_t size,
                                      uint64_t *bytes, struct mr_error *err);
/* What open would allocate.  As open, it refuses arrays and options that make no sense. */
static inline int mr_checkpoint_memory(const struct mr_array *arrays, unsigned n_arrays,
                                       const struct mr_checkpoint_opts *opts, uint64_t *bytes,
                                       struct mr_error *err)
{
    return mr_checkpoint_memory_sized(arrays, n_arrays, opts, sizeof *opts, bytes, err);
}
/* Save the arrays as they are now.  0: begun (burst, sync: and done), 1: skipped.  If an earlier
 * checkpoint failed in the background, that failure is returned and nothing is begun; the next call
 * begins.  The arrays must not change before before_write.  A checkpoint of that step is replaced
 * if a run saved it; one that somebody else made, or that cannot be read, stays, and this fails. */
MR_API int mr_checkpoint_begin(struct mr_checkpoint *c, uint64_t step, struct mr_error *err);
/* Call before array `index` is changed; it may change when this returns.  Costs next to nothing
 * when no checkpoint is being copied.  An index that no array has is ignored. */
MR_API void mr_checkpoint_before_write(struct mr_checkpoint *c, unsigned index);
/* Wait until the last checkpoint begun has reached `level`: 0, or the error that it met. */
MR_API int mr_checkpoint_wait(struct mr_checkpoint *c, enum mr_checkpoint_level level,
                              struct mr_error *err);
MR_API void mr_checkpoint_get_stats_sized(struct mr_checkpoint *c, struct mr_checkpoint_stats *out,
                                          size_t size);
static inline void mr_checkpoint_get_stats(struct mr_checkpoint *c, struct mr_checkpoint_stats *out)
{
    mr_checkpoint_get_stats_sized(c, out, sizeof *out);
}
MR_API int mr_checkpoint_get_sized(struct mr_checkpoint *c, uint64_t i,
                                   struct mr_checkpoint_record *out, size_t size);
/* The i-th checkpoint begun since open, from 0.  -ENOENT: there is none, or it is forgotten. */
static inline int mr_checkpoint_get(struct mr_checkpoint *c, uint64_t i,
                                    struct mr_checkpoint_record *out)
{
    return mr_checkpoint_get_sized(c, i, out, sizeof *out);
}
/* Wait until all that was begun is durable everywhere (or failed), stop, free.  Returns a failure
 * that no call has returned yet; `err` has its words.  NULL is a no-op. */
MR_API int mr_checkpoint_close(struct mr_checkpoint *c, struct mr_error *err);

struct mr_restore_opts {
    const char *dir, *drain_dir; /* where to look; either may be NULL or missing */
    const char *prefix;          /* NULL = any */
    unsigned io_depth;           /* 0 = 8 */
    struct mr_device *storage, *drain_storage;
    /* Called for each checkpoint that is passed over, newest first. */
    void (*passed_over)(void *ctx, const char *path, const char *why);
    void *passed_over_ctx;
};

struct mr_restored {
    uint64_t step, bytes;
    enum mr_checkpoint_tier tier;
    enum mr_checkpoint_format format;
    uint64_t run;    /* that saved it; 0: it does not say */
    char path[1024]; /* without the ending */
};

MR_API int mr_checkpoint_restore_sized(const struct mr_array *arrays, unsigned n_arrays,
                                       const struct mr_restore_opts *opts, size_t opts_size,
                                       struct mr_restored *out, size_t out_size,
                                       struct mr_error *err);
/* Read the newest checkpoint of both tiers whose every byte verifies into the arrays (borrowed).
 * The newest is the one that was saved last, whatever its step; those that no run of this library
 * saved come last, by step.  No pointer file is read.  A checkpoint is passed over if it is
 * damaged, lacks an array, or has one with another type or shape; tensors that no array asks for
 * are ignored. -ENOENT: there is no checkpoint; -EBADMSG: none verifies and fits, and the arrays'
 * contents are undefined; -EINVAL: two arrays have one name.  Another code: no checkpoint was
 * found, and a folder could not be listed for this reason. */
static inline int mr_checkpoint_restore(const struct mr_array *arrays, unsigned n_arrays,
                                        const struct mr_restore_opts *opts, struct mr_restored *out,
                                        struct mr_error *err)
{
    return mr_checkpoint_restore_sized(arrays, n_arrays, opts, sizeof *opts, out, sizeof *out, err);
}

/* ---- reading what is there ---- */

/* A checkpoint that exists, of any format, whoever wrote it: several data files, partitioned
 * variables, strings, TensorFlow 2 and safetensors of others included.
 *
 * Lifetime: open -> (get_info, get_tensor, find, read, read_slice, verify)* -> close.
 * Threads:  one at a time; any number of readers of one checkpoint.
 * Errors:   -EBADMSG is a wrong checksum or structure, -ENODATA a file that ends too early,
 * -ENOTSUP
 *           what this library does not read; `err` names the file or the tensor. */
struct mr_checkpoint_reader;

struct mr_checkpoint_info {
    enum mr_checkpoint_format format;
    int has_checksums; /* of every tensor; 0: reads are not compared with anything */
    int64_t step;      /* the number at the end of its name; -1: none */
    uint64_t bytes;    /* of all its files */
    uint64_t n_tensors;
    char path[1024]; /* without the ending */
};

struct mr_tensor_info {
    const char *name; /* valid until close */
    int dtype;        /* enum mr_dtype */
    unsigned n_dims;
    uint64_t dims[MR_TENSOR_MAX_DIMS]; /* row-major */
    uint64_t bytes;                    /* that reading all of it needs */
};

/* `path` is a file of a checkpoint that makes it exist (FILE.index, FILE.safetensors), that path
 * without the ending, or a folder: then the newest checkpoint in it that can be opened.  Its
 * description is read and checked, and that all data are there; not their checksums. */
MR_API int mr_checkpoint_reader_open(const char *path, struct mr_checkpoint_reader **out,
                                     struct mr_error *err);
/* NULL is a no-op. */
MR_API void mr_checkpoint_reader_close(struct mr_checkpoint_reader *r);
MR_API void mr_checkpoint_reader_get_info_sized(const struct mr_checkpoint_reader *r,
                                                struct mr_checkpoint_info *out, size_t size);
static inline void mr_checkpoint_reader_get_info(const struct mr_checkpoint_reader *r,
                                                 struct mr_checkpoint_info *out)
{
    mr_checkpoint_reader_get_info_sized(r, out, sizeof *out);
}
MR_API int mr_checkpoint_reader_get_tensor_sized(const struct mr_checkpoint_reader *r, uint64_t i,
                                                 struct mr_tensor_info *out, size_t size);
/* Tensor i, from 0.  -ENOENT: there are fewer. */
static inline int mr_checkpoint_reader_get_tensor(const struct mr_checkpoint_reader *r, uint64_t i,
                                                  struct mr_tensor_info *out)
{
    return mr_checkpoint_reader_get_tensor_sized(r, i, out, sizeof *out);
}
/* The number of the tensor with this name, or -ENOENT. */
MR_API int64_t mr_checkpoint_reader_find(const struct mr_checkpoint_reader *r, const char *name);
/* All of tensor i to `buf`, which has room for `room` bytes (-EINVAL: too few).  Compared with its
 * checksum; after a failure the contents of `buf` are undefined.  MR_DT_STRING has the bytes that
 * TensorFlow stores: the lengths as varints, 4 bytes of checksum, the strings. */
MR_API int mr_checkpoint_reader_read(struct mr_checkpoint_reader *r, uint64_t i, void *buf,
                                     uint64_t room, struct mr_error *err);
/* A slice of tensor i: in each dimension d the extent[d] elements from start[d] on, packed, row by
 * row.  Little more is read than the slice.  A checksum covers a whole tensor (or each stored part
 * of a partitioned one), so it is compared only where the slice holds all of that; verify checks
 * the rest.  -EINVAL: not inside of the tensor, or too little room; -ENOTSUP: strings, and elements
 * of less than a byte that share one with others. */
MR_API int mr_checkpoint_reader_read_slice(struct mr_checkpoint_reader *r, uint64_t i,
                                           const uint64_t *start, const uint64_t *extent, void *buf,
                                           uint64_t room, struct mr_error *err);

struct mr_checkpoint_watch {                                    /* NULL: nobody watches */
    void (*progress)(void *ctx, uint64_t done, uint64_t total); /* bytes; may be NULL */
    int (*should_stop)(void *ctx); /* nonzero: -ECANCELED; may be NULL */
    void *ctx;
};

struct mr_checkpoint_verdict {
    uint64_t bytes;     /* of tensors that were read and found right */
    size_t n_tensors;   /* the same */
    size_t n_unchecked; /* of those, read but without a checksum to compare with */
    char where[256];    /* when something is wrong: the tensor, or the file */
};

MR_API int mr_checkpoint_reader_verify_sized(struct mr_checkpoint_reader *r,
                                             const struct mr_checkpoint_watch *watch,
                                             size_t watch_size,
                                             struct mr_checkpoint_verdict *verdict,
                                             size_t verdict_size, struct mr_error *err);
/* Read everything, in the order of the files, and compare all checksums.  0, or what is wrong with
 * the first bad tensor or file, which verdict->where names; *verdict is always written. */
static inline int mr_checkpoint_reader_verify(struct mr_checkpoint_reader *r,
                                              const struct mr_checkpoint_watch *watch,
                                              struct mr_checkpoint_verdict *verdict,
                                              struct mr_error *err)
{
    return mr_checkpoint_reader_verify_sized(r, watch, sizeof *watch, verdict, sizeof *verdict,
                                             err);
}

#ifdef __cplusplus
}
#endif
#endif
