/* conv_stem.h - the first convolution with its stride folded into channels (space to depth).
 *
 * A convolution of stride s over an image equals one of stride 1 over an image whose pixels are
 * the s x s blocks of the first:
 *
 *     images   [N, H, W, C]              ->  [N, H/s, W/s, s*s*C]
 *     weights  [k, k, C, out]            ->  [K, K, s*s*C, out],  K = ceil((k + lead) / s)
 *
 * `lead` zero taps in front make the padding a multiple of s: AlexNet's 11x11 stride 4, padding
 * 3, becomes 3x3 on 56 x 56 x 48, padding 1, which Winograd's algorithm likes.  Zeros in the
 * weights stay zero because gradients are taken back tap by tap. */
#ifndef MR_CONV_STEM_H
#define MR_CONV_STEM_H

#include "layers.h"

struct stem {
    unsigned stride, kernel, channels; /* of the convolution it replaces */
    unsigned lead_rows, lead_columns;
    struct mr_shape in;         /* of the folded image */
    unsigned folded_kernel;     /* K */
    unsigned pad_top, pad_left; /* of the folded convolution */
    unsigned n_out;
};

/* 0 when the convolution cannot be folded. */
int stem_fits(const struct layer *l, struct stem *out);
/* The folded images in the layout `md` if it is one that can be written at once, else in NHWC. */
struct tensor *stem_images(struct graph *g, const struct stem *s, const dnnl_memory_desc_t *md);
/* master [k, k, C, out] -> folded [K, K, s*s*C, out] before each forward. */
struct tensor *stem_weights(struct graph *g, const struct stem *s, const float *master);
/* The gradient of the folded weights, to be filled; taken back to `master` by stem_collapse. */
struct tensor *stem_gradient(struct graph *g, const struct stem *s);
void stem_collapse(struct graph *g, const struct stem *s, struct tensor *folded, float *master);

#endif
