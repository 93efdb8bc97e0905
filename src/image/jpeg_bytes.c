/* jpeg_bytes.c - see jpeg_bytes.h.
 *
 * In a scan an FF that is data is followed by 00; FF and anything else is a marker.  Taking the 00
 * out beforehand lets the bit reader take eight bytes at a time and look at none of them.  FF is
 * rare, once in some 200 bytes, so most of the work is copying runs without it, which vectors do.
 *
 *     memory   [ MR_JPEG_LEAD | window: MR_JPEG_WINDOW bytes ......... | MR_JPEG_BEYOND bytes ]
 *                                     ^keep          ^end
 *
 * Only a part of the scan is unstuffed at a time: it stays in the cache, and memory does not
 * grow with the file.
 *
 * Invariants: `end` never passes the window, so a reader that begins below it stays inside memory
 * for MR_JPEG_BEYOND bytes.  The MR_JPEG_LEAD bytes in front of a position are those of the scan
 * that precede it, also after the window was moved, or, at the beginning of a segment, some that a
 * reader does not use.  What lies behind `end` is left from before; a reader that uses it is
 * told so by comparing positions, not by the bytes. */
#include "jpeg_bytes.h"

#include <string.h>

#define OVERHANG 64 /* that copy_plain may write */

int mr_jpeg_bytes_begin(struct mr_jpeg_bytes *b, const uint8_t *in, size_t n,
                        mr_copy_plain_fn *copy_plain)
{
    int r = mr_buffer_reserve(&b->memory, MR_JPEG_LEAD + MR_JPEG_WINDOW + MR_JPEG_BEYOND);
    if (r)
        return r;
    b->in = in;
    b->in_end = in + n;
    b->end = b->memory.data + MR_JPEG_LEAD;
    b->marker = 0;
    b->copy_plain = copy_plain;
    return 0;
}

void mr_jpeg_bytes_fini(struct mr_jpeg_bytes *b)
{
    mr_buffer_fini(&b->memory);
}

const uint8_t *mr_jpeg_bytes_next_segment(struct mr_jpeg_bytes *b)
{
    b->end = b->memory.data + MR_JPEG_LEAD;
    b->marker = 0;
    return b->end;
}

const uint8_t *mr_jpeg_bytes_more(struct mr_jpeg_bytes *b, const uint8_t *keep)
{
    size_t kept = (size_t)(b->end - keep);
    uint8_t *window = b->memory.data + MR_JPEG_LEAD;
    memmove(window - MR_JPEG_LEAD, keep - MR_JPEG_LEAD, MR_JPEG_LEAD + kept);
    b->end = window + kept;
    const uint8_t *limit = window + MR_JPEG_WINDOW - OVERHANG;
    while (!b->marker && b->end < limit) {
        size_t n = (size_t)(b->in_end - b->in), room = (size_t)(limit - b->end);
        size_t plain = b->copy_plain(b->in, n < room ? n : room, b->end);
        b->in += plain;
        b->end += plain;
        if (b->end >= limit)
            break;
        if (b->in_end - b->in < 2 || b->in[1] == 0xff)
            return NULL;
        if (b->in[1] == 0)
            *b->end++ = 0xff;
        else
            b->marker = b->in[1];
        b->in += 2;
    }
    return window;
}
