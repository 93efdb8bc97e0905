/* timelogger_writer.c - CSV in TimeLogger's columns, one row a span.
 *
 *   Epoch,Rank,Action Name,Action Description,Start Time,End Time,Time Taken,Process ID,
 *   Current Thread
 *   0,0,Read,"step=3 id=17 bytes=114660 file=/data/a.jpg",1763251200.000012345,...,0.000006789,
 *   4711,4712
 *
 * Times are seconds since 1970, counted by the monotonic clock from the one moment at which the
 * wall clock was asked; nine decimals.  Its columns have no place for a step, a sample or bytes, so
 * these are in the description as key=value, the file last: it may contain blanks.  A mark is a
 * row "Mark" of no length, with its name as the description; counters have no row. */
#include "trace_writer.h"

#include <millrace/api.h>

static void line_name(struct mr_text_sink *s, const struct mr_trace_head *h, unsigned line,
                      const char *name)
{
    (void)s;
    (void)h;
    (void)line;
    (void)name;
}

static void pair(struct mr_text_sink *s, const char *key, uint64_t v)
{
    mr_sink_text(s, key);
    mr_sink_u64(s, v);
}

static void times(struct mr_text_sink *s, const struct mr_trace_head *h, uint64_t from, uint64_t to)
{
    mr_sink_text(s, "\",");
    mr_sink_decimal(s, h->wall_ns + (from - h->start_ns), 9);
    mr_sink_text(s, ",");
    mr_sink_decimal(s, h->wall_ns + (to - h->start_ns), 9);
    mr_sink_text(s, ",");
    mr_sink_decimal(s, to - from, 9);
    pair(s, ",", h->pid);
}

/* Emulated storage is the file's first row: the columns have no other place for it. */
static void begin(struct mr_text_sink *s, const struct mr_trace_head *h)
{
    mr_sink_text(s, MR_TIMELOGGER_HEAD "\n");
    if (h->storage[0]) {
        pair(s, "0,", h->rank);
        mr_sink_text(s, ",\"Mark\",\"" MR_EMULATED_MARK);
        mr_sink_csv_part(s, h->storage);
        times(s, h, h->start_ns, h->start_ns);
        pair(s, ",", h->pid);
        mr_sink_text(s, "\n");
    }
    mr_sink_end_record(s, 0);
}

static void event(struct mr_text_sink *s, const struct mr_trace_head *h, struct mr_writer_memory *m,
                  const struct mr_trace_thread *t, const struct mr_event *e, const char *name,
                  const char *file)
{
    (void)m;
    if (e->kind == MR_EVENT_COUNTER)
        return;
    int is_mark = e->kind == MR_EVENT_MARK;
    uint64_t from = e->begin_ns > h->start_ns ? e->begin_ns : h->start_ns;
    uint64_t to = !is_mark && e->end_ns > from ? e->end_ns : from;
    mr_sink_u64(s, e->epoch);
    pair(s, ",", h->rank);
    mr_sink_text(s, ",\"");
    mr_sink_csv_part(s, is_mark ? "Mark" : name);
    mr_sink_text(s, "\",\"");
    if (is_mark) {
        mr_sink_csv_part(s, name);
    } else {
        pair(s, "step=", e->step);
        if (e->id != MR_NONE)
            pair(s, " id=", e->id);
        if (e->bytes)
            pair(s, " bytes=", e->bytes);
        if (file) {
            mr_sink_text(s, " file=");
            mr_sink_csv_part(s, file);
        }
    }
    times(s, h, from, to);
    pair(s, ",", t->tid);
    mr_sink_text(s, "\n");
    mr_sink_end_record(s, 1);
}

static void dropped(struct mr_text_sink *s, const struct mr_trace_head *h, uint64_t now_ns,
                    uint64_t n)
{
    pair(s, "0,", h->rank);
    pair(s, ",\"" MR_DROPPED_NAME "\",\"n=", n);
    times(s, h, now_ns, now_ns);
    pair(s, ",", h->pid);
    mr_sink_text(s, "\n");
    mr_sink_end_record(s, 0);
}

static void end(struct mr_text_sink *s)
{
    (void)s;
}

const struct mr_trace_writer mr_timelogger_writer = {begin, line_name, event, dropped, end};
