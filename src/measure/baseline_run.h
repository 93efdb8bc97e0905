/* baseline_run.h - what the parts of baseline.c share: a measurement under way, and one run of a
 * pattern. */
#ifndef MR_BASELINE_RUN_H
#define MR_BASELINE_RUN_H

#include "baseline.h"
#include "scratch_dir.h"

#define MR_SEQ_BLOCK   (1u << 20)
#define MR_SEQ_DEPTH   16
#define MR_DEEP        128 /* reads under way in random patterns */
#define MR_SMALL_BYTES 4096u

/* How far a run's reads are proven to come from the device; the worst of a pattern's runs counts.
 */
enum mr_coldness { MR_IS_UNPROVEN, MR_IS_COLD_DATA, MR_IS_COLD_ALL, MR_IS_COLD_UNASKED };

struct mr_baseline_state {
    struct mr_baseline_opts o; /* with the defaults filled in */
    struct mr_baseline *out;
    struct mr_error *err;
    struct mr_scratch *scratch;
    struct mr_raw_io *io;

    int fd;           /* the large file, which has no name */
    char fd_path[32]; /* by which it can be opened again */
    uint64_t inode;
    int direct;
    uint32_t align;       /* of direct reads */
    uint64_t asked_bytes; /* what the file is to hold */
    uint64_t file_bytes;  /* what has been written of it */

    /* For reports. */
    struct mr_baseline_progress now;
    double run_s[MR_N_PATTERNS]; /* what a run takes, as far as is known */
};

/* What one run of a pattern gave. */
struct mr_baseline_sample {
    struct mr_raw_result read;     /* or syncs */
    struct mr_raw_result ordinary; /* with buffers in ordinary pages; no operations: not measured */
    uint64_t write_ops, write_bytes;
    double write_seconds; /* 0: nothing was written */
    int write_cut;
    uint64_t n_late; /* of all operations */
    enum mr_coldness cold;
};

/* The longest that a part of a run may take. */
uint64_t mr_baseline_box_ns(const struct mr_baseline_state *b, enum mr_pattern p);
/* Small files, and syncs, of a run. */
uint64_t mr_baseline_small_count(const struct mr_baseline_state *b);
/* Tell how far the run is; -ECANCELED when it is to stop.  mr_baseline_tell fits raw_io. */
int mr_baseline_tell(void *state, uint64_t done, uint64_t total);
/* Say what is wrong with the figures; the first such text stays. */
void mr_baseline_warn(struct mr_baseline_state *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* file_patterns.c: make the large file, run a pattern on it. */
int mr_file_patterns_open(struct mr_baseline_state *b);
int mr_file_patterns_run(struct mr_baseline_state *b, enum mr_pattern p, unsigned run,
                         struct mr_baseline_sample *out);
void mr_file_patterns_close(struct mr_baseline_state *b);
/* Take a file out of the cache, and the system's caches with it if that was asked for. */
enum mr_coldness mr_baseline_drop(struct mr_baseline_state *b, enum mr_coldness files);

/* small_files.c */
int mr_small_files_run(struct mr_baseline_state *b, unsigned run, struct mr_baseline_sample *out);
int mr_fsync_run(struct mr_baseline_state *b, struct mr_baseline_sample *out);

#endif
