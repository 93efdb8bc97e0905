/* differential.h - runs that take a pipeline apart, and what is found by them.
 *
 * A run draws batches as fast as they come: from the cache or from the storage, decoded or not. */
#ifndef MR_DIFFERENTIAL_H
#define MR_DIFFERENTIAL_H

#include "advice.h"
#include "microbench.h"

#define MR_MOST_THREADS 32
#define MR_RING_DEPTH   8 /* reads under way a core, and twice as many */

struct mr_draw_plan {
    struct mr_dataset *data;
    struct mr_setup setup;
    int decode;
    enum { MR_FROM_CACHE, MR_FROM_STORAGE } from;
    struct mr_device *storage; /* MR_FROM_STORAGE; NULL = the real one */
    double expected_per_s;     /* samples: no more than that, roughly; 0 = not known */
};

/* Draw batches as fast as they come.  `keep` has no list of runs and need not be freed. */
int mr_draw_run(const struct mr_advice_opts *o, const struct mr_draw_plan *d,
                struct mr_bench_result *keep, struct mr_error *err);
/* Measure again what changes when the same images are stored in other files (o->data): their
 * reads and their CPU time, for configurations with at most `reads` outstanding.  All else comes
 * from `before`, except the rates of the whole pipeline, which mean nothing here. */
int mr_findings_retake(const struct mr_advice_opts *o, double file_bytes, unsigned most_reads,
                       const struct mr_findings *before, struct mr_findings *out,
                       struct mr_error *err);
/* The rate of decoding cached images now, divided by that when `f` was taken: a prediction is
 * off by as much.  The images are read into the cache first. */
struct mr_control {
    double times;
    int64_t device_bytes; /* that were fetched all the same; -1: cannot be known */
};
int mr_findings_control(const struct mr_advice_opts *o, const struct mr_findings *f,
                        struct mr_control *out, struct mr_error *err);
/* What the storage of the samples was found to deliver of them. */
struct mr_read_ceiling {
    double bytes_per_s;
    unsigned reads; /* at once, at the most */
    int open;       /* more reads at once, or more cores, might yield more */
};
struct mr_read_ceiling mr_findings_ceiling(const struct mr_findings *f);
/* What would have been found on cores that are `times` as fast. */
void mr_findings_speed_up(struct mr_findings *f, double times);
/* Batches under way with room for twice as many samples as there are reads or workers. */
unsigned mr_enough_prefetch(unsigned batch, unsigned under_way);
void mr_setup_fill(const struct mr_advice_opts *o, const struct mr_setup *s,
                   struct mr_pipeline_opts *p);
/* Call opts->say, if there is one, with what begins now. */
void mr_advice_say(const struct mr_advice_opts *o, const char *what);

#endif
