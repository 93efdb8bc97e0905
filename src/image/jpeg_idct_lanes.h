/* jpeg_idct_lanes.h - the inverse transform with vectors, for any number of 128-bit lanes.
 *
 * Included by jpeg_avx2.c and jpeg_avx512.c, which define
 *     VEC             a register of LANES lanes
 *     OP(name)        the intrinsic of that name
 *     TARGET          the instruction set, as an attribute
 * and the functions zero, load, store, load_quantiser and put_rows.
 *
 * A lane holds one block's row of eight 16-bit values (or column, between the passes), and every
 * instruction used here works within lanes; so a register does as many blocks at once as it has
 * lanes.  jpeg_idct.c says what is computed. */
#include "jpeg_kernels.h"

#define INLINE TARGET static inline __attribute__((always_inline))

/* Two constants for the two halves of each pair that is multiplied and added. */
INLINE VEC pair(int a, int b)
{
    return OP(set1_epi32)((int)((uint32_t)(uint16_t)b << 16 | (uint16_t)a));
}

INLINE VEC weigh(VEC pairs, int a, int b)
{
    return OP(madd_epi16)(pairs, pair(a, b));
}

/* out[i] and out[7 - i], shifted, from the even and the odd half. */
INLINE void butterfly(VEC even, VEC odd, int shift, int i, VEC out[8])
{
    out[i] = OP(srai_epi32)(OP(add_epi32)(even, odd), (unsigned)shift);
    out[7 - i] = OP(srai_epi32)(OP(sub_epi32)(even, odd), (unsigned)shift);
}

INLINE VEC unpack(VEC a, VEC b, int high)
{
    return high ? OP(unpackhi_epi16)(a, b) : OP(unpacklo_epi16)(a, b);
}

/* Half of the values (low or high four of each lane) of eight outputs, in 32 bits. */
INLINE void half_pass(const VEC x[8], int shift, int high, VEC out[8])
{
    const VEC round = OP(set1_epi32)(1 << (shift - 1));
    VEC x26 = unpack(x[2], x[6], high);
    VEC t3 = weigh(x26, MR_F_0_541 + MR_F_0_765, MR_F_0_541);
    VEC t2 = weigh(x26, MR_F_0_541, MR_F_0_541 - MR_F_1_847);
    /* Shifted up by 16 when unpacked, down by 3: times 8192. */
    VEC sum = OP(srai_epi32)(unpack(zero(), OP(add_epi16)(x[0], x[4]), high), 3);
    VEC difference = OP(srai_epi32)(unpack(zero(), OP(sub_epi16)(x[0], x[4]), high), 3);
    sum = OP(add_epi32)(sum, round);
    difference = OP(add_epi32)(difference, round);

    VEC z34 = unpack(OP(add_epi16)(x[7], x[3]), OP(add_epi16)(x[5], x[1]), high);
    VEC z3 = weigh(z34, MR_F_1_175 - MR_F_1_961, MR_F_1_175);
    VEC z4 = weigh(z34, MR_F_1_175, MR_F_1_175 - MR_F_0_390);
    VEC x71 = unpack(x[7], x[1], high), x53 = unpack(x[5], x[3], high);
    VEC o0 = weigh(x71, MR_F_0_298 - MR_F_0_899, -MR_F_0_899);
    VEC o3 = weigh(x71, -MR_F_0_899, MR_F_1_501 - MR_F_0_899);
    VEC o1 = weigh(x53, MR_F_2_053 - MR_F_2_562, -MR_F_2_562);
    VEC o2 = weigh(x53, -MR_F_2_562, MR_F_3_072 - MR_F_2_562);

    butterfly(OP(add_epi32)(sum, t3), OP(add_epi32)(o3, z4), shift, 0, out);
    butterfly(OP(add_epi32)(difference, t2), OP(add_epi32)(o2, z3), shift, 1, out);
    butterfly(OP(sub_epi32)(difference, t2), OP(add_epi32)(o1, z4), shift, 2, out);
    butterfly(OP(sub_epi32)(sum, t3), OP(add_epi32)(o0, z3), shift, 3, out);
}

/* The same when x[4] to x[7] are zero: what is left of the constants, added up. */
INLINE void half_pass_low(const VEC x[4], int shift, int high, VEC out[8])
{
    const VEC round = OP(set1_epi32)(1 << (shift - 1));
    VEC x02 = unpack(x[0], x[2], high), x13 = unpack(x[1], x[3], high);
    VEC even[4] = {weigh(x02, 8192, MR_F_0_541 + MR_F_0_765), weigh(x02, 8192, MR_F_0_541),
                   weigh(x02, 8192, -MR_F_0_541), weigh(x02, 8192, -MR_F_0_541 - MR_F_0_765)};
    VEC odd[4] = {
        weigh(x13, MR_F_1_501 - MR_F_0_899 + MR_F_1_175 - MR_F_0_390, MR_F_1_175),
        weigh(x13, MR_F_1_175, MR_F_3_072 - MR_F_2_562 + MR_F_1_175 - MR_F_1_961),
        weigh(x13, MR_F_1_175 - MR_F_0_390, MR_F_1_175 - MR_F_2_562),
        weigh(x13, MR_F_1_175 - MR_F_0_899, MR_F_1_175 - MR_F_1_961),
    };
    for (int i = 0; i < 4; i++)
        butterfly(OP(add_epi32)(even[i], round), odd[i], shift, i, out);
}

INLINE void transpose(VEC x[8])
{
    VEC a0 = OP(unpacklo_epi16)(x[0], x[1]), a1 = OP(unpackhi_epi16)(x[0], x[1]);
    VEC a2 = OP(unpacklo_epi16)(x[2], x[3]), a3 = OP(unpackhi_epi16)(x[2], x[3]);
    VEC a4 = OP(unpacklo_epi16)(x[4], x[5]), a5 = OP(unpackhi_epi16)(x[4], x[5]);
    VEC a6 = OP(unpacklo_epi16)(x[6], x[7]), a7 = OP(unpackhi_epi16)(x[6], x[7]);
    VEC b0 = OP(unpacklo_epi32)(a0, a2), b1 = OP(unpackhi_epi32)(a0, a2);
    VEC b2 = OP(unpacklo_epi32)(a1, a3), b3 = OP(unpackhi_epi32)(a1, a3);
    VEC b4 = OP(unpacklo_epi32)(a4, a6), b5 = OP(unpackhi_epi32)(a4, a6);
    VEC b6 = OP(unpacklo_epi32)(a5, a7), b7 = OP(unpackhi_epi32)(a5, a7);
    x[0] = OP(unpacklo_epi64)(b0, b4);
    x[1] = OP(unpackhi_epi64)(b0, b4);
    x[2] = OP(unpacklo_epi64)(b1, b5);
    x[3] = OP(unpackhi_epi64)(b1, b5);
    x[4] = OP(unpacklo_epi64)(b2, b6);
    x[5] = OP(unpackhi_epi64)(b2, b6);
    x[6] = OP(unpacklo_epi64)(b3, b7);
    x[7] = OP(unpackhi_epi64)(b3, b7);
}

/* Columns 0..3 of eight rows of which only these are not zero; y holds them in 32 bits. */
INLINE void transpose_low(const VEC y[8], VEC x[4])
{
    VEC p01 = OP(packs_epi32)(y[0], y[1]), p23 = OP(packs_epi32)(y[2], y[3]);
    VEC p45 = OP(packs_epi32)(y[4], y[5]), p67 = OP(packs_epi32)(y[6], y[7]);
    VEC a0 = OP(unpacklo_epi16)(p01, p23), a1 = OP(unpackhi_epi16)(p01, p23);
    VEC a2 = OP(unpacklo_epi16)(p45, p67), a3 = OP(unpackhi_epi16)(p45, p67);
    VEC b0 = OP(unpacklo_epi16)(a0, a1), b1 = OP(unpackhi_epi16)(a0, a1);
    VEC b2 = OP(unpacklo_epi16)(a2, a3), b3 = OP(unpackhi_epi16)(a2, a3);
    x[0] = OP(unpacklo_epi64)(b0, b2);
    x[1] = OP(unpackhi_epi64)(b0, b2);
    x[2] = OP(unpacklo_epi64)(b1, b3);
    x[3] = OP(unpackhi_epi64)(b1, b3);
}

/* Eight columns of 16 bits to eight rows of samples. */
INLINE void store_columns(const VEC x[8], uint8_t *out, size_t stride)
{
    VEC c02 = OP(packs_epi16)(x[0], x[2]), c13 = OP(packs_epi16)(x[1], x[3]);
    VEC c46 = OP(packs_epi16)(x[4], x[6]), c57 = OP(packs_epi16)(x[5], x[7]);
    VEC c01 = OP(unpacklo_epi8)(c02, c13), c23 = OP(unpackhi_epi8)(c02, c13);
    VEC c45 = OP(unpacklo_epi8)(c46, c57), c67 = OP(unpackhi_epi8)(c46, c57);
    VEC a0 = OP(unpacklo_epi16)(c01, c23), a1 = OP(unpackhi_epi16)(c01, c23);
    VEC b0 = OP(unpacklo_epi16)(c45, c67), b1 = OP(unpackhi_epi16)(c45, c67);
    put_rows(OP(unpacklo_epi32)(a0, b0), out, stride);
    put_rows(OP(unpackhi_epi32)(a0, b0), out + 2 * stride, stride);
    put_rows(OP(unpacklo_epi32)(a1, b1), out + 4 * stride, stride);
    put_rows(OP(unpackhi_epi32)(a1, b1), out + 6 * stride, stride);
}

INLINE void pack_halves(const VEC low[8], const VEC high[8], VEC x[8])
{
    for (int i = 0; i < 8; i++)
        x[i] = OP(packs_epi32)(low[i], high[i]);
}

/* Row `row` times its quantisers; zero in memory afterwards. */
INLINE VEC take_row(int16_t *in, const int16_t *quantiser, int row)
{
    VEC x = OP(mullo_epi16)(load(in + row * 32), load_quantiser(quantiser + row * 8));
    store(in + row * 32, zero());
    return x;
}

INLINE void idct_full(int16_t *in, const int16_t *quantiser, uint8_t *out, size_t stride)
{
    VEC x[8], low[8], high[8];
    for (int row = 0; row < 8; row++)
        x[row] = take_row(in, quantiser, row);
    half_pass(x, MR_IDCT_FIRST_SHIFT, 0, low);
    half_pass(x, MR_IDCT_FIRST_SHIFT, 1, high);
    pack_halves(low, high, x);
    transpose(x);
    half_pass(x, MR_IDCT_SECOND_SHIFT, 0, low);
    half_pass(x, MR_IDCT_SECOND_SHIFT, 1, high);
    pack_halves(low, high, x);
    store_columns(x, out, stride);
}

INLINE void idct_low(int16_t *in, const int16_t *quantiser, uint8_t *out, size_t stride)
{
    VEC x[8], low[8], high[8];
    for (int row = 0; row < 4; row++)
        x[row] = take_row(in, quantiser, row);
    half_pass_low(x, MR_IDCT_FIRST_SHIFT, 0, low);
    transpose_low(low, x);
    half_pass_low(x, MR_IDCT_SECOND_SHIFT, 0, low);
    half_pass_low(x, MR_IDCT_SECOND_SHIFT, 1, high);
    pack_halves(low, high, x);
    store_columns(x, out, stride);
}

/* Only DC values: every sample of a block is (4 * DC + 16) >> 5, and white where the sum does not
 * fit 16 bits. */
INLINE void idct_flat(int16_t *in, const int16_t *quantiser, uint8_t *out, size_t stride)
{
    VEC x = OP(slli_epi16)(take_row(in, quantiser, 0), 2);
    x = OP(srai_epi16)(OP(adds_epi16)(x, OP(set1_epi16)(16)), 5);
    x = OP(packs_epi16)(x, x);
    x = OP(shuffle_epi8)(x, zero());
    for (int row = 0; row < 8; row += 2)
        put_rows(x, out + (size_t)row * stride, stride);
}
