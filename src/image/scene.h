/* scene.h - what a picture shows: a background and things in front of it. */
#ifndef MR_SCENE_H
#define MR_SCENE_H

#include "painter.h"

/* Planes of 16-bit values, row y at y * stride. */
struct mr_canvas {
    unsigned width, height;
    size_t stride;
    int16_t *field;   /* in: slow shading around 0, up to some thousands */
    int16_t *rough;   /* in and out: share of texture, 0 .. 265 */
    int16_t *base[3]; /* out: Y, Cb, Cr, 16 units a grey level */
};

/* Draw the scene's background and things into base; things set rough where they stand. */
void mr_scene_compose(const struct mr_scene *scene, const struct mr_canvas *c);

#endif
