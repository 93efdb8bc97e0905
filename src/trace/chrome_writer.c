/* chrome_writer.c - Chrome's trace event format, the JSON object form, one event a line.
 *
 *   {"displayTimeUnit":"ns","baseTimeNanoseconds":W,"otherData":{...},"traceEvents":[
 *   {"ph":"M","pid":P,"name":"process_name","args":{"name":"millrace, rank 0"}}
 *   ,{"ph":"M","pid":P,"tid":T,"name":"thread_name","args":{"name":"worker 0"}}
 *   ,{"ph":"X","pid":P,"ts":12.345,"tid":T,"dur":6.789,"name":"Read",
 *     "args":{"epoch":0,"step":3,"id":17,"bytes":114660,"file":"..."}}
 *   ,{"ph":"C","pid":P,"ts":12.345,"name":"sda read MB/s","args":{"value":98.5}}
 *   ,{"ph":"i","s":"p","pid":P,"ts":12.345,"tid":T,"name":"end of run"}
 *   ]}
 *
 * ts and dur are microseconds with three decimals: nanoseconds, exactly.  ts 0 is the start of the
 * trace, baseTimeNanoseconds the wall clock then (PyTorch's name for the same thing); otherData
 * tells the monotonic clock then, and which one that is: on it two traces of one machine can be
 * joined although somebody set the wall clock in between.  A comma
 * begins an event and does not end it, so a file that was cut after any line lacks nothing but the
 * last "]}": the readers of this format, ours included, put up with that. */
#include "trace_writer.h"

#include <millrace/api.h>

#include <stdio.h>

static void field(struct mr_text_sink *s, const char *key, uint64_t v)
{
    mr_sink_text(s, key);
    mr_sink_u64(s, v);
}

static void begin(struct mr_text_sink *s, const struct mr_trace_head *h)
{
    char name[64];
    field(s, "{\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":", h->wall_ns);
    field(s,
          ",\"otherData\":{\"writer\":\"millrace " MR_VERSION "\",\"clock\":\"CLOCK_MONOTONIC\","
          "\"monotonic_start_ns\":\"",
          h->start_ns);
    field(s, "\",\"wall_start_ns\":\"", h->wall_ns);
    mr_sink_text(s, "\",\"monotonic_clock\":");
    mr_sink_json_string(s, h->clock);
    field(s, ",\"rank\":", h->rank);
    mr_sink_text(s, "},\"traceEvents\":[\n");
    field(s, "{\"ph\":\"M\",\"pid\":", h->pid);
    snprintf(name, sizeof name, "%s, rank %u", h->program, h->rank);
    mr_sink_text(s, ",\"name\":\"process_name\",\"args\":{\"name\":");
    mr_sink_json_string(s, name);
    mr_sink_text(s, "}}\n");
    mr_sink_end_record(s, 0);
}

static void line_name(struct mr_text_sink *s, const struct mr_trace_head *h, unsigned line,
                      const char *name)
{
    field(s, ",{\"ph\":\"M\",\"pid\":", h->pid);
    field(s, ",\"tid\":", line);
    mr_sink_text(s, ",\"name\":\"thread_name\",\"args\":{\"name\":");
    mr_sink_json_string(s, name);
    mr_sink_text(s, "}}\n");
    mr_sink_end_record(s, 0);
}

static void head(struct mr_text_sink *s, const struct mr_trace_head *h, const char *kind,
                 uint64_t at_ns)
{
    mr_sink_text(s, kind);
    mr_sink_u64(s, h->pid);
    mr_sink_text(s, ",\"ts\":");
    mr_sink_decimal(s, at_ns > h->start_ns ? at_ns - h->start_ns : 0, 3);
}

static void counter(struct mr_text_sink *s, const struct mr_trace_head *h, uint64_t at_ns,
                    const char *name, double value)
{
    head(s, h, ",{\"ph\":\"C\",\"pid\":", at_ns);
    mr_sink_text(s, ",\"name\":");
    mr_sink_json_string(s, name);
    mr_sink_text(s, ",\"args\":{\"value\":");
    mr_sink_real(s, value);
    mr_sink_text(s, "}}\n");
}

static void span(struct mr_text_sink *s, const struct mr_trace_head *h, unsigned line,
                 const struct mr_event *e, const char *name, const char *file)
{
    uint64_t from = e->begin_ns > h->start_ns ? e->begin_ns : h->start_ns;
    head(s, h, ",{\"ph\":\"X\",\"pid\":", from);
    field(s, ",\"tid\":", line);
    mr_sink_text(s, ",\"dur\":");
    mr_sink_decimal(s, e->end_ns > from ? e->end_ns - from : 0, 3);
    mr_sink_text(s, ",\"name\":");
    mr_sink_json_string(s, name);
    field(s, ",\"args\":{\"epoch\":", e->epoch);
    field(s, ",\"step\":", e->step);
    if (e->id != MR_NONE)
        field(s, ",\"id\":", e->id);
    if (e->bytes)
        field(s, ",\"bytes\":", e->bytes);
    if (file) {
        mr_sink_text(s, ",\"file\":");
        mr_sink_json_string(s, file);
    }
    mr_sink_text(s, "}}\n");
}

static void event(struct mr_text_sink *s, const struct mr_trace_head *h,
                  const struct mr_trace_thread *t, const struct mr_event *e, const char *name,
                  const char *file)
{
    if (e->kind == MR_EVENT_COUNTER) {
        counter(s, h, e->begin_ns, name, e->value);
    } else if (e->kind == MR_EVENT_MARK) {
        head(s, h, ",{\"ph\":\"i\",\"s\":\"p\",\"pid\":", e->begin_ns);
        field(s, ",\"tid\":", t->line);
        mr_sink_text(s, ",\"name\":");
        mr_sink_json_string(s, name);
        mr_sink_text(s, "}\n");
    } else {
        span(s, h, t->line, e, name, file);
    }
    mr_sink_end_record(s, 1);
}

static void dropped(struct mr_text_sink *s, const struct mr_trace_head *h, uint64_t now_ns,
                    uint64_t n)
{
    counter(s, h, now_ns, MR_DROPPED_NAME, (double)n);
    mr_sink_end_record(s, 0);
}

static void end(struct mr_text_sink *s)
{
    mr_sink_text(s, "]}\n");
    mr_sink_end_record(s, 0);
}

const struct mr_trace_writer mr_chrome_writer = {begin, line_name, event, dropped, end};
