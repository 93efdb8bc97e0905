/* trace_log.c - see trace_log.h.  Growing tables, and the choice of the reader. */
#include "trace_log.h"

#include "byte_hash.h"
#include "errtext.h"
#include "grow.h"
#include "open_file.h"
#include "trace_writer.h"
#include "unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK         4096 /* bytes from which a trace is recognised */
#define MAX_UNPACKED ((size_t)4 << 30)

/* Room for one more element of `size` bytes in the array that `array` points to. */
static int grow(void *array, size_t n, size_t *cap, size_t size)
{
    void *p;
    memcpy(&p, array, sizeof p); /* it has another type there */
    p = mr_grown(p, n, cap, size);
    if (!p)
        return -ENOMEM;
    memcpy(array, &p, sizeof p);
    return 0;
}

static int grow32(void *array, uint32_t n, uint32_t *cap, size_t size)
{
    size_t wide = *cap;
    if (n >= UINT32_MAX - 1 || grow(array, n, &wide, size))
        return -ENOMEM;
    *cap = (uint32_t)(wide > UINT32_MAX - 1 ? UINT32_MAX - 1 : wide);
    return 0;
}

int mr_log_add(struct mr_trace_log *log, const struct mr_log_event *e)
{
    if (log->n >= UINT32_MAX - 1 || grow(&log->event, log->n, &log->cap, sizeof *log->event))
        return -ENOMEM;
    log->event[log->n++] = *e;
    return 0;
}

/* The place of a string in the table, or the free one where it belongs. */
static uint32_t *find(const struct mr_trace_log *log, const char *s, size_t len)
{
    uint32_t at = mr_byte_hash(s, len) & (log->cap_hash - 1);
    for (;; at = (at + 1) & (log->cap_hash - 1)) {
        uint32_t v = log->hash[at];
        const char *old = v ? log->text + log->string[v - 1] : NULL;
        if (!v || (!strncmp(old, s, len) && !old[len]))
            return &log->hash[at];
    }
}

static int grow_hash(struct mr_trace_log *log)
{
    if (log->cap_hash && log->n_strings < log->cap_hash / 2)
        return 0;
    uint32_t cap = log->cap_hash ? log->cap_hash * 2 : 1024;
    uint32_t *table = cap ? calloc(cap, sizeof *table) : NULL;
    if (!table)
        return -ENOMEM;
    free(log->hash);
    log->hash = table;
    log->cap_hash = cap;
    for (uint32_t i = 0; i < log->n_strings; i++) {
        const char *s = log->text + log->string[i];
        *find(log, s, strlen(s)) = i + 1;
    }
    return 0;
}

int mr_log_intern(struct mr_trace_log *log, const char *s, size_t len, uint32_t *out)
{
    len = strnlen(s, len);
    if (grow_hash(log))
        return -ENOMEM;
    uint32_t *place = find(log, s, len);
    if (*place) {
        *out = *place - 1;
        return 0;
    }
    if (grow32(&log->string, log->n_strings, &log->cap_strings, sizeof *log->string))
        return -ENOMEM;
    if (log->text_len + len + 1 > UINT32_MAX)
        return -ENOMEM;
    while (log->text_len + len + 1 > log->text_cap)
        if (grow(&log->text, log->text_cap, &log->text_cap, 1))
            return -ENOMEM;
    memcpy(log->text + log->text_len, s, len);
    log->text[log->text_len + len] = 0;
    log->string[log->n_strings] = (uint32_t)log->text_len;
    log->text_len += len + 1;
    *place = ++log->n_strings;
    *out = *place - 1;
    return 0;
}

/* The place of a thread in its table, or the free one where it belongs. */
static uint32_t *find_thread(const struct mr_trace_log *log, uint64_t pid, uint64_t tid)
{
    uint64_t key[2] = {pid, tid};
    uint32_t at = mr_byte_hash(key, sizeof key) & (log->cap_thread_hash - 1);
    for (;; at = (at + 1) & (log->cap_thread_hash - 1)) {
        uint32_t v = log->thread_hash[at];
        if (!v || (log->thread[v - 1].pid == pid && log->thread[v - 1].tid == tid))
            return &log->thread_hash[at];
    }
}

static int grow_thread_hash(struct mr_trace_log *log)
{
    if (log->cap_thread_hash && log->n_threads < log->cap_thread_hash / 2)
        return 0;
    uint32_t cap = log->cap_thread_hash ? log->cap_thread_hash * 2 : 64;
    uint32_t *table = cap ? calloc(cap, sizeof *table) : NULL;
    if (!table)
        return -ENOMEM;
    free(log->thread_hash);
    log->thread_hash = table;
    log->cap_thread_hash = cap;
    for (uint32_t i = 0; i < log->n_threads; i++)
        *find_thread(log, log->thread[i].pid, log->thread[i].tid) = i + 1;
    return 0;
}

int mr_log_thread(struct mr_trace_log *log, uint64_t pid, uint64_t tid, uint32_t *out)
{
    if (grow_thread_hash(log) ||
        grow32(&log->thread, log->n_threads, &log->cap_threads, sizeof *log->thread))
        return -ENOMEM;
    uint32_t *place = find_thread(log, pid, tid);
    if (!*place) {
        log->thread[log->n_threads] = (struct mr_log_thread){pid, tid, UINT32_MAX};
        *place = ++log->n_threads;
    }
    *out = *place - 1;
    return 0;
}

void mr_trace_log_free(struct mr_trace_log *log)
{
    if (!log)
        return;
    free(log->event);
    free(log->thread);
    free(log->text);
    free(log->string);
    free(log->hash);
    free(log->thread_hash);
    free(log);
}

enum look { LOOK_NONE, LOOK_CHROME, LOOK_TIMELOGGER, LOOK_GZIP };

static size_t skip_space(const char *text, size_t len, size_t at)
{
    while (at < len && strchr(" \t\r\n", text[at]) && text[at])
        at++;
    return at;
}

static enum look look(const char *text, size_t len)
{
    size_t at = len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
    size_t head = sizeof MR_TIMELOGGER_HEAD - 1;
    if (len >= 2 && !memcmp(text, "\x1f\x8b", 2))
        return LOOK_GZIP;
    if (len - at >= head && !memcmp(text + at, MR_TIMELOGGER_HEAD, head))
        return LOOK_TIMELOGGER;
    at = skip_space(text, len, at);
    char first = at < len ? text[at] : 0;
    at = skip_space(text, len, at + 1);
    char second = at < len ? text[at] : 0;
    return (first == '{' && (second == '"' || second == '}')) ||
                   (first == '[' && (second == '{' || second == ']'))
               ? LOOK_CHROME
               : LOOK_NONE;
}

static int read_some(int fd, char *buf, size_t cap, size_t *len)
{
    *len = 0;
    while (*len < cap) {
        ssize_t n = read(fd, buf + *len, cap - *len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (!n)
            break;
        *len += (size_t)n;
    }
    return 0;
}

int mr_trace_recognise(const char *path)
{
    char buf[LOOK];
    size_t len = 0;
    struct stat st;
    int fd = mr_open_file(path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return 0;
    int r = fstat(fd, &st) || !S_ISREG(st.st_mode) ? -EINVAL : read_some(fd, buf, sizeof buf, &len);
    close(fd);
    return !r && look(buf, len) != LOOK_NONE;
}

static int parse_packed(const char *packed, size_t len, const char *name, struct mr_trace_log **out,
                        struct mr_error *err)
{
    char *text = NULL;
    size_t text_len = 0;
    int r = mr_unpack(packed, len, MAX_UNPACKED, &text, &text_len);
    if (r == -EFBIG)
        return mr_fail(err, r, "%s: more than %u GiB when unpacked", name,
                       (unsigned)(MAX_UNPACKED >> 30));
    if (r)
        return mr_fail(err, r, "%s: no memory to unpack it", name);
    if (look(text, text_len) == LOOK_GZIP)
        r = mr_fail(err, -EBADMSG, "%s: not a trace: packed twice", name);
    else
        r = mr_trace_log_parse(text, text_len, name, out, err);
    free(text);
    return r;
}

int mr_trace_log_parse(const char *text, size_t len, const char *name, struct mr_trace_log **out,
                       struct mr_error *err)
{
    enum look kind = look(text, len);
    if (kind == LOOK_GZIP)
        return parse_packed(text, len, name, out, err);
    if (kind == LOOK_NONE)
        return mr_fail(err, -EBADMSG,
                       "%s: not a trace: neither Chrome's JSON nor TimeLogger's columns", name);
    struct mr_trace_log *log = calloc(1, sizeof *log);
    int r = log ? 0 : -ENOMEM;
    if (log) {
        log->emulated = -1;
        log->format = kind == LOOK_CHROME ? "Chrome" : "TimeLogger";
        r = kind == LOOK_CHROME ? mr_chrome_read(log, text, len)
                                : mr_timelogger_read(log, text, len);
    }
    if (r == -ENOMEM)
        mr_fail(err, r, "%s: no memory for its events", name);
    else if (r)
        mr_fail(err, r, "%s: not a trace: JSON, but without traceEvents", name);
    else if (!log->n && log->damaged_at)
        r = mr_fail(err, -EBADMSG,
                    "%s: not a trace: byte %llu makes no sense, and no event is "
                    "before it",
                    name, (unsigned long long)log->damaged_at);
    if (r)
        mr_trace_log_free(log);
    else
        *out = log;
    return r;
}

int mr_trace_log_read(const char *path, struct mr_trace_log **out, struct mr_error *err)
{
    struct stat st;
    char *text = NULL;
    size_t len = 0;
    int fd = mr_open_file(path, O_RDONLY | O_NONBLOCK, 0);
    int r = fd < 0 ? fd : fstat(fd, &st) ? -errno : 0;
    if (!r && !S_ISREG(st.st_mode))
        r = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
    if (!r) {
        text = malloc((size_t)st.st_size + 1);
        r = text ? read_some(fd, text, (size_t)st.st_size, &len) : -ENOMEM;
    }
    if (fd >= 0)
        close(fd);
    if (r)
        mr_fail(err, r, "%s: %s", path, r == -EINVAL ? "not a regular file" : mr_errno_text(r));
    else
        r = mr_trace_log_parse(text, len, path, out, err);
    free(text);
    return r;
}
