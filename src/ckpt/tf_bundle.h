/* tf_bundle.h - TensorFlow's checkpoint, version 2: PREFIX.index says what is where in
 * PREFIX.data-SSSSS-of-NNNNN.
 *
 * This is about the index and the places of tensors; files are read and written elsewhere. */
#ifndef MR_TF_BUNDLE_H
#define MR_TF_BUNDLE_H

#include "bytes.h"
#include "tensor_table.h"

#define MR_BUNDLE_ALIGN      4096 /* so that tensors can be read and written directly */
#define MR_BUNDLE_MAX_SHARDS 65536
#define MR_BUNDLE_MAX_INDEX  ((size_t)256 << 20)

/* A piece of a tensor that was saved in pieces (a partitioned variable). */
struct mr_bundle_part {
    size_t tensor; /* its number in the table */
    uint64_t start[MR_TENSOR_MAX_DIMS], length[MR_TENSOR_MAX_DIMS];
    uint32_t full; /* bit d: all of dimension d, and said so */
    uint32_t shard, crc;
    uint64_t offset, bytes;
};

struct mr_bundle {
    uint32_t n_shards;
    struct mr_tensor_table tensors; /* offset: in the data file of `shard`; crc always known */
    struct mr_bundle_part *parts;   /* of one tensor side by side, in the order of tensors */
    size_t n_parts;
};

void mr_bundle_init(struct mr_bundle *b); /* one shard */
void mr_bundle_fini(struct mr_bundle *b);

/* Read an index that is in memory; `name` is for error texts.  *out is written on success only and
 * then has to be finished.  -EBADMSG, -ENODATA, -ENOTSUP (big-endian, newer version, a type or a
 * number of dimensions that this library does not know), -ENOMEM. */
int mr_bundle_parse(const char *name, const uint8_t *index, size_t len, struct mr_bundle *out,
                    struct mr_error *err);
/* Append the index.  Tensors may be in any order; names must differ. */
int mr_bundle_write_index(const struct mr_bundle *b, struct mr_bytes *out, struct mr_error *err);

/* Give every tensor its offset, in the order of the table: at multiples of `align`, 1 for
 * TensorFlow's own layout without gaps.  *data_bytes: size of the data file. */
int mr_bundle_layout(struct mr_tensor_table *t, uint64_t align, uint64_t *data_bytes);

/* The parts of tensor number `i`: their number, and the first one. */
size_t mr_bundle_parts_of(const struct mr_bundle *b, size_t i, const struct mr_bundle_part **first);

/* Check the inner structure of `n` strings, and give the crc that the entry has to have.
 * 0 or -EBADMSG. */
int mr_bundle_strings_crc(const uint8_t *data, size_t bytes, uint64_t n, uint32_t *crc);

#endif
