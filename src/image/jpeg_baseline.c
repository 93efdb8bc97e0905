/* jpeg_baseline.c - drive the stages of our own JPEG decoder.
 *
 *     file --header--> tables
 *          --bytes---> a window of the scan without stuffing         jpeg_bytes.c
 *          --scan----> coefficients of four MCUs, 2 to 5 KB          jpeg_scan.c
 *          --idct----> samples, into the rings of the resizer        jpeg_idct.c, jpeg_avx*.c
 *          --resize--> output rows, as soon as a row of MCUs is whole  plane_resizer.c
 *
 * Everything between the file and the slot stays in the first two levels of the cache, and memory
 * does not depend on the height of the image.
 *
 * For a crop, the rows of MCUs above and below it are entropy-decoded and dropped; within a row,
 * the transforms to the left and to the right of it are not computed.  What lies below is read so
 * that a damaged file is one whatever part of it is shown.
 *
 * Whatever is odd ends in "1": the caller gives the file to libjpeg-turbo from the start.  So the
 * answer to a damaged file is libjpeg-turbo's, word for word, and an odd file costs at most one
 * pass of ours more.  What is taken gives the planes that libjpeg-turbo would have given, bit for
 * bit, and as the resizer is the same, so are the pixels. */
#include "jpeg_baseline.h"

#include "errtext.h"
#include "jpeg_kernels.h"

#include <string.h>

struct mr_own_jpeg {
    struct mr_jpeg_scan scan;
    struct mr_jpeg_header header;
    const struct mr_jpeg_kernels *kernels;
    uint8_t *rows[MR_JPEG_COMPONENTS]; /* of each plane, the first of the row of MCUs */
    struct mr_buffer memory;           /* that this lies in: vectors want it aligned */
};

int mr_own_jpeg_new(const struct mr_kernels *kernels, struct mr_own_jpeg **out)
{
    struct mr_buffer memory = {0};
    int r = mr_buffer_reserve(&memory, sizeof(struct mr_own_jpeg));
    if (r)
        return r;
    struct mr_own_jpeg *b = (struct mr_own_jpeg *)memory.data; /* from the system: all zero */
    b->kernels = mr_jpeg_kernels_pick(kernels);
    b->memory = memory;
    *out = b;
    return 0;
}

void mr_own_jpeg_free(struct mr_own_jpeg *b)
{
    if (!b)
        return;
    mr_jpeg_scan_fini(&b->scan);
    struct mr_buffer memory = b->memory;
    mr_buffer_fini(&memory);
}

/* Whether the other decoder would halve the image in its inverse transform, for `area`.  Chroma may
 * still keep it from that; it knows. */
static int may_shrink(const struct mr_frame *f, const struct mr_jpeg_header *h,
                      const struct mr_region *g)
{
    const uint32_t pixels[2] = {h->width, h->height};
    const uint32_t half[2] = {(h->width + 1) / 2, (h->height + 1) / 2};
    return f->opts->resize == MR_RESIZE_AREA && mr_frame_has_twice(f, g, half, pixels);
}

static uint32_t divide_up(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

static void describe_planes(const struct mr_jpeg_header *h, struct mr_picture *pic)
{
    for (unsigned i = 0; i < h->n_components; i++) {
        const struct mr_jpeg_component *c = &h->component[i];
        struct mr_plane_shape *s = &pic->planes[i];
        *s = (struct mr_plane_shape){
            .cols = divide_up(h->width * c->h, h->max_h),
            .rows = divide_up(h->height * c->v, h->max_v),
            /* Whole groups of MCUs are written. */
            .stored_cols = divide_up(h->n_mcus, MR_JPEG_GROUP) * MR_JPEG_GROUP * c->h * 8,
            .stripe_rows = c->v * 8u,
            .h_num = c->h,
            .h_den = h->max_h,
            .v_num = c->v,
            .v_den = h->max_v,
        };
        s->upsampling = mr_jpeg_upsampling(s);
    }
}

/* The inverse transforms of one group of MCUs, the first of which is number `mcu` of its row. */
static void transform_group(struct mr_own_jpeg *b, const struct mr_resizer *r, uint32_t mcu)
{
    const struct mr_jpeg_header *h = &b->header;
    for (unsigned i = 0; i < h->n_components; i++) {
        const struct mr_jpeg_component *c = &h->component[i];
        const struct mr_resizer_plane *p = &r->planes[i];
        unsigned unit = b->scan.first_unit[i];
        for (uint32_t v = 0; v < c->v; v++) {
            uint8_t *out = b->rows[i] + v * 8 * p->stride;
            for (uint32_t k = 0; k < c->h; k++, unit++) {
                uint32_t x = mcu * c->h * 8 + k * 32;
                if (x < p->across->end && x + 32 > p->across->first)
                    b->kernels->idct(b->scan.units[unit], h->quantiser[c->quantiser],
                                     b->scan.last[unit], out + x, p->stride);
                else
                    memset(b->scan.units[unit], 0, sizeof b->scan.units[unit]);
                memset(b->scan.last[unit], 0, sizeof b->scan.last[unit]);
            }
        }
    }
}

/* One row of MCUs, transformed only if its samples matter. */
static int run_row(struct mr_own_jpeg *b, struct mr_resizer *r, uint32_t row)
{
    int wanted = mr_resizer_wants_stripe(r);
    for (unsigned i = 0; i < r->n_planes; i++)
        b->rows[i] = mr_resizer_row(r, i, row * b->header.component[i].v * 8);
    uint32_t n_mcus = b->header.n_mcus;
    for (uint32_t mcu = 0; mcu < n_mcus; mcu += MR_JPEG_GROUP) {
        uint32_t n = n_mcus - mcu < MR_JPEG_GROUP ? n_mcus - mcu : MR_JPEG_GROUP;
        if (mr_jpeg_scan_group(&b->scan, n))
            return MR_JPEG_ODD;
        if (wanted)
            transform_group(b, r, mcu);
        else
            mr_jpeg_scan_drop(&b->scan);
    }
    return MR_JPEG_GOOD;
}

int mr_own_jpeg_run(struct mr_own_jpeg *b, const struct mr_frame *f)
{
    struct mr_jpeg_header *h = &b->header;
    struct mr_picture pic = {.shrink = 1, .slot = f->slot};
    if (f->opts->exact || !mr_jpeg_header_parse(f->bytes, f->len, h) ||
        (uint64_t)h->width * h->height > f->opts->max_pixels)
        return MR_JPEG_ODD;
    mr_frame_region(f, h->width, h->height, &pic.region);
    if (may_shrink(f, h, &pic.region))
        return MR_JPEG_ODD;
    pic.colour = h->n_components == 1 ? MR_COLOUR_GREY : MR_COLOUR_YCC;
    pic.width = h->width;
    pic.height = h->height;
    describe_planes(h, &pic);
    int r = mr_jpeg_scan_begin(&b->scan, h, f->bytes, f->len, b->kernels);
    if (!r)
        r = mr_resizer_begin(f->resizer, &pic);
    if (r < 0)
        return mr_fail(f->error, r, "no memory for the planes");
    for (uint32_t row = 0; !r && row < h->n_mcu_rows; row++) {
        r = run_row(b, f->resizer, row);
        if (!r)
            mr_resizer_advance(f->resizer);
    }
    return r ? r : mr_jpeg_scan_end(&b->scan);
}
