/* microbench.h - the micro-benchmark: draw batches as fast as they come, several times.
 *
 * Rate = samples / (first call to last batch); workers begin with the first call, so nothing is
 * done before the clock runs.  The first of several runs is a warm-up and left out. */
#ifndef MR_MICROBENCH_H
#define MR_MICROBENCH_H

#include <millrace/pipeline.h>

#include "json.h"

#define MR_BENCH_MAX_RUNS 1000

struct mr_bench_progress {
    unsigned run, runs;   /* the run that is under way, of how many */
    const char *what;     /* "evicting", "running", "hashing", "warming" */
    uint64_t done, total; /* samples of this run */
};

#define MR_LONGER 4

struct mr_bench_opts {
    struct mr_dataset *data;
    struct mr_pipeline_opts pipe; /* everything about the input; callbacks for errors included */
    unsigned runs;                /* at most MR_BENCH_MAX_RUNS */
    /* A run ends with the batch that is drawn when this time has passed, or behind those that
     * were evicted for it: 16,384 samples or what 0.3 s are enough for; 0 = never. */
    double box_s;
    uint64_t least;   /* samples that a run with a box should have: for these it goes on, up to
                       * MR_LONGER boxes */
    uint64_t touched; /* a run reads only this many samples, the first of its order, so only these
                       * are evicted and looked at, and a box changes nothing of that; 0 = all */
    int cold, warm, drop_caches, hash;
    /* With an emulated storage: files are read into the page cache before the runs, for a moment.
     * If that is not enough for all that a run with a box draws, it ends behind those read. */
    int ahead;
    void (*progress)(void *ctx, const struct mr_bench_progress *now);
    void *progress_ctx;
};

struct mr_bench_run {
    uint64_t samples, skipped, delivered_bytes;
    double seconds, per_s, cpu_s;
    int64_t device_bytes, cache_bytes; /* -1: cannot be known */
    struct mr_latency read, batch;
};

struct mr_bench_result {
    struct mr_pipeline_opts pipe;
    unsigned n_runs;            /* measured, warm-up left out */
    struct mr_bench_run *run;   /* [n_runs] */
    struct mr_bench_run median; /* the run with the median rate */
    double per_s;               /* median rate */
    double spread;              /* (fastest - slowest) / median */
    const char *cold;           /* "data", "data+metadata", "unproven"; NULL: not asked for */
    double late_share; /* emulated: of the samples, those the real storage had later; else NaN */
    struct mr_pipeline_stats stats; /* of the median run's pipeline: error reasons, memory */
    uint64_t peak_rss_bytes;
    uint64_t hash;
    int has_hash, partial; /* partial: stopped before all runs were through */
    char warning[256];
};

/* 0, -ECANCELED (the result holds what was measured until then), or another -errno with words in
 * err.  The result must be freed in any case. */
int mr_microbench_run(const struct mr_bench_opts *o, struct mr_bench_result *out,
                      struct mr_error *err);
void mr_bench_result_fini(struct mr_bench_result *r);

/* Of the `cold` of two runs the one that both deserve. */
const char *mr_cold_of_both(const char *a, const char *b);
/* Delivered bytes a second at the median rate, in 10^6; 0: no run was through. */
double mr_bench_mb_per_s(const struct mr_bench_result *r);
/* The fields of docs/json.md, "bench". */
struct mr_json *mr_bench_result_json(const struct mr_bench_result *r);

#endif
