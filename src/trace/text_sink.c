/* text_sink.c - see text_sink.h.
 *
 * Records are gathered in a buffer and go to the file when it is nearly full, or when the owner
 * flushes.  A record may have up to LONGEST bytes; longer ones are cut out whole when they do not
 * fit (names and paths are bounded, so it does not happen).
 *
 * After a failed write the file ends with a whole record if it can be cut (a pipe cannot).  Nothing
 * is tried again: a file with a hole in its middle would tell a wrong story. */
#include "text_sink.h"

#include "utf8.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A longer buffer makes fewer writes, but has to be touched: 64 KiB at a time are enough. */
#define BUFFER  ((size_t)96 << 10)
#define LONGEST MR_SINK_ROOM

int mr_text_sink_init(struct mr_text_sink *s, int fd)
{
    *s = (struct mr_text_sink){.fd = fd, .buf = malloc(BUFFER)};
    return s->buf ? 0 : -ENOMEM;
}

static void give_up(struct mr_text_sink *s, int code, uint64_t whole_end)
{
    s->error = code;
    s->at = whole_end;
    if (ftruncate(s->fd, (off_t)whole_end)) {
        /* Not a regular file: its reader sees a torn record, and the error is reported anyway. */
    }
}

/* Where the last record within the first n bytes of the buffer ends; records end with a line. */
static size_t whole_part(const struct mr_text_sink *s, size_t n)
{
    const char *end = n ? memrchr(s->buf, '\n', n) : NULL;
    return end ? (size_t)(end - s->buf) + 1 : 0;
}

void mr_text_sink_flush(struct mr_text_sink *s)
{
    size_t done = 0, n = s->whole;
    while (!s->error && done < n) {
        ssize_t w = write(s->fd, s->buf + done, n - done);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            give_up(s, w < 0 ? -errno : -EIO, s->at + whole_part(s, done));
        else
            done += (size_t)w;
    }
    if (s->error) {
        s->n_lost += s->n_pending;
    } else {
        s->at += n;
        s->n_written += s->n_pending;
    }
    s->n_pending = 0;
    memmove(s->buf, s->buf + n, s->len - n);
    s->len -= n;
    s->whole = 0;
}

int mr_text_sink_close(struct mr_text_sink *s)
{
    mr_text_sink_flush(s);
    if (close(s->fd) && !s->error)
        s->error = -errno;
    free(s->buf);
    s->buf = NULL;
    s->fd = -1;
    return s->error;
}

static void put(struct mr_text_sink *s, const char *p, size_t n)
{
    if (n > BUFFER - s->len)
        n = BUFFER - s->len;
    memcpy(s->buf + s->len, p, n);
    s->len += n;
}

void mr_sink_bytes(struct mr_text_sink *s, const char *p, size_t n)
{
    put(s, p, n);
}

/* Numbers are most of an event, so two digits a division. */
static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";

/* Written backwards, so that it ends before `p`; where it begins. */
static char *whole_number(char *p, uint64_t v)
{
    while (v >= 10000) { /* the two pairs do not wait for each other */
        unsigned low = (unsigned)(v % 10000);
        v /= 10000;
        memcpy(p -= 2, &pairs[low % 100 * 2], 2);
        memcpy(p -= 2, &pairs[low / 100 * 2], 2);
    }
    unsigned rest = (unsigned)v;
    if (rest >= 100) {
        memcpy(p -= 2, &pairs[rest % 100 * 2], 2);
        rest /= 100;
    }
    if (rest >= 10)
        return memcpy(p - 2, &pairs[rest * 2], 2);
    *--p = (char)('0' + rest);
    return p;
}

/* How many digits: by the number of bits, which is off by one at the most. */
static unsigned n_digits(uint64_t v)
{
    static const uint64_t power[] = {0,
                                     10,
                                     100,
                                     1000,
                                     10000,
                                     100000,
                                     1000000,
                                     10000000,
                                     100000000,
                                     1000000000,
                                     10000000000,
                                     100000000000,
                                     1000000000000,
                                     10000000000000,
                                     100000000000000,
                                     1000000000000000,
                                     10000000000000000,
                                     100000000000000000,
                                     1000000000000000000,
                                     10000000000000000000u};
    unsigned n = (64 - (unsigned)__builtin_clzll(v | 1)) * 1233 >> 12; /* log10(2) */
    return n + (v >= power[n]);
}

/* In place: put together elsewhere and copied, a number would wait for its own bytes. */
char *mr_put_u64(char *p, uint64_t v)
{
    char *end = p + n_digits(v);
    whole_number(end, v);
    return end;
}

char *mr_put_thousandths(char *p, uint64_t v)
{
    unsigned rest = (unsigned)(v % 1000);
    p = mr_put_u64(p, v / 1000);
    p[0] = '.';
    p[1] = (char)('0' + rest / 100);
    memcpy(p + 2, &pairs[rest % 100 * 2], 2);
    return p + 4;
}

void mr_sink_decimal(struct mr_text_sink *s, uint64_t v, unsigned digits)
{
    char text[32], *p = text + sizeof text;
    for (unsigned i = 0; i < digits; i++, v /= 10)
        *--p = (char)('0' + v % 10);
    if (digits)
        *--p = '.';
    p = whole_number(p, v);
    put(s, p, (size_t)(text + sizeof text - p));
}

void mr_sink_u64(struct mr_text_sink *s, uint64_t v)
{
    char text[20];
    put(s, text, (size_t)(mr_put_u64(text, v) - text));
}

void mr_sink_real(struct mr_text_sink *s, double v)
{
    char text[40];
    int n = snprintf(text, sizeof text, "%.9g", isfinite(v) ? v : 0);
    put(s, text, (size_t)n);
}

/* Bytes from p on that stand for themselves in JSON. */
static size_t plain(const unsigned char *p)
{
    size_t n = 0;
    while (p[n] >= 0x20 && p[n] < 0x80 && p[n] != '"' && p[n] != '\\')
        n++;
    return n;
}

void mr_sink_json_string(struct mr_text_sink *s, const char *text)
{
    put(s, "\"", 1);
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        char escape[8];
        size_t n = plain(p);
        if (n) {
            put(s, (const char *)p, n);
        } else if (*p == '"' || *p == '\\') {
            put(s, "\\", 1);
            put(s, (const char *)p, n = 1);
        } else if (*p < 0x20) {
            snprintf(escape, sizeof escape, "\\u%04x", *p);
            put(s, escape, 6);
            n = 1;
        } else if ((n = mr_utf8_length((const char *)p))) {
            put(s, (const char *)p, n);
        } else {
            put(s, "\xef\xbf\xbd", 3);
            n = 1;
        }
        p += n;
    }
    put(s, "\"", 1);
}

void mr_sink_csv_part(struct mr_text_sink *s, const char *text)
{
    for (; *text; text++) {
        if (*text == '"')
            put(s, "\"", 1);
        /* A line is a record: a name with a line break in it must not make two of it. */
        put(s, *text == '\n' || *text == '\r' ? "?" : text, 1);
    }
}

void mr_sink_end_record(struct mr_text_sink *s, int counted)
{
    if (s->error || s->len == BUFFER) { /* nothing more can be written, or it does not fit */
        s->len = s->whole;
        s->n_lost += counted;
        return;
    }
    s->whole = s->len;
    s->n_pending += counted;
    if (s->len > BUFFER - LONGEST)
        mr_text_sink_flush(s);
}
