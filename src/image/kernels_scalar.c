/* kernels_scalar.c - the inner loops in plain C: the definition that the others must match, and
 * what runs where there is no AVX2. */
#include "kernels.h"

#include <stddef.h>

/* The rounded high half of a product, as the processor's pmulhrsw computes it. */
static int mul_round(int a, int b)
{
    return (((a * b) >> 14) + 1) >> 1;
}

/* Between two rows in 16 bits: the weight of the second has 15 bits there, so 1 is out of reach. */
static void blend_two(const uint8_t *restrict a, const uint8_t *restrict b, int weight,
                      uint32_t first, uint32_t end, int16_t *restrict out)
{
    int w = 2 * weight < 32767 ? 2 * weight : 32767;
    for (uint32_t i = first; i < end; i++)
        out[i] = (int16_t)(a[i] * 128 + mul_round((b[i] - a[i]) * 128, w));
}

static void blend_rows(const uint8_t *const *rows, const int16_t *weights, uint32_t n_pairs,
                       uint32_t first, uint32_t end, int16_t *out)
{
    if (n_pairs == 1) {
        blend_two(rows[0], rows[1], weights[1], first, end, out);
        return;
    }
    for (uint32_t i = first; i < end; i++) {
        int sum = 64;
        for (uint32_t t = 0; t < 2 * n_pairs; t++)
            sum += rows[t][i] * weights[t];
        out[i] = (int16_t)(sum >> 7);
    }
}

static void blend_columns(const int16_t *restrict in, const struct mr_axis *axis,
                          int16_t *restrict out)
{
    for (uint32_t x = 0; x < axis->spec.n_out; x++) {
        const int16_t *w = axis->weights + (size_t)(x / MR_AXIS_LANES) * axis->n_pairs * 32 +
                           x % MR_AXIS_LANES * 2;
        const int16_t *v = in + axis->start[x];
        int sum = 8192;
        for (uint32_t t = 0; t < axis->n_pairs; t++)
            sum += v[2 * t] * w[32 * t] + v[2 * t + 1] * w[32 * t + 1];
        out[x] = (int16_t)(sum >> 14);
    }
}

static int16_t clamp(int v)
{
    return (int16_t)(v < 0 ? 0 : v > MR_VALUE_MAX ? MR_VALUE_MAX : v);
}

/* R = Y + 1.402 Cr, G = Y - 0.344136 Cb - 0.714136 Cr, B = Y + 1.772 Cb, in 1/32768. */
static void ycc_to_rgb(int16_t *restrict y_r, int16_t *restrict cb_g, int16_t *restrict cr_b,
                       uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        int y = y_r[i], cb = cb_g[i] - 128 * 128, cr = cr_b[i] - 128 * 128;
        y_r[i] = clamp(y + cr + mul_round(cr, 13173));
        cb_g[i] = clamp(y - mul_round(cb, 11277) - mul_round(cr, 23401));
        cr_b[i] = clamp(y + cb + mul_round(cb, 25297));
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
        float *out = o->at[c];
        const int16_t *v = rgb[c];
        for (uint32_t i = 0; i < o->n; i++)
            out[i] = (float)v[i] * o->scale[c] + o->bias[c];
    }
}

static void store_f32_nhwc(const int16_t *const rgb[3], const struct mr_row_out *o)
{
    float *out = o->at[0];
    for (uint32_t i = 0; i < o->n; i++)
        for (int c = 0; c < 3; c++)
            out[3 * i + c] = (float)rgb[c][i] * o->scale[c] + o->bias[c];
}

static void store_u8_nchw(const int16_t *const rgb[3], const struct mr_row_out *o)
{
    for (int c = 0; c < 3; c++) {
        uint8_t *out = o->at[c];
        for (uint32_t i = 0; i < o->n; i++)
            out[i] = (uint8_t)((rgb[c][i] + 64) >> 7);
    }
}

static void store_u8_nhwc(const int16_t *const rgb[3], const struct mr_row_out *o)
{
    uint8_t *out = o->at[0];
    for (uint32_t i = 0; i < o->n; i++)
        for (int c = 0; c < 3; c++)
            out[3 * i + c] = (uint8_t)((rgb[c][i] + 64) >> 7);
}

const struct mr_kernels mr_kernels_scalar = {
    .name = "scalar",
    .blend_rows = blend_rows,
    .blend_columns = blend_columns,
    .ycc_to_rgb = ycc_to_rgb,
    .split_rgb = split_rgb,
    .finish = finish,
    .store_f32_nchw = store_f32_nchw,
    .store_f32_nhwc = store_f32_nhwc,
    .store_u8_nchw = store_u8_nchw,
    .store_u8_nhwc = store_u8_nhwc,
};
