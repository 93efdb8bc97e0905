/* resize_axis.h - which samples of a plane make an output pixel along one axis, and their weights.
 */
#ifndef MR_RESIZE_AXIS_H
#define MR_RESIZE_AXIS_H

#include "buffer.h"

#include <millrace/image.h>

#define MR_WEIGHT_ONE 16384 /* weights are fixed point with 14 bits and add up to this */
#define MR_AXIS_LANES 16    /* outputs whose weights lie side by side */

/* How a pixel's value comes from samples that are fewer than the pixels. */
enum mr_upsampling {
    MR_UPSAMPLE_REPEAT,   /* a sample stands for all pixels it covers */
    MR_UPSAMPLE_TRIANGLE, /* twice as many pixels: 3/4 of the nearer sample, 1/4 of the other */
};

/* What an axis is computed from; compared with memcmp, so no padding and all of it set. */
struct mr_axis_spec {
    uint32_t n_out;
    uint32_t begin, length; /* the part of the image that is shown, in pixels; length is not 0 */
    uint32_t shrink;        /* the decoder already shrank the image by this */
    uint32_t n_pixels;      /* that the shrunken image has */
    uint32_t n_samples;     /* that the plane has, */
    uint32_t num, den;      /* which is num/den a pixel: 1/2 for halved chroma */
    uint32_t upsampling;    /* enum mr_upsampling */
    uint32_t resize;        /* enum mr_image_resize */
    uint32_t flip;          /* output 0 is the last one */
    uint32_t lanes;         /* 1, or MR_AXIS_LANES */
};

struct mr_axis {
    struct mr_axis_spec spec; /* n_out is 0 until it is built */
    uint32_t n_pairs;         /* pairs of taps of the output that has most */
    uint32_t first, end;      /* samples with weight: first .. end - 1 */
    int narrow;               /* every group's taps lie within 64 samples of its `base` */
    const uint32_t *start;    /* [n_out, rounded up to lanes] first tap */
    const uint32_t *n_taps;   /* [the same] at least 1; the weights after them are 0 */
    /* [n_out / lanes][n_pairs][lanes][2]: pairs of weights, those of `lanes` outputs together */
    const int16_t *weights;
    /* With lanes = 16.  [n_out / 16] the lowest start of a group, and [n_out / 16][16][2] where a
     * pair of taps lies relative to it. */
    const uint32_t *base;
    const uint16_t *near_index;
    /* With lanes = 16.  Two neighbouring outputs are a couple.  `close`: the first pairs of taps of
     * every couple lie within 16 bytes of 16-bit values.  [n_out / 2] where these bytes begin, and
     * [n_out / 2][16] byte shuffles that move them to one half of 16 bytes and make the other half
     * 0.  Of four couples, 0 and 2 go to the lower half and 1 and 3 to the upper half; the shuffles
     * lie in the order 0, 2, 1, 3. */
    int close;
    const uint32_t *couple_base;
    const uint8_t *couple_shuffle;
    int32_t *pixel_weights, *sample_weights; /* of one output, while building */
    struct mr_buffer memory;
};

/* 0 or -ENOMEM.  Nothing is computed when `spec` is the one of the last call. */
int mr_axis_build(struct mr_axis *a, const struct mr_axis_spec *spec);
void mr_axis_fini(struct mr_axis *a);

#endif
