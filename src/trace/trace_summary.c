/* trace_summary.c - see trace_summary.h.
 *
 * Spans are sorted by trace and name; each group gives one phase.  A step's share: the union of the
 * spans of a phase that carry its number, and what that has in common with the union of all
 * compute. The batch of step k is read while step k - 1 (or an earlier one) is computed, so compute
 * of any step counts: hidden is what cost the training no time.  A step is what was computed, in a
 * trace without compute what somebody waited for; a batch that was read ahead when the run ended is
 * none.
 *
 * Two traces: when both know the wall clock, their times are on it already.  Otherwise nobody knows
 * how they lie to each other; they are laid side by side so that both begin together, and the
 * summary says so. */
#include "trace_summary.h"

#include "percentile.h"
#include "trace_mark.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ref { /* an event of one of the logs */
    const struct mr_log_event *e;
    unsigned source;
    size_t run; /* of trace 0, for its steps */
};

struct work {
    struct mr_trace_summary *s;
    struct ref *span; /* [n] */
    size_t n;
    struct mr_interval *scratch; /* [n] */
    uint64_t *took;              /* [n] */
};

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_name(const void *a, const void *b)
{
    const struct ref *x = a, *y = b;
    int c = compare_u64(x->source, y->source);
    return c ? c : compare_u64(x->e->name, y->e->name);
}

static int by_step(const void *a, const void *b)
{
    const struct ref *x = a, *y = b;
    int c = compare_u64(x->run, y->run);
    c = c ? c : compare_u64(x->e->epoch, y->e->epoch);
    return c ? c : compare_u64(x->e->step, y->e->step);
}

static int by_length(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return compare_u64(x, y);
}

static int by_union(const void *a, const void *b)
{
    const struct mr_phase_summary *x = a, *y = b;
    int c = compare_u64(x->source, y->source);
    return c                            ? c
           : x->union_ns != y->union_ns ? -compare_u64(x->union_ns, y->union_ns)
                                        : strcmp(x->name, y->name);
}

static int by_time(const void *a, const void *b)
{
    const struct mr_mark *x = a, *y = b;
    return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

static uint64_t length(const struct mr_log_event *e)
{
    return (uint64_t)e->end_ns - (uint64_t)e->begin_ns;
}

static struct mr_interval place(const struct work *w, const struct ref *r)
{
    int64_t shift = w->s->shift_ns[r->source];
    return (struct mr_interval){mr_time_add(r->e->begin_ns, shift),
                                mr_time_add(r->e->end_ns, shift)};
}

/* ---- clock ---- */

static void extent(const struct mr_trace_log *log, int64_t *begin, int64_t *end)
{
    *begin = INT64_MAX;
    *end = INT64_MIN;
    for (size_t i = 0; i < log->n; i++) {
        *begin = log->event[i].begin_ns < *begin ? log->event[i].begin_ns : *begin;
        *end = log->event[i].end_ns > *end ? log->event[i].end_ns : *end;
    }
    if (!log->n)
        *begin = *end = 0;
}

/* Put trace 1 on the clock of trace 0, and name that clock.  The monotonic clock where both
 * traces have the same one, as it cannot be set; else the wall clock. */
static const char *join(struct mr_trace_summary *s, const int64_t begin[2])
{
    const struct mr_trace_log *a = s->log[0], *b = s->log[1];
    if (a->clock[0] && !strcmp(a->clock, b->clock)) {
        s->shift_ns[1] = mr_time_minus(a->ahead_ns, b->ahead_ns);
        s->step_ns = mr_time_minus(b->ahead_ns, a->ahead_ns);
        return "monotonic clock";
    }
    if (a->has_wall && b->has_wall)
        return "wall clock";
    s->shift_ns[1] = mr_time_minus(begin[0], begin[1]);
    return "starts aligned";
}

static void set_clock(struct mr_trace_summary *s)
{
    int64_t begin[2] = {0}, end[2] = {0};
    for (unsigned i = 0; i < s->n_logs; i++)
        extent(s->log[i], &begin[i], &end[i]);
    if (s->n_logs == 2) {
        s->clock = join(s, begin);
    }
    s->begin_ns = begin[0];
    s->end_ns = end[0];
    if (s->n_logs == 2 && s->log[1]->n) {
        int64_t b = mr_time_add(begin[1], s->shift_ns[1]), e = mr_time_add(end[1], s->shift_ns[1]);
        s->begin_ns = b < s->begin_ns || !s->log[0]->n ? b : s->begin_ns;
        s->end_ns = e > s->end_ns || !s->log[0]->n ? e : s->end_ns;
    }
}

/* ---- phases ---- */

/* The union of n spans; *when is allocated and the caller's. */
static int merge(struct work *w, const struct ref *span, size_t n, struct mr_interval **when,
                 size_t *n_when)
{
    for (size_t i = 0; i < n; i++)
        w->scratch[i] = place(w, &span[i]);
    size_t kept = mr_intervals_merge(w->scratch, n);
    *when = malloc((kept ? kept : 1) * sizeof **when);
    if (!*when)
        return -ENOMEM;
    memcpy(*when, w->scratch, kept * sizeof **when);
    *n_when = kept;
    return 0;
}

static int add_phase(struct work *w, const struct ref *span, size_t n)
{
    struct mr_trace_summary *s = w->s;
    struct mr_phase_summary *p = &s->phase[s->n_phases];
    *p = (struct mr_phase_summary){
        .name = mr_log_string(s->log[span->source], span->e->name),
        .source = span->source,
        .count = n,
    };
    for (size_t i = 0; i < n; i++) {
        w->took[i] = length(span[i].e);
        p->sum_ns += w->took[i];
        p->bytes += span[i].e->bytes;
    }
    qsort(w->took, n, sizeof *w->took, by_length);
    p->p50_ns = w->took[mr_percentile_index(0.50, n)];
    p->p99_ns = w->took[mr_percentile_index(0.99, n)];
    p->max_ns = w->took[n - 1];
    if (merge(w, span, n, &p->when, &p->n_when))
        return -ENOMEM;
    p->union_ns = mr_intervals_length(p->when, p->n_when);
    p->run_ns = mr_intervals_overlap(p->when, p->n_when, s->run_when, s->n_run_when);
    s->n_phases++;
    return 0;
}

static int add_phases(struct work *w)
{
    struct mr_trace_summary *s = w->s;
    size_t n_groups = 0;
    qsort(w->span, w->n, sizeof *w->span, by_name);
    for (size_t i = 0; i < w->n; i++)
        n_groups += !i || by_name(&w->span[i - 1], &w->span[i]);
    s->phase = calloc(n_groups ? n_groups : 1, sizeof *s->phase);
    if (!s->phase)
        return -ENOMEM;
    int r = 0;
    for (size_t from = 0, to; !r && from < w->n; from = to) {
        for (to = from + 1; to < w->n && !by_name(&w->span[from], &w->span[to]); to++)
            ;
        r = add_phase(w, &w->span[from], to - from);
    }
    qsort(s->phase, s->n_phases, sizeof *s->phase, by_union);
    s->compute = -1;
    for (size_t i = s->n_phases; i-- > 0;)
        if (!strcmp(s->phase[i].name, "Train") ||
            (s->compute < 0 && !strcmp(s->phase[i].name, "ProfilerStep")))
            s->compute = (int)i;
    return r;
}

size_t mr_summary_longest(const struct mr_trace_summary *s, size_t per_trace, size_t *out)
{
    size_t n = 0, of_trace = 0;
    for (size_t i = 0; i < s->n_phases; i++) {
        of_trace = i && s->phase[i - 1].source == s->phase[i].source ? of_trace + 1 : 1;
        if (of_trace <= per_trace && s->phase[i].union_ns)
            out[n++] = i;
    }
    return n;
}

uint64_t mr_summary_overlap(const struct mr_trace_summary *s, size_t a, size_t b)
{
    return mr_intervals_overlap(s->phase[a].when, s->phase[a].n_when, s->phase[b].when,
                                s->phase[b].n_when);
}

/* ---- steps ---- */

enum part { PART_READ, PART_LOAD, PART_WAIT, PART_COMPUTE, N_PARTS, PART_NONE };

static enum part part_of(const struct work *w, const struct ref *r)
{
    const struct mr_trace_summary *s = w->s;
    const char *name = mr_log_string(s->log[r->source], r->e->name);
    if (s->compute >= 0 && !strcmp(name, s->phase[s->compute].name))
        return PART_COMPUTE;
    return !strcmp(name, "Read")   ? PART_READ
           : !strcmp(name, "Load") ? PART_LOAD
           : !strcmp(name, "Wait") ? PART_WAIT
                                   : PART_NONE;
}

/* What the spans of all steps say about which of their batches are steps. */
struct use {
    int any[N_PARTS];      /* there are spans of this part */
    int64_t last_computed; /* when the last compute began */
};

enum role { ROLE_STEP, ROLE_PART, ROLE_UNUSED };

/* The batch that these spans are of: a step; one more of the step before it, which takes several;
 * or nobody's. */
static enum role role_of(const struct work *w, const struct use *use, const struct ref *span,
                         size_t n)
{
    int has[N_PARTS] = {0};
    int64_t waited = INT64_MIN;
    for (size_t i = 0; i < n; i++) {
        enum part part = part_of(w, &span[i]);
        has[part] = 1;
        if (part == PART_WAIT && span[i].e->end_ns > waited)
            waited = span[i].e->end_ns;
    }
    if (!use->any[PART_COMPUTE])
        return has[PART_WAIT] || !use->any[PART_WAIT] ? ROLE_STEP : ROLE_UNUSED;
    if (has[PART_COMPUTE])
        return ROLE_STEP;
    return has[PART_WAIT] && waited <= use->last_computed && w->s->n_all_steps ? ROLE_PART
                                                                               : ROLE_UNUSED;
}

static void add_to_step(struct mr_step_summary *to, const struct mr_step_summary *from)
{
    to->read_ns += from->read_ns;
    to->load_ns += from->load_ns;
    to->read_hidden_ns += from->read_hidden_ns;
    to->load_hidden_ns += from->load_hidden_ns;
    to->wait_ns += from->wait_ns;
}

static void add_step(struct work *w, const struct use *use, const struct ref *span, size_t n)
{
    struct mr_trace_summary *s = w->s;
    struct mr_step_summary step = {
        .run = span->run, .epoch = span->e->epoch, .step = span->e->step};
    enum role role = role_of(w, use, span, n);
    if (role == ROLE_UNUSED) {
        s->n_unused++;
        return;
    }
    uint64_t *whole[N_PARTS] = {&step.read_ns, &step.load_ns, &step.wait_ns, &step.compute_ns};
    uint64_t *hidden[N_PARTS] = {&step.read_hidden_ns, &step.load_hidden_ns};
    for (unsigned part = 0; part < N_PARTS; part++) {
        size_t kept = 0;
        for (size_t i = 0; i < n; i++)
            if (part_of(w, &span[i]) == part)
                w->scratch[kept++] = place(w, &span[i]);
        kept = mr_intervals_merge(w->scratch, kept);
        *whole[part] = mr_intervals_length(w->scratch, kept);
        if (hidden[part] && s->compute >= 0)
            *hidden[part] = mr_intervals_overlap(w->scratch, kept, s->phase[s->compute].when,
                                                 s->phase[s->compute].n_when);
    }
    s->read_ns += step.read_ns;
    s->load_ns += step.load_ns;
    s->read_hidden_ns += step.read_hidden_ns;
    s->load_hidden_ns += step.load_hidden_ns;
    if (role == ROLE_PART) {
        if (s->n_all_steps == s->n_steps)
            add_to_step(&s->step[s->n_steps - 1], &step);
        return;
    }
    s->n_all_steps++;
    if (s->n_steps < MR_SUMMARY_STEPS)
        s->step[s->n_steps++] = step;
}

static int add_steps(struct work *w)
{
    struct mr_trace_summary *s = w->s;
    struct use use = {.last_computed = INT64_MIN};
    size_t kept = 0, n_steps = 0;
    for (size_t i = 0; i < w->n; i++) {
        struct ref r = w->span[i];
        enum part part = part_of(w, &r);
        if (r.source != 0 || r.e->step == MR_NONE || part == PART_NONE)
            continue;
        r.run = mr_trace_run_at(s, 0, place(w, &r).begin);
        if (r.run == MR_NO_RUN && s->n_runs && s->run[0].source == 0)
            continue; /* a pass between the runs: its batches have the same numbers */
        use.any[part] = 1;
        if (part == PART_COMPUTE && r.e->begin_ns > use.last_computed)
            use.last_computed = r.e->begin_ns;
        w->span[kept++] = r;
    }
    qsort(w->span, kept, sizeof *w->span, by_step);
    for (size_t i = 0; i < kept && n_steps < MR_SUMMARY_STEPS; i++)
        n_steps += !i || by_step(&w->span[i - 1], &w->span[i]);
    s->step = calloc(n_steps ? n_steps : 1, sizeof *s->step);
    if (!s->step)
        return -ENOMEM;
    for (size_t from = 0, to; from < kept; from = to) {
        for (to = from + 1; to < kept && !by_step(&w->span[from], &w->span[to]); to++)
            ;
        add_step(w, &use, &w->span[from], to - from);
    }
    return 0;
}

/* ---- files and marks ---- */

static void add_slow(struct mr_trace_summary *s, const struct mr_trace_log *log,
                     const struct mr_log_event *e)
{
    struct mr_slow_file f = {
        mr_log_string(log, e->file), e->id, e->epoch, e->step, length(e), e->bytes};
    unsigned at = s->n_slow, same = 0;
    /* A file that is there already keeps its slowest read only. */
    while (same < s->n_slow && (e->id == MR_NONE || s->slow[same].id != e->id))
        same++;
    if (same < s->n_slow) {
        if (s->slow[same].ns >= f.ns)
            return;
        s->n_slow--;
        memmove(&s->slow[same], &s->slow[same + 1], (s->n_slow - same) * sizeof *s->slow);
        at = s->n_slow;
    }
    while (at > 0 && s->slow[at - 1].ns < f.ns)
        at--;
    if (at == MR_SUMMARY_SLOW)
        return;
    s->n_slow += s->n_slow < MR_SUMMARY_SLOW;
    memmove(&s->slow[at + 1], &s->slow[at], (s->n_slow - at - 1) * sizeof *s->slow);
    s->slow[at] = f;
}

/* Marks of all traces, and the slowest reads of the first. */
static int add_points(struct mr_trace_summary *s)
{
    s->mark = calloc(MR_SUMMARY_MARKS, sizeof *s->mark);
    if (!s->mark)
        return -ENOMEM;
    s->after_end_ns = -1;
    for (unsigned k = 0; k < s->n_logs; k++) {
        const struct mr_trace_log *log = s->log[k];
        for (size_t i = 0; i < log->n; i++) {
            const struct mr_log_event *e = &log->event[i];
            const char *name = mr_log_string(log, e->name);
            int64_t at = mr_time_add(e->begin_ns, s->shift_ns[k]);
            if (e->kind == MR_EVENT_SPAN && k == 0 && !strcmp(name, "Read"))
                add_slow(s, log, e);
            if (e->kind != MR_EVENT_MARK)
                continue;
            if (!strcmp(name, MR_MARK_END)) {
                int64_t after = mr_time_minus(s->end_ns, at);
                if (s->after_end_ns < 0 || after < s->after_end_ns)
                    s->after_end_ns = after > 0 ? after : 0;
            }
            if (s->n_marks < MR_SUMMARY_MARKS)
                s->mark[s->n_marks++] = (struct mr_mark){name, k, mr_time_minus(at, s->begin_ns)};
        }
    }
    qsort(s->mark, s->n_marks, sizeof *s->mark, by_time);
    return 0;
}

static int gather(struct work *w)
{
    const struct mr_trace_summary *s = w->s;
    size_t n = 0;
    for (unsigned k = 0; k < s->n_logs; k++)
        n += s->log[k]->n;
    n = n ? n : 1;
    w->span = calloc(n, sizeof *w->span);
    w->scratch = calloc(n, sizeof *w->scratch);
    w->took = calloc(n, sizeof *w->took);
    if (!w->span || !w->scratch || !w->took)
        return -ENOMEM;
    for (unsigned k = 0; k < s->n_logs; k++)
        for (size_t i = 0; i < s->log[k]->n; i++)
            if (s->log[k]->event[i].kind == MR_EVENT_SPAN)
                w->span[w->n++] = (struct ref){&s->log[k]->event[i], k, 0};
    return 0;
}

int mr_trace_summarize(const struct mr_trace_log *const *log, unsigned n,
                       struct mr_trace_summary **out)
{
    struct work w = {.s = calloc(1, sizeof *w.s)};
    if (!w.s)
        return -ENOMEM;
    w.s->n_logs = n;
    for (unsigned i = 0; i < n; i++)
        w.s->log[i] = log[i];
    set_clock(w.s);
    int r = gather(&w);
    if (!r)
        r = mr_trace_find_runs(w.s);
    if (!r)
        r = add_phases(&w);
    if (!r)
        r = add_steps(&w);
    if (!r)
        r = add_points(w.s);
    free(w.span);
    free(w.scratch);
    free(w.took);
    if (r)
        mr_trace_summary_free(w.s);
    else
        *out = w.s;
    return r;
}

void mr_trace_summary_free(struct mr_trace_summary *s)
{
    if (!s)
        return;
    for (size_t i = 0; s->phase && i < s->n_phases; i++)
        free(s->phase[i].when);
    free(s->run);
    free(s->run_when);
    free(s->phase);
    free(s->step);
    free(s->mark);
    free(s);
}
