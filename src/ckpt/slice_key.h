/* slice_key.h - the key under which TensorFlow files one slice of a tensor. */
#ifndef MR_SLICE_KEY_H
#define MR_SLICE_KEY_H

#include "tf_bundle.h"

/* Append it. */
void mr_slice_key(const struct mr_tensor *t, const struct mr_bundle_part *part,
                  struct mr_bytes *out);

#endif
