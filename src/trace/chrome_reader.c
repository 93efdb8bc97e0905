/* chrome_reader.c - Chrome's trace event format, as millrace, PyTorch and TensorFlow write it.
 *
 *   [ EVENT, ... ]     or     { ..., "traceEvents": [ EVENT, ... ], ... }
 *
 * Of an event these are looked at: ph, name, ts, dur, pid, tid, and in args epoch, step, id, bytes,
 * file, value.  ph X is a span, B begins one and E ends it within a thread, C is a counter, i or I
 * a mark; M tells names, which nobody needs here; anything else is counted as other.
 *
 * ts is in microseconds.  If the file has baseTimeNanoseconds (wherever: PyTorch writes it last),
 * ts counts from there; if ts is larger than any machine has been up for, it is the time since 1970
 * itself (older PyTorch); otherwise nobody knows when the trace was taken.
 *
 * PyTorch numbers its steps in the name, "ProfilerStep#12": that is phase ProfilerStep, step 12. */
#include "trace_log.h"

#include "json_scan.h"
#include "trace_writer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SINCE_1970 ((int64_t)1000000000000000000) /* 2001; no uptime is 31 years */
#define MAX_TEXT   4096

struct reader {
    struct mr_trace_log *log;
    struct mr_json_scan scan;
    int64_t base_ns, monotonic_ns; /* of ts 0 */
    int has_base, has_monotonic, has_list;
    char text[MAX_TEXT]; /* of the value that was read last */
    size_t len;
};

struct raw {
    struct mr_log_event e;
    char ph;
    int has_ts, has_dur;
    uint64_t pid, tid;
};

/* A number as it is, a string by a hash of it (PyTorch has processes named "Spans"). */
static uint64_t identity(const struct reader *r)
{
    int64_t v;
    if (!mr_decimal(r->text, r->len, 0, &v))
        return (uint64_t)v;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < r->len; i++)
        h = (h ^ (unsigned char)r->text[i]) * 0x100000001b3u;
    return h | 1ull << 63;
}

static int next_text(struct reader *r)
{
    return mr_scan_text(&r->scan, r->text, sizeof r->text, &r->len);
}

static int is_text_next(struct reader *r)
{
    char c = mr_scan_peek(&r->scan);
    return c != '{' && c != '[';
}

static void small(const struct reader *r, uint32_t *out)
{
    int64_t v;
    if (!mr_decimal(r->text, r->len, 0, &v) && v >= 0 && v < UINT32_MAX)
        *out = (uint32_t)v;
}

static int read_args(struct reader *r, struct raw *raw)
{
    char key[32];
    int more;
    int64_t v;
    if (mr_scan_peek(&r->scan) != '{')
        return mr_scan_skip(&r->scan);
    more = mr_scan_enter(&r->scan, '{');
    while (more == 1 && (more = mr_scan_key(&r->scan, key, sizeof key)) == 1) {
        if (!is_text_next(r)) {
            more = mr_scan_skip(&r->scan);
            continue;
        }
        more = next_text(r);
        if (more != 1)
            break;
        if (!strcmp(key, "epoch"))
            small(r, &raw->e.epoch);
        else if (!strcmp(key, "step"))
            small(r, &raw->e.step);
        else if (!strcmp(key, "id"))
            small(r, &raw->e.id);
        else if (!strcmp(key, "bytes") && !mr_decimal(r->text, r->len, 0, &v) && v > 0)
            raw->e.bytes = (uint64_t)v;
        else if (!strcmp(key, "value"))
            raw->e.value = strtod(r->text, NULL);
        else if (!strcmp(key, "file") && mr_log_intern(r->log, r->text, r->len, &raw->e.file))
            return -ENOMEM;
    }
    return more == 0 ? 1 : more;
}

/* "ProfilerStep#12": the name ends before the mark. */
static size_t cut_number(const struct reader *r, struct raw *raw)
{
    const char *mark = memrchr(r->text, '#', r->len);
    int64_t v;
    if (!mark || mark == r->text)
        return r->len;
    if (mr_decimal(mark + 1, (size_t)(r->text + r->len - mark - 1), 0, &v) || v < 0 ||
        v >= UINT32_MAX)
        return r->len;
    raw->e.step = raw->e.step == MR_NONE ? (uint32_t)v : raw->e.step;
    return (size_t)(mark - r->text);
}

static int read_field(struct reader *r, const char *key, struct raw *raw)
{
    if (!strcmp(key, "args"))
        return read_args(r, raw);
    if (!is_text_next(r))
        return mr_scan_skip(&r->scan);
    int more = next_text(r);
    if (more != 1)
        return more;
    int64_t v;
    if (!strcmp(key, "ph"))
        raw->ph = r->len == 1 ? r->text[0] : 0;
    else if (!strcmp(key, "name"))
        return mr_log_intern(r->log, r->text, cut_number(r, raw), &raw->e.name) ? -ENOMEM : 1;
    else if (!strcmp(key, "ts") && !mr_decimal(r->text, r->len, 3, &v))
        raw->has_ts = 1, raw->e.begin_ns = v;
    else if (!strcmp(key, "dur") && !mr_decimal(r->text, r->len, 3, &v) && v >= 0)
        raw->has_dur = 1, raw->e.end_ns = v;
    else if (!strcmp(key, "pid"))
        raw->pid = identity(r);
    else if (!strcmp(key, "tid"))
        raw->tid = identity(r);
    return 1;
}

/* An end: the innermost open span of the thread is whole now. */
static void end_span(struct reader *r, const struct raw *raw)
{
    struct mr_trace_log *log = r->log;
    struct mr_log_thread *t = &log->thread[raw->e.thread];
    if (t->open == UINT32_MAX) {
        log->n_bad++;
        return;
    }
    struct mr_log_event *e = &log->event[t->open];
    t->open = e->outer;
    e->outer = 0;
    e->end_ns = raw->e.begin_ns > e->begin_ns ? raw->e.begin_ns : e->begin_ns;
    e->bytes = e->bytes ? e->bytes : raw->e.bytes;
    log->n_unfinished--;
}

static int keep(struct reader *r, struct raw *raw)
{
    struct mr_trace_log *log = r->log;
    struct mr_log_event *e = &raw->e;
    if (!raw->ph || raw->ph == 'M')
        return 1;
    if (!strchr("XBECiI", raw->ph)) {
        log->n_other++;
        return 1;
    }
    if (!raw->has_ts || (e->name == MR_NO_STRING && raw->ph != 'E') ||
        (raw->ph == 'X' && __builtin_add_overflow(e->begin_ns, e->end_ns, &e->end_ns))) {
        log->n_bad++;
        return 1;
    }
    if (raw->ph != 'C' && mr_log_thread(log, raw->pid, raw->tid, &e->thread))
        return -ENOMEM;
    if (raw->ph == 'E') {
        end_span(r, raw);
        return 1;
    }
    e->kind = raw->ph == 'C'                     ? MR_EVENT_COUNTER
              : raw->ph == 'i' || raw->ph == 'I' ? MR_EVENT_MARK
                                                 : MR_EVENT_SPAN;
    if (raw->ph != 'X')
        e->end_ns = e->begin_ns;
    if (e->kind == MR_EVENT_COUNTER && !strcmp(mr_log_string(log, e->name), MR_DROPPED_NAME)) {
        log->dropped = e->value > 0 && e->value < 1e18 ? (uint64_t)e->value : 0;
        return 1;
    }
    if (raw->ph == 'B') {
        e->outer = log->thread[e->thread].open;
        log->thread[e->thread].open = (uint32_t)log->n;
        log->n_unfinished++;
        e->end_ns = INT64_MIN; /* open */
    }
    return mr_log_add(log, e) ? -ENOMEM : 1;
}

static int read_event(struct reader *r)
{
    char key[32];
    struct raw raw = {.e = {.name = MR_NO_STRING,
                            .file = MR_NO_STRING,
                            .id = MR_NONE,
                            .epoch = MR_NONE,
                            .step = MR_NONE}};
    if (mr_scan_peek(&r->scan) != '{')
        return mr_scan_skip(&r->scan);
    int more = mr_scan_enter(&r->scan, '{');
    while (more == 1 && (more = mr_scan_key(&r->scan, key, sizeof key)) == 1)
        more = read_field(r, key, &raw);
    return more ? more : keep(r, &raw);
}

static int read_list(struct reader *r)
{
    r->has_list = 1;
    int more = mr_scan_enter(&r->scan, '[');
    while (more == 1 && (more = mr_scan_item(&r->scan)) == 1) {
        more = read_event(r);
    }
    return more ? more : 1;
}

static void note_other(struct reader *r, const char *key)
{
    if (!strcmp(key, "writer"))
        snprintf(r->log->writer, sizeof r->log->writer, "%.60s", r->text);
    else if (!strcmp(key, "monotonic_clock") && r->len < sizeof r->log->clock)
        memcpy(r->log->clock, r->text, r->len + 1);
    else if (!strcmp(key, "emulated"))
        r->log->emulated = !strcmp(r->text, "true");
    else if (!strcmp(key, "storage") && r->len < sizeof r->log->storage)
        memcpy(r->log->storage, r->text, r->len + 1);
    else if (!strcmp(key, "monotonic_start_ns"))
        r->has_monotonic = !mr_decimal(r->text, r->len, 0, &r->monotonic_ns);
}

/* {"otherData": {"writer": "millrace 0.1.0", "monotonic_start_ns": "123", ...}} */
static int read_other(struct reader *r)
{
    char key[32];
    int more = mr_scan_enter(&r->scan, '{');
    while (more == 1 && (more = mr_scan_key(&r->scan, key, sizeof key)) == 1) {
        if (!is_text_next(r)) {
            more = mr_scan_skip(&r->scan);
            continue;
        }
        more = next_text(r);
        if (more == 1)
            note_other(r, key);
    }
    return more ? more : 1;
}

static int read_top(struct reader *r)
{
    char key[32];
    if (mr_scan_peek(&r->scan) == '[')
        return read_list(r);
    int more = mr_scan_enter(&r->scan, '{');
    while (more == 1 && (more = mr_scan_key(&r->scan, key, sizeof key)) == 1) {
        char next = mr_scan_peek(&r->scan);
        if (!strcmp(key, "traceEvents") && next == '[') {
            more = read_list(r);
        } else if (!strcmp(key, "otherData") && next == '{') {
            more = read_other(r);
        } else if (!strcmp(key, "baseTimeNanoseconds") && is_text_next(r)) {
            more = next_text(r);
            r->has_base = more == 1 && !mr_decimal(r->text, r->len, 0, &r->base_ns);
        } else {
            more = mr_scan_skip(&r->scan);
        }
    }
    return more ? more : 1;
}

/* Times on the wall clock if it is known; spans that never ended are taken out. */
static void finish(struct reader *r)
{
    struct mr_trace_log *log = r->log;
    int64_t largest = INT64_MIN, begin, end;
    size_t kept = 0;
    for (size_t i = 0; i < log->n; i++)
        largest = log->event[i].begin_ns > largest ? log->event[i].begin_ns : largest;
    log->has_wall = largest >= SINCE_1970 || r->has_base;
    int64_t base = largest < SINCE_1970 && r->has_base ? r->base_ns : 0;
    if (!r->has_monotonic || largest >= SINCE_1970 ||
        __builtin_sub_overflow(base, r->monotonic_ns, &log->ahead_ns))
        log->clock[0] = 0;
    for (size_t i = 0; i < log->n; i++) {
        struct mr_log_event e = log->event[i];
        if (e.end_ns == INT64_MIN)
            continue;
        if (__builtin_add_overflow(e.begin_ns, base, &begin) ||
            __builtin_add_overflow(e.end_ns, base, &end)) {
            log->n_bad++;
            continue;
        }
        e.begin_ns = begin;
        e.end_ns = end;
        e.value = isfinite(e.value) ? e.value : 0;
        log->event[kept++] = e;
    }
    log->n = kept;
}

int mr_chrome_read(struct mr_trace_log *log, const char *text, size_t len)
{
    struct reader *r = calloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    size_t bom = len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
    r->log = log;
    r->scan = (struct mr_json_scan){.at = text + bom, .end = text + len};
    int more = read_top(r);
    if (more == -1) {
        log->cut = r->scan.at == r->scan.end;
        log->damaged_at = log->cut ? 0 : (uint64_t)(r->scan.at - text) + 1;
    }
    finish(r);
    int has_list = r->has_list;
    free(r);
    return more == -ENOMEM ? -ENOMEM : has_list ? 0 : -EBADMSG;
}
