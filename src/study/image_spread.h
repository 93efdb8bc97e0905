/* image_spread.h - how much the images of a data set differ in the CPU time they take. */
#ifndef MR_IMAGE_SPREAD_H
#define MR_IMAGE_SPREAD_H

#include <millrace/dataset.h>
#include <millrace/image.h>

#include "predict.h"

/* Decode some images from all over the data set, on this thread, for no longer than box_s (but a
 * few in any case).  What cannot be decoded is left out; none at all: out->n is 0.  0 or -ENOMEM.
 */
int mr_image_spread(const struct mr_dataset *data, const struct mr_decoder_opts *decode,
                    double box_s, struct mr_spread *out);
/* Their standard deviation, as a share of the mean. */
double mr_spread_deviation(const struct mr_spread *s);

#endif
