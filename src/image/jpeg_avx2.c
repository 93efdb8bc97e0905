/* jpeg_avx2.c - the JPEG decoder's loops with AVX2: two blocks at once, 32 bytes at once. */
#ifdef __x86_64__
#include <immintrin.h>
#include <stdint.h>

#define VEC    __m256i
#define OP(op) _mm256_##op
#define TARGET __attribute__((target("avx2")))

TARGET static inline VEC zero(void)
{
    return _mm256_setzero_si256();
}

TARGET static inline VEC load(const int16_t *p)
{
    return _mm256_load_si256((const void *)p);
}

TARGET static inline void store(int16_t *p, VEC v)
{
    _mm256_store_si256((void *)p, v);
}

TARGET static inline VEC load_quantiser(const int16_t *p)
{
    return _mm256_broadcastsi128_si256(_mm_load_si128((const void *)p));
}

/* Lanes hold eight samples of one row and eight of the next, without the 128. */
TARGET static inline void put_rows(VEC v, uint8_t *out, size_t stride)
{
    v = _mm256_permute4x64_epi64(_mm256_xor_si256(v, _mm256_set1_epi8(-128)), 0xd8);
    _mm_storeu_si128((void *)out, _mm256_castsi256_si128(v));
    _mm_storeu_si128((void *)(out + stride), _mm256_extracti128_si256(v, 1));
}

#include "jpeg_idct_lanes.h"

/* Whether a value of row 0 is beyond MR_IDCT_PLAIN. */
TARGET static int is_extreme(VEC row)
{
    VEC most = _mm256_set1_epi16(MR_IDCT_PLAIN), least = _mm256_set1_epi16(-MR_IDCT_PLAIN);
    VEC beyond = _mm256_or_si256(_mm256_cmpgt_epi16(row, most), _mm256_cmpgt_epi16(least, row));
    return _mm256_movemask_epi8(beyond) != 0;
}

TARGET void mr_idct_avx2(int16_t *unit, const int16_t *quantiser,
                         const uint8_t last[MR_JPEG_UNIT_BLOCKS], uint8_t *out, size_t stride)
{
    VEC q = load_quantiser(quantiser);
    if (is_extreme(_mm256_mullo_epi16(load(unit), q)) ||
        is_extreme(_mm256_mullo_epi16(load(unit + 16), q))) {
        mr_idct_scalar(unit, quantiser, last, out, stride);
        return;
    }
    for (int half = 0; half < 2; half++, unit += 16, out += 16) {
        uint8_t most = mr_later(last[2 * half], last[2 * half + 1]);
        if (most == 0)
            idct_flat(unit, quantiser, out, stride);
        else if (most <= MR_IDCT_LOW)
            idct_low(unit, quantiser, out, stride);
        else
            idct_full(unit, quantiser, out, stride);
    }
}

TARGET size_t mr_copy_plain_avx2(const uint8_t *in, size_t n, uint8_t *out)
{
    size_t i = 0;
    for (; n - i >= 32; i += 32) {
        __m256i v = _mm256_loadu_si256((const void *)(in + i));
        _mm256_storeu_si256((void *)(out + i), v);
        unsigned ff = (unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(v, _mm256_set1_epi8(-1)));
        if (ff)
            return i + (size_t)__builtin_ctz(ff);
    }
    return i + mr_copy_plain_scalar(in + i, n - i, out + i);
}
#endif
