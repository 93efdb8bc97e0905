/* jpeg_kernels.c - the choice of the JPEG decoder's loops, and those of plain C that have no file
 * of their own. */
#include "jpeg_kernels.h"

#include <string.h>

/* Eight bytes at a time: a byte is FF when it and its carry-free sum with 1 say so. */
size_t mr_copy_plain_scalar(const uint8_t *in, size_t n, uint8_t *out)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    size_t i = 0;
    for (; n - i >= 8; i += 8) {
        uint64_t v;
        memcpy(&v, in + i, 8);
        uint64_t inverted = ~v;
        if ((inverted - ones) & ~inverted & tops)
            break;
        memcpy(out + i, &v, 8);
    }
    for (; i < n && in[i] != 0xff; i++)
        out[i] = in[i];
    return i;
}

static const struct mr_jpeg_kernels scalar = {
    .copy_plain = mr_copy_plain_scalar,
    .decode_blocks = mr_decode_blocks_plain,
    .idct = mr_idct_scalar,
};

#ifdef __x86_64__

static const struct mr_jpeg_kernels avx2 = {
    .copy_plain = mr_copy_plain_avx2,
    .decode_blocks = mr_decode_blocks_bmi2,
    .idct = mr_idct_avx2,
};
static const struct mr_jpeg_kernels avx512 = {
    .copy_plain = mr_copy_plain_avx512,
    .decode_blocks = mr_decode_blocks_bmi2,
    .idct = mr_idct_avx512,
};
/* BMI2 came with AVX2 in every processor but one of VIA's, and a hypervisor may hide it. */
static const struct mr_jpeg_kernels avx2_only = {
    .copy_plain = mr_copy_plain_avx2,
    .decode_blocks = mr_decode_blocks_plain,
    .idct = mr_idct_avx2,
};

const struct mr_jpeg_kernels *mr_jpeg_kernels_pick(const struct mr_kernels *resizing)
{
    if (resizing == &mr_kernels_scalar)
        return &scalar;
    if (!__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2"))
        return &avx2_only;
    return resizing == &mr_kernels_avx512 ? &avx512 : &avx2;
}

#else

const struct mr_jpeg_kernels *mr_jpeg_kernels_pick(const struct mr_kernels *resizing)
{
    return &scalar;
}

#endif
