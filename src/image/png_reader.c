/* png_reader.c - PNG files to RGB rows, the plain ones by png_plain.c and all others through
 * libspng.
 *
 * libspng converts every colour type to 8-bit RGB: palettes are looked up, grey is repeated, the
 * upper half of 16 bits is kept, alpha is dropped.  Rows go to the resizer as they are inflated; an
 * interlaced image has to be whole first.
 *
 * Hostile files: the size is checked before anything is allocated, libspng's own limits bound what
 * text and profiles may inflate to, and inflating stops when the image is full.  Metadata with a
 * wrong checksum is dropped, image data with one is corrupt.
 *
 * libspng has no context to use again, so each image that comes here costs its dozen allocations.
 */
#include "png_reader.h"

#include "errtext.h"
#include "png_plain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <spng.h>

#define MAX_METADATA ((size_t)16 << 20)
#define MAX_MISSING  ((size_t)64 << 20) /* of a chunk that is cut */
#define MAX_ZEROS    ((size_t)64 << 10)

struct mr_png {
    struct mr_png_plain *plain;
    struct mr_buffer memory; /* a row, or the image if it is interlaced */
};

static int code_of(int message)
{
    switch (message) {
    case SPNG_EMEM:
        return -ENOMEM;
    case SPNG_EOVERFLOW:
        return -EFBIG;
    case SPNG_IO_EOF:
    case SPNG_EIDAT_TOO_SHORT:
    case SPNG_EOF:
        return -ENODATA;
    case SPNG_ECHUNK_UNKNOWN_CRITICAL:
        return -ENOTSUP;
    default:
        return -EBADMSG;
    }
}

static int fail(const struct mr_frame *f, int message)
{
    return mr_fail(f->error, code_of(message), "PNG: %s", spng_strerror(message));
}

/* What is left of a file that may end early.  libspng wants all bytes that it asks for, so there
 * are some zeros after the end: the last rows come out before inflate trips over them. */
struct tail {
    const uint8_t *bytes;
    size_t len, n_zeros;
};

static int read_tail(spng_ctx *ctx, void *user, void *out, size_t n)
{
    struct tail *t = user;
    size_t have = n < t->len ? n : t->len;
    if (n - have > t->n_zeros)
        return SPNG_IO_EOF;
    memcpy(out, t->bytes, have);
    memset((uint8_t *)out + have, 0, n - have);
    t->bytes += have;
    t->len -= have;
    t->n_zeros -= n - have;
    return 0;
}

/* Open the file and read its header.  Borrows `tail` for a tolerant frame. */
static int open_image(const struct mr_frame *f, struct tail *tail, spng_ctx **out,
                      struct spng_ihdr *header)
{
    spng_ctx *ctx = spng_ctx_new(0);
    if (!ctx)
        return mr_fail(f->error, -ENOMEM, "no memory for a PNG decoder");
    int tolerant = f->opts->accept_truncated;
    size_t chunk = f->len + (tolerant ? MAX_MISSING : 0);
    *tail = (struct tail){.bytes = f->bytes, .len = f->len, .n_zeros = MAX_ZEROS};
    int e = spng_set_crc_action(ctx, tolerant ? SPNG_CRC_USE : SPNG_CRC_ERROR, SPNG_CRC_DISCARD);
    if (!e)
        e = spng_set_chunk_limits(ctx, chunk < INT32_MAX ? chunk : INT32_MAX, chunk + MAX_METADATA);
    if (!e)
        e = tolerant ? spng_set_png_stream(ctx, read_tail, tail)
                     : spng_set_png_buffer(ctx, f->bytes, f->len);
    if (!e)
        e = spng_get_ihdr(ctx, header);
    if (e) {
        spng_ctx_free(ctx);
        return fail(f, e);
    }
    *out = ctx;
    return 0;
}

/* Whether an error leaves pixels that the caller would take. */
static int is_acceptable(const struct mr_frame *f, int message)
{
    int code = code_of(message);
    return f->opts->accept_truncated && (code == -ENODATA || code == -EBADMSG);
}

/* Rows as they come, also those that the output has no use for: they may be damaged.  Rows that a
 * damaged file lacks are black. */
static int read_rows(spng_ctx *ctx, const struct mr_frame *f, const struct spng_ihdr *h,
                     struct mr_buffer *memory)
{
    size_t row_bytes = (size_t)h->width * 3;
    int r = mr_buffer_reserve(memory, row_bytes);
    if (r)
        return mr_fail(f->error, r, "no memory for a row of %u pixels", h->width);
    int e = spng_decode_image(ctx, NULL, 0, SPNG_FMT_RGB8, SPNG_DECODE_PROGRESSIVE);
    if (e)
        return fail(f, e);
    for (uint32_t y = 0; y < h->height; y++) {
        if (!e)
            e = spng_decode_row(ctx, memory->data, row_bytes);
        if (e == SPNG_EOI) /* this was the last row */
            e = 0;
        if (e && !is_acceptable(f, e))
            return fail(f, e);
        if (e)
            memset(memory->data, 0, row_bytes);
        mr_frame_put_row(f, y, memory->data);
    }
    return 0;
}

/* The whole image, then its rows. */
static int read_interlaced(spng_ctx *ctx, const struct mr_frame *f, const struct spng_ihdr *h,
                           struct mr_buffer *memory)
{
    size_t row_bytes = (size_t)h->width * 3, bytes = row_bytes * h->height;
    int r = mr_buffer_reserve(memory, bytes);
    if (r)
        return mr_fail(f->error, r, "no memory for %u x %u pixels", h->width, h->height);
    memset(memory->data, 0, bytes);
    int e = spng_decode_image(ctx, memory->data, bytes, SPNG_FMT_RGB8, 0);
    if (e && !is_acceptable(f, e))
        return fail(f, e);
    for (uint32_t y = 0; !mr_resizer_done(f->resizer); y++)
        mr_frame_put_row(f, y, memory->data + y * row_bytes);
    return 0;
}

static int run_spng(struct mr_png *p, const struct mr_frame *f)
{
    spng_ctx *ctx = NULL;
    struct tail tail;
    struct spng_ihdr h;
    struct mr_region region;
    int r = open_image(f, &tail, &ctx, &h);
    if (r)
        return r;
    r = mr_frame_region(f, h.width, h.height, &region);
    if (!r)
        r = mr_frame_begin_rows(f, h.width, h.height, &region);
    if (!r)
        r = h.interlace_method ? read_interlaced(ctx, f, &h, &p->memory)
                               : read_rows(ctx, f, &h, &p->memory);
    spng_ctx_free(ctx);
    return r;
}

int mr_png_run(struct mr_png *p, const struct mr_frame *f)
{
    int r = mr_png_plain_run(p->plain, f);
    return r == MR_PNG_UNUSUAL ? run_spng(p, f) : r;
}

int mr_png_new(struct mr_png **out)
{
    struct mr_png *p = calloc(1, sizeof *p);
    int r = p ? mr_png_plain_new(&p->plain) : -ENOMEM;
    if (r) {
        mr_png_free(p);
        return r;
    }
    *out = p;
    return 0;
}

void mr_png_free(struct mr_png *p)
{
    if (!p)
        return;
    mr_png_plain_free(p->plain);
    mr_buffer_fini(&p->memory);
    free(p);
}

int mr_png_probe(const struct mr_frame *f, struct mr_image_info *out)
{
    static const unsigned components[] = {[0] = 1, [2] = 3, [3] = 1, [4] = 2, [6] = 4};
    spng_ctx *ctx = NULL;
    struct tail tail;
    struct spng_ihdr h;
    int r = open_image(f, &tail, &ctx, &h);
    if (r)
        return r;
    spng_ctx_free(ctx);
    *out = (struct mr_image_info){
        .format = MR_IMAGE_PNG,
        .width = h.width,
        .height = h.height,
        .components = components[h.color_type],
        .bits = h.bit_depth,
        .progressive = h.interlace_method != 0,
    };
    return 0;
}
