/* resize_axis.c - taps and weights along one axis, in integers.
 *
 * First the weights of pixels.  Positions are exact fractions, so nothing depends on how a compiler
 * rounds: with `begin` and `length` the part of the image that is shown, output x begins at the
 * pixel coordinate begin + x * length / n_out.
 *
 * bilinear   The centres of pixel 0 and output 0 coincide (TensorFlow 1), so x falls between two
 *            pixels, of which the second may not lie outside the shown part.
 * area       Output x is the mean over [x, x + 1) * length / n_out; a pixel weighs what it covers
 * of that (TensorFlow's resize_area).
 *
 * Then the weights of samples.  A plane may have fewer samples than the image has pixels, and
 * libjpeg would make the missing ones by repeating samples or with a triangle filter ("fancy
 * upsampling").  Both are sums of samples, so instead each pixel's weight is handed on to the
 * samples that it would have been made of.  The result is that of upsampling first, without the
 * upsampling and its rounding.
 *
 * Weights of an output always add up to MR_WEIGHT_ONE: a flat plane stays flat, and equal sizes
 * copy the plane bit for bit.  Rounding is done on running sums, so this holds even where there are
 * more samples than units to give away. */
#include "resize_axis.h"

#include <errno.h>
#include <string.h>

struct taps {
    uint32_t start, n;
};

/* ---- pixels ---- */

static struct taps bilinear_pixels(const struct mr_axis_spec *s, uint32_t x, int32_t *w)
{
    uint64_t at = (uint64_t)x * s->length;
    struct taps t = {.start = (uint32_t)(at / s->n_out), .n = 1};
    uint64_t rest = at - (uint64_t)t.start * s->n_out;
    w[0] = MR_WEIGHT_ONE;
    if (rest && t.start + 1 < s->length) {
        w[1] = (int32_t)((rest * MR_WEIGHT_ONE + s->n_out / 2) / s->n_out);
        w[0] = MR_WEIGHT_ONE - w[1];
        t.n = 2;
    }
    t.start += s->begin;
    return t;
}

static struct taps area_pixels(const struct mr_axis_spec *s, uint32_t x, int32_t *w)
{
    uint64_t unit = (uint64_t)s->n_out * s->shrink; /* a pixel of the shrunken image */
    uint64_t from = (uint64_t)s->begin * s->n_out + (uint64_t)x * s->length;
    uint64_t to = from + s->length;
    struct taps t = {.start = (uint32_t)(from / unit)};
    int32_t sum = 0;
    for (uint64_t edge = ((uint64_t)t.start + 1) * unit;; edge += unit) {
        int last = edge >= to || t.start + t.n + 1 == s->n_pixels;
        uint64_t covered = edge - from;
        int32_t next =
            last ? MR_WEIGHT_ONE : (int32_t)((covered * MR_WEIGHT_ONE + s->length / 2) / s->length);
        w[t.n++] = next - sum;
        sum = next;
        if (last)
            return t;
    }
}

static uint32_t most_pixels(const struct mr_axis_spec *s)
{
    if (s->resize != MR_RESIZE_AREA)
        return 2;
    return (uint32_t)(s->length / ((uint64_t)s->n_out * s->shrink) + 2);
}

/* ---- samples ---- */

static uint32_t sample_of(const struct mr_axis_spec *s, uint32_t pixel)
{
    uint64_t i = s->num == s->den ? pixel : (uint64_t)pixel * s->num / s->den;
    return i < s->n_samples ? (uint32_t)i : s->n_samples - 1;
}

/* The other sample of a pixel's triangle. */
static uint32_t second_sample(const struct mr_axis_spec *s, uint32_t pixel)
{
    uint32_t i = pixel / 2;
    if (pixel % 2)
        return i + 1 < s->n_samples ? i + 1 : i;
    return i ? i - 1 : 0;
}

/* Hand pixels' weights on to samples, whose weights are four times finer. */
static struct taps repeat_samples(const struct mr_axis_spec *s, struct taps p, const int32_t *pw,
                                  int32_t *sw)
{
    struct taps t = {.start = sample_of(s, p.start)};
    t.n = sample_of(s, p.start + p.n - 1) - t.start + 1;
    memset(sw, 0, t.n * sizeof *sw);
    for (uint32_t k = 0; k < p.n; k++)
        sw[sample_of(s, p.start + k) - t.start] += 4 * pw[k];
    return t;
}

static struct taps triangle_samples(const struct mr_axis_spec *s, struct taps p, const int32_t *pw,
                                    int32_t *sw)
{
    uint32_t last = p.start + p.n - 1;
    uint32_t a = sample_of(s, p.start), b = second_sample(s, p.start);
    uint32_t c = sample_of(s, last), d = second_sample(s, last);
    struct taps t = {.start = a < b ? a : b};
    t.n = (c > d ? c : d) - t.start + 1;
    memset(sw, 0, t.n * sizeof *sw);
    for (uint32_t k = 0; k < p.n; k++) {
        sw[sample_of(s, p.start + k) - t.start] += 3 * pw[k];
        sw[second_sample(s, p.start + k) - t.start] += pw[k];
    }
    return t;
}

static uint32_t most_samples(const struct mr_axis_spec *s)
{
    uint32_t n = most_pixels(s);
    return s->upsampling == MR_UPSAMPLE_TRIANGLE ? n / 2 + 2 : n;
}

/* Taps of output `out`, their weights in a->sample_weights, four times too fine. */
static struct taps taps_of(const struct mr_axis *a, const struct mr_axis_spec *s, uint32_t out)
{
    uint32_t x = s->flip ? s->n_out - 1 - out : out;
    struct taps p = s->resize == MR_RESIZE_AREA ? area_pixels(s, x, a->pixel_weights)
                                                : bilinear_pixels(s, x, a->pixel_weights);
    return s->upsampling == MR_UPSAMPLE_TRIANGLE
               ? triangle_samples(s, p, a->pixel_weights, a->sample_weights)
               : repeat_samples(s, p, a->pixel_weights, a->sample_weights);
}

/* ---- the axis ---- */

/* Divide a->memory among the arrays and clear them. */
static int lay_out(struct mr_axis *a, const struct mr_axis_spec *s)
{
    size_t n = (s->n_out + s->lanes - 1) / s->lanes * s->lanes;
    size_t n_weights = n * a->n_pairs * 2, n_groups = n / MR_AXIS_LANES + 1;
    size_t n_pixels = most_pixels(s), n_samples = most_samples(s), n_couples = n / 2;
    size_t bytes = n_weights * 2 + n * 2 * 4 + n * 2 * 2 + n_groups * 4 + n_couples * (4 + 16) +
                   (n_pixels + n_samples) * 4;
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
    at += n_groups * 4;
    a->couple_base = (uint32_t *)at;
    at += n_couples * 4;
    a->couple_shuffle = at;
    at += n_couples * 16;
    a->pixel_weights = (int32_t *)at;
    a->sample_weights = a->pixel_weights + n_pixels;
    return 0;
}

/* Where the pairs of taps lie from the lowest of their group on. */
static void index_groups(struct mr_axis *a)
{
    uint32_t n_groups = (a->spec.n_out + MR_AXIS_LANES - 1) / MR_AXIS_LANES;
    uint32_t *base = (uint32_t *)a->base;
    uint16_t *near_index = (uint16_t *)a->near_index;
    a->narrow = 1;
    for (uint32_t g = 0; g < n_groups; g++) {
        const uint32_t *start = a->start + g * MR_AXIS_LANES;
        uint32_t first = start[0], last = start[MR_AXIS_LANES - 1];
        uint32_t low = first < last ? first : last, high = first < last ? last : first;
        base[g] = low;
        if (high - low + 2 * a->n_pairs > 64)
            a->narrow = 0;
        for (uint32_t i = 0; i < MR_AXIS_LANES; i++, near_index += 2) {
            near_index[0] = (uint16_t)(start[i] - low);
            near_index[1] = (uint16_t)(start[i] - low + 1);
        }
    }
}

/* The shuffle that moves four bytes from value `first`, and four from value `second`, to one half.
 */
static void shuffle_couple(uint32_t first, uint32_t second, unsigned half, uint8_t *shuffle)
{
    memset(shuffle, 0x80, 16); /* a zero */
    for (unsigned i = 0; i < 4; i++) {
        shuffle[8 * half + i] = (uint8_t)(2 * first + i);
        shuffle[8 * half + 4 + i] = (uint8_t)(2 * second + i);
    }
}

static void index_couples(struct mr_axis *a)
{
    const uint32_t most = 16 / sizeof(int16_t) - 2; /* values from the base to a pair of taps */
    uint32_t n = (a->spec.n_out + MR_AXIS_LANES - 1) / MR_AXIS_LANES * MR_AXIS_LANES / 2;
    uint32_t *base = (uint32_t *)a->couple_base;
    uint8_t *shuffle = (uint8_t *)a->couple_shuffle;
    a->close = 1;
    for (uint32_t i = 0; i < n && a->close; i++) {
        uint32_t first = a->start[2 * i], second = a->start[2 * i + 1];
        base[i] = first < second ? first : second;
        a->close = first - base[i] <= most && second - base[i] <= most;
        uint32_t at = i / 4 * 4 + i % 2 * 2 + i / 2 % 2;
        shuffle_couple(first - base[i], second - base[i], i % 2, shuffle + 16 * at);
    }
}

/* Round the running sums of the weights and write their differences, `step` from pair to pair. */
static void put_weights(const int32_t *fine, uint32_t n, int16_t *w, size_t step)
{
    int32_t sum = 0, before = 0;
    for (uint32_t k = 0; k < n; k++) {
        sum += fine[k];
        int32_t rounded = (sum + 2) >> 2;
        w[k / 2 * step + k % 2] = (int16_t)(rounded - before);
        before = rounded;
    }
}

int mr_axis_build(struct mr_axis *a, const struct mr_axis_spec *s)
{
    if (a->spec.n_out && !memcmp(&a->spec, s, sizeof *s))
        return 0;
    a->spec.n_out = 0;
    a->n_pairs = (most_samples(s) + 1) / 2;
    int r = lay_out(a, s);
    if (r)
        return r;
    uint32_t *start = (uint32_t *)a->start, *n_taps = (uint32_t *)a->n_taps;
    int16_t *weights = (int16_t *)a->weights;
    a->first = s->n_samples;
    a->end = 0;
    for (uint32_t i = 0; i < s->n_out; i++) {
        struct taps t = taps_of(a, s, i);
        size_t group = i / s->lanes, lane = i % s->lanes;
        start[i] = t.start;
        n_taps[i] = t.n;
        put_weights(a->sample_weights, t.n, weights + (group * a->n_pairs * s->lanes + lane) * 2,
                    (size_t)s->lanes * 2);
        a->first = t.start < a->first ? t.start : a->first;
        a->end = t.start + t.n > a->end ? t.start + t.n : a->end;
    }
    /* Outputs that only fill the last group read where the last real one does. */
    for (uint32_t i = s->n_out; i % s->lanes; i++)
        start[i] = start[i - 1];
    a->spec = *s;
    if (s->lanes == MR_AXIS_LANES) {
        index_groups(a);
        index_couples(a);
    }
    return 0;
}

void mr_axis_fini(struct mr_axis *a)
{
    mr_buffer_fini(&a->memory);
    a->spec.n_out = 0;
}
