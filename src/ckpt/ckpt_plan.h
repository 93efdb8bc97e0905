/* ckpt_plan.h - tensors with their places in a data file that is to be written. */
#ifndef MR_CKPT_PLAN_H
#define MR_CKPT_PLAN_H

#include "bytes.h"
#include "ckpt_mark.h"
#include "tf_bundle.h"

struct mr_ckpt_plan {
    const struct mr_ckpt_format *row;
    struct mr_bundle bundle;      /* the tensors; shard 0 of 1 */
    uint64_t data_bytes;          /* of the data file */
    size_t head_bytes;            /* in front of the tensors, if the head is the data file */
    size_t *of_array;             /* array i is tensor of_array[i] */
    struct mr_bytes side;         /* the side file, always the same; empty: none */
    uint64_t side_seal[2];        /* its length and crc32c, little-endian, for a tensor */
    uint64_t mark[MR_MARK_WORDS]; /* what tensor MR_STATE_MARK holds; set for each checkpoint */
    size_t mark_tensor;           /* its number */
};

/* Check the arrays and lay them out.  `p` stays in place from here on (tensors point into it).
 * -EINVAL: no name, a name twice, a type without a fixed size, no memory where bytes are. */
int mr_ckpt_plan_init(struct mr_ckpt_plan *p, const struct mr_array *arrays, unsigned n,
                      enum mr_checkpoint_format format, int packed, struct mr_error *err);
/* The same for tensors of a checkpoint, without those that this library added.  `side` (may be
 * empty) is its side file, if the format is the same.  -ENOTSUP: the format lacks a type. */
int mr_ckpt_plan_copy(struct mr_ckpt_plan *p, const struct mr_tensor_table *from,
                      const struct mr_bytes *side, enum mr_checkpoint_format format, int packed,
                      struct mr_error *err);
void mr_ckpt_plan_fini(struct mr_ckpt_plan *p);

#endif
