/* png_plain.c - 8 bits a sample, no palette, not interlaced: inflate, unfilter, hand on.
 *
 * libspng as distributions build it undoes filters one byte at a time and spends 40% of a photo's
 * time there.  This path reads the plain kind of file itself, keeps zlib's state from image to
 * image, and takes each row from the file's memory to the resizer without a copy of the compressed
 * data:
 *
 *     8 bytes signature
 *     chunks:  length(4) type(4) data(length) crc(4)        big-endian; the crc covers type and
 * data IHDR   width(4) height(4) bits(1) colour(1) compression(1) filter(1) interlace(1)
 *         ...    a lower-case first letter: metadata, passed over
 *         IDAT   one or more in a row: a zlib stream of rows, each with a byte for its filter
 *
 * It knows only how things should be.  Whatever is not so - another kind of file, data that ends or
 * does not inflate - is MR_PNG_UNUSUAL, and the file goes to libspng, which finds the words for it
 * or decodes it after all.  Only a wrong checksum of image data is judged here: libspng does not
 * look at that of the last chunk.
 *
 * Lengths are compared with what is left of the file before they are added to anything.  The zlib
 * stream's own checksum is not looked at: that of its chunks already was. */
#include "png_plain.h"

#include "errtext.h"
#include "inflate.h"
#include "png_filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SIGNATURE 8
#define HEADER    (SIGNATURE + 8 + 13 + 4)
#define MAX_SIDE  (1u << 28) /* a row's bytes fit into 32 bits */

struct mr_png_plain {
    struct mr_inflate *zip;
    struct mr_buffer rows; /* a filtered row, two rows of pixels, a row of RGB */

    /* of this file */
    const uint8_t *at; /* the next chunk */
    size_t left;
    const uint8_t *data; /* what is left of this one's image data */
    size_t n_data;
    uint32_t width, height;
    unsigned step; /* bytes of a pixel */
};

static uint32_t read_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Step over the chunk at p->at, which must be whole: its data, and its length in *len. */
static const uint8_t *take_chunk(struct mr_png_plain *p, uint32_t *len)
{
    if (p->left < 12 || read_be32(p->at) > p->left - 12)
        return NULL;
    *len = read_be32(p->at);
    const uint8_t *data = p->at + 8;
    p->at += 12 + (size_t)*len;
    p->left -= 12 + (size_t)*len;
    return data;
}

static int crc_is_right(const uint8_t *data, uint32_t len)
{
    return mr_crc32(mr_crc32(0, data - 4, 4), data, len) == read_be32(data + len);
}

static int read_header(struct mr_png_plain *p, const struct mr_frame *f)
{
    static const uint8_t steps[] = {[0] = 1, [2] = 3, [4] = 2, [6] = 4};
    if (f->len < HEADER || memcmp(f->bytes + SIGNATURE, "\0\0\0\rIHDR", 8))
        return MR_PNG_UNUSUAL;
    const uint8_t *h = f->bytes + SIGNATURE + 8;
    p->at = f->bytes + HEADER;
    p->left = f->len - HEADER;
    p->width = read_be32(h);
    p->height = read_be32(h + 4);
    p->step = h[9] < sizeof steps ? steps[h[9]] : 0;
    int plain = p->step && h[8] == 8 && !h[10] && !h[11] && !h[12];
    int sane = p->width && p->height && p->width < MAX_SIDE && p->height < MAX_SIDE;
    return plain && sane && crc_is_right(h, 13) ? 0 : MR_PNG_UNUSUAL;
}

/* Go on with the next chunk of image data. */
static int next_data(struct mr_png_plain *p, const struct mr_frame *f)
{
    uint32_t len;
    if (p->left < 8 || memcmp(p->at + 4, "IDAT", 4))
        return MR_PNG_UNUSUAL;
    const uint8_t *data = take_chunk(p, &len);
    if (!data)
        return MR_PNG_UNUSUAL;
    if (!crc_is_right(data, len))
        return f->opts->accept_truncated
                   ? MR_PNG_UNUSUAL
                   : mr_fail(f->error, -EBADMSG, "PNG: wrong checksum of image data");
    p->data = data;
    p->n_data = len;
    return 0;
}

/* Pass over metadata to the image data. */
static int find_data(struct mr_png_plain *p, const struct mr_frame *f)
{
    uint32_t len;
    while (p->left >= 8 && (p->at[4] & 0x20))
        if (!take_chunk(p, &len))
            return MR_PNG_UNUSUAL;
    return next_data(p, f);
}

/* Inflate exactly n bytes. */
static int inflate_bytes(struct mr_png_plain *p, const struct mr_frame *f, uint8_t *out, size_t n)
{
    while (n) {
        int r = p->n_data ? 0 : next_data(p, f);
        if (r)
            return r;
        enum mr_inflate_said said = mr_inflate_run(p->zip, &p->data, &p->n_data, &out, &n);
        int is_well = said == MR_INFLATE_MORE || (said == MR_INFLATE_END && !n) ||
                      (said == MR_INFLATE_STUCK && !p->n_data);
        if (!is_well)
            return MR_PNG_UNUSUAL;
    }
    return 0;
}

/* Grey, grey with alpha, or colour with alpha to RGB. */
static const uint8_t *to_rgb(const struct mr_png_plain *p, const uint8_t *row, uint8_t *rgb)
{
    if (p->step == 3)
        return row;
    for (size_t x = 0; x < p->width; x++) {
        const uint8_t *in = row + x * p->step;
        rgb[3 * x] = in[0];
        rgb[3 * x + 1] = in[p->step == 4 ? 1 : 0];
        rgb[3 * x + 2] = in[p->step == 4 ? 2 : 0];
    }
    return rgb;
}

static int read_rows(struct mr_png_plain *p, const struct mr_frame *f)
{
    size_t n = (size_t)p->width * p->step, stride = n + 1 + MR_FILTER_SLACK;
    int r = mr_buffer_reserve(&p->rows, 3 * stride + (size_t)p->width * 3);
    if (r)
        return mr_fail(f->error, r, "no memory for a row of %u pixels", p->width);
    uint8_t *filtered = p->rows.data, *above = filtered + stride, *row = above + stride;
    uint8_t *rgb = row + stride;
    memset(above, 0, stride);
    for (uint32_t y = 0; y < p->height; y++) {
        r = inflate_bytes(p, f, filtered, n + 1);
        if (r)
            return r;
        if (mr_resizer_done(f->resizer) && filtered[0] <= MR_FILTER_LAST)
            continue; /* read to see that it is sound */
        if (mr_png_unfilter(filtered[0], p->step, filtered + 1, above, row, n))
            return MR_PNG_UNUSUAL;
        mr_frame_put_row(f, y, to_rgb(p, row, rgb));
        uint8_t *swap = above;
        above = row;
        row = swap;
    }
    return 0;
}

int mr_png_plain_run(struct mr_png_plain *p, const struct mr_frame *f)
{
    struct mr_region region;
    int r = read_header(p, f);
    if (r)
        return r;
    r = mr_frame_region(f, p->width, p->height, &region);
    if (!r)
        r = mr_frame_begin_rows(f, p->width, p->height, &region);
    if (r)
        return r;
    mr_inflate_reset(p->zip);
    p->n_data = 0;
    r = find_data(p, f);
    return r ? r : read_rows(p, f);
}

int mr_png_plain_new(struct mr_png_plain **out)
{
    struct mr_png_plain *p = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    int r = mr_inflate_new(MR_INFLATE_ZLIB, &p->zip);
    if (r)
        free(p);
    else
        *out = p;
    return r;
}

void mr_png_plain_free(struct mr_png_plain *p)
{
    if (!p)
        return;
    mr_inflate_free(p->zip);
    mr_buffer_fini(&p->rows);
    free(p);
}
