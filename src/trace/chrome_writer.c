/* chrome_writer.c - Chrome's trace event format, the JSON object form, one event a line.
 *
 *   {"displayTimeUnit":"ns","baseTimeNanoseconds":W,"otherData":{...},"traceEvents":[
 *   {"ph":"M","pid":P,"name":"process_name","args":{"name":"millrace, rank 0"}}
 *   ,{"ph":"M","pid":P,"tid":T,"name":"thread_name","args":{"name":"worker 0"}}
 *   ,{"ph":"X","pid":P,"tid":T,"ts":12.345,"dur":6.789,"name":"Read",
 *     "args":{"epoch":0,"step":3,"id":17,"bytes":114660,"file":"..."}}
 *   ,{"ph":"C","pid":P,"ts":12.345,"name":"sda read MB/s","args":{"value":98.5}}
 *   ,{"ph":"i","s":"p","pid":P,"ts":12.345,"tid":T,"name":"end of run"}
 *   ]}
 *
 * ts and dur are microseconds with three decimals: nanoseconds, exactly.  ts 0 is the start of the
 * trace, baseTimeNanoseconds the wall clock then (PyTorch's name for the same thing); otherData
 * tells the monotonic clock then, and which one that is: on it two traces of one machine can be
 * joined although somebody set the wall clock in between; it also tells whether storage
 * was emulated, and which ("emulated", "storage").  A comma
 * begins an event and does not end it, so a file that was cut after any line lacks nothing but the
 * last "]}": the readers of this format, ours included, put up with that.
 *
 * Spans are nearly all of a file, up to 100,000 a second, so they are put together in the buffer
 * itself; what two spans share (process and thread; name, epoch and step) is kept as text. */
#include "trace_writer.h"

#include <millrace/api.h>

#include <stdio.h>
#include <string.h>

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
    mr_sink_text(s, h->storage[0] ? ",\"emulated\":true" : ",\"emulated\":false");
    if (h->storage[0]) {
        mr_sink_text(s, ",\"storage\":");
        mr_sink_json_string(s, h->storage);
    }
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

/* The kept text for this key, or NULL: then *slot is to be filled. */
static const struct mr_same_text *recall(struct mr_same_text *slot, uint32_t a, uint32_t b,
                                         uint32_t c)
{
    if (slot->len && slot->key[0] == a && slot->key[1] == b && slot->key[2] == c)
        return slot;
    *slot = (struct mr_same_text){.key = {a, b, c}};
    return NULL;
}

/* What was put from `from` on is the text of this key; longer ones are not kept. */
static void keep(struct mr_same_text *slot, const char *from, const char *to)
{
    size_t n = (size_t)(to - from);
    if (n > sizeof slot->text)
        return;
    memcpy(slot->text, from, n);
    slot->len = (unsigned)n;
}

static char *recalled(char *p, const struct mr_same_text *t)
{
    memcpy(p, t->text, sizeof t->text); /* all of it: quicker than as much as there is */
    return p + t->len;
}

static char *put(char *p, const char *constant, size_t n)
{
    memcpy(p, constant, n);
    return p + n;
}
#define PUT(p, constant) put(p, constant, sizeof constant - 1)

static char *put_line(char *p, struct mr_same_text *slot, unsigned pid, unsigned line)
{
    char *from = p;
    if (recall(slot, pid, line, 0))
        return recalled(p, slot);
    p = mr_put_u64(PUT(p, ",{\"ph\":\"X\",\"pid\":"), pid);
    p = PUT(mr_put_u64(PUT(p, ",\"tid\":"), line), ",\"ts\":");
    keep(slot, from, p);
    return p;
}

static char *put_name(struct mr_text_sink *s, char *p, struct mr_same_text *slot,
                      const struct mr_event *e, const char *name)
{
    char *from = p;
    if (recall(slot, e->name, e->epoch, e->step))
        return recalled(p, slot);
    mr_sink_to(s, PUT(p, ",\"name\":"));
    mr_sink_json_string(s, name);
    p = mr_put_u64(PUT(mr_sink_at(s), ",\"args\":{\"epoch\":"), e->epoch);
    p = mr_put_u64(PUT(p, ",\"step\":"), e->step);
    keep(slot, from, p);
    return p;
}

static void span(struct mr_text_sink *s, const struct mr_trace_head *h, struct mr_writer_memory *m,
                 unsigned line, const struct mr_event *e, const char *name, const char *file)
{
    uint64_t from = e->begin_ns > h->start_ns ? e->begin_ns : h->start_ns;
    char *p = put_line(mr_sink_at(s), &m->line[line % MR_SAME_LINES], h->pid, line);
    p = PUT(mr_put_thousandths(p, from - h->start_ns), ",\"dur\":");
    p = mr_put_thousandths(p, e->end_ns > from ? e->end_ns - from : 0);
    p = put_name(s, p, &m->name[e->name % MR_SAME_NAMES], e, name);
    if (e->id != MR_NONE)
        p = mr_put_u64(PUT(p, ",\"id\":"), e->id);
    if (e->bytes)
        p = mr_put_u64(PUT(p, ",\"bytes\":"), e->bytes);
    if (file) {
        mr_sink_to(s, PUT(p, ",\"file\":"));
        mr_sink_json_string(s, file);
        p = mr_sink_at(s);
    }
    mr_sink_to(s, PUT(p, "}}\n"));
}

static void event(struct mr_text_sink *s, const struct mr_trace_head *h, struct mr_writer_memory *m,
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
        span(s, h, m, t->line, e, name, file);
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
