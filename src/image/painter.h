/* painter.h - pictures with the statistics of photographs, made from a key.
 * Lifetime: new -> (paint -> mix*)* -> free.  One painter per thread.
 *
 * A picture is a base (regions, edges, shading) plus detail (texture and grain) times a gain that
 * is chosen when it is mixed: the more gain, the larger the JPEG file. */
#ifndef MR_PAINTER_H
#define MR_PAINTER_H

#include "jpeg_encode.h"

#define MR_GAIN_ONE  256
#define MR_GAIN_MOST (64 * MR_GAIN_ONE)

struct mr_scene {
    uint64_t key;      /* everything that differs from picture to picture */
    uint32_t class_id; /* what pictures of a class share: colours, shapes, patterns */
    unsigned width, height;
    unsigned busy; /* how much goes on, 0 (sky) .. 255 (foliage): edges, clutter, fine shading */
    int plain;     /* things stand before an even wall */
};

struct mr_painter;

int mr_painter_new(struct mr_painter **out);
/* NULL is a no-op. */
void mr_painter_free(struct mr_painter *p);

/* Paint.  0, -EINVAL (no or more than 65500 pixels a side) or -ENOMEM. */
int mr_painter_paint(struct mr_painter *p, const struct mr_scene *scene);

/* The whole picture with `gain` / MR_GAIN_ONE (at most MR_GAIN_MOST) of its detail.  The pixels are
 * the painter's and stay until its next call. */
void mr_painter_mix(struct mr_painter *p, unsigned gain, struct mr_pixels *out);
/* The same for a mosaic of tiles from all over the picture, about 1 / `part` of it, which
 * compresses nearly like the whole; small pictures come whole. */
void mr_painter_mix_sample(struct mr_painter *p, unsigned gain, unsigned part,
                           struct mr_pixels *out);

#endif
