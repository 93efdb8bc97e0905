/* random_crop.h - the part of an image that a sample's key selects. */
#ifndef MR_RANDOM_CROP_H
#define MR_RANDOM_CROP_H

#include "plane_resizer.h"

/* A part of 8..100% of the area with sides between 3:4 and 4:3, mirrored or not: a function of the
 * key and the size.  Neither side may be 0. */
void mr_random_crop(uint64_t key, uint32_t width, uint32_t height, struct mr_region *out);

#endif
