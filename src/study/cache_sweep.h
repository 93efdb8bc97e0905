/* cache_sweep.h - the page cache over many files: how much is cached, dropped, proven. */
#ifndef MR_CACHE_SWEEP_H
#define MR_CACHE_SWEEP_H

#include <millrace/pipeline.h>

struct mr_cache_sweep { /* all zero to begin with */
    uint64_t files, bytes;
    uint64_t cached_before, cached_after; /* of the files that can be known */
    uint64_t n_unknown;                   /* files whose residency cannot be known */
    uint64_t n_unproven;                  /* evicted, but not provably cold */
    uint64_t n_failed;                    /* could not be opened */
};

/* Look at one file, and evict it if asked to.  0 or -errno, also counted. */
int mr_cache_sweep_file(struct mr_cache_sweep *s, const char *path, int evict);
/* The same for a sample, */
int mr_cache_sweep_sample(struct mr_cache_sweep *s, const struct mr_dataset *data, uint64_t i,
                          int evict);
/* and for every sample of a data set; stops with -ECANCELED when should_stop says so. */
int mr_cache_sweep_data(struct mr_cache_sweep *s, const struct mr_dataset *data, int evict,
                        int (*should_stop)(void *ctx), void *ctx);

/* The same for the first n samples of a pipeline's first epoch: all that a short run touches.
 * The pipeline's options give their order and `should_stop`.  -ENOMEM is possible. */
int mr_cache_sweep_first(struct mr_cache_sweep *s, const struct mr_dataset *data,
                         const struct mr_pipeline_opts *pipe, uint64_t n, int evict);

/* The samples of the first `n_batches` of a pipeline's first epoch, or of as many, at least two, as
 * are looked at in `box_s` seconds (0: however long it takes).  The number of batches swept, or
 * -errno. */
int64_t mr_cache_sweep_batches(struct mr_cache_sweep *s, const struct mr_dataset *data,
                               const struct mr_pipeline_opts *pipe, uint64_t n_batches,
                               double box_s, int evict);

void mr_cache_sweep_merge(struct mr_cache_sweep *into, const struct mr_cache_sweep *from);

/* Bytes cached before, or -1 when they cannot be known for every file. */
int64_t mr_cache_sweep_cached(const struct mr_cache_sweep *s);

#endif
