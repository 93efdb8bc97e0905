/* jpeg_idct_loops.c - the inverse transform in plain C that compilers turn into vectors.
 *
 * Every x86-64 has 128-bit vectors, every aarch64 too, and a compiler uses them for a loop whose
 * iterations are alike.  So a pass is a loop over eight columns, with every product one of 16 bits
 * by 16 that gives 32.  Between the passes, and after them, the block is transposed.
 *
 *     rows of the unit -> pass -> 8 rows of 16 bits -> transpose -> pass -> samples -> transpose
 *
 * jpeg_idct.c says what is computed.  Here it takes the form of the vectors, with all products
 * multiplied out, so that nothing overflows: the constants by which the inputs of one output are
 * multiplied have magnitudes that add up to 64570 at the most (outputs 1, 2, 5 and 6), and 64570 *
 * 2^15 plus the rounding is below 2^31.
 *
 * What saturates between the passes in the definition is only detected here, and the block goes
 * there; no image gives such coefficients.  That also finds what the definition's one shortcut
 * shows: a block with a single row of which a value is beyond 13 bits.  On ARM both wrap, and
 * nothing needs to be found. */
#include "jpeg_kernels.h"
#include "unroll.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* A row or a column of a block; passes see it as an array. */
typedef int16_t eights __attribute__((vector_size(16), may_alias));
typedef int32_t fours __attribute__((vector_size(16)));
typedef int64_t twos __attribute__((vector_size(16)));

/* ---- one column ---- */

/* out[i] and out[7 - i], shifted, from the even and the odd half. */
INLINE void butterfly(int32_t even, int32_t odd, int shift, int i, int32_t out[8])
{
    out[i] = (even + odd) >> shift;
    out[7 - i] = (even - odd) >> shift;
}

INLINE void transform(const int16_t x[8], int shift, int32_t out[8])
{
    int32_t round = 1 << (shift - 1);
    int16_t x04 = (int16_t)(x[0] + x[4]), x0_4 = (int16_t)(x[0] - x[4]);
    int32_t sum = x04 * 8192 + round, difference = x0_4 * 8192 + round;
    int32_t t3 = x[2] * (MR_F_0_541 + MR_F_0_765) + x[6] * MR_F_0_541;
    int32_t t2 = x[2] * MR_F_0_541 + x[6] * (MR_F_0_541 - MR_F_1_847);

    int16_t z3 = (int16_t)(x[7] + x[3]), z4 = (int16_t)(x[5] + x[1]);
    int32_t r3 = z3 * (MR_F_1_175 - MR_F_1_961) + z4 * MR_F_1_175;
    int32_t r4 = z3 * MR_F_1_175 + z4 * (MR_F_1_175 - MR_F_0_390);
    int32_t o0 = x[7] * (MR_F_0_298 - MR_F_0_899) + x[1] * -MR_F_0_899 + r3;
    int32_t o1 = x[5] * (MR_F_2_053 - MR_F_2_562) + x[3] * -MR_F_2_562 + r4;
    int32_t o2 = x[3] * (MR_F_3_072 - MR_F_2_562) + x[5] * -MR_F_2_562 + r3;
    int32_t o3 = x[1] * (MR_F_1_501 - MR_F_0_899) + x[7] * -MR_F_0_899 + r4;
    butterfly(sum + t3, o3, shift, 0, out);
    butterfly(difference + t2, o2, shift, 1, out);
    butterfly(difference - t2, o1, shift, 2, out);
    butterfly(sum - t3, o0, shift, 3, out);
}

/* The same when x[4] to x[7] are zero: what is left of the constants, added up. */
INLINE void transform_low(const int16_t x[4], int shift, int32_t out[8])
{
    int32_t base = x[0] * 8192 + (1 << (shift - 1));
    int32_t t3 = x[2] * (MR_F_0_541 + MR_F_0_765), t2 = x[2] * MR_F_0_541;
    int32_t o0 = x[1] * (MR_F_1_175 - MR_F_0_899) + x[3] * (MR_F_1_175 - MR_F_1_961);
    int32_t o1 = x[1] * (MR_F_1_175 - MR_F_0_390) + x[3] * (MR_F_1_175 - MR_F_2_562);
    int32_t o2 = x[1] * MR_F_1_175 + x[3] * (MR_F_3_072 - MR_F_2_562 + MR_F_1_175 - MR_F_1_961);
    int32_t o3 = x[1] * (MR_F_1_501 - MR_F_0_899 + MR_F_1_175 - MR_F_0_390) + x[3] * MR_F_1_175;
    butterfly(base + t3, o3, shift, 0, out);
    butterfly(base + t2, o2, shift, 1, out);
    butterfly(base - t2, o1, shift, 2, out);
    butterfly(base - t3, o0, shift, 3, out);
}

INLINE void transform_n(const int16_t x[8], int n, int shift, int32_t out[8])
{
    if (n == 8)
        transform(x, shift, out);
    else
        transform_low(x, shift, out);
}

/* ---- passes ---- */

/* Columns, from `n` rows that are not zero.  Nonzero when a value does not fit into 16 bits. */
INLINE uint32_t first_pass(const int16_t *restrict in, const int16_t *restrict quantiser, int n,
                           int16_t *restrict out)
{
    uint32_t beyond = 0;
    for (int c = 0; c < 8; c++) {
        int16_t x[8];
        int32_t y[8];
        UNROLL(8)
        for (int row = 0; row < n; row++)
            x[row] = (int16_t)(in[row * 32 + c] * quantiser[row * 8 + c]);
        transform_n(x, n, MR_IDCT_FIRST_SHIFT, y);
        UNROLL(8)
        for (int row = 0; row < 8; row++) {
            beyond |= (uint32_t)(y[row] + 32768);
            out[row * 8 + c] = (int16_t)y[row];
        }
    }
    return beyond >> 16;
}

/* Rows, from `n` columns that are not zero, to samples.  After the shift 14 bits are left. */
INLINE void second_pass(const int16_t *restrict in, int n, int16_t *restrict out)
{
    for (int row = 0; row < 8; row++) {
        int16_t x[8];
        int32_t y[8];
        UNROLL(8)
        for (int c = 0; c < n; c++)
            x[c] = in[c * 8 + row];
        transform_n(x, n, MR_IDCT_SECOND_SHIFT, y);
        UNROLL(8)
        for (int c = 0; c < 8; c++) {
            int16_t v = (int16_t)y[c];
            v = v < -128 ? -128 : v;
            v = v > 127 ? 127 : v;
            out[c * 8 + row] = (int16_t)(v + 128);
        }
    }
}

/* ---- transposing ---- */

INLINE eights low_of_16(eights a, eights b)
{
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}

INLINE eights high_of_16(eights a, eights b)
{
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

INLINE eights low_of_32(eights a, eights b)
{
    return (eights)__builtin_shufflevector((fours)a, (fours)b, 0, 4, 1, 5);
}

INLINE eights high_of_32(eights a, eights b)
{
    return (eights)__builtin_shufflevector((fours)a, (fours)b, 2, 6, 3, 7);
}

/* Two rows of the result. */
INLINE void put_two(eights a, eights b, eights *out)
{
    out[0] = (eights)__builtin_shufflevector((twos)a, (twos)b, 0, 2);
    out[1] = (eights)__builtin_shufflevector((twos)a, (twos)b, 1, 3);
}

INLINE void transpose(const eights x[8], eights out[8])
{
    eights a0 = low_of_16(x[0], x[1]), a1 = high_of_16(x[0], x[1]);
    eights a2 = low_of_16(x[2], x[3]), a3 = high_of_16(x[2], x[3]);
    eights a4 = low_of_16(x[4], x[5]), a5 = high_of_16(x[4], x[5]);
    eights a6 = low_of_16(x[6], x[7]), a7 = high_of_16(x[6], x[7]);
    put_two(low_of_32(a0, a2), low_of_32(a4, a6), out);
    put_two(high_of_32(a0, a2), high_of_32(a4, a6), out + 2);
    put_two(low_of_32(a1, a3), low_of_32(a5, a7), out + 4);
    put_two(high_of_32(a1, a3), high_of_32(a5, a7), out + 6);
}

/* Samples of two columns, a byte each, in the order of memory. */
INLINE eights join(eights a, eights b)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return a | b << 8;
#else
    return a << 8 | b;
#endif
}

INLINE void store_two(eights rows, uint8_t *out, size_t stride)
{
    twos v = (twos)rows;
    memcpy(out, &v, 8);
    memcpy(out + stride, (const char *)&v + 8, 8);
}

/* Eight columns of samples in 16 bits to eight rows of bytes. */
INLINE void store_columns(const eights x[8], uint8_t *out, size_t stride)
{
    eights c01 = join(x[0], x[1]), c23 = join(x[2], x[3]);
    eights c45 = join(x[4], x[5]), c67 = join(x[6], x[7]);
    eights a0 = low_of_16(c01, c23), a1 = high_of_16(c01, c23);
    eights b0 = low_of_16(c45, c67), b1 = high_of_16(c45, c67);
    store_two(low_of_32(a0, b0), out, stride);
    store_two(high_of_32(a0, b0), out + 2 * stride, stride);
    store_two(low_of_32(a1, b1), out + 4 * stride, stride);
    store_two(high_of_32(a1, b1), out + 6 * stride, stride);
}

/* ---- blocks ---- */

/* A block of which only the upper left n x n may not be zero. */
INLINE void transform_block(const int16_t *in, const int16_t *quantiser, int n, uint8_t *out,
                            size_t stride)
{
    eights a[8], b[8];
    uint32_t beyond = first_pass(in, quantiser, n, (int16_t *)a);
    if (!MR_IDCT_WRAPS && __builtin_expect(beyond, 0)) {
        mr_idct_block(in, quantiser, out, stride);
        return;
    }
    transpose(a, b);
    second_pass((const int16_t *)b, n, (int16_t *)a);
    store_columns(a, out, stride);
}

/* Only the DC value: all samples are alike. */
static void flat_block(int16_t x, uint8_t *out, size_t stride)
{
    int v = ((int16_t)((uint16_t)x << 2) + 16) >> 5;
    v = v < -128 ? 0 : v > 127 ? 255 : v + 128;
    for (int row = 0; row < 8; row++)
        memset(out + (size_t)row * stride, v, 8);
}

INLINE uint64_t four_at(const int16_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* The side of the upper left part of a block that may not be zero: 1, 4 or 8.  `most` is the latest
 * last place of the unit's blocks.  Looking at the coefficients finds more low blocks than the
 * block's own last place would, and takes fewer branches that nothing predicts. */
INLINE int extent(const int16_t *in, uint8_t most)
{
    uint64_t inner = four_at(in + 1), outer = 0;
    UNROLL(3)
    for (int row = 1; row < 4; row++)
        inner |= four_at(in + row * 32);
    if (most > MR_IDCT_LOW) {
        UNROLL(8)
        for (int row = 0; row < 8; row++)
            outer |= four_at(in + row * 32 + 4) | (row < 4 ? 0 : four_at(in + row * 32));
    }
    return outer ? 8 : inner ? 4 : 1;
}

void mr_idct_scalar(int16_t *unit, const int16_t *quantiser,
                    const uint8_t last[MR_JPEG_UNIT_BLOCKS], uint8_t *out, size_t stride)
{
    uint8_t most = mr_latest(last);
    int rows = most == 0 ? 1 : most <= MR_IDCT_LOW ? 4 : 8;
    for (int block = 0; block < MR_JPEG_UNIT_BLOCKS; block++, out += 8) {
        const int16_t *in = unit + block * 8;
        int n = most == 0 ? 1 : extent(in, most);
        if (n == 1)
            flat_block((int16_t)(in[0] * quantiser[0]), out, stride);
        else if (n == 4)
            transform_block(in, quantiser, 4, out, stride);
        else
            transform_block(in, quantiser, 8, out, stride);
    }
    memset(unit, 0, (size_t)rows * 32 * sizeof *unit);
}
