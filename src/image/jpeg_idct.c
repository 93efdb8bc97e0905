/* jpeg_idct.c - the inverse transform in plain C: the definition that the vectors must match.
 *
 * It is the accurate integer transform ("islow") of libjpeg in the form that libjpeg-turbo's vector
 * code has, so that samples are equal to those bit for bit, whatever the coefficients are:
 *
 *     columns   x = coefficient * quantiser                       16 bits, wraps
 *               eight outputs, constants of 13 bits               32 bits
 *               rounded, shifted by 11, so that 2 bits are kept   16 bits, saturates
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
 * take it; they hand units over to this file when a value of row 0 is so large that it matters. */
#include "jpeg_kernels.h"

#include <string.h>

static int16_t saturate16(int32_t v)
{
    return (int16_t)(v < INT16_MIN ? INT16_MIN : v > INT16_MAX ? INT16_MAX : v);
}

static int32_t descale(uint32_t v, int shift)
{
    return (int32_t)(v + (1u << (shift - 1))) >> shift;
}

/* Products of 16 bits in 32 that may wrap. */
static uint32_t times(int16_t x, int c)
{
    return (uint32_t)(x * c);
}

static void pass(const int16_t x[8], int shift, int32_t out[8])
{
    uint32_t sum = (uint32_t)((int16_t)(x[0] + x[4]) * 8192);
    uint32_t difference = (uint32_t)((int16_t)(x[0] - x[4]) * 8192);
    uint32_t t3 = times(x[2], MR_F_0_541 + MR_F_0_765) + times(x[6], MR_F_0_541);
    uint32_t t2 = times(x[2], MR_F_0_541) + times(x[6], MR_F_0_541 - MR_F_1_847);
    uint32_t even[4] = {sum + t3, difference + t2, difference - t2, sum - t3};

    int16_t z3 = (int16_t)(x[7] + x[3]), z4 = (int16_t)(x[5] + x[1]);
    uint32_t r3 = times(z3, MR_F_1_175 - MR_F_1_961) + times(z4, MR_F_1_175);
    uint32_t r4 = times(z3, MR_F_1_175) + times(z4, MR_F_1_175 - MR_F_0_390);
    uint32_t odd[4] = {
        times(x[1], MR_F_1_501 - MR_F_0_899) + times(x[7], -MR_F_0_899) + r4,
        times(x[3], MR_F_3_072 - MR_F_2_562) + times(x[5], -MR_F_2_562) + r3,
        times(x[5], MR_F_2_053 - MR_F_2_562) + times(x[3], -MR_F_2_562) + r4,
        times(x[7], MR_F_0_298 - MR_F_0_899) + times(x[1], -MR_F_0_899) + r3,
    };
    for (int i = 0; i < 4; i++) {
        out[i] = descale(even[i] + odd[i], shift);
        out[7 - i] = descale(even[i] - odd[i], shift);
    }
}

static int is_zero_below(const int16_t *in)
{
    int any = 0;
    for (int row = 1; row < 8; row++)
        for (int c = 0; c < 8; c++)
            any |= in[row * 32 + c];
    return !any;
}

/* The pass over columns; `rows` are those that may have coefficients. */
static void columns(const int16_t *in, const int16_t *quantiser, int rows, int16_t work[64])
{
    if (is_zero_below(in)) {
        for (int c = 0; c < 8; c++) {
            int16_t x = (int16_t)(in[c] * quantiser[c]);
            for (int row = 0; row < 8; row++)
                work[row * 8 + c] = (int16_t)((uint16_t)x << 2);
        }
        return;
    }
    for (int c = 0; c < 8; c++) {
        int16_t x[8] = {0};
        int32_t y[8];
        int any = 0;
        for (int row = 0; row < rows; row++) {
            x[row] = (int16_t)(in[row * 32 + c] * quantiser[row * 8 + c]);
            any |= x[row];
        }
        if (!any) {
            for (int row = 0; row < 8; row++)
                work[row * 8 + c] = 0;
            continue;
        }
        pass(x, MR_IDCT_FIRST_SHIFT, y);
        for (int row = 0; row < 8; row++)
            work[row * 8 + c] = saturate16(y[row]);
    }
}

static uint8_t to_sample(int32_t v)
{
    return (uint8_t)((v < -128 ? -128 : v > 127 ? 127 : v) + 128);
}

static void transform_block(const int16_t *in, const int16_t *quantiser, int rows, uint8_t *out,
                            size_t stride)
{
    int16_t work[64];
    int32_t y[8];
    columns(in, quantiser, rows, work);
    for (int row = 0; row < 8; row++, out += stride) {
        pass(work + row * 8, MR_IDCT_SECOND_SHIFT, y);
        for (int c = 0; c < 8; c++)
            out[c] = to_sample(y[c]);
    }
}

/* Only the DC value: all samples are alike. */
static void flat_block(int16_t x, uint8_t *out, size_t stride)
{
    uint8_t v = to_sample(((int16_t)((uint16_t)x << 2) + 16) >> 5);
    for (int row = 0; row < 8; row++)
        memset(out + (size_t)row * stride, v, 8);
}

void mr_idct_scalar(int16_t *unit, const int16_t *quantiser, unsigned last, uint8_t *out,
                    size_t stride)
{
    int rows = last == 0 ? 1 : last <= MR_IDCT_LOW ? 4 : 8;
    for (int block = 0; block < 4; block++) {
        if (last == 0)
            flat_block((int16_t)(unit[block * 8] * quantiser[0]), out + block * 8, stride);
        else
            transform_block(unit + block * 8, quantiser, rows, out + block * 8, stride);
    }
    memset(unit, 0, (size_t)rows * 32 * sizeof *unit);
}
