/* ckpt_name.h - what the files of a checkpoint are called, and which temporaries are ours.
 *
 *   model.ckpt-40.index                    TensorFlow: the commit record
 *   model.ckpt-40.data-00000-of-00001      its data; when a step is saved again,
 *   model.ckpt-40.data-00001-of-00002      under the name that the older one does not use
 *   model.ckpt-40.meta                     its graph
 *   model.ckpt-40.safetensors              safetensors: all in one
 *   checkpoint                             TensorFlow's pointer, for TensorFlow
 *   NAME.millrace-TTTTTTTT-CCCCCCCC.tmp    a temporary: T is the token of its writer's lease, C a
 *                                          checksum of NAME and T, both in hexadecimal */
#ifndef MR_CKPT_NAME_H
#define MR_CKPT_NAME_H

#include <millrace/checkpoint.h>

#include <stddef.h>
#include <stdint.h>

#define MR_CKPT_MAX_NAME   256 /* of a file, with its end */
#define MR_CKPT_MAX_PREFIX 128

enum mr_ckpt_part {
    MR_PART_INDEX,
    MR_PART_DATA,       /* shard 0 of 1 */
    MR_PART_DATA_AGAIN, /* shard 1 of 2, of which shard 0 does not exist */
    MR_PART_META,
    MR_PART_SAFETENSORS,
    MR_N_PARTS,
};

/* Behind the name of a data file or .meta: temporaries for the older ones while a step is being
 * replaced (tier.c). */
#define MR_OLD "-old"

/* Without '/', not empty, not too long. */
int mr_ckpt_prefix_is_valid(const char *prefix);
void mr_ckpt_name(char out[MR_CKPT_MAX_NAME], const char *prefix, uint64_t step,
                  enum mr_ckpt_part part);
/* Is `name` a checkpoint's commit record: PREFIX-STEP.index or PREFIX-STEP.safetensors?  1, and
 * the length of the prefix, or 0. */
int mr_ckpt_name_parse(const char *name, size_t *prefix_len, uint64_t *step,
                       enum mr_checkpoint_format *format);

enum mr_ckpt_stem { MR_STEM_NONE, MR_STEM_INDEX, MR_STEM_DATA };

/* Is `name` an index or a data file of a bundle, whatever it is called?  Then `stem` is what is
 * before the ending, and data have their numbers: STEM.data-SHARD-of-N. */
enum mr_ckpt_stem mr_ckpt_stem_parse(const char *name, char stem[MR_CKPT_MAX_NAME], uint32_t *shard,
                                     uint32_t *n_shards);

/* The name under which the owner with `token` writes `name` before it is renamed.  0, or
 * -ENAMETOOLONG. */
int mr_ckpt_temp_name(char out[MR_CKPT_MAX_NAME], const char *name, uint32_t token);
/* 1 when `temp` is such a name; then `name` and `token` (if not NULL) get what it was made of. */
int mr_ckpt_temp_parse(const char *temp, char name[MR_CKPT_MAX_NAME], uint32_t *token);

#endif
