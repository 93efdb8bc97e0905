/* trace_log.h - a trace in memory, read from its file: ours, or a Chrome trace of another program.
 *
 * Whatever the file is, it is refused with words or yields sound events; a file that is cut or
 * damaged yields what comes before that place, and says so. */
#ifndef MR_TRACE_LOG_H
#define MR_TRACE_LOG_H

#include <millrace/api.h>

#include "span_ring.h"
#include "trace_writer.h"

#include <limits.h>

#define MR_NO_STRING UINT32_MAX

struct mr_log_event {
    int64_t begin_ns, end_ns; /* begin <= end; on the file's own clock, or the wall's: has_wall */
    uint64_t bytes;
    double value;         /* of a counter */
    uint32_t name, file;  /* strings; MR_NO_STRING: none */
    uint32_t id;          /* MR_NONE: none */
    uint32_t epoch, step; /* MR_NONE: not told */
    uint32_t thread;      /* 0 .. n_threads - 1; a counter has none */
    uint32_t outer;       /* while reading: the span that is open around this one */
    uint8_t kind;         /* an enum mr_event_kind */
};

struct mr_log_thread {
    uint64_t pid, tid;
    uint32_t open; /* while reading: the innermost span without an end */
};

struct mr_trace_log {
    struct mr_log_event *event;
    size_t n, cap;
    struct mr_log_thread *thread;
    uint32_t n_threads, cap_threads;
    char writer[64];               /* "millrace 0.1.0", or "" */
    const char *format;            /* "Chrome" or "TimeLogger" */
    int emulated;                  /* the storage was; -1: the file does not say */
    char storage[MR_STORAGE_NAME]; /* then which, or "" */
    int has_wall;                  /* times are nanoseconds since 1970 */
    char clock[MR_CLOCK_NAME]; /* the monotonic clock of the writer's machine, or "": not told; */
    int64_t ahead_ns;          /* then by how much the times here are ahead of it */
    uint64_t dropped;          /* events that the writer said it dropped */
    uint64_t n_unfinished;     /* begun and never ended */
    uint64_t n_other;          /* of kinds that are not looked at: flows, asynchronous spans, ... */
    uint64_t n_bad;            /* without a time, an end without a beginning, ... */
    int cut;                   /* the file just ends; */
    uint64_t damaged_at;       /* or not 0: it makes no sense from this byte on */

    /* Strings, one after the other, each ended by a 0. */
    char *text;
    size_t text_len, text_cap;
    uint32_t *string; /* [n_strings] offset of each */
    uint32_t n_strings, cap_strings;
    uint32_t *hash, *thread_hash; /* [cap_hash] string or thread + 1; 0: free */
    uint32_t cap_hash, cap_thread_hash;
};

/* 1 = the file begins like a trace, 0 = it does not or cannot be read. */
int mr_trace_recognise(const char *path);
/* Read a whole file, or text in memory; `name` is for messages. */
int mr_trace_log_read(const char *path, struct mr_trace_log **out, struct mr_error *err);
int mr_trace_log_parse(const char *text, size_t len, const char *name, struct mr_trace_log **out,
                       struct mr_error *err);
void mr_trace_log_free(struct mr_trace_log *log);

static inline const char *mr_log_string(const struct mr_trace_log *log, uint32_t s)
{
    return s == MR_NO_STRING ? NULL : log->text + log->string[s];
}

/* For the two readers.  0 or -ENOMEM. */
int mr_log_add(struct mr_trace_log *log, const struct mr_log_event *e);
int mr_log_intern(struct mr_trace_log *log, const char *s, size_t len, uint32_t *out);
int mr_log_thread(struct mr_trace_log *log, uint64_t pid, uint64_t tid, uint32_t *out);
int mr_chrome_read(struct mr_trace_log *log, const char *text, size_t len);
int mr_timelogger_read(struct mr_trace_log *log, const char *text, size_t len);

#endif
