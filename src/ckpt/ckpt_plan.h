/* ckpt_plan.h - registered arrays become tensors with a place in a data file. */
#ifndef MR_CKPT_PLAN_H
#define MR_CKPT_PLAN_H

#include "bytes.h"
#include "ckpt_mark.h"
#include "tf_bundle.h"

struct mr_ckpt_plan {
    enum mr_checkpoint_format format;
    struct mr_bundle bundle;      /* its table has the tensors, in either format */
    uint64_t data_bytes;          /* of the data file */
    size_t head_bytes;            /* safetensors: in front of the tensors */
    size_t *of_array;             /* array i is tensor of_array[i] */
    struct mr_bytes meta;         /* TensorFlow: .meta, always the same */
    int64_t meta_seal[2];         /* what tensor MR_STATE_META holds */
    uint64_t mark[MR_MARK_WORDS]; /* what tensor MR_STATE_MARK holds; set for each checkpoint */
    size_t mark_tensor;           /* its number */
};

/* Check the arrays and lay them out.  `p` stays in place from here on (tensors point into it).
 * -EINVAL: no name, a name twice, a type without a fixed size, no memory where bytes are. */
int mr_ckpt_plan_init(struct mr_ckpt_plan *p, const struct mr_array *arrays, unsigned n,
                      enum mr_checkpoint_format format, int packed, struct mr_error *err);
void mr_ckpt_plan_fini(struct mr_ckpt_plan *p);
/* Append .index (shard of n_shards) or the header, when the tensors have their crcs. */
int mr_ckpt_plan_write(struct mr_ckpt_plan *p, uint32_t shard, uint32_t n_shards,
                       struct mr_bytes *out, struct mr_error *err);

#endif
