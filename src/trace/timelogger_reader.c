/* timelogger_reader.c - CSV in TimeLogger's columns: timelogger_writer.c draws them.
 *
 * Fields may be quoted.  Times are seconds with decimals; what is after 2001 is the time since
 * 1970. The description's step=, id=, bytes=, file= are looked at; any other description (the
 * original TimeLogger's) is left alone. */
#include "trace_log.h"

#include "json_scan.h"
#include "trace_writer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SINCE_1970 ((int64_t)1000000000000000000)
#define MAX_FIELD  4400

enum column { EPOCH, RANK, NAME, TEXT, START, END, TAKEN, PROCESS, THREAD, N_COLUMNS };

struct row {
    char field[N_COLUMNS][MAX_FIELD];
    size_t len[N_COLUMNS];
};

/* One field; what does not fit is dropped.  Returns where it ends: at a comma, a line's end or the
 * text's end; NULL when a quote stays open. */
static const char *read_field(const char *p, const char *end, char *out, size_t *len)
{
    int quoted = p < end && *p == '"';
    *len = 0;
    for (p += quoted; p < end; p++) {
        if (quoted && *p == '"') {
            if (p + 1 == end || p[1] != '"') {
                quoted = 0;
                continue;
            }
            p++;
        } else if (!quoted && (*p == ',' || *p == '\n' || *p == '\r')) {
            break;
        }
        if (*len + 1 < MAX_FIELD)
            out[(*len)++] = *p;
    }
    out[*len] = 0;
    return quoted ? NULL : p;
}

/* One line; *n fields of it are in the row.  Returns the next line's start, NULL: it is not whole.
 */
static const char *read_row(const char *p, const char *end, struct row *row, unsigned *n)
{
    char rest[MAX_FIELD];
    size_t rest_len;
    for (*n = 0;; p++) {
        int extra = *n >= N_COLUMNS;
        p = read_field(p, end, extra ? rest : row->field[*n], extra ? &rest_len : &row->len[*n]);
        if (!p || p == end)
            return NULL;
        *n += !extra;
        if (*p != ',')
            break;
    }
    while (p < end && (*p == '\n' || *p == '\r'))
        p++;
    return p;
}

static int number(const struct row *row, enum column c, int digits, int64_t *out)
{
    return mr_decimal(row->field[c], row->len[c], digits, out);
}

static uint32_t small(int64_t v)
{
    return v >= 0 && v < UINT32_MAX ? (uint32_t)v : MR_NONE;
}

static int read_description(struct mr_trace_log *log, const char *text, struct mr_log_event *e)
{
    while (text) {
        size_t n = strcspn(text, " "), key = strcspn(text, "=");
        int64_t v;
        if (!strncmp(text, "file=", 5))
            return mr_log_intern(log, text + 5, strlen(text + 5), &e->file);
        if (key < n && !mr_decimal(text + key + 1, n - key - 1, 0, &v)) {
            if (!strncmp(text, "step=", 5))
                e->step = small(v);
            else if (!strncmp(text, "id=", 3))
                e->id = small(v);
            else if (!strncmp(text, "bytes=", 6) && v > 0)
                e->bytes = (uint64_t)v;
        }
        text = text[n] ? text + n + 1 : NULL;
    }
    return 0;
}

/* A mark that says what the times come from. */
static void note_storage(struct mr_trace_log *log, const char *mark)
{
    size_t n = sizeof MR_EMULATED_MARK - 1;
    if (strncmp(mark, MR_EMULATED_MARK, n))
        return;
    log->emulated = 1;
    snprintf(log->storage, sizeof log->storage, "%.*s", MR_STORAGE_NAME - 1, mark + n);
}

static int keep(struct mr_trace_log *log, const struct row *row, unsigned n)
{
    struct mr_log_event e = {
        .file = MR_NO_STRING, .id = MR_NONE, .epoch = MR_NONE, .step = MR_NONE};
    int64_t epoch, pid, tid, dropped;
    if (n == 1 && !row->len[0]) /* an empty line */
        return 0;
    if (n >= TEXT + 1 && !strcmp(row->field[NAME], MR_DROPPED_NAME)) {
        const char *d = row->field[TEXT];
        if (!strncmp(d, "n=", 2) && !mr_decimal(d + 2, row->len[TEXT] - 2, 0, &dropped) &&
            dropped > 0)
            log->dropped = (uint64_t)dropped;
        return 0;
    }
    if (n < END + 1 || number(row, START, 9, &e.begin_ns) || number(row, END, 9, &e.end_ns) ||
        e.end_ns < e.begin_ns) {
        log->n_bad++;
        return 0;
    }
    if (!number(row, EPOCH, 0, &epoch))
        e.epoch = small(epoch);
    if (n <= PROCESS || number(row, PROCESS, 0, &pid))
        pid = 0;
    if (n <= THREAD || number(row, THREAD, 0, &tid))
        tid = 0;
    int is_mark = !strcmp(row->field[NAME], "Mark");
    enum column called = is_mark ? TEXT : NAME;
    if (is_mark)
        note_storage(log, row->field[TEXT]);
    e.kind = is_mark ? MR_EVENT_MARK : MR_EVENT_SPAN;
    if (mr_log_intern(log, row->field[called], row->len[called], &e.name) ||
        (!is_mark && read_description(log, row->field[TEXT], &e)) ||
        mr_log_thread(log, (uint64_t)pid, (uint64_t)tid, &e.thread) || mr_log_add(log, &e))
        return -ENOMEM;
    log->has_wall |= e.begin_ns >= SINCE_1970;
    return 0;
}

int mr_timelogger_read(struct mr_trace_log *log, const char *text, size_t len)
{
    const char *p = text, *end = text + len;
    struct row row;
    unsigned n;
    int r = 0;
    const char *next = read_row(p, end, &row, &n); /* the heading */
    while (!r && next && next < end) {
        p = next;
        next = read_row(p, end, &row, &n);
        if (next)
            r = keep(log, &row, n);
    }
    log->cut = !next;
    return r;
}
