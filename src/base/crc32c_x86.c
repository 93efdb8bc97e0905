/* crc32c_x86.c - crc32c by carry-less multiplication, 64 or 256 bytes a step.
 *
 * A message is a polynomial, its crc the remainder.  What has been read is kept as a polynomial of
 * 64 (SSE) or 256 (AVX-512) bytes that has the same remainder.  To take in the next block of that
 * size, the kept one is multiplied by x^D, D = the block's bits, and added.  Each 128-bit lane
 * (L, H: the 64 bits that come first in memory, and the others) does it alone:
 *
 *     L * (x^(D+63) mod P)  +  H * (x^(D-1) mod P)  +  the new 128 bits
 *
 * One x is missing in both because the product of two reflected 64-bit numbers has 127 bits.  In
 * the end the kept block is an ordinary message for the crc32 instruction.
 *
 * The copy stores around the caches (non-temporal) from NON_TEMPORAL_FROM bytes on: a snapshot is
 * not read again soon, and a normal store would first fetch the line that it overwrites.  */
#ifdef __x86_64__
#include "crc32c_x86.h"

#include <immintrin.h>
#include <string.h>

#define SSE               __attribute__((target("sse4.2,pclmul")))
#define AVX512            __attribute__((target("sse4.2,pclmul,avx512f,vpclmulqdq")))
#define INLINE            inline __attribute__((always_inline))
#define NON_TEMPORAL_FROM ((size_t)1 << 20)

/* Eight bytes a step: short pieces, and what is left over. */
SSE static uint32_t by_words(uint32_t state, const uint8_t *p, size_t len)
{
    uint64_t s = state;
    for (; len >= 8; len -= 8, p += 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        s = _mm_crc32_u64(s, w);
    }
    for (; len; len--)
        s = _mm_crc32_u8((uint32_t)s, *p++);
    return (uint32_t)s;
}

SSE static uint32_t words_copy(uint32_t state, uint8_t *dst, const uint8_t *src, size_t len)
{
    if (dst && len)
        memcpy(dst, src, len);
    return by_words(state, src, len);
}

/* Bytes up to the next address that is a multiple of `align`. */
static size_t bytes_to_align(const uint8_t *p, size_t align)
{
    return (align - (uintptr_t)p % align) % align;
}

SSE static INLINE __m128i fold_128(__m128i kept, __m128i k, __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(kept, k, 0x00), high = _mm_clmulepi64_si128(kept, k, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

enum store { NO_STORE, CACHED, STREAMED };

SSE static INLINE __m128i take_128(uint8_t *dst, const uint8_t *src, enum store how)
{
    __m128i v = _mm_loadu_si128((const void *)src);
    if (how == STREAMED)
        _mm_stream_si128((void *)dst, v);
    else if (how == CACHED)
        _mm_storeu_si128((void *)dst, v);
    return v;
}

/* len >= 64; takes the whole blocks of it. */
SSE static INLINE uint32_t blocks_of_64(uint32_t state, uint8_t *dst, const uint8_t *src,
                                        size_t len, enum store how)
{
    const __m128i k = _mm_set_epi64x(0x75bba45bll << 32, 0x1c19243bll << 32);
    __m128i kept[4];
    for (int i = 0; i < 4; i++)
        kept[i] = take_128(how ? dst + 16 * i : NULL, src + 16 * i, how);
    kept[0] = _mm_xor_si128(kept[0], _mm_cvtsi32_si128((int)state));
    for (size_t at = 64; at + 64 <= len; at += 64)
        for (int i = 0; i < 4; i++)
            kept[i] = fold_128(kept[i], k,
                               take_128(how ? dst + at + 16 * i : NULL, src + at + 16 * i, how));
    if (how == STREAMED)
        _mm_sfence();
    uint8_t last[64];
    memcpy(last, kept, 64);
    return by_words(0, last, 64);
}

SSE uint32_t mr_crc32c_sse(uint32_t state, uint8_t *dst, const uint8_t *src, size_t len)
{
    enum store how = !dst ? NO_STORE : len < NON_TEMPORAL_FROM ? CACHED : STREAMED;
    size_t head = how == STREAMED ? bytes_to_align(dst, 16) : 0;
    size_t blocks = (len - head) / 64 * 64, tail = len - head - blocks;
    if (head) {
        state = words_copy(state, dst, src, head);
        src += head;
        dst += head;
    }
    if (blocks)
        state = how == NO_STORE ? blocks_of_64(state, NULL, src, blocks, NO_STORE)
                : how == CACHED ? blocks_of_64(state, dst, src, blocks, CACHED)
                                : blocks_of_64(state, dst, src, blocks, STREAMED);
    return words_copy(state, dst ? dst + blocks : NULL, src + blocks, tail);
}

AVX512 static INLINE __m512i fold_512(__m512i kept, __m512i k, __m512i next)
{
    __m512i low = _mm512_clmulepi64_epi128(kept, k, 0x00);
    __m512i high = _mm512_clmulepi64_epi128(kept, k, 0x11);
    return _mm512_ternarylogic_epi64(low, high, next, 0x96); /* XOR of three */
}

AVX512 static INLINE __m512i take_512(uint8_t *dst, const uint8_t *src, enum store how)
{
    __m512i v = _mm512_loadu_si512(src);
    if (how == STREAMED)
        _mm512_stream_si512((void *)dst, v);
    else if (how == CACHED)
        _mm512_storeu_si512(dst, v);
    return v;
}

/* len >= 256; takes the whole blocks of it. */
AVX512 static INLINE uint32_t blocks_of_256(uint32_t state, uint8_t *dst, const uint8_t *src,
                                            size_t len, enum store how)
{
    const __m512i k = _mm512_broadcast_i32x4(
        _mm_set_epi64x(0x1426a815ll << 32, (long long)(0xe9a5d8beull << 32)));
    __m512i kept[4];
    for (int i = 0; i < 4; i++)
        kept[i] = take_512(how ? dst + 64 * i : NULL, src + 64 * i, how);
    kept[0] = _mm512_xor_si512(kept[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)state)));
    for (size_t at = 256; at + 256 <= len; at += 256)
        for (int i = 0; i < 4; i++)
            kept[i] = fold_512(kept[i], k,
                               take_512(how ? dst + at + 64 * i : NULL, src + at + 64 * i, how));
    if (how == STREAMED)
        _mm_sfence();
    uint8_t last[256];
    memcpy(last, kept, 256);
    return by_words(0, last, 256);
}

AVX512 uint32_t mr_crc32c_avx512(uint32_t state, uint8_t *dst, const uint8_t *src, size_t len)
{
    if (len < 1024)
        return mr_crc32c_sse(state, dst, src, len);
    enum store how = !dst ? NO_STORE : len < NON_TEMPORAL_FROM ? CACHED : STREAMED;
    size_t head = how == STREAMED ? bytes_to_align(dst, 64) : 0;
    size_t blocks = (len - head) / 256 * 256, tail = len - head - blocks;
    if (head) {
        state = words_copy(state, dst, src, head);
        src += head;
        dst += head;
    }
    state = how == NO_STORE ? blocks_of_256(state, NULL, src, blocks, NO_STORE)
            : how == CACHED ? blocks_of_256(state, dst, src, blocks, CACHED)
                            : blocks_of_256(state, dst, src, blocks, STREAMED);
    return words_copy(state, dst ? dst + blocks : NULL, src + blocks, tail);
}

#endif
