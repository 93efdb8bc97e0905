/* jpeg_kernels.h - the loops of the JPEG decoder that exist once per instruction set, all with the
 * same results. */
#ifndef MR_JPEG_KERNELS_H
#define MR_JPEG_KERNELS_H

#include "jpeg_bytes.h"
#include "jpeg_scan.h"
#include "kernels.h"

/* Inverse transform of four blocks that lie side by side:
 *
 *     unit[row * 32 + block * 8 + column]     coefficients, int16_t, 64-byte aligned; all zero
 *                                             afterwards
 *     quantiser[row * 8 + column]
 *     out[row * stride + block * 8 + column]  samples
 *
 *     last[block]                             place in the zigzag of the last coefficient: beyond
 *                                             it all is zero
 *
 * What is computed is said in jpeg_idct.c. */
typedef void mr_idct_fn(int16_t *unit, const int16_t *quantiser,
                        const uint8_t last[MR_JPEG_UNIT_BLOCKS], uint8_t *out, size_t stride);

/* The later of two blocks' last places, and the latest of a unit's. */
static inline uint8_t mr_later(uint8_t a, uint8_t b)
{
    return a > b ? a : b;
}

static inline uint8_t mr_latest(const uint8_t last[MR_JPEG_UNIT_BLOCKS])
{
    return mr_later(mr_later(last[0], last[1]), mr_later(last[2], last[3]));
}

struct mr_jpeg_kernels {
    mr_copy_plain_fn *copy_plain;
    mr_decode_blocks_fn *decode_blocks;
    mr_idct_fn *idct;
};

/* Those of the same instruction set as the loops of resizing. */
const struct mr_jpeg_kernels *mr_jpeg_kernels_pick(const struct mr_kernels *resizing);

mr_copy_plain_fn mr_copy_plain_scalar;
mr_idct_fn mr_idct_scalar;
#ifdef __x86_64__
mr_copy_plain_fn mr_copy_plain_avx2, mr_copy_plain_avx512;
mr_idct_fn mr_idct_avx2, mr_idct_avx512;
#endif

/* What does not fit into 16 bits between the passes: libjpeg-turbo's vectors saturate on x86 and
 * drop the upper bits on ARM.  No image gives such values. */
#ifdef __aarch64__
#define MR_IDCT_WRAPS 1
#else
#define MR_IDCT_WRAPS 0
#endif

/* One block of a unit, by the definition: slow, and right for any coefficients.  Leaves them. */
void mr_idct_block(const int16_t *in, const int16_t *quantiser, uint8_t *out, size_t stride);

/* The constants of the inverse transform: 0.541196100 and so on times 8192, and their sums that
 * jpeg_idct.c explains. */
enum {
    MR_F_0_298 = 2446,
    MR_F_0_390 = 3196,
    MR_F_0_541 = 4433,
    MR_F_0_765 = 6270,
    MR_F_0_899 = 7373,
    MR_F_1_175 = 9633,
    MR_F_1_501 = 12299,
    MR_F_1_847 = 15137,
    MR_F_1_961 = 16069,
    MR_F_2_053 = 16819,
    MR_F_2_562 = 20995,
    MR_F_3_072 = 25172,
};
#define MR_IDCT_FIRST_SHIFT  11   /* of the pass over columns: 13 bits of constants less 2 kept */
#define MR_IDCT_SECOND_SHIFT 18   /* of the pass over rows: 13 bits, the 2 and 3 of the transform */
#define MR_IDCT_LOW          9    /* the last place in the zigzag within the upper left 4 x 4 */
#define MR_IDCT_PLAIN        8191 /* a first row within this takes the same way in every block */

#endif
