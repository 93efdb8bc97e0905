/* jpeg_avx512.c - the JPEG decoder's loops with AVX-512: four blocks at once, 64 bytes at once. */
#ifdef __x86_64__
#include <immintrin.h>
#include <stdint.h>

#define VEC    __m512i
#define OP(op) _mm512_##op
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl")))

TARGET static inline VEC zero(void)
{
    return _mm512_setzero_si512();
}

TARGET static inline VEC load(const int16_t *p)
{
    return _mm512_load_si512(p);
}

TARGET static inline void store(int16_t *p, VEC v)
{
    _mm512_store_si512(p, v);
}

TARGET static inline VEC load_quantiser(const int16_t *p)
{
    return _mm512_broadcast_i32x4(_mm_load_si128((const void *)p));
}

/* Lanes hold eight samples of one row and eight of the next, without the 128. */
TARGET static inline void put_rows(VEC v, uint8_t *out, size_t stride)
{
    const VEC order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    v = _mm512_permutexvar_epi64(order, _mm512_xor_si512(v, _mm512_set1_epi8(-128)));
    _mm256_storeu_si256((void *)out, _mm512_castsi512_si256(v));
    _mm256_storeu_si256((void *)(out + stride), _mm512_extracti64x4_epi64(v, 1));
}

#include "jpeg_idct_lanes.h"

TARGET void mr_idct_avx512(int16_t *unit, const int16_t *quantiser,
                           const uint8_t last[MR_JPEG_UNIT_BLOCKS], uint8_t *out, size_t stride)
{
    uint8_t most = mr_latest(last);
    VEC first = _mm512_mullo_epi16(load(unit), load_quantiser(quantiser));
    if (_mm512_cmpgt_epi16_mask(_mm512_abs_epi16(first), _mm512_set1_epi16(MR_IDCT_PLAIN)) ||
        _mm512_cmpeq_epi16_mask(first, _mm512_set1_epi16(INT16_MIN)))
        mr_idct_scalar(unit, quantiser, last, out, stride);
    else if (most == 0)
        idct_flat(unit, quantiser, out, stride);
    else if (most <= MR_IDCT_LOW)
        idct_low(unit, quantiser, out, stride);
    else
        idct_full(unit, quantiser, out, stride);
}

TARGET size_t mr_copy_plain_avx512(const uint8_t *in, size_t n, uint8_t *out)
{
    size_t i = 0;
    for (; n - i >= 64; i += 64) {
        __m512i v = _mm512_loadu_si512(in + i);
        _mm512_storeu_si512(out + i, v);
        uint64_t ff = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8(-1));
        if (ff)
            return i + (size_t)__builtin_ctzll(ff);
    }
    return i + mr_copy_plain_scalar(in + i, n - i, out + i);
}
#endif
