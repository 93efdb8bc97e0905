/* trace_summary_json.c - a trace's summary as JSON: docs/json.md names the fields. */
#include "trace_summary.h"

static struct mr_json *seconds(uint64_t ns)
{
    return mr_json_real((double)ns / 1e9);
}

static struct mr_json *whole(uint64_t v)
{
    return mr_json_int(v < INT64_MAX ? (int64_t)v : INT64_MAX);
}

static struct mr_json *number_or_null(uint32_t v)
{
    return v == MR_NONE ? mr_json_null() : mr_json_int(v);
}

static struct mr_json *trace_json(const struct mr_trace_log *log)
{
    struct mr_json *o = mr_json_object();
    mr_json_set(o, "format", mr_json_string(log->format));
    mr_json_set(o, "writer", log->writer[0] ? mr_json_string(log->writer) : mr_json_null());
    mr_json_set(o, "emulated", log->emulated < 0 ? mr_json_null() : mr_json_bool(log->emulated));
    mr_json_set(o, "storage", log->storage[0] ? mr_json_string(log->storage) : mr_json_null());
    mr_json_set(o, "events", whole(log->n));
    mr_json_set(o, "threads", whole(log->n_threads));
    mr_json_set(o, "wall_clock", mr_json_bool(log->has_wall));
    mr_json_set(o, "dropped", whole(log->dropped));
    mr_json_set(o, "unfinished", whole(log->n_unfinished));
    mr_json_set(o, "other", whole(log->n_other));
    mr_json_set(o, "bad", whole(log->n_bad));
    mr_json_set(o, "cut", mr_json_bool(log->cut));
    mr_json_set(o, "damaged_at", log->damaged_at ? whole(log->damaged_at) : mr_json_null());
    return o;
}

static struct mr_json *runs_json(const struct mr_trace_summary *s)
{
    struct mr_json *list = mr_json_array();
    for (size_t i = 0; i < s->n_runs; i++) {
        const struct mr_run_summary *r = &s->run[i];
        struct mr_json *o = mr_json_object();
        double took = (double)((uint64_t)r->end_ns - (uint64_t)r->begin_ns) / 1e9;
        mr_json_set(o, "trace", mr_json_int(r->source));
        mr_json_set(o, "at_s", mr_json_real((double)mr_time_minus(r->begin_ns, s->begin_ns) / 1e9));
        mr_json_set(o, "seconds", mr_json_real(took));
        mr_json_set(o, "reads", whole(r->reads));
        mr_json_set(o, "bytes", whole(r->bytes));
        mr_json_set(o, "reads_per_s", mr_json_real((double)r->reads / took));
        mr_json_set(o, "mb_per_s", mr_json_real((double)r->bytes / took / 1e6));
        mr_json_append(list, o);
    }
    return list;
}

static struct mr_json *phase_json(const struct mr_phase_summary *p, uint64_t run_ns)
{
    struct mr_json *o = mr_json_object();
    mr_json_set(o, "name", mr_json_string(p->name));
    mr_json_set(o, "trace", mr_json_int(p->source));
    mr_json_set(o, "count", whole(p->count));
    mr_json_set(o, "union_s", seconds(p->union_ns));
    mr_json_set(o, "sum_s", seconds(p->sum_ns));
    mr_json_set(o, "run_share",
                run_ns ? mr_json_real((double)p->run_ns / (double)run_ns) : mr_json_null());
    mr_json_set(o, "p50_us", mr_json_real((double)p->p50_ns / 1e3));
    mr_json_set(o, "p99_us", mr_json_real((double)p->p99_ns / 1e3));
    mr_json_set(o, "max_us", mr_json_real((double)p->max_ns / 1e3));
    mr_json_set(o, "bytes", p->bytes ? whole(p->bytes) : mr_json_null());
    mr_json_set(o, "mb_per_s",
                p->bytes && p->union_ns
                    ? mr_json_real((double)p->bytes / ((double)p->union_ns / 1e9) / 1e6)
                    : mr_json_null());
    return o;
}

static struct mr_json *overlap_json(const struct mr_trace_summary *s)
{
    struct mr_json *list = mr_json_array();
    size_t chosen[2 * MR_SUMMARY_OVERLAP];
    size_t n = mr_summary_longest(s, MR_SUMMARY_OVERLAP, chosen);
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++) {
            const struct mr_phase_summary *a = &s->phase[chosen[i]], *b = &s->phase[chosen[j]];
            struct mr_json *o = mr_json_object();
            mr_json_set(o, "a", mr_json_string(a->name));
            mr_json_set(o, "a_trace", mr_json_int(a->source));
            mr_json_set(o, "b", mr_json_string(b->name));
            mr_json_set(o, "b_trace", mr_json_int(b->source));
            mr_json_set(o, "overlap_s", seconds(mr_summary_overlap(s, chosen[i], chosen[j])));
            mr_json_append(list, o);
        }
    return list;
}

static struct mr_json *hidden(const struct mr_trace_summary *s, uint64_t ns)
{
    return s->compute < 0 ? mr_json_null() : seconds(ns);
}

static struct mr_json *steps_json(const struct mr_trace_summary *s)
{
    struct mr_json *list = mr_json_array();
    for (size_t i = 0; i < s->n_steps; i++) {
        const struct mr_step_summary *t = &s->step[i];
        struct mr_json *o = mr_json_object();
        mr_json_set(o, "run", t->run == MR_NO_RUN ? mr_json_null() : whole(t->run));
        mr_json_set(o, "epoch", number_or_null(t->epoch));
        mr_json_set(o, "step", number_or_null(t->step));
        mr_json_set(o, "read_s", seconds(t->read_ns));
        mr_json_set(o, "read_hidden_s", hidden(s, t->read_hidden_ns));
        mr_json_set(o, "load_s", seconds(t->load_ns));
        mr_json_set(o, "load_hidden_s", hidden(s, t->load_hidden_ns));
        mr_json_set(o, "wait_s", seconds(t->wait_ns));
        mr_json_set(o, "compute_s", seconds(t->compute_ns));
        mr_json_append(list, o);
    }
    return list;
}

static struct mr_json *slow_json(const struct mr_trace_summary *s)
{
    struct mr_json *list = mr_json_array();
    for (unsigned i = 0; i < s->n_slow; i++) {
        const struct mr_slow_file *f = &s->slow[i];
        struct mr_json *o = mr_json_object();
        mr_json_set(o, "file", mr_json_string(f->file));
        mr_json_set(o, "id", number_or_null(f->id));
        mr_json_set(o, "epoch", number_or_null(f->epoch));
        mr_json_set(o, "step", number_or_null(f->step));
        mr_json_set(o, "us", mr_json_real((double)f->ns / 1e3));
        mr_json_set(o, "bytes", f->bytes ? whole(f->bytes) : mr_json_null());
        mr_json_append(list, o);
    }
    return list;
}

static struct mr_json *marks_json(const struct mr_trace_summary *s)
{
    struct mr_json *list = mr_json_array();
    for (size_t i = 0; i < s->n_marks; i++) {
        struct mr_json *o = mr_json_object();
        mr_json_set(o, "name", mr_json_string(s->mark[i].name));
        mr_json_set(o, "trace", mr_json_int(s->mark[i].source));
        mr_json_set(o, "at_s", mr_json_real((double)s->mark[i].at_ns / 1e9));
        mr_json_append(list, o);
    }
    return list;
}

struct mr_json *mr_trace_summary_json(const struct mr_trace_summary *s)
{
    struct mr_json *o = mr_json_object(), *traces = mr_json_array(), *phases = mr_json_array();
    for (unsigned i = 0; i < s->n_logs; i++)
        mr_json_append(traces, trace_json(s->log[i]));
    for (size_t i = 0; i < s->n_phases; i++)
        mr_json_append(phases, phase_json(&s->phase[i], s->run_ns));
    mr_json_set(o, "kind", mr_json_string("trace"));
    mr_json_set(o, "traces", traces);
    mr_json_set(o, "clock", mr_json_string(s->clock));
    mr_json_set(o, "clock_step_s",
                s->n_logs == 2 && s->clock[0] == 'm' ? mr_json_real((double)s->step_ns / 1e9)
                                                     : mr_json_null());
    mr_json_set(o, "seconds", seconds((uint64_t)s->end_ns - (uint64_t)s->begin_ns));
    mr_json_set(o, "run_s", seconds(s->run_ns));
    mr_json_set(o, "runs", runs_json(s));
    mr_json_set(o, "phases", phases);
    mr_json_set(o, "overlap", overlap_json(s));
    mr_json_set(o, "compute",
                s->compute < 0 ? mr_json_null() : mr_json_string(s->phase[s->compute].name));
    mr_json_set(o, "read_s", seconds(s->read_ns));
    mr_json_set(o, "read_hidden_s", hidden(s, s->read_hidden_ns));
    mr_json_set(o, "load_s", seconds(s->load_ns));
    mr_json_set(o, "load_hidden_s", hidden(s, s->load_hidden_ns));
    mr_json_set(o, "steps", steps_json(s));
    mr_json_set(o, "steps_left_out", whole(s->n_all_steps - s->n_steps));
    mr_json_set(o, "unused_batches", whole(s->n_unused));
    mr_json_set(o, "slowest_files", slow_json(s));
    mr_json_set(o, "marks", marks_json(s));
    mr_json_set(o, "after_end_s",
                s->after_end_ns < 0 ? mr_json_null() : seconds((uint64_t)s->after_end_ns));
    return o;
}
