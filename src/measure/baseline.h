/* baseline.h - raw limits of the storage behind a folder.
 *
 * What no data set, loader or checkpoint can exceed: one large file written and read in order,
 * reads at random places, small files, syncs.  With an emulated device the same operations are
 * charged to it.  docs/baseline.md says what each pattern does. */
#ifndef MR_BASELINE_H
#define MR_BASELINE_H

#include <millrace/api.h>

#include "histogram.h"
#include "points.h"
#include "raw_io.h"

struct mr_device;

enum mr_pattern {
    MR_PATTERN_SEQ,             /* one file, 1 MiB operations in order */
    MR_PATTERN_RANDOM_IMAGENET, /* reads of ImageNet's sizes at random places */
    MR_PATTERN_RANDOM_16K,      /* as many reads of 16 KiB as it takes */
    MR_PATTERN_RANDOM_4K,       /* one read of 4 KiB at a time: latency */
    MR_PATTERN_SMALL_FILES,     /* create and write, then open, read and close */
    MR_PATTERN_FSYNC,           /* write 4 KiB, sync, one after the other */
    MR_N_PATTERNS,
};
const char *mr_pattern_name(enum mr_pattern p);
/* No part of a run of it takes longer, in seconds. */
unsigned mr_pattern_box_s(enum mr_pattern p, int emulated);

#define MR_BASELINE_MAX_RUNS 1000
#define MR_BASELINE_MIN_SIZE ((uint64_t)1 << 20)
#define MR_BASELINE_SIZE     ((uint64_t)5 << 30) /* the study's */

struct mr_baseline_progress {
    enum mr_pattern pattern;
    const char *doing;    /* "write", "read", ... */
    unsigned run, runs;   /* from 0 */
    uint64_t done, total; /* operations of this run */
    double left_s;        /* of everything that is still to come, as far as it can be known */
};

struct mr_baseline_result {
    enum mr_pattern pattern;
    unsigned n_runs;    /* measured: the first one is left out when there are several */
    double *runs;       /* [n_runs]: MB/s (seq: read; imagenet), else operations/s */
    double *write_runs; /* [n_runs]: MB/s (seq), files made a second (small-files); or NULL */
    double read_mb_per_s, write_mb_per_s; /* medians; negative: does not apply */
    double iops;                          /* median: operations, files, syncs a second */
    double created_per_s;                 /* small-files; negative elsewhere */
    /* The same reads with buffers in ordinary pages; negative and NULL: not measured. */
    double ordinary_mb_per_s, ordinary_iops;
    double *ordinary_runs;       /* [n_runs], as `runs` */
    double spread;               /* of runs: (most - least) / median */
    struct mr_histogram latency; /* ns, of all measured runs */
    const char *cold;            /* "data", "data+metadata", "unproven"; NULL: emulated,
                                  * or nothing is read */
    unsigned depth;
    uint32_t block_bytes; /* 0: sizes vary */
    int direct;           /* around the page cache */
    int cut;              /* a run was ended by its time */
    int partial;          /* stopped before all runs were through */
    double late_share;    /* emulated: operations for which the real storage was too slow */
};

struct mr_baseline_opts { /* zero means default */
    const char *dir;
    uint64_t size;            /* of the file; 0 = MR_BASELINE_SIZE; whole MiB count */
    unsigned runs;            /* 0 = 6 */
    unsigned n_patterns;      /* only the first n; 0 = all (later ones read the file of seq) */
    struct mr_device *device; /* emulated, borrowed; NULL = the real storage */
    const char *device_name;
    enum mr_raw_engine engine;
    int drop_caches; /* the system's, before each run that reads; needs root */
    int both_pages;  /* direct reads of more than a page again, with buffers in ordinary pages */
    /* About ten times a second; nonzero stops with -ECANCELED. */
    int (*progress)(void *ctx, const struct mr_baseline_progress *now);
    /* As soon as a pattern has been measured. */
    void (*on_result)(void *ctx, const struct mr_baseline_result *r);
    void *ctx;
};

struct mr_baseline {
    unsigned n_results;
    struct mr_baseline_result result[MR_N_PATTERNS];
    enum mr_raw_engine engine; /* that was used */
    uint64_t file_bytes;       /* less than asked for when writing it took too long */
    unsigned n_stale;          /* folders of killed runs that were removed */
    char warning[400];         /* what a reader of the figures should know; "" if nothing */
};

/* Measure everything.  On -ECANCELED *out holds what was measured so far.  Always free it by
 * fini. */
int mr_baseline_run(const struct mr_baseline_opts *opts, struct mr_baseline *out,
                    struct mr_error *err);
void mr_baseline_fini(struct mr_baseline *b);
/* A pattern's result as docs/json.md, "baseline", has it; the point's lists are for its writer. */
struct mr_baseline_point mr_baseline_result_point(const struct mr_baseline *b,
                                                  const struct mr_baseline_result *r,
                                                  const struct mr_baseline_opts *opts);
struct mr_json *mr_baseline_result_json(const struct mr_baseline *b,
                                        const struct mr_baseline_result *r,
                                        const struct mr_baseline_opts *opts);

#endif
