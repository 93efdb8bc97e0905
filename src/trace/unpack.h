/* unpack.h - text that was compressed with gzip, as PyTorch and TensorFlow store their traces. */
#ifndef MR_UNPACK_H
#define MR_UNPACK_H

#include <stddef.h>

/* The text of `len` bytes of gzip, all members of it, for the caller to free.  What is cut or
 * damaged yields the text before that place.  -EFBIG: more than `max` bytes; -ENOMEM. */
int mr_unpack(const char *in, size_t len, size_t max, char **out, size_t *out_len);

#endif
