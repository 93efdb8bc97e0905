/* kernels.h - the inner loops of resizing, once per instruction set, all with the same results.
 *
 * Numbers: samples are 8 bits; between the steps a value is 16 bits with 7 of them fraction, 0 to
 * 255 * 128; weights have 14 bits (resize_axis.h).  Only the last step to f32 uses floating point:
 * one multiplication and one addition, each rounded (the build forbids fusing them). */
#ifndef MR_KERNELS_H
#define MR_KERNELS_H

#include "resize_axis.h"

#include <millrace/image.h>

#define MR_VALUE_MAX (255 * 128)
/* Loops may read and write past the end of a row as far as the next multiple of this. */
#define MR_ROW_ALIGN 64

/* Where an output row goes and how values become floats. */
struct mr_row_out {
    void *at[3]; /* NCHW: the row of each colour; NHWC: only at[0] */
    uint32_t n;  /* pixels */
    int stream;  /* addresses are 64-byte aligned and nobody reads them soon */
    float scale[3], bias[3];
};

typedef void mr_store_fn(const int16_t *const rgb[3], const struct mr_row_out *out);

struct mr_kernels {
    const char *name;
    /* out[i] = sum over t of rows[t][i] * weights[t], for first <= i < end.  2 * n_pairs rows; the
     * weights add up to MR_WEIGHT_ONE. */
    void (*blend_rows)(const uint8_t *const *rows, const int16_t *weights, uint32_t n_pairs,
                       uint32_t first, uint32_t end, int16_t *out);
    /* out[x] = sum over t of in[start[x] + t] * weight[x][t], for all outputs of the axis, which
     * has MR_AXIS_LANES lanes.  `in` is readable for 64 values past the last tap. */
    void (*blend_columns)(const int16_t *in, const struct mr_axis *axis, int16_t *out);
    /* The same as blend_rows for n_taps rows of values, from 0 to n - 1. */
    void (*blend_values)(const int16_t *const *rows, const int16_t *weights, uint32_t n_taps,
                         uint32_t n, int16_t *out);
    /* JFIF's YCbCr to RGB in place, clamped. */
    void (*ycc_to_rgb)(int16_t *y_r, int16_t *cb_g, int16_t *cr_b, uint32_t n);
    /* RGB triples to three rows. */
    void (*split_rgb)(const uint8_t *rgb, uint32_t n, uint8_t *const planes[3]);
    /* After the last store of an image: stores that bypassed the cache become visible before any
     * that follow, so that a slot may be handed to another thread. */
    void (*finish)(void);
    mr_store_fn *store_f32_nchw, *store_f32_nhwc, *store_u8_nchw, *store_u8_nhwc;
};

/* NULL when this processor cannot run them. */
const struct mr_kernels *mr_kernels_pick(enum mr_image_simd simd);

/* blend_values for all instruction sets: only pictures of odd shapes need it. */
void mr_blend_values(const int16_t *const *rows, const int16_t *weights, uint32_t n_taps,
                     uint32_t n, int16_t *out);

/* Each instruction set's own; mr_kernels_pick decides whether they may run. */
extern const struct mr_kernels mr_kernels_scalar;
#ifdef __x86_64__
extern const struct mr_kernels mr_kernels_avx2;
extern const struct mr_kernels mr_kernels_avx512;
#endif

#endif
