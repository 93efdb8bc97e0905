/* frame.c - see frame.h.  The limit is checked before anything is allocated for the pixels, so a
 * small file that claims to be a huge image costs nothing. */
#include "frame.h"

#include "errtext.h"
#include "random_crop.h"

#include <errno.h>

int mr_frame_region(const struct mr_frame *f, uint32_t width, uint32_t height,
                    struct mr_region *out)
{
    if (!width || !height)
        return mr_fail(f->error, -EBADMSG, "an image of %u x %u pixels", width, height);
    if (width > MR_IMAGE_MAX_SIDE || height > MR_IMAGE_MAX_SIDE)
        return mr_fail(f->error, -EFBIG, "%u x %u pixels, more than the limit of %u a side", width,
                       height, MR_IMAGE_MAX_SIDE);
    if ((uint64_t)width * height > f->opts->max_pixels)
        return mr_fail(f->error, -EFBIG, "%u x %u pixels, more than the limit of %llu", width,
                       height, (unsigned long long)f->opts->max_pixels);
    if (f->opts->augment == MR_AUGMENT_CROP_FLIP)
        mr_random_crop(f->key, width, height, out);
    else
        *out = (struct mr_region){.width = width, .height = height};
    return 0;
}

int mr_frame_has_twice(const struct mr_frame *f, const struct mr_region *region,
                       const uint32_t samples[2], const uint32_t pixels[2])
{
    return (uint64_t)samples[0] * region->width / pixels[0] >= 2 * (uint64_t)f->opts->width &&
           (uint64_t)samples[1] * region->height / pixels[1] >= 2 * (uint64_t)f->opts->height;
}

uint32_t mr_jpeg_upsampling(const struct mr_plane_shape *s)
{
    int half_h = 2 * s->h_num == s->h_den, half_v = 2 * s->v_num == s->v_den;
    int full_h = s->h_num == s->h_den, full_v = s->v_num == s->v_den;
    if ((half_h && (half_v || full_v) && s->cols > 2) || (full_h && half_v))
        return MR_UPSAMPLE_TRIANGLE;
    return MR_UPSAMPLE_REPEAT;
}

int mr_frame_begin_rows(const struct mr_frame *f, uint32_t width, uint32_t height,
                        const struct mr_region *region)
{
    struct mr_picture pic = {.colour = MR_COLOUR_RGB,
                             .width = width,
                             .height = height,
                             .shrink = 1,
                             .region = *region,
                             .slot = f->slot};
    for (int i = 0; i < 3; i++)
        pic.planes[i] = (struct mr_plane_shape){.cols = width,
                                                .rows = height,
                                                .stored_cols = width,
                                                .stripe_rows = 1,
                                                .h_num = 1,
                                                .h_den = 1,
                                                .v_num = 1,
                                                .v_den = 1};
    int r = mr_resizer_begin(f->resizer, &pic);
    return r ? mr_fail(f->error, r, "no memory for %u x %u pixels", width, height) : 0;
}

void mr_frame_put_row(const struct mr_frame *f, uint32_t row, const uint8_t *rgb)
{
    struct mr_resizer *r = f->resizer;
    if (mr_resizer_wants_stripe(r)) {
        uint8_t *const planes[3] = {mr_resizer_row(r, 0, row), mr_resizer_row(r, 1, row),
                                    mr_resizer_row(r, 2, row)};
        r->kernels->split_rgb(rgb, r->planes[0].shape.cols, planes);
    }
    mr_resizer_advance(r);
}
