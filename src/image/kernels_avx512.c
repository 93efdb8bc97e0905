/* kernels_avx512.c - the inner loops with AVX-512; kernels_scalar.c says what they compute.
 *
 * The gain over AVX2 is in blend_columns: when the taps of 16 outputs lie within 64 values, one
 * permutation of two registers collects them, where AVX2 gathers from memory.  Splitting and the
 * stores of bytes are the AVX2 ones: they are bound by memory. */
#ifdef __x86_64__
#include "kernels.h"

#include <immintrin.h>
#include <stddef.h>
#include <string.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))

AVX512 static __m512i load_pair(const int16_t *w)
{
    int32_t pair;
    memcpy(&pair, w, sizeof pair);
    return _mm512_set1_epi32(pair);
}

AVX512 static __m512i load_samples(const uint8_t *p)
{
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)p));
}

AVX512 static void blend_two(const uint8_t *a, const uint8_t *b, int weight, uint32_t first,
                             uint32_t end, int16_t *out)
{
    const __m512i w = _mm512_set1_epi16((short)(2 * weight < 32767 ? 2 * weight : 32767));
    for (uint32_t i = first & ~31u; i < end; i += 32) {
        __m512i va = load_samples(a + i), vb = load_samples(b + i);
        __m512i step = _mm512_slli_epi16(_mm512_sub_epi16(vb, va), 7);
        step = _mm512_mulhrs_epi16(step, w);
        _mm512_storeu_si512(out + i, _mm512_add_epi16(_mm512_slli_epi16(va, 7), step));
    }
}

AVX512 static void blend_rows(const uint8_t *const *rows, const int16_t *weights, uint32_t n_pairs,
                              uint32_t first, uint32_t end, int16_t *out)
{
    if (n_pairs == 1) {
        blend_two(rows[0], rows[1], weights[1], first, end, out);
        return;
    }
    const __m512i half = _mm512_set1_epi32(64);
    for (uint32_t i = first & ~31u; i < end; i += 32) {
        __m512i lo = half, hi = half;
        for (uint32_t t = 0; t < n_pairs; t++) {
            __m512i w = load_pair(weights + 2 * t);
            __m512i a = load_samples(rows[2 * t] + i);
            __m512i b = load_samples(rows[2 * t + 1] + i);
            lo = _mm512_add_epi32(lo, _mm512_madd_epi16(_mm512_unpacklo_epi16(a, b), w));
            hi = _mm512_add_epi32(hi, _mm512_madd_epi16(_mm512_unpackhi_epi16(a, b), w));
        }
        lo = _mm512_srai_epi32(lo, 7);
        hi = _mm512_srai_epi32(hi, 7);
        _mm512_storeu_si512(out + i, _mm512_packs_epi32(lo, hi));
    }
}

/* Sixteen outputs whose taps lie near each other. */
AVX512 static __m512i blend_group(const int16_t *in, const struct mr_axis *axis, uint32_t x,
                                  uint32_t n_pairs)
{
    const int16_t *v = in + axis->base[x / 16], *weights = axis->weights + (size_t)x * n_pairs * 2;
    __m512i low = _mm512_loadu_si512(v), high = _mm512_loadu_si512(v + 32);
    __m512i at = _mm512_loadu_si512(axis->near_index + 2 * x);
    __m512i sum = _mm512_set1_epi32(8192);
    for (uint32_t t = 0; t < n_pairs; t++) {
        __m512i taps = _mm512_permutex2var_epi16(low, at, high);
        sum = _mm512_add_epi32(sum, _mm512_madd_epi16(taps, _mm512_loadu_si512(weights + 32 * t)));
        at = _mm512_add_epi16(at, _mm512_set1_epi16(2));
    }
    return _mm512_srai_epi32(sum, 14);
}

/* Two groups at a time: packing puts their quarters in turn. */
AVX512 static inline __attribute__((always_inline)) void
blend_near(const int16_t *in, const struct mr_axis *axis, uint32_t n_pairs, int16_t *out)
{
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    uint32_t x = 0;
    for (; x + 16 < axis->spec.n_out; x += 32) {
        __m512i both = _mm512_packs_epi32(blend_group(in, axis, x, n_pairs),
                                          blend_group(in, axis, x + 16, n_pairs));
        _mm512_storeu_si512(out + x, _mm512_permutexvar_epi64(order, both));
    }
    if (x < axis->spec.n_out)
        _mm256_storeu_si256((void *)(out + x),
                            _mm512_cvtepi32_epi16(blend_group(in, axis, x, n_pairs)));
}

AVX512 static void blend_far(const int16_t *in, const struct mr_axis *axis, int16_t *out)
{
    const int16_t *weights = axis->weights;
    for (uint32_t x = 0; x < axis->spec.n_out; x += 16) {
        __m512i at = _mm512_loadu_si512(axis->start + x);
        __m512i sum = _mm512_set1_epi32(8192);
        for (uint32_t t = 0; t < axis->n_pairs; t++, weights += 32) {
            __m512i taps = _mm512_i32gather_epi32(at, in + 2 * t, 2);
            sum = _mm512_add_epi32(sum, _mm512_madd_epi16(taps, _mm512_loadu_si512(weights)));
        }
        _mm256_storeu_si256((void *)(out + x), _mm512_cvtepi32_epi16(_mm512_srai_epi32(sum, 14)));
    }
}

AVX512 static void blend_columns(const int16_t *in, const struct mr_axis *axis, int16_t *out)
{
    if (!axis->narrow)
        blend_far(in, axis, out);
    else if (axis->n_pairs == 1) /* a case of its own, so that the compiler drops the loop */
        blend_near(in, axis, 1, out);
    else
        blend_near(in, axis, axis->n_pairs, out);
}

AVX512 static __m512i clamp(__m512i v)
{
    v = _mm512_max_epi16(v, _mm512_setzero_si512());
    return _mm512_min_epi16(v, _mm512_set1_epi16(MR_VALUE_MAX));
}

AVX512 static void ycc_to_rgb(int16_t *y_r, int16_t *cb_g, int16_t *cr_b, uint32_t n)
{
    const __m512i middle = _mm512_set1_epi16(128 * 128);
    for (uint32_t i = 0; i < n; i += 32) {
        __m512i y = _mm512_loadu_si512(y_r + i);
        __m512i cb = _mm512_sub_epi16(_mm512_loadu_si512(cb_g + i), middle);
        __m512i cr = _mm512_sub_epi16(_mm512_loadu_si512(cr_b + i), middle);
        __m512i r = _mm512_add_epi16(cr, _mm512_mulhrs_epi16(cr, _mm512_set1_epi16(13173)));
        __m512i g = _mm512_add_epi16(_mm512_mulhrs_epi16(cb, _mm512_set1_epi16(11277)),
                                     _mm512_mulhrs_epi16(cr, _mm512_set1_epi16(23401)));
        __m512i b = _mm512_add_epi16(cb, _mm512_mulhrs_epi16(cb, _mm512_set1_epi16(25297)));
        _mm512_storeu_si512(y_r + i, clamp(_mm512_adds_epi16(y, r)));
        _mm512_storeu_si512(cb_g + i, clamp(_mm512_subs_epi16(y, g)));
        _mm512_storeu_si512(cr_b + i, clamp(_mm512_adds_epi16(y, b)));
    }
}

static void finish(void)
{
    _mm_sfence();
}

AVX512 static __m512 to_float(const int16_t *v, float scale, float bias)
{
    __m512i wide = _mm512_cvtepi16_epi32(_mm256_loadu_si256((const void *)v));
    __m512 f = _mm512_mul_ps(_mm512_cvtepi32_ps(wide), _mm512_set1_ps(scale));
    return _mm512_add_ps(f, _mm512_set1_ps(bias));
}

/* Store the first `n` of sixteen. */
AVX512 static void put(float *out, __m512 f, uint32_t n, int stream)
{
    if (n < 16)
        _mm512_mask_storeu_ps(out, (__mmask16)((1u << n) - 1), f);
    else if (stream)
        _mm512_stream_ps(out, f);
    else
        _mm512_storeu_ps(out, f);
}

AVX512 static void store_f32_nchw(const int16_t *const rgb[3], const struct mr_row_out *o)
{
    for (int c = 0; c < 3; c++) {
        float *out = o->at[c];
        for (uint32_t i = 0; i < o->n; i += 16)
            put(out + i, to_float(rgb[c] + i, o->scale[c], o->bias[c]), o->n - i, o->stream);
    }
}

/* Where element k of the three registers r0 g0 b0 r1 ... comes from: 0..15 red, 16..31 green, or,
 * in the second step, 0..15 what the first step put there, 16..31 blue. */
static const int32_t mix_rg[3][16] = {
    {0, 16, 0, 1, 17, 0, 2, 18, 0, 3, 19, 0, 4, 20, 0, 5},
    {21, 0, 6, 22, 0, 7, 23, 0, 8, 24, 0, 9, 25, 0, 10, 26},
    {0, 11, 27, 0, 12, 28, 0, 13, 29, 0, 14, 30, 0, 15, 31, 0},
};
static const int32_t mix_b[3][16] = {
    {0, 1, 16, 3, 4, 17, 6, 7, 18, 9, 10, 19, 12, 13, 20, 15},
    {0, 21, 2, 3, 22, 5, 6, 23, 8, 9, 24, 11, 12, 25, 14, 15},
    {26, 1, 2, 27, 4, 5, 28, 7, 8, 29, 10, 11, 30, 13, 14, 31},
};

AVX512 static void store_f32_nhwc(const int16_t *const rgb[3], const struct mr_row_out *o)
{
    float *out = o->at[0];
    for (uint32_t i = 0; i < o->n; i += 16) {
        __m512 r = to_float(rgb[0] + i, o->scale[0], o->bias[0]);
        __m512 g = to_float(rgb[1] + i, o->scale[1], o->bias[1]);
        __m512 b = to_float(rgb[2] + i, o->scale[2], o->bias[2]);
        uint32_t left = (o->n - i) * 3;
        for (uint32_t k = 0; k < 3 && 16 * k < left; k++) {
            __m512 rg = _mm512_permutex2var_ps(r, _mm512_loadu_si512(mix_rg[k]), g);
            __m512 all = _mm512_permutex2var_ps(rg, _mm512_loadu_si512(mix_b[k]), b);
            put(out + 3 * i + 16 * k, all, left - 16 * k, o->stream);
        }
    }
}

static void split_rgb(const uint8_t *rgb, uint32_t n, uint8_t *const planes[3])
{
    mr_kernels_avx2.split_rgb(rgb, n, planes);
}

static void store_u8_nchw(const int16_t *const rgb[3], const struct mr_row_out *o)
{
    mr_kernels_avx2.store_u8_nchw(rgb, o);
}

static void store_u8_nhwc(const int16_t *const rgb[3], const struct mr_row_out *o)
{
    mr_kernels_avx2.store_u8_nhwc(rgb, o);
}

const struct mr_kernels mr_kernels_avx512 = {
    .name = "avx512",
    .blend_rows = blend_rows,
    .blend_columns = blend_columns,
    .blend_values = mr_blend_values,
    .ycc_to_rgb = ycc_to_rgb,
    .split_rgb = split_rgb,
    .finish = finish,
    .store_f32_nchw = store_f32_nchw,
    .store_f32_nhwc = store_f32_nhwc,
    .store_u8_nchw = store_u8_nchw,
    .store_u8_nhwc = store_u8_nhwc,
};
#endif
