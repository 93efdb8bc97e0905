/* trace_summary.h - what a trace says: phases, what hides behind what, slow files, marks.
 *
 * One trace, or two on one clock.  Of a phase: how often, the length of the union of its spans,
 * their sum, and bytes / union. */
#ifndef MR_TRACE_SUMMARY_H
#define MR_TRACE_SUMMARY_H

#include "intervals.h"
#include "json.h"
#include "trace_log.h"

#define MR_SUMMARY_SLOW    10    /* files */
#define MR_SUMMARY_OVERLAP 10    /* phases of each trace that are compared with one another */
#define MR_SUMMARY_STEPS   10000 /* steps that are listed */
#define MR_SUMMARY_MARKS   1000

struct mr_phase_summary {
    const char *name; /* borrowed from the log */
    unsigned source;  /* which trace: 0 or 1 */
    uint64_t count, bytes;
    uint64_t union_ns, sum_ns, p50_ns, p99_ns, max_ns;
    uint64_t run_ns;          /* of the union, what lies within runs */
    struct mr_interval *when; /* [n_when] the union */
    size_t n_when;
};

/* From a mark "run begins" (or the first span) to "end of run" (or the last span). */
struct mr_run_summary {
    unsigned source;
    int64_t begin_ns, end_ns;
    uint64_t reads, bytes; /* spans called Read that began in it */
};

struct mr_step_summary { /* of trace 0 */
    size_t run;          /* MR_NO_RUN: the trace marks none */
    uint32_t epoch, step;
    uint64_t read_ns, load_ns;               /* unions of this step's spans, */
    uint64_t read_hidden_ns, load_hidden_ns; /* and what of them lies within compute, of any step */
    uint64_t wait_ns, compute_ns;
};

struct mr_slow_file {
    const char *file; /* NULL: not named */
    uint32_t id, epoch, step;
    uint64_t ns, bytes;
};

struct mr_mark {
    const char *name;
    unsigned source;
    int64_t at_ns; /* since the beginning */
};

struct mr_trace_summary {
    const struct mr_trace_log *log[2];
    unsigned n_logs;
    int64_t begin_ns, end_ns; /* of everything, on the common clock */
    int64_t shift_ns[2];      /* added to a trace's times */
    const char *clock; /* two traces: "monotonic clock" when both are of one machine and boot, else
                        * "wall clock", or "starts aligned" when one has none */
    int64_t step_ns;   /* on the monotonic clock: by how much the wall clock was set in between */

    struct mr_run_summary *run; /* [n_runs] in order, trace 0 before 1; none: no such marks */
    size_t n_runs;
    struct mr_interval *run_when; /* [n_run_when] the union of the runs; without any, from the first
                                   * span to the last: shares are of this */
    size_t n_run_when;
    uint64_t run_ns; /* its length */

    struct mr_phase_summary *phase; /* [n_phases] longest union first, trace 0 before 1 */
    size_t n_phases;
    int compute; /* the phase behind which others hide: Train or PyTorch's ProfilerStep; -1: none */

    struct mr_step_summary *step; /* [n_steps] in order, at most MR_SUMMARY_STEPS */
    size_t n_steps, n_all_steps;
    size_t n_unused; /* batches that were read, and nobody trained on or took */
    uint64_t read_ns, read_hidden_ns, load_ns, load_hidden_ns; /* over all steps together */

    struct mr_slow_file slow[MR_SUMMARY_SLOW]; /* slowest first */
    unsigned n_slow;
    struct mr_mark *mark; /* [n_marks] in order */
    size_t n_marks;
    int64_t after_end_ns; /* from the last mark "end of run" to the last event; -1: no such mark */
};

#define MR_NO_RUN SIZE_MAX
/* trace_runs.c: fill in the runs.  0 or -ENOMEM. */
int mr_trace_find_runs(struct mr_trace_summary *s);
/* The run of trace `k` that was under way at a moment, or MR_NO_RUN. */
size_t mr_trace_run_at(const struct mr_trace_summary *s, unsigned k, int64_t at);

/* Borrows the logs.  0 or -ENOMEM. */
int mr_trace_summarize(const struct mr_trace_log *const *log, unsigned n,
                       struct mr_trace_summary **out);
void mr_trace_summary_free(struct mr_trace_summary *s);

/* The longest phases, up to `per_trace` (at most MR_SUMMARY_OVERLAP) of each trace: their number.
 */
size_t mr_summary_longest(const struct mr_trace_summary *s, size_t per_trace, size_t *out);
/* How long two were under way at once. */
uint64_t mr_summary_overlap(const struct mr_trace_summary *s, size_t a, size_t b);

/* The fields of docs/json.md, "inspect" of a trace. */
struct mr_json *mr_trace_summary_json(const struct mr_trace_summary *s);

#endif
