/* fractal.h - fields of random values with as much detail at every scale as the caller asks for. */
#ifndef MR_FRACTAL_H
#define MR_FRACTAL_H

#include "buffer.h"

#define MR_FRACTAL_LEVELS 8

/* A field's recipe: amplitude[k] is that of random values 2^k pixels apart, 255 in all; 0 = no
 * detail of that size. */
struct mr_fractal {
    uint64_t key;
    uint8_t amplitude[MR_FRACTAL_LEVELS];
};

/* Room for the levels between the coarsest and the field; grows, reused from field to field. */
struct mr_fractal_scratch {
    struct mr_buffer coarse[2];
};

/* Fill out[0 .. height-1][0 .. stride-1] (stride >= width, even) with values around 0; each level
 * adds up to 128 * its amplitude.  0 or -ENOMEM. */
int mr_fractal_fill(const struct mr_fractal *f, struct mr_fractal_scratch *scratch, unsigned width,
                    unsigned height, size_t stride, int16_t *out);
void mr_fractal_scratch_fini(struct mr_fractal_scratch *scratch);

#endif
