/* image_reference.h - what src/image should produce, the slow and obvious way. */
#ifndef IMAGE_REFERENCE_H
#define IMAGE_REFERENCE_H

#include "image_samples.h"

/* libjpeg's full decode to RGB.  Adobe's CMYK becomes c * k / 255. */
struct photo reference_jpeg(const struct sample *s);

/* The part (x, y, w, h) of the photo, mirrored or not; free(rgb). */
struct photo reference_crop(const struct photo *p, unsigned x, unsigned y, unsigned w, unsigned h,
                            int flip);

/* Resize to floats 0..255, RGB triples; free(). */
float *reference_bilinear(const struct photo *p, unsigned width, unsigned height);
float *reference_area(const struct photo *p, unsigned width, unsigned height);

struct difference {
    double mean, max; /* of 255 */
};
/* Compare f32 NHWC pixels in 0..1 with a reference in 0..255. */
struct difference reference_compare(const float *pixels, const float *reference, size_t n);

#endif
