/* kernels.c - the choice of an instruction set at run time.  The AVX-512 loops need 16-bit
 * operations (BW) and 256-bit forms (VL), which every processor since Skylake-X that has AVX-512
 * has. */
#include "kernels.h"

#include <stddef.h>

#ifdef __x86_64__

static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

static int has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}

const struct mr_kernels *mr_kernels_pick(enum mr_image_simd simd)
{
    switch (simd) {
    case MR_SIMD_BEST:
        return has_avx512() ? &mr_kernels_avx512
               : has_avx2() ? &mr_kernels_avx2
                            : &mr_kernels_scalar;
    case MR_SIMD_SCALAR:
        return &mr_kernels_scalar;
    case MR_SIMD_AVX2:
        return has_avx2() ? &mr_kernels_avx2 : NULL;
    case MR_SIMD_AVX512:
        return has_avx512() ? &mr_kernels_avx512 : NULL;
    }
    return NULL;
}

#else

const struct mr_kernels *mr_kernels_pick(enum mr_image_simd simd)
{
    return simd == MR_SIMD_BEST || simd == MR_SIMD_SCALAR ? &mr_kernels_scalar : NULL;
}

#endif
