/* painter.c - compose a picture: a background, things in front of it, texture over all.
 *
 *     field    slow random shading, one value a pixel          -> which colour of a palette
 *     base     Y, Cb, Cr as palettes and things give them      16 units a grey level
 *     rough    how much texture a place has: sky little, grass much; things bring their own
 *     detail   Y, Cb, Cr texture times `rough`                 16 units a grey level
 *     mixed    base + gain * detail, as bytes
 *
 * What a class shares comes from class_id alone, so two sets with different seeds can train and
 * test the same network: colours of background and thing, its shape, the direction and width of
 * the stripes on it, how many there are.  Place, size, tilt, light, bystanders and texture come
 * from the scene's key.
 *
 * Integers only: the same scene gives the same bytes whatever the compiler. */
#include "painter.h"

#include "draw.h"
#include "fractal.h"
#include "scene.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_SIDE 65500
#define TILE_WIDTH   64
#define TILE_HEIGHT  16
#define TILES_ACROSS 4
#define LEAST_SAMPLE (20u << 10) /* pixels; fewer are not typical */

struct mr_painter {
    struct mr_scene scene;
    struct mr_canvas canvas;
    struct mr_buffer planes; /* field, rough, base x 3, detail x 3, then mixed x 3 */
    struct mr_fractal_scratch scratch;
    int16_t *detail[3];
    uint8_t *mixed[3];
};

int mr_painter_new(struct mr_painter **out)
{
    struct mr_painter *p = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    *out = p;
    return 0;
}

void mr_painter_free(struct mr_painter *p)
{
    if (!p)
        return;
    mr_buffer_fini(&p->planes);
    mr_fractal_scratch_fini(&p->scratch);
    free(p);
}

static int make_room(struct mr_painter *p, const struct mr_scene *s)
{
    struct mr_canvas *c = &p->canvas;
    size_t stride = ((size_t)s->width + 15) & ~(size_t)15, n = stride * s->height;
    if (mr_buffer_reserve(&p->planes, 8 * n * sizeof(int16_t) + 3 * n))
        return -ENOMEM;
    int16_t *at = (int16_t *)p->planes.data;
    c->width = s->width;
    c->height = s->height;
    c->stride = stride;
    c->field = at;
    c->rough = at + n;
    for (int k = 0; k < 3; k++) {
        c->base[k] = at + (size_t)(2 + k) * n;
        p->detail[k] = at + (size_t)(5 + k) * n;
        p->mixed[k] = (uint8_t *)(at + 8 * n) + (size_t)k * n;
    }
    p->scene = *s;
    return 0;
}

static int fill(struct mr_painter *p, uint64_t use, const uint8_t *amplitude, int16_t *out)
{
    struct mr_fractal f = {.key = mr_mix(p->scene.key + use)};
    memcpy(f.amplitude, amplitude, sizeof f.amplitude);
    return mr_fractal_fill(&f, &p->scratch, p->canvas.width, p->canvas.height, p->canvas.stride,
                           out);
}

/* Texture everywhere, as rough as each place is.  Colour has a quarter of the energy and none of
 * the finest grain: cameras and eyes see less of it. */
static int paint_detail(struct mr_painter *p)
{
    static const uint8_t luma[MR_FRACTAL_LEVELS] = {6, 13, 14, 12, 9};
    static const uint8_t colour[MR_FRACTAL_LEVELS] = {1, 5, 3, 1, 0};
    struct mr_canvas *c = &p->canvas;
    for (int k = 0; k < 3; k++) {
        int16_t *detail = p->detail[k];
        int r = fill(p, (uint64_t)(10 + k), k ? colour : luma, detail);
        if (r)
            return r;
        for (size_t i = 0; i < c->stride * c->height; i++)
            detail[i] = (int16_t)((detail[i] * c->rough[i]) >> 11);
    }
    return 0;
}

/* From a field around 0 to a share of texture, 12 .. 265, mostly far below the middle. */
static void shape_roughness(struct mr_canvas *c)
{
    for (size_t i = 0; i < c->stride * c->height; i++) {
        int v = 128 + (c->rough[i] >> 4);
        v = v < 0 ? 0 : v > 255 ? 255 : v;
        c->rough[i] = (int16_t)(12 + ((v * v * v) >> 16));
    }
}

int mr_painter_paint(struct mr_painter *p, const struct mr_scene *scene)
{
    uint8_t busy = (uint8_t)(scene->busy >> 5);
    const uint8_t slow[MR_FRACTAL_LEVELS] = {0, 0, busy / 4, busy / 2, 2 + busy / 2, 6, 12, 20};
    static const uint8_t patches[MR_FRACTAL_LEVELS] = {0, 0, 0, 4, 6, 8, 10, 12};
    if (!scene->width || !scene->height || scene->width > LONGEST_SIDE ||
        scene->height > LONGEST_SIDE)
        return -EINVAL;
    int r = make_room(p, scene);
    if (!r)
        r = fill(p, 1, slow, p->canvas.field);
    if (!r)
        r = fill(p, 2, patches, p->canvas.rough);
    if (r)
        return r;
    shape_roughness(&p->canvas);
    mr_scene_compose(scene, &p->canvas);
    return paint_detail(p);
}

/* One row of `n` pixels from (x, y) on, all three planes. */
static void mix_row(const struct mr_painter *p, unsigned gain, unsigned x, unsigned y, unsigned n,
                    uint8_t *const out[3], size_t at)
{
    size_t from = y * p->canvas.stride + x;
    int16_t times = (int16_t)(gain < MR_GAIN_MOST ? gain : MR_GAIN_MOST); /* 16 bits for SIMD */
    for (int k = 0; k < 3; k++) {
        const int16_t *restrict base = p->canvas.base[k] + from;
        const int16_t *restrict detail = p->detail[k] + from;
        uint8_t *restrict to = out[k] + at;
        for (unsigned i = 0; i < n; i++) {
            int v = (base[i] + ((detail[i] * times) >> 8)) >> 4;
            to[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
        }
    }
}

static void show(const struct mr_painter *p, unsigned width, unsigned height, size_t stride,
                 struct mr_pixels *out)
{
    *out = (struct mr_pixels){.layout = MR_PIXELS_YCC,
                              .width = width,
                              .height = height,
                              .stride_bytes = stride,
                              .plane = {p->mixed[0], p->mixed[1], p->mixed[2]}};
}

void mr_painter_mix(struct mr_painter *p, unsigned gain, struct mr_pixels *out)
{
    const struct mr_canvas *c = &p->canvas;
    for (unsigned y = 0; y < c->height; y++)
        mix_row(p, gain, 0, y, c->width, p->mixed, y * c->stride);
    show(p, c->width, c->height, c->stride, out);
}

void mr_painter_mix_sample(struct mr_painter *p, unsigned gain, unsigned part,
                           struct mr_pixels *out)
{
    const struct mr_canvas *c = &p->canvas;
    unsigned across = TILES_ACROSS * TILE_WIDTH;
    size_t n_pixels = (size_t)c->width * c->height;
    size_t n_sample = n_pixels / part > LEAST_SAMPLE ? n_pixels / part : LEAST_SAMPLE;
    unsigned rows = (unsigned)(n_sample / (across * TILE_HEIGHT));
    if (2 * n_sample > n_pixels || c->width < TILE_WIDTH || c->height < TILE_HEIGHT) {
        mr_painter_mix(p, gain, out);
        return;
    }
    for (unsigned r = 0; r < rows; r++)
        for (unsigned t = 0; t < TILES_ACROSS; t++) {
            uint64_t bits = mr_mix(p->scene.key + 1000 + r * TILES_ACROSS + t);
            unsigned x =
                (t * (c->width - TILE_WIDTH) + (unsigned)mr_below(bits, c->width - TILE_WIDTH)) /
                TILES_ACROSS;
            unsigned y = (unsigned)(((uint64_t)r * (c->height - TILE_HEIGHT) +
                                     mr_below(mr_mix(bits), c->height - TILE_HEIGHT)) /
                                    rows);
            for (unsigned i = 0; i < TILE_HEIGHT; i++)
                mix_row(p, gain, x & ~7u, (y & ~7u) + i, TILE_WIDTH, p->mixed,
                        (size_t)(r * TILE_HEIGHT + i) * across + t * TILE_WIDTH);
        }
    show(p, across, rows * TILE_HEIGHT, across, out);
}
