/* trace_runs.c - the runs of a trace, by its marks.
 *
 *     start-up   run begins ...... end of run   (drain)   run begins ...... end of run
 *                `------ run 0 --------------'             `------ run 1 -------------'
 *
 * A trace also holds what happened before and after: a data set that is opened, memory that is
 * touched, a checkpoint that is drained.  Shares of a phase are of the runs only.  A program that
 * marks ends only has one run, from its first span to the last end; one that marks nothing has
 * none, and shares are of the time from its first span to its last. */
#include "trace_mark.h"
#include "trace_summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct mark {
    int64_t at;
    int is_end;
};

static int by_time(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;
    return x->at != y->at ? (x->at > y->at) - (x->at < y->at) : y->is_end - x->is_end;
}

/* The marks of trace `k` that bound runs, in order: their number.  `out` may be NULL. */
static size_t find_marks(const struct mr_trace_summary *s, unsigned k, struct mark *out)
{
    const struct mr_trace_log *log = s->log[k];
    size_t n = 0;
    for (size_t i = 0; i < log->n; i++) {
        const struct mr_log_event *e = &log->event[i];
        if (e->kind != MR_EVENT_MARK)
            continue;
        const char *name = mr_log_string(log, e->name);
        int is_end = !strcmp(name, MR_MARK_END);
        if (!is_end && strcmp(name, MR_MARK_BEGIN))
            continue;
        if (out)
            out[n] = (struct mark){mr_time_add(e->begin_ns, s->shift_ns[k]), is_end};
        n++;
    }
    if (out)
        qsort(out, n, sizeof *out, by_time);
    return n;
}

/* From the first span of trace `k` to its last; 0: there is none. */
static int spans_of(const struct mr_trace_summary *s, unsigned k, struct mr_interval *out)
{
    const struct mr_trace_log *log = s->log[k];
    int any = 0;
    for (size_t i = 0; i < log->n; i++) {
        const struct mr_log_event *e = &log->event[i];
        if (e->kind != MR_EVENT_SPAN)
            continue;
        int64_t begin = mr_time_add(e->begin_ns, s->shift_ns[k]);
        int64_t end = mr_time_add(e->end_ns, s->shift_ns[k]);
        out->begin = any && out->begin < begin ? out->begin : begin;
        out->end = any && out->end > end ? out->end : end;
        any = 1;
    }
    return any;
}

static void add_run(struct mr_trace_summary *s, unsigned k, int64_t begin, int64_t end)
{
    if (end > begin)
        s->run[s->n_runs++] =
            (struct mr_run_summary){.source = k, .begin_ns = begin, .end_ns = end};
}

/* The runs between n marks; s->run has room. */
static void add_runs(struct mr_trace_summary *s, unsigned k, const struct mark *mark, size_t n)
{
    struct mr_interval spans = {0};
    if (!spans_of(s, k, &spans))
        return;
    size_t from = s->n_runs;
    int64_t begin = spans.begin; /* of a run whose beginning has no mark */
    int open = 1;
    for (size_t i = 0; i < n; i++) {
        if (mark[i].is_end && open)
            add_run(s, k, begin, mark[i].at);
        else if (mark[i].is_end && s->n_runs > from)
            s->run[s->n_runs - 1].end_ns = mark[i].at;
        open = !mark[i].is_end;
        begin = mark[i].at;
    }
    if (n && open)
        add_run(s, k, begin, spans.end);
}

size_t mr_trace_run_at(const struct mr_trace_summary *s, unsigned k, int64_t at)
{
    size_t low = 0, high = s->n_runs;
    while (low < high) { /* the first run that begins after it, or is of a later trace */
        size_t mid = low + (high - low) / 2;
        const struct mr_run_summary *r = &s->run[mid];
        if (r->source < k || (r->source == k && r->begin_ns <= at))
            low = mid + 1;
        else
            high = mid;
    }
    const struct mr_run_summary *r = low ? &s->run[low - 1] : NULL;
    return r && r->source == k && at < r->end_ns ? low - 1 : MR_NO_RUN;
}

static void count_reads(struct mr_trace_summary *s, unsigned k)
{
    const struct mr_trace_log *log = s->log[k];
    for (size_t i = 0; i < log->n && s->n_runs; i++) {
        const struct mr_log_event *e = &log->event[i];
        if (e->kind != MR_EVENT_SPAN || strcmp(mr_log_string(log, e->name), "Read"))
            continue;
        size_t run = mr_trace_run_at(s, k, mr_time_add(e->begin_ns, s->shift_ns[k]));
        if (run != MR_NO_RUN) {
            s->run[run].reads++;
            s->run[run].bytes += e->bytes;
        }
    }
}

/* The union of the runs; without any, of all traces' spans. */
static void unite(struct mr_trace_summary *s)
{
    size_t n = s->n_runs;
    for (size_t i = 0; i < n; i++)
        s->run_when[i] = (struct mr_interval){s->run[i].begin_ns, s->run[i].end_ns};
    if (!n) {
        struct mr_interval all = {0}, of = {0};
        for (unsigned k = 0; k < s->n_logs; k++) {
            if (!spans_of(s, k, &of))
                continue;
            all.begin = n && all.begin < of.begin ? all.begin : of.begin;
            all.end = n && all.end > of.end ? all.end : of.end;
            n = 1;
        }
        s->run_when[0] = all;
    }
    s->n_run_when = mr_intervals_merge(s->run_when, n);
    s->run_ns = mr_intervals_length(s->run_when, s->n_run_when);
}

int mr_trace_find_runs(struct mr_trace_summary *s)
{
    size_t n[2] = {0}, most = 0;
    for (unsigned k = 0; k < s->n_logs; k++) {
        n[k] = find_marks(s, k, NULL);
        most += n[k];
    }
    struct mark *mark = calloc(most ? most : 1, sizeof *mark);
    s->run = calloc(most ? most : 1, sizeof *s->run);
    s->run_when = calloc(most ? most : 1, sizeof *s->run_when);
    int r = mark && s->run && s->run_when ? 0 : -ENOMEM;
    for (unsigned k = 0; !r && k < s->n_logs; k++) {
        find_marks(s, k, mark);
        add_runs(s, k, mark, n[k]);
        count_reads(s, k);
    }
    if (!r)
        unite(s);
    free(mark);
    return r;
}
