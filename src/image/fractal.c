/* fractal.c - noise on a pyramid.
 *
 * Photographs have about the same energy in every octave of spatial frequency.  A field starts as
 * nothing at the coarsest level; every step down doubles it in both directions by interpolation
 * and adds fresh random values of the finer spacing.  All levels together cost a third more than
 * the finest one, and repeated interpolation makes the coarse structure smooth.
 *
 *     level k has (width >> k) + 3 columns and as many rows more than it shows: one is there for
 *     an odd width, two since
 *     doubling looks at the next sample
 *
 * Integers only, so the field is the same whatever the compiler. */
#include "fractal.h"

#include "draw.h"

#include <errno.h>
#include <string.h>

#define CHUNK 64

struct level {
    int16_t *at;
    unsigned width, height;
    size_t stride;
};

/* Up to CHUNK values, eight from one scramble. */
static inline void add_chunk(int16_t *row, uint64_t key, int16_t amplitude, unsigned n)
{
    uint64_t bits[CHUNK / 8];
    int8_t value[CHUNK];
    for (unsigned i = 0; i < CHUNK / 8; i++)
        bits[i] = mr_mix(key + i);
    memcpy(value, bits, sizeof value);
    for (unsigned i = 0; i < n; i++)
        row[i] = (int16_t)(row[i] + (int16_t)(value[i] * amplitude));
}

static void add_noise(struct level l, uint64_t key, int16_t amplitude)
{
    unsigned x, whole = l.width / CHUNK * CHUNK;
    for (unsigned y = 0; y < l.height; y++) {
        int16_t *row = l.at + y * l.stride;
        uint64_t row_key = mr_mix(key + y);
        for (x = 0; x < whole; x += CHUNK)
            add_chunk(row + x, row_key + x, amplitude, CHUNK);
        add_chunk(row + x, row_key + x, amplitude, l.width - whole);
    }
}

/* One row of the finer level, its columns doubled: the nearer coarse row weighs 3, the farther 1,
 * and so do columns. */
static void double_row(const int16_t *restrict near, const int16_t *restrict far, unsigned width,
                       int16_t *restrict out)
{
    for (unsigned x = 0; x < width / 2; x++) {
        int here = near[x] * 3 + far[x], next = near[x + 1] * 3 + far[x + 1];
        out[2 * x] = (int16_t)((3 * here + next) >> 4);
        out[2 * x + 1] = (int16_t)((here + 3 * next) >> 4);
    }
    if (width & 1)
        out[width - 1] = (int16_t)((near[width / 2] * 3 + far[width / 2]) >> 2);
}

static void double_level(struct level from, struct level to)
{
    for (unsigned y = 0; y < to.height; y++) {
        const int16_t *a = from.at + (y / 2) * from.stride, *b = a + from.stride;
        double_row(y & 1 ? b : a, y & 1 ? a : b, to.width, to.at + y * to.stride);
    }
}

static struct level coarse_level(struct mr_fractal_scratch *s, unsigned k, unsigned width,
                                 unsigned height)
{
    struct level l = {(int16_t *)s->coarse[k & 1].data, (width >> k) + 3, (height >> k) + 3, 0};
    l.stride = l.width;
    return l;
}

int mr_fractal_fill(const struct mr_fractal *f, struct mr_fractal_scratch *scratch, unsigned width,
                    unsigned height, size_t stride, int16_t *out)
{
    size_t most = ((size_t)width / 2 + 3) * ((size_t)height / 2 + 3) * sizeof(int16_t);
    if (mr_buffer_reserve(&scratch->coarse[0], most) ||
        mr_buffer_reserve(&scratch->coarse[1], most))
        return -ENOMEM;
    struct level l = {NULL, 0, 0, 0};
    for (unsigned k = MR_FRACTAL_LEVELS; k-- > 0;) {
        struct level finer = k ? coarse_level(scratch, k, width, height)
                               : (struct level){out, width, height, stride};
        if (l.at)
            double_level(l, finer);
        else if (f->amplitude[k] || !k)
            for (unsigned y = 0; y < finer.height; y++)
                memset(finer.at + y * finer.stride, 0, finer.width * sizeof(int16_t));
        else
            continue;
        if (f->amplitude[k])
            add_noise(finer, mr_mix(f->key + k), f->amplitude[k]);
        l = finer;
    }
    return 0;
}

void mr_fractal_scratch_fini(struct mr_fractal_scratch *scratch)
{
    mr_buffer_fini(&scratch->coarse[0]);
    mr_buffer_fini(&scratch->coarse[1]);
}
