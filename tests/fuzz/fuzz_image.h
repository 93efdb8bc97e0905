/* fuzz_image.h - what the two fuzz targets of src/image share. */
#ifndef FUZZ_IMAGE_H
#define FUZZ_IMAGE_H

#include <millrace/image.h>

#include "fuzz_entry.h"

#define FUZZ_WAYS 8

struct fuzz_decoders {
    struct mr_decoder *of[FUZZ_WAYS]; /* made when first used, and used again: as in a pipeline */
};

/* Decode data[1..], its beginning replaced by `magic`, with the options that data[0] selects; abort
 * if the answer breaks the contract. */
int fuzz_image(struct fuzz_decoders *f, const uint8_t *magic, size_t n_magic, const uint8_t *data,
               size_t len);

#endif
