/* jpeg_twin.h - one JPEG file through our own decoder's stages and through libjpeg-turbo, down to
 * coefficients and to the samples before resizing; and files to try that on. */
#ifndef MR_TEST_JPEG_TWIN_H
#define MR_TEST_JPEG_TWIN_H

#include "image_samples.h"

#include <millrace/image.h>

struct twin_plane {
    uint32_t across, down; /* blocks that are part of the image */
    int16_t *coefficients; /* [down][across][64], row after row */
    uint8_t *samples;      /* [down * 8][across * 8] */
};

struct twin {
    unsigned n_planes;
    struct twin_plane plane[3];
};

/* Nonzero when the file is taken.  Free the result in either case. */
int twin_own(const uint8_t *bytes, size_t len, enum mr_image_simd simd, struct twin *out);
/* The same by libjpeg-turbo.  Warnings that mean lost pixels are refusals. */
int twin_turbo(const uint8_t *bytes, size_t len, struct twin *out);
void twin_free(struct twin *t);

/* NULL when equal, else what is not. */
const char *twin_difference(const struct twin *a, const struct twin *b);

/* ---- files ---- */

struct twin_kind {
    unsigned width, height, seed;
    unsigned n_components;
    int h[3], v[3];
    int quality;
    unsigned restart_interval; /* MCUs */
    int optimise;              /* tables of its own */
    int several_scans;         /* one for each component */
    int noise;                 /* not a photograph: every coefficient is large */
};

/* The n-th of an endless series: 12 samplings, restarts, qualities 1 to 100, sizes from 1 x 1 to
 * `largest`, a few of them long on both sides. */
struct twin_kind twin_kind(unsigned n, unsigned largest);
struct sample twin_encode(const struct twin_kind *k);
/* One line about it. */
const char *twin_text(const struct twin_kind *k, char *text, size_t size);

#endif
