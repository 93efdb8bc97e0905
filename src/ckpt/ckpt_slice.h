/* ckpt_slice.h - a box out of a tensor that is stored row by row in a data file. */
#ifndef MR_CKPT_SLICE_H
#define MR_CKPT_SLICE_H

#include "ckpt_file.h"

/* Where `extent` elements of each dimension are, in what is stored and in the caller's memory.
 * Both are row-major arrays of elements of `each` bytes. */
struct mr_ckpt_box {
    unsigned n_dims;
    uint64_t each;
    uint64_t extent[MR_TENSOR_MAX_DIMS];
    uint64_t from_dims[MR_TENSOR_MAX_DIMS], from[MR_TENSOR_MAX_DIMS]; /* stored */
    uint64_t to_dims[MR_TENSOR_MAX_DIMS], to[MR_TENSOR_MAX_DIMS];     /* in memory */
};

/* Read a box of what begins at `offset` of data file `shard`.  `crc` (NULL: none) is of all that is
 * stored, and is compared when the box is all of it.  0, -EBADMSG or -errno, without words. */
int mr_ckpt_read_box(struct mr_ckpt_file *c, uint32_t shard, uint64_t offset,
                     const struct mr_ckpt_box *box, const uint32_t *crc, uint8_t *out);

/* All of a tensor that is stored in parts. */
int mr_ckpt_read_parts(struct mr_ckpt_file *c, size_t i, uint8_t *out, struct mr_error *err);
/* How many bytes a slice of tensor i has: `extent` elements from `start` on in each dimension.
 * -EINVAL: not inside of the tensor; -ENOTSUP: strings, or elements that share bytes with others.
 */
int mr_ckpt_slice_bytes(const struct mr_ckpt_file *c, size_t i, const uint64_t *start,
                        const uint64_t *extent, uint64_t *bytes, struct mr_error *err);
/* Read such a slice. */
int mr_ckpt_read_slice(struct mr_ckpt_file *c, size_t i, const uint64_t *start,
                       const uint64_t *extent, uint8_t *out, struct mr_error *err);

#endif
