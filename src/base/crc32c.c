/* crc32c.c - the choice of a way, the one for every machine, and crcs of joined pieces.
 *
 * Polynomial 0x82f63b78, reflected: bit 31 of a crc stands for x^0.  crc32c_x86.c has the fast
 * ways.
 *
 * The portable way takes eight bytes a step by eight tables ("slicing by 8").  table[k][b] is the
 * crc state after byte b and k zero bytes.  It is linear in b over XOR, so the compiler makes each
 * table from its eight single-bit entries.
 *
 * Joining: crc(ab) = crc(a) * x^(8 len b) + crc(b), because init and final XOR cancel. */
#include "crc32c.h"

#include "crc32c_x86.h"

#include <endian.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u

#define ENTRY(i, a, b, c, d, e, f, g, h)                                                           \
    ((i)&1 ? a : 0u) ^ ((i)&2 ? b : 0u) ^ ((i)&4 ? c : 0u) ^ ((i)&8 ? d : 0u) ^                    \
        ((i)&16 ? e : 0u) ^ ((i)&32 ? f : 0u) ^ ((i)&64 ? g : 0u) ^ ((i)&128 ? h : 0u)
#define FOUR(i, ...)                                                                               \
    ENTRY(i, __VA_ARGS__), ENTRY(i + 1, __VA_ARGS__), ENTRY(i + 2, __VA_ARGS__),                   \
        ENTRY(i + 3, __VA_ARGS__)
#define SIXTEEN(i, ...)                                                                            \
    FOUR(i, __VA_ARGS__), FOUR(i + 4, __VA_ARGS__), FOUR(i + 8, __VA_ARGS__),                      \
        FOUR(i + 12, __VA_ARGS__)
#define SIXTY_FOUR(i, ...)                                                                         \
    SIXTEEN(i, __VA_ARGS__), SIXTEEN(i + 16, __VA_ARGS__), SIXTEEN(i + 32, __VA_ARGS__),           \
        SIXTEEN(i + 48, __VA_ARGS__)
#define TABLE(...)                                                                                 \
    {                                                                                              \
        SIXTY_FOUR(0, __VA_ARGS__), SIXTY_FOUR(64, __VA_ARGS__), SIXTY_FOUR(128, __VA_ARGS__),     \
            SIXTY_FOUR(192, __VA_ARGS__)                                                           \
    }

static const uint32_t table[8][256] = {
    TABLE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc,
          0x82f63b78),
    TABLE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604,
          0xfbc3faf9),
    TABLE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9,
          0x8b277743),
    TABLE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7,
          0x52a0c93f),
    TABLE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae,
          0x6ea2d55c),
    TABLE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb,
          0x1c08b7d6),
    TABLE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a,
          0xf56e0ef4),
    TABLE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32,
          0x34019664),
};

static uint32_t scalar(uint32_t state, const uint8_t *p, size_t len)
{
    for (; len >= 8; len -= 8, p += 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        w = le64toh(w) ^ state;
        state = 0;
        for (int i = 0; i < 8; i++)
            state ^= table[7 - i][w >> 8 * i & 255];
    }
    for (; len; len--)
        state = state >> 8 ^ table[0][(state ^ *p++) & 255];
    return state;
}

/* In pieces that stay in the first cache between the two passes over them. */
static uint32_t scalar_copy(uint32_t state, uint8_t *dst, const uint8_t *src, size_t len)
{
    while (len) {
        size_t piece = len < 4096 ? len : 4096;
        memcpy(dst, src, piece);
        state = scalar(state, src, piece);
        dst += piece;
        src += piece;
        len -= piece;
    }
    return state;
}

int mr_crc32c_has(enum mr_crc32c_way way)
{
#ifdef __x86_64__
    int sse = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
    if (way == MR_CRC32C_SSE)
        return sse;
    if (way == MR_CRC32C_AVX512)
        return sse && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
#endif
    return way == MR_CRC32C_SCALAR;
}

uint32_t mr_crc32c_by(enum mr_crc32c_way way, uint32_t crc, void *dst, const void *src, size_t len)
{
#ifdef __x86_64__
    if (way == MR_CRC32C_SSE)
        return ~mr_crc32c_sse(~crc, dst, src, len);
    if (way == MR_CRC32C_AVX512)
        return ~mr_crc32c_avx512(~crc, dst, src, len);
#endif
    return dst ? ~scalar_copy(~crc, dst, src, len) : ~scalar(~crc, src, len);
}

static enum mr_crc32c_way best_way(void)
{
    return mr_crc32c_has(MR_CRC32C_AVX512) ? MR_CRC32C_AVX512
           : mr_crc32c_has(MR_CRC32C_SSE)  ? MR_CRC32C_SSE
                                           : MR_CRC32C_SCALAR;
}

uint32_t mr_crc32c(uint32_t crc, const void *bytes, size_t len)
{
    return mr_crc32c_by(best_way(), crc, NULL, bytes, len);
}

uint32_t mr_crc32c_copy(uint32_t crc, void *dst, const void *src, size_t len)
{
    return len ? mr_crc32c_by(best_way(), crc, dst, src, len) : crc;
}

/* a * b modulo the polynomial. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (int i = 31; i >= 0; i--) {
        if (a >> i & 1)
            product ^= b;
        b = b >> 1 ^ (b & 1 ? POLYNOMIAL : 0);
    }
    return product;
}

uint32_t mr_crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t len_b)
{
    uint32_t power = 0x00800000; /* x^8: one byte */
    for (; len_b; len_b >>= 1) {
        if (len_b & 1)
            crc_a = multiply(crc_a, power);
        power = multiply(power, power);
    }
    return crc_a ^ crc_b;
}
