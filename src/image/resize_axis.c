/* resize_axis.c - taps and weights along one axis, in integers.
 *
 * Positions are exact fractions, so nothing depends on how a compiler rounds.  With `begin` and
 * `length` the part of the image that is shown, output x begins at the pixel coordinate
 *
 *     begin + x * length / n_out
 *
 * and a plane has num/den samples a pixel (1/1 for luma, 1/2 for halved chroma, less after a scaled
 * inverse transform).
 *
 * bilinear   Pixel centres of input and output 0 coincide (TensorFlow 1), so x falls between the
 *            samples lo and lo + 1.  A chroma sample sits in the middle of the pixels it covers:
 *            its coordinate is (pixel + 1/2) * num/den - 1/2.  That is the line on which libjpeg's
 *            "fancy" upsampling puts its values.  Where libjpeg replicates chroma samples instead,
 *            `replicate` takes the samples that cover the pixels lo and lo + 1.
 * area       Output x is the mean over [x, x + 1) * length / n_out; a sample weighs what it covers
 *            of that (TensorFlow's resize_area).
 *
 * Weights of an output always add up to MR_WEIGHT_ONE: a flat plane stays flat, and equal sizes
 * copy the plane bit for bit.  Area weights are differences of a rounded running sum, so they do so
 * even where there are more samples than units to give away. */
#include "resize_axis.h"

#include <errno.h>
#include <string.h>

struct taps {
    uint32_t start, n;
    uint32_t frac; /* bilinear: the weight of the second tap */
};

/* The samples that the shown part of the image covers: what lies outside has no weight. */
struct bounds {
    uint32_t first, last;
};

static struct bounds shown_samples(const struct mr_axis_spec *s)
{
    uint64_t end = (uint64_t)s->begin + s->length;
    struct bounds b = {
        .first = (uint32_t)((uint64_t)s->begin * s->num / s->den),
        .last = (uint32_t)((end * s->num + s->den - 1) / s->den - 1),
    };
    if (b.last > s->n_in - 1)
        b.last = s->n_in - 1;
    if (b.first > b.last)
        b.first = b.last;
    return b;
}

static struct taps replicated_taps(const struct mr_axis_spec *s, uint32_t x)
{
    uint64_t at = (uint64_t)x * s->length;
    uint32_t lo = s->begin + (uint32_t)(at / s->n_out);
    uint32_t hi = lo + 1 < s->begin + s->length ? lo + 1 : lo;
    struct taps t = {.start = (uint32_t)((uint64_t)lo * s->num / s->den), .n = 1};
    if ((uint64_t)hi * s->num / s->den > t.start) {
        t.n = 2;
        t.frac = (uint32_t)(((at % s->n_out) * MR_WEIGHT_ONE + s->n_out / 2) / s->n_out);
    }
    return t;
}

static struct taps bilinear_taps(const struct mr_axis_spec *s, struct bounds b, uint32_t x)
{
    if (s->replicate)
        return replicated_taps(s, x);
    /* (pixel + 1/2) * num / den - 1/2 over the common denominator 2 * n_out * den */
    int64_t pixel = (int64_t)s->begin * s->n_out + (int64_t)x * s->length;
    int64_t pos = (2 * pixel + s->n_out) * s->num - (int64_t)s->n_out * s->den;
    int64_t unit = 2 * (int64_t)s->n_out * s->den;
    if (pos < b.first * unit)
        return (struct taps){.start = b.first, .n = 1};
    if (pos >= b.last * unit)
        return (struct taps){.start = b.last, .n = 1};
    struct taps t = {.start = (uint32_t)(pos / unit), .n = 2};
    int64_t rest = pos - t.start * unit;
    t.frac = (uint32_t)((rest * MR_WEIGHT_ONE + unit / 2) / unit);
    return t;
}

static struct taps area_taps(const struct mr_axis_spec *s, struct bounds b, uint32_t x)
{
    uint64_t unit = (uint64_t)s->n_out * s->den; /* one sample */
    uint64_t from = ((uint64_t)s->begin * s->n_out + (uint64_t)x * s->length) * s->num;
    uint64_t to = from + (uint64_t)s->length * s->num;
    uint64_t first = from / unit, last = (to + unit - 1) / unit - 1;
    if (first > b.last)
        first = b.last;
    if (last > b.last)
        last = b.last;
    return (struct taps){.start = (uint32_t)first, .n = (uint32_t)(last - first + 1)};
}

static struct taps taps_of(const struct mr_axis_spec *s, struct bounds b, uint32_t out)
{
    uint32_t x = s->flip ? s->n_out - 1 - out : out;
    return s->resize == MR_RESIZE_AREA ? area_taps(s, b, x) : bilinear_taps(s, b, x);
}

/* Weight of all taps before sample `i` of area output x. */
static uint32_t area_sum(const struct mr_axis_spec *s, uint32_t x, uint64_t i)
{
    uint64_t unit = (uint64_t)s->n_out * s->den;
    uint64_t from = ((uint64_t)s->begin * s->n_out + (uint64_t)x * s->length) * s->num;
    uint64_t size = (uint64_t)s->length * s->num;
    uint64_t covered = i * unit <= from ? 0 : i * unit - from;
    if (covered > size)
        covered = size;
    return (uint32_t)((covered * MR_WEIGHT_ONE + size / 2) / size);
}

/* Write weight k of an output to w[k / 2 * step + k % 2]. */
static void put_weights(const struct mr_axis_spec *s, struct taps t, uint32_t out, int16_t *w,
                        size_t step)
{
    if (s->resize != MR_RESIZE_AREA) {
        w[0] = (int16_t)(MR_WEIGHT_ONE - t.frac);
        w[1] = (int16_t)t.frac;
        return;
    }
    uint32_t x = s->flip ? s->n_out - 1 - out : out;
    uint32_t sum = 0;
    for (uint32_t k = 0; k < t.n; k++) {
        uint32_t next = k + 1 == t.n ? MR_WEIGHT_ONE : area_sum(s, x, (uint64_t)t.start + k + 1);
        w[k / 2 * step + k % 2] = (int16_t)(next - sum);
        sum = next;
    }
}

static uint32_t most_pairs(const struct mr_axis_spec *s)
{
    if (s->resize != MR_RESIZE_AREA)
        return 1;
    uint64_t unit = (uint64_t)s->n_out * s->den;
    return (uint32_t)(((uint64_t)s->length * s->num / unit + 2 + 1) / 2);
}

/* Divide a->memory among the arrays and clear them. */
static int lay_out(struct mr_axis *a, const struct mr_axis_spec *s)
{
    size_t n = (s->n_out + s->lanes - 1) / s->lanes * s->lanes;
    size_t n_weights = n * a->n_pairs * 2, n_groups = n / MR_AXIS_LANES + 1;
    size_t bytes = n_weights * 2 + n * 2 * 4 + n * 2 * 2 + n_groups * 4;
    int r = mr_buffer_reserve(&a->memory, bytes);
    if (r)
        return r;
    memset(a->memory.data, 0, bytes);
    uint8_t *at = a->memory.data;
    a->weights = (int16_t *)at;
    at += n_weights * 2;
    a->near_index = (uint16_t *)at;
    at += n * 2 * 2;
    a->start = (uint32_t *)at;
    at += n * 4;
    a->n_taps = (uint32_t *)at;
    at += n * 4;
    a->base = (uint32_t *)at;
    return 0;
}

static void index_groups(struct mr_axis *a)
{
    uint32_t n_groups = (a->spec.n_out + MR_AXIS_LANES - 1) / MR_AXIS_LANES;
    uint32_t *base = (uint32_t *)a->base;
    uint16_t *near_index = (uint16_t *)a->near_index;
    a->narrow = 1;
    for (uint32_t g = 0; g < n_groups; g++) {
        const uint32_t *start = a->start + g * MR_AXIS_LANES;
        uint32_t low = start[0], high = start[0];
        for (uint32_t i = 1; i < MR_AXIS_LANES; i++) {
            low = start[i] < low ? start[i] : low;
            high = start[i] > high ? start[i] : high;
        }
        base[g] = low;
        if (high - low + 2 * a->n_pairs > 64)
            a->narrow = 0;
        for (uint32_t i = 0; i < MR_AXIS_LANES; i++) {
            near_index[(g * MR_AXIS_LANES + i) * 2] = (uint16_t)(start[i] - low);
            near_index[(g * MR_AXIS_LANES + i) * 2 + 1] = (uint16_t)(start[i] - low + 1);
        }
    }
}

int mr_axis_build(struct mr_axis *a, const struct mr_axis_spec *s)
{
    if (a->spec.n_out && !memcmp(&a->spec, s, sizeof *s))
        return 0;
    a->spec.n_out = 0;
    a->n_pairs = most_pairs(s);
    int r = lay_out(a, s);
    if (r)
        return r;
    struct bounds b = shown_samples(s);
    uint32_t *start = (uint32_t *)a->start, *n_taps = (uint32_t *)a->n_taps;
    int16_t *weights = (int16_t *)a->weights;
    a->first = s->n_in;
    a->end = 0;
    for (uint32_t i = 0; i < s->n_out; i++) {
        struct taps t = taps_of(s, b, i);
        uint32_t group = i / s->lanes, lane = i % s->lanes;
        start[i] = t.start;
        n_taps[i] = t.n;
        put_weights(s, t, i, weights + ((size_t)group * a->n_pairs * s->lanes + lane) * 2,
                    (size_t)s->lanes * 2);
        a->first = t.start < a->first ? t.start : a->first;
        a->end = t.start + t.n > a->end ? t.start + t.n : a->end;
    }
    /* Outputs that only fill the last group read where the last real one does. */
    for (uint32_t i = s->n_out; i % s->lanes; i++)
        start[i] = start[i - 1];
    a->spec = *s;
    if (s->lanes == MR_AXIS_LANES)
        index_groups(a);
    return 0;
}

void mr_axis_fini(struct mr_axis *a)
{
    mr_buffer_fini(&a->memory);
    a->spec.n_out = 0;
}
