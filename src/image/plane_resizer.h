/* plane_resizer.h - planes of samples in, row by row; finished pixels out, into the slot.
 *
 *   mr_resizer_begin(r, &picture)
 *   until mr_resizer_done(r):
 *       write the next rows of every plane to mr_resizer_row(r, plane, row)
 *       mr_resizer_advance(r)
 */
#ifndef MR_PLANE_RESIZER_H
#define MR_PLANE_RESIZER_H

/* The kernels multiply at most so often for each sample of a plane that is shown and each value
 * that is written, where the values of a row count in whole groups of MR_AXIS_LANES. */
#define MR_RESIZER_MOST_WORK 32

#include "kernels.h"

#include <millrace/image.h>

/* What part of the image is shown, in pixels. */
struct mr_region {
    uint32_t x, y, width, height;
    int flip;
};

enum mr_colour {
    MR_COLOUR_GREY, /* one plane */
    MR_COLOUR_YCC,  /* JFIF's */
    MR_COLOUR_RGB,
};

struct mr_plane_shape {
    uint32_t cols, rows;   /* samples that are part of the image */
    uint32_t stored_cols;  /* samples that are written to a row, cols or more */
    uint32_t stripe_rows;  /* rows that arrive at once */
    uint32_t h_num, h_den; /* samples per pixel */
    uint32_t v_num, v_den;
    /* enum mr_upsampling; TRIANGLE is used on the axes that have half as many samples as pixels */
    uint32_t upsampling;
};

struct mr_picture {
    enum mr_colour colour; /* says how many planes there are */
    struct mr_plane_shape planes[3];
    uint32_t width, height;  /* pixels, after shrinking */
    uint32_t shrink;         /* what the decoder shrank the image by already */
    struct mr_region region; /* in pixels before that */
    void *slot;
};

struct mr_resizer_plane {
    struct mr_plane_shape shape;
    struct mr_axis *across, *down; /* may be another plane's */
    struct mr_axis own_across, own_down;
    struct mr_buffer ring; /* the last n_ring rows that arrived */
    uint32_t n_ring;
    size_t stride;
    int columns_first;
    struct mr_buffer narrow_ring; /* with columns_first: the same rows at the output's width */
};

struct mr_resizer {
    struct mr_decoder_opts opts; /* with defaults filled in */
    const struct mr_kernels *kernels;
    mr_store_fn *store;
    struct mr_row_out out;

    enum mr_colour colour;
    unsigned n_planes;
    struct mr_resizer_plane planes[3];
    uint32_t n_stripes; /* arrived */
    uint32_t next;      /* output row */
    uint8_t *slot;

    struct mr_buffer blended;  /* one row of 16-bit values, all columns */
    struct mr_buffer narrow;   /* the output row of each plane */
    struct mr_buffer tap_rows; /* pointers to the rows of one output row */
    struct mr_buffer due;      /* stripes after which each output row can be made */
    uint64_t spent_ns;         /* in advance, since begin */
};

/* Borrows nothing.  `opts` must be valid and complete. */
void mr_resizer_init(struct mr_resizer *r, const struct mr_decoder_opts *opts,
                     const struct mr_kernels *kernels);
void mr_resizer_fini(struct mr_resizer *r);

/* 0 or -ENOMEM.  Memory is that of a few rows, unless an output pixel is the mean of many. */
int mr_resizer_begin(struct mr_resizer *r, const struct mr_picture *p);

/* Where to write row `row`, which must be one of the next stripe's.  The rows of a stripe lie the
 * plane's `stride` apart. */
uint8_t *mr_resizer_row(struct mr_resizer *r, unsigned plane, uint32_t row);

/* Whether any sample of the next stripe matters; if not, it need not be written. */
int mr_resizer_wants_stripe(const struct mr_resizer *r);

/* The next stripe_rows of every plane have been written: make what can be made of them. */
void mr_resizer_advance(struct mr_resizer *r);

static inline int mr_resizer_done(const struct mr_resizer *r)
{
    return r->next == r->opts.height;
}

#endif
