/* inspect_trace.c - `millrace inspect` of one trace, or of two on one clock. */
#include "inspect_trace.h"

#include "errtext.h"
#include "output.h"
#include "say.h"
#include "trace_summary.h"

#include <errno.h>
#include <math.h>

#define PHASES_TO_SHOW    20 /* of each trace */
#define PHASES_TO_COMPARE 6
#define STEPS_TO_SHOW     5
#define MARKS_TO_SHOW     12
#define RUNS_TO_SHOW      12
/* Clocks are slewed by up to 0.5 ms a second and asked a microsecond apart. */
#define STEP_WORTH_TELLING_NS 1e8

static double ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void warn(const struct mr_trace_log *log, const char *path)
{
    if (log->dropped)
        say("warning: %s: %llu event%s missing, dropped while it was recorded\n", path,
            (unsigned long long)log->dropped, log->dropped == 1 ? " is" : "s are");
    if (log->cut)
        say("warning: %s: the file ends early; this is what comes before its end\n", path);
    if (log->damaged_at)
        say("warning: %s: is damaged from byte %llu on; this is what comes before that\n", path,
            (unsigned long long)log->damaged_at);
    if (log->n_unfinished)
        say("warning: %s: %llu span%s no end and %s left out\n", path,
            (unsigned long long)log->n_unfinished, log->n_unfinished == 1 ? " has" : "s have",
            log->n_unfinished == 1 ? "is" : "are");
    if (log->n_bad)
        say("warning: %s: %llu event%s no sense and %s left out\n", path,
            (unsigned long long)log->n_bad, log->n_bad == 1 ? " makes" : "s make",
            log->n_bad == 1 ? "is" : "are");
}

static void print_head(const struct mr_trace_summary *s, char **path)
{
    for (unsigned i = 0; i < s->n_logs; i++) {
        const struct mr_trace_log *log = s->log[i];
        say("%s: %s trace%s%s, %zu event%s of %u thread%s and lanes", path[i], log->format,
            log->writer[0] ? " by " : "", log->writer, log->n, plural(log->n), log->n_threads,
            plural(log->n_threads));
        if (log->n_other)
            say(" (%llu of other kinds left out)", (unsigned long long)log->n_other);
        say("\n");
        if (log->emulated == 1)
            say("%s: EMULATED storage: %s: times and rates below are the model's\n", path[i],
                log->storage[0] ? log->storage : "(not said)");
        warn(log, path[i]);
    }
    if (s->n_logs == 2 && s->clock[0] != 's')
        say("joined on the %s\n", s->clock);
    else if (s->n_logs == 2)
        say("joined by an assumption: one of them does not say when it was recorded, so both "
            "begin together here\n");
    if (fabs((double)s->step_ns) >= STEP_WORTH_TELLING_NS)
        say("between their starts the system's time was set by %+.3f s: that does not matter "
            "here\n",
            (double)s->step_ns / 1e9);
    say("%.3f s from the first to the last event",
        (double)((uint64_t)s->end_ns - (uint64_t)s->begin_ns) / 1e9);
    if (s->after_end_ns >= 0)
        say(", %.3f s of it after the end of the last run", (double)s->after_end_ns / 1e9);
    say("\n");
}

static void print_runs(const struct mr_trace_summary *s)
{
    char bytes[32];
    for (size_t i = 0; i < s->n_runs && i < RUNS_TO_SHOW; i++) {
        const struct mr_run_summary *r = &s->run[i];
        double took = (double)((uint64_t)r->end_ns - (uint64_t)r->begin_ns) / 1e9;
        say("%srun %zu: %.3f s", r->source ? "2: " : "", i + 1, took);
        if (r->reads)
            say(", %llu file%s of %s, %.0f files/s, %.0f MB/s", (unsigned long long)r->reads,
                plural(r->reads), human_bytes((double)r->bytes, bytes, sizeof bytes),
                (double)r->reads / took, (double)r->bytes / took / 1e6);
        say("\n");
    }
    if (s->n_runs > RUNS_TO_SHOW)
        say("and %zu more run%s (--json lists them)\n", s->n_runs - RUNS_TO_SHOW,
            plural(s->n_runs - RUNS_TO_SHOW));
}

/* Shares are of the runs' time: what lies before and after them is no part of it. */
static void print_phases(const struct mr_trace_summary *s)
{
    size_t shown = 0, left_out = 0;
    say("\n%-28s %9s %12s %6s %12s %10s %10s %10s %9s\n", "phase", "count", "union ms",
        s->n_runs ? "of run" : "share", "sum ms", "p50 us", "p99 us", "max us", "MB/s");
    for (size_t i = 0; i < s->n_phases; i++) {
        const struct mr_phase_summary *p = &s->phase[i];
        shown = i && s->phase[i - 1].source == p->source ? shown + 1 : 1;
        if (shown > PHASES_TO_SHOW) {
            left_out++;
            continue;
        }
        say("%s%-*.*s %9llu %12.3f %5.1f%% %12.3f %10.1f %10.1f %10.1f", p->source ? "2: " : "",
            p->source ? 25 : 28, p->source ? 25 : 28, p->name, (unsigned long long)p->count,
            ms(p->union_ns), share(p->run_ns, s->run_ns), ms(p->sum_ns), (double)p->p50_ns / 1e3,
            (double)p->p99_ns / 1e3, (double)p->max_ns / 1e3);
        if (p->bytes && p->union_ns)
            say(" %9.1f", (double)p->bytes / ((double)p->union_ns / 1e9) / 1e6);
        say("\n");
    }
    if (left_out)
        say("and %zu more phase%s (--json lists them)\n", left_out, plural(left_out));
}

static const char *short_name(const struct mr_phase_summary *p, char *buf, size_t cap)
{
    snprintf(buf, cap, "%s%s", p->source ? "2: " : "", p->name);
    return buf;
}

/* How much of the row's union lies within the column's. */
static void print_overlap(const struct mr_trace_summary *s)
{
    size_t chosen[2 * PHASES_TO_COMPARE];
    size_t n = mr_summary_longest(s, PHASES_TO_COMPARE, chosen);
    char name[32];
    if (n < 2)
        return;
    say("\n%-28s", "of this, during ->");
    for (size_t i = 0; i < n; i++)
        say(" %10.10s", short_name(&s->phase[chosen[i]], name, sizeof name));
    say("\n");
    for (size_t i = 0; i < n; i++) {
        const struct mr_phase_summary *p = &s->phase[chosen[i]];
        say("%-28.28s", short_name(p, name, sizeof name));
        for (size_t j = 0; j < n; j++)
            if (i == j)
                say(" %10s", "-");
            else
                say(" %9.1f%%", share(mr_summary_overlap(s, chosen[i], chosen[j]), p->union_ns));
        say("\n");
    }
}

static void print_hidden(const struct mr_trace_summary *s)
{
    if (!s->n_steps)
        return;
    say("\n%zu step%s", s->n_all_steps, s->n_all_steps == 1 ? "" : "s");
    if (s->n_unused)
        say(" (%zu more batch%s read ahead and not used)", s->n_unused,
            s->n_unused == 1 ? " was" : "es were");
    if (s->compute < 0) {
        say("; no Train spans, so nothing to hide behind\n");
        return;
    }
    const char *compute = s->phase[s->compute].name;
    say("; behind %s: %.1f%% of Read, %.1f%% of Load\n", compute,
        share(s->read_hidden_ns, s->read_ns), share(s->load_hidden_ns, s->load_ns));
    say("%8s %8s %10s %8s %10s %8s %10s %10s\n", "epoch", "step", "Read ms", "hidden", "Load ms",
        "hidden", "Wait ms", compute);
    for (size_t i = 0; i < s->n_steps && i < STEPS_TO_SHOW; i++) {
        const struct mr_step_summary *t = &s->step[i];
        say("%8lld %8lld %10.3f %7.1f%% %10.3f %7.1f%% %10.3f %10.3f\n",
            t->epoch == MR_NONE ? -1ll : t->epoch, (long long)t->step, ms(t->read_ns),
            share(t->read_hidden_ns, t->read_ns), ms(t->load_ns),
            share(t->load_hidden_ns, t->load_ns), ms(t->wait_ns), ms(t->compute_ns));
    }
    if (s->n_all_steps > STEPS_TO_SHOW)
        say("and %zu more (--json lists them)\n", s->n_all_steps - STEPS_TO_SHOW);
}

static void print_files(const struct mr_trace_summary *s)
{
    char bytes[32];
    if (s->n_slow)
        say("\nslowest reads\n");
    for (unsigned i = 0; i < s->n_slow; i++) {
        const struct mr_slow_file *f = &s->slow[i];
        say("  %10.1f us  %8s  ", (double)f->ns / 1e3,
            f->bytes ? human_bytes((double)f->bytes, bytes, sizeof bytes) : "");
        if (f->file)
            say("%s\n", f->file);
        else if (f->id != MR_NONE)
            say("sample %u\n", f->id);
        else
            say("(not named)\n");
    }
}

static void print_marks(const struct mr_trace_summary *s)
{
    if (s->n_marks)
        say("\nmarks\n");
    for (size_t i = 0; i < s->n_marks && i < MARKS_TO_SHOW; i++)
        say("  %10.3f s  %s%s\n", (double)s->mark[i].at_ns / 1e9, s->mark[i].source ? "2: " : "",
            s->mark[i].name);
    if (s->n_marks > MARKS_TO_SHOW)
        say("and %zu more (--json lists them)\n", s->n_marks - MARKS_TO_SHOW);
}

static int show(const struct options *o, const struct mr_trace_summary *s)
{
    struct output out;
    if (output_open(o, &out))
        return 1;
    if (!out.quiet) {
        print_head(s, o->paths);
        print_runs(s);
        print_phases(s);
        print_overlap(s);
        print_hidden(s);
        print_files(s);
        print_marks(s);
    }
    struct mr_json *results = mr_json_array(), *result = mr_trace_summary_json(s);
    struct mr_json *paths = mr_json_array();
    for (int i = 0; i < o->n_paths; i++)
        mr_json_append(paths, mr_json_string(o->paths[i]));
    mr_json_set(result, "path", mr_json_string(o->paths[0]));
    mr_json_set(result, "paths", paths);
    mr_json_append(results, result);
    return output_json(&out, o, o->paths[0], results);
}

int inspect_traces(const struct options *o)
{
    struct mr_error err = {0};
    struct mr_trace_log *log[2] = {NULL, NULL};
    struct mr_trace_summary *s = NULL;
    int r = 0;
    for (int i = 0; !r && i < o->n_paths; i++)
        r = mr_trace_log_read(o->paths[i], &log[i], &err);
    if (!r) {
        r = mr_trace_summarize((const struct mr_trace_log *const *)log, (unsigned)o->n_paths, &s);
        if (r)
            mr_fail(&err, r, "%s: %s", o->paths[0], mr_errno_text(r));
    }
    if (r)
        say_to(stderr, "millrace inspect: %s\n", err.text);
    int status = r ? 1 : show(o, s);
    mr_trace_summary_free(s);
    mr_trace_log_free(log[0]);
    mr_trace_log_free(log[1]);
    return status;
}
