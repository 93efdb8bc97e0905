/* text_sink.h - text on its way to a file, record by record, as cheap as it can be.
 *
 * A record is whole or it is not there: when the file cannot take more, it is cut back to the last
 * whole record, and all that follows is counted as lost. */
#ifndef MR_TEXT_SINK_H
#define MR_TEXT_SINK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct mr_text_sink {
    int fd;
    char *buf;
    size_t len, whole;  /* bytes in buf; those that belong to whole records */
    uint64_t at;        /* bytes in the file */
    uint64_t n_pending; /* records in buf */
    uint64_t n_written, n_lost;
    int error; /* -errno of the first write that failed */
};

/* Takes `fd` on success; 0 or -ENOMEM. */
int mr_text_sink_init(struct mr_text_sink *s, int fd);
/* Flush and close; the first error. */
int mr_text_sink_close(struct mr_text_sink *s);

void mr_sink_bytes(struct mr_text_sink *s, const char *p, size_t n);
static inline void mr_sink_text(struct mr_text_sink *s, const char *text)
{
    mr_sink_bytes(s, text, strlen(text)); /* a constant, mostly */
}
void mr_sink_u64(struct mr_text_sink *s, uint64_t v);
/* v / 10^digits, exact: 1234567, 3 -> "1234.567". */
void mr_sink_decimal(struct mr_text_sink *s, uint64_t v, unsigned digits);
void mr_sink_real(struct mr_text_sink *s, double v);
/* Quoted and escaped; bytes that are not UTF-8 become U+FFFD. */
void mr_sink_json_string(struct mr_text_sink *s, const char *text);
/* The inside of a quoted CSV field. */
void mr_sink_csv_part(struct mr_text_sink *s, const char *text);

/* For records that come by the million: write into the buffer itself.  At the start of a record
 * there is room for this much. */
#define MR_SINK_ROOM ((size_t)32 << 10)
static inline char *mr_sink_at(struct mr_text_sink *s)
{
    return s->buf + s->len;
}
/* The record goes on at `p`, which was the end of what the caller wrote. */
static inline void mr_sink_to(struct mr_text_sink *s, const char *p)
{
    s->len = (size_t)(p - s->buf);
}
/* Up to 20 digits at `p`; where they end. */
char *mr_put_u64(char *p, uint64_t v);
/* v / 1000, exact: 1234567 -> "1234.567". */
char *mr_put_thousandths(char *p, uint64_t v);

/* What was put since the last call is a record (counted: an event of the trace). */
void mr_sink_end_record(struct mr_text_sink *s, int counted);
void mr_text_sink_flush(struct mr_text_sink *s);

#endif
