/* frame.h - one image on its way into its slot: what a reader is given, and what all readers do
 * once they know an image's size. */
#ifndef MR_FRAME_H
#define MR_FRAME_H

#include "plane_resizer.h"

#define MR_IMAGE_MAX_SIDE 65535 /* pixels: what a JPEG's header can say, and for PNG the same */

struct mr_frame {
    const uint8_t *bytes;
    size_t len;
    uint64_t key;
    void *slot;
    const struct mr_decoder_opts *opts; /* complete */
    struct mr_resizer *resizer;
    struct mr_error *error; /* the reader's words when it fails */
};

/* Check the size against the limits and draw what part is shown.  0 or -EFBIG or -EBADMSG. */
int mr_frame_region(const struct mr_frame *f, uint32_t width, uint32_t height,
                    struct mr_region *out);

/* For `area`: whether a plane of `samples`, of an image of `pixels`, is still twice as fine as the
 * output in the region shown.  An inverse transform that halves an image takes its
 * lower frequencies, which is not the mean: two samples a side leave the resizer the last halving.
 */
int mr_frame_has_twice(const struct mr_frame *f, const struct mr_region *region,
                       const uint32_t samples[2], const uint32_t pixels[2]);

/* What libjpeg would make of a plane's missing samples (enum mr_upsampling): it interpolates where
 * chroma is halved in one or both directions and repeats samples elsewhere. */
uint32_t mr_jpeg_upsampling(const struct mr_plane_shape *s);

/* Begin resizing three full planes that arrive row by row, as RGB triples. */
int mr_frame_begin_rows(const struct mr_frame *f, uint32_t width, uint32_t height,
                        const struct mr_region *region);
/* Add row `row`.  Rows come in order from 0. */
void mr_frame_put_row(const struct mr_frame *f, uint32_t row, const uint8_t *rgb);

#endif
