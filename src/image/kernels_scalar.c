/* kernels_scalar.c - the inner loops in plain C: the definition that the others must match, and
 * what runs where there is no AVX2.
 *
 * Compilers make vectors of these loops, 128 bits on any x86-64 and aarch64, if they are written
 * for it: products of 16 bits by 16, minima and maxima in 16 bits, pointers that do not alias, no
 * inner loop of unknown length. */
#include "kernels.h"

#include <stddef.h>

#define COLUMNS 64 /* that are summed up together */

/* The rounded high half of a product, as the processor's pmulhrsw computes it. */
static inline int16_t mul_round(int16_t a, int16_t b)
{
    return (int16_t)((((a * b) >> 14) + 1) >> 1);
}

/* Between two rows in 16 bits: the weight of the second has 15 bits there, so 1 is out of reach.
 * mul_round of the difference times 128, less what cancels out. */
static void blend_two(const uint8_t *restrict a, const uint8_t *restrict b, int weight,
                      uint32_t first, uint32_t end, int16_t *restrict out)
{
    int16_t w = (int16_t)(2 * weight < 32767 ? 2 * weight : 32767);
    for (uint32_t i = first; i < end; i++) {
        int16_t step = (int16_t)(b[i] - a[i]);
        out[i] = (int16_t)(a[i] * 128 + ((((step * w) >> 7) + 1) >> 1));
    }
}

static void blend_four(const uint8_t *const *rows, const int16_t *weights, uint32_t first,
                       uint32_t end, int16_t *restrict out)
{
    const uint8_t *restrict a = rows[0], *restrict b = rows[1];
    const uint8_t *restrict c = rows[2], *restrict d = rows[3];
    int16_t wa = weights[0], wb = weights[1], wc = weights[2], wd = weights[3];
    for (uint32_t i = first; i < end; i++)
        out[i] = (int16_t)((64 + a[i] * wa + b[i] * wb + c[i] * wc + d[i] * wd) >> 7);
}

static void blend_many(const uint8_t *const *rows, const int16_t *weights, uint32_t n_rows,
                       uint32_t n, uint32_t first, int16_t *restrict out)
{
    int32_t sum[COLUMNS];
    for (uint32_t i = 0; i < n; i++)
        sum[i] = 64;
    for (uint32_t t = 0; t < n_rows; t++) {
        const uint8_t *restrict row = rows[t] + first;
        int16_t w = weights[t];
        for (uint32_t i = 0; i < n; i++)
            sum[i] += row[i] * w;
    }
    for (uint32_t i = 0; i < n; i++)
        out[first + i] = (int16_t)(sum[i] >> 7);
}

static void blend_rows(const uint8_t *const *rows, const int16_t *weights, uint32_t n_pairs,
                       uint32_t first, uint32_t end, int16_t *out)
{
    if (n_pairs == 1)
        blend_two(rows[0], rows[1], weights[1], first, end, out);
    else if (n_pairs == 2)
        blend_four(rows, weights, first, end, out);
    else
        for (uint32_t i = first; i < end; i += COLUMNS)
            blend_many(rows, weights, 2 * n_pairs, end - i < COLUMNS ? end - i : COLUMNS, i, out);
}

/* Whole groups of outputs: those behind the last have a place to go. */
static inline void blend_pairs(const int16_t *restrict in, const struct mr_axis *axis,
                               uint32_t n_pairs, int16_t *restrict out)
{
    const uint32_t *start = axis->start;
    const int16_t *w = axis->weights;
    for (uint32_t x = 0; x < axis->spec.n_out; x += MR_AXIS_LANES, w += 32 * (size_t)n_pairs)
        for (uint32_t lane = 0; lane < MR_AXIS_LANES; lane++) {
            const int16_t *v = in + start[x + lane];
            int sum = 8192;
            for (uint32_t t = 0; t < n_pairs; t++)
                sum += v[2 * t] * w[32 * t + 2 * lane] + v[2 * t + 1] * w[32 * t + 2 * lane + 1];
            out[x + lane] = (int16_t)(sum >> 14);
        }
}

static void blend_columns(const int16_t *restrict in, const struct mr_axis *axis,
                          int16_t *restrict out)
{
    if (axis->n_pairs == 1)
        blend_pairs(in, axis, 1, out);
    else if (axis->n_pairs == 2)
        blend_pairs(in, axis, 2, out);
    else
        blend_pairs(in, axis, axis->n_pairs, out);
}

void mr_blend_values(const int16_t *const *rows, const int16_t *weights, uint32_t n_taps,
                     uint32_t n, int16_t *out)
{
    for (uint32_t i = 0; i < n; i++) {
        int32_t sum = 8192;
        for (uint32_t t = 0; t < n_taps; t++)
            sum += rows[t][i] * weights[t];
        out[i] = (int16_t)(sum >> 14);
    }
}

/* y + v between 0 and MR_VALUE_MAX, without leaving 16 bits. */
static inline int16_t add_clamped(int16_t y, int16_t v)
{
    int16_t least = (int16_t)-y, most = (int16_t)(MR_VALUE_MAX - y);
    v = v < least ? least : v;
    v = v > most ? most : v;
    return (int16_t)(y + v);
}

/* R = Y + 1.402 Cr, G = Y - 0.344136 Cb - 0.714136 Cr, B = Y + 1.772 Cb, in 1/32768. */
static void ycc_to_rgb(int16_t *restrict y_r, int16_t *restrict cb_g, int16_t *restrict cr_b,
                       uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        int16_t y = y_r[i], cb = (int16_t)(cb_g[i] - 128 * 128),
                cr = (int16_t)(cr_b[i] - 128 * 128);
        y_r[i] = add_clamped(y, (int16_t)(cr + mul_round(cr, 13173)));
        cb_g[i] = add_clamped(y, (int16_t)(-mul_round(cb, 11277) - mul_round(cr, 23401)));
        cr_b[i] = add_clamped(y, (int16_t)(cb + mul_round(cb, 25297)));
    }
}

static void split_rgb(const uint8_t *rgb, uint32_t n, uint8_t *const planes[3])
{
    for (uint32_t i = 0; i < n; i++) {
        planes[0][i] = rgb[3 * i];
        planes[1][i] = rgb[3 * i + 1];
        planes[2][i] = rgb[3 * i + 2];
    }
}

static void finish(void)
{
}

static void store_f32_nchw(const int16_t *const rgb[3], const struct mr_row_out *o)
{
    for (int c = 0; c < 3; c++) {
        float *restrict out = o->at[c];
        const int16_t *restrict v = rgb[c];
        float scale = o->scale[c], bias = o->bias[c];
        uint32_t n = o->n;
        for (uint32_t i = 0; i < n; i++)
            out[i] = (float)v[i] * scale + bias;
    }
}

static void store_f32_nhwc(const int16_t *const rgb[3], const struct mr_row_out *o)
{
    float *restrict out = o->at[0];
    const int16_t *restrict r = rgb[0], *restrict g = rgb[1], *restrict b = rgb[2];
    const float scale[3] = {o->scale[0], o->scale[1], o->scale[2]};
    const float bias[3] = {o->bias[0], o->bias[1], o->bias[2]};
    uint32_t n = o->n;
    for (uint32_t i = 0; i < n; i++) {
        out[3 * i] = (float)r[i] * scale[0] + bias[0];
        out[3 * i + 1] = (float)g[i] * scale[1] + bias[1];
        out[3 * i + 2] = (float)b[i] * scale[2] + bias[2];
    }
}

static void store_u8_nchw(const int16_t *const rgb[3], const struct mr_row_out *o)
{
    for (int c = 0; c < 3; c++) {
        uint8_t *restrict out = o->at[c];
        const int16_t *restrict v = rgb[c];
        uint32_t n = o->n;
        for (uint32_t i = 0; i < n; i++)
            out[i] = (uint8_t)((v[i] + 64) >> 7);
    }
}

static void store_u8_nhwc(const int16_t *const rgb[3], const struct mr_row_out *o)
{
    uint8_t *restrict out = o->at[0];
    const int16_t *restrict r = rgb[0], *restrict g = rgb[1], *restrict b = rgb[2];
    uint32_t n = o->n;
    for (uint32_t i = 0; i < n; i++) {
        out[3 * i] = (uint8_t)((r[i] + 64) >> 7);
        out[3 * i + 1] = (uint8_t)((g[i] + 64) >> 7);
        out[3 * i + 2] = (uint8_t)((b[i] + 64) >> 7);
    }
}

const struct mr_kernels mr_kernels_scalar = {
    .name = "scalar",
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
