/* jpeg_bytes.h - the entropy-coded bytes of a scan without what JPEG stuffs between them, a window
 * at a time. */
#ifndef MR_JPEG_BYTES_H
#define MR_JPEG_BYTES_H

#include "buffer.h"

#include <stddef.h>

#define MR_JPEG_WINDOW ((size_t)48 << 10) /* bytes that are unstuffed in one go, at the most */
/* Bytes in front of any position in the window that may be read again. */
#define MR_JPEG_LEAD ((size_t)8)
/* Bytes behind the window that may be read, whatever they are, and written by a vector that
 * reaches too far. */
#define MR_JPEG_BEYOND ((size_t)16 << 10)

/* Copy bytes up to the first FF or `n`, whichever is first; how many that were.  Reads `n` bytes at
 * the most and writes up to 64 more than it copied. */
typedef size_t mr_copy_plain_fn(const uint8_t *in, size_t n, uint8_t *out);

struct mr_jpeg_bytes {
    const uint8_t *in, *in_end; /* what is not in the window yet */
    struct mr_buffer memory;    /* the window, what leads to it and what lies beyond */
    uint8_t *end;               /* of the bytes in the window */
    unsigned marker;            /* that follows `end`, and has been taken; 0: none yet */
    mr_copy_plain_fn *copy_plain;
};

/* 0 or -ENOMEM.  Borrows `in`.  The window is empty. */
int mr_jpeg_bytes_begin(struct mr_jpeg_bytes *b, const uint8_t *in, size_t n,
                        mr_copy_plain_fn *copy_plain);
void mr_jpeg_bytes_fini(struct mr_jpeg_bytes *b);

/* Keep the window's bytes from `keep` on, move them to its beginning and fill it up, to a marker at
 * the most.  The moved `keep`; NULL when the input ends, or goes on as no plain file does, before a
 * marker or a full window. */
const uint8_t *mr_jpeg_bytes_more(struct mr_jpeg_bytes *b, const uint8_t *keep);

/* Forget the window and the marker; what follows that is next. */
const uint8_t *mr_jpeg_bytes_next_segment(struct mr_jpeg_bytes *b);

#endif
