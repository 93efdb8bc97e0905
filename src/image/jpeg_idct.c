/* jpeg_idct.c - the inverse transform of one block: the definition that all others must match.
 *
 * It is the accurate integer transform ("islow") of libjpeg in the form that libjpeg-turbo's vector
 * code has, so that samples are equal to those bit for bit, whatever the coefficients are:
 *
 *     columns   x = coefficient * quantiser                       16 bits, wraps
 *               eight outputs, constants of 13 bits               32 bits
 *               rounded, shifted by 11, so that 2 bits are kept   16 bits, saturates (ARM: wraps)
 *     rows      the same, shifted by 18                           8 bits, saturates; + 128
 *
 * For coefficients that come from an image nothing wraps or saturates before the last step.
 *
 * One pass, with c(k) = cos(k pi / 16) * sqrt(2):
 *
 *     even   (x0 + x4), (x0 - x4)                     16 bits, wrap, then times 8192
 *            x2 * c2 + x6 * c6,  x2 * c6 - x6 * c2    as x2 * (0.541 + 0.765) + x6 * 0.541, ...
 *     odd    z3 = x7 + x3, z4 = x5 + x1               16 bits, wrap
 *            z3' = z3 * (1.175 - 1.961) + z4 * 1.175
 *            z4' = z3 * 1.175 + z4 * (1.175 - 0.390)
 *            o0 = x7 * (0.298 - 0.899) - x1 * 0.899 + z3'      for outputs 3 and 4
 *            o1 = x5 * (2.053 - 2.562) - x3 * 2.562 + z4'      for outputs 2 and 5
 *            o2 = x3 * (3.072 - 2.562) - x5 * 2.562 + z3'      for outputs 1 and 6
 *            o3 = x1 * (1.501 - 0.899) - x7 * 0.899 + z4'      for outputs 0 and 7
 *     out    even + odd, and in reverse order even - odd
 *
 * Loeffler, Ligtenberg and Moschytz' algorithm with its products multiplied out, such that two of
 * them are one multiply-and-add of vectors.
 *
 * One shortcut of libjpeg-turbo's shows: when rows 1 to 7 of a block are zero, the pass over
 * columns is a shift of row 0 by 2 bits, which wraps where the long way saturates.  Vectors do not
 * take it; where a value of row 0 is so large that it matters, the block ends up in this file.  So
 * do all blocks that saturate between the passes, when there are no vectors of a known kind. */
#include "jpeg_kernels.h"

/* Sums and products wrap, which signed ones may not. */
static uint32_t times(int32_t x, int32_t c)
{
    return (uint32_t)x * (uint32_t)c;
}

/* One pass with as few products as there can be: each sum above is (a + b) * c or the like. */
static inline void pass(const int16_t x[8], int shift, int32_t out[8])
{
    uint32_t round = 1u << (shift - 1);
    uint32_t sum = times((int16_t)(x[0] + x[4]), 8192) + round;
    uint32_t difference = times((int16_t)(x[0] - x[4]), 8192) + round;
    uint32_t both = times(x[2] + x[6], MR_F_0_541);
    uint32_t t3 = both + times(x[2], MR_F_0_765), t2 = both - times(x[6], MR_F_1_847);
    uint32_t e0 = sum + t3, e1 = difference + t2, e2 = difference - t2, e3 = sum - t3;

    int16_t z3 = (int16_t)(x[7] + x[3]), z4 = (int16_t)(x[5] + x[1]);
    uint32_t z5 = times(z3 + z4, MR_F_1_175);
    uint32_t r3 = z5 - times(z3, MR_F_1_961), r4 = z5 - times(z4, MR_F_0_390);
    uint32_t z1 = times(x[7] + x[1], MR_F_0_899), z2 = times(x[5] + x[3], MR_F_2_562);
    uint32_t o0 = times(x[7], MR_F_0_298) - z1 + r3, o1 = times(x[5], MR_F_2_053) - z2 + r4;
    uint32_t o2 = times(x[3], MR_F_3_072) - z2 + r3, o3 = times(x[1], MR_F_1_501) - z1 + r4;
    out[0] = (int32_t)(e0 + o3) >> shift;
    out[7] = (int32_t)(e0 - o3) >> shift;
    out[1] = (int32_t)(e1 + o2) >> shift;
    out[6] = (int32_t)(e1 - o2) >> shift;
    out[2] = (int32_t)(e2 + o1) >> shift;
    out[5] = (int32_t)(e2 - o1) >> shift;
    out[3] = (int32_t)(e3 + o0) >> shift;
    out[4] = (int32_t)(e3 - o0) >> shift;
}

static int16_t narrow(int32_t v)
{
    if (MR_IDCT_WRAPS || __builtin_expect(v == (int16_t)v, 1))
        return (int16_t)v;
    return v < 0 ? INT16_MIN : INT16_MAX;
}

/* Column c, to work[row * 8 + c]; nonzero when only its first coefficient may not be zero. */
static int column(const int16_t *in, const int16_t *quantiser, int c, int16_t work[64])
{
    int16_t x[8];
    int32_t y[8];
    int below = in[32 + c] | in[64 + c] | in[96 + c] | in[128 + c] | in[160 + c] | in[192 + c] |
                in[224 + c];
    if (!below) {
        int16_t v = narrow(4 * (int16_t)(in[c] * quantiser[c]));
        for (int row = 0; row < 8; row++)
            work[row * 8 + c] = v;
        return 1;
    }
    for (int row = 0; row < 8; row++)
        x[row] = (int16_t)(in[row * 32 + c] * quantiser[row * 8 + c]);
    pass(x, MR_IDCT_FIRST_SHIFT, y);
    for (int row = 0; row < 8; row++)
        work[row * 8 + c] = narrow(y[row]);
    return 0;
}

static void columns(const int16_t *in, const int16_t *quantiser, int16_t work[64])
{
    int n_flat = 0;
    for (int c = 0; c < 8; c++)
        n_flat += column(in, quantiser, c, work);
    for (int i = 0; n_flat == 8 && i < 64; i++) /* the shortcut that wraps */
        work[i] = (int16_t)((uint32_t)(in[i % 8] * quantiser[i % 8]) << 2);
}

static uint8_t to_sample(int32_t v)
{
    if (__builtin_expect(v >= -128 && v <= 127, 1))
        return (uint8_t)(v + 128);
    return v < 0 ? 0 : 255;
}

void mr_idct_block(const int16_t *in, const int16_t *quantiser, uint8_t *out, size_t stride)
{
    int16_t work[64];
    int32_t y[8];
    columns(in, quantiser, work);
    for (int row = 0; row < 8; row++, out += stride) {
        pass(work + row * 8, MR_IDCT_SECOND_SHIFT, y);
        for (int c = 0; c < 8; c++)
            out[c] = to_sample(y[c]);
    }
}
