/* ckpt_name.h - what the files of a checkpoint are called, and which temporaries are ours.
 *
 *   model.ckpt-40.index                    TensorFlow: the head, which makes the checkpoint exist
 *   model.ckpt-40.data-00000-of-00001      its data
 *   model.ckpt-40.meta                     its graph
 *   model.ckpt-40.safetensors              safetensors: all in one
 *   model.ckpt.resaved-40.index            step 40 saved again, while the older one still exists
 *   checkpoint                             TensorFlow's list of checkpoints, for TensorFlow
 *   NAME.millrace-TTTTTTTT-CCCCCCCC.tmp    a temporary: T is the token of its writer's lease, C a
 *                                          checksum of NAME and T, both in hexadecimal
 *
 * A stem is PREFIX-STEP or PREFIX.resaved-STEP.  A format of several files saves a step again under
 * the stem that is free, so both versions are whole until the older one is removed (tier.c). */
#ifndef MR_CKPT_NAME_H
#define MR_CKPT_NAME_H

#include <millrace/checkpoint.h>

#include <stddef.h>
#include <stdint.h>

#define MR_CKPT_MAX_NAME   256 /* of a file, with its ending */
#define MR_CKPT_MAX_PREFIX 128

#define MR_RESAVED ".resaved"

/* When a checkpoint was saved, and by which run (ckpt_mark.h); zero: it does not say. */
struct mr_ckpt_mark {
    uint64_t generation, run;
};

/* A checkpoint in a folder. */
struct mr_ckpt_item {
    uint64_t step;
    enum mr_checkpoint_format format;
    char prefix[MR_CKPT_MAX_PREFIX];
    int resaved;              /* its stem is PREFIX.resaved-STEP */
    struct mr_ckpt_mark mark; /* zero until the file has been read */
};

/* Not empty, not too long, no '/', no '.' at the beginning, no MR_RESAVED at the end. */
int mr_ckpt_prefix_is_valid(const char *prefix);
void mr_ckpt_stem(const struct mr_ckpt_item *item, char out[MR_CKPT_MAX_NAME]);
/* The name of its head. */
void mr_ckpt_head_name(const struct mr_ckpt_item *item, char out[MR_CKPT_MAX_NAME]);
/* Is `name` a head: STEM and the ending of a format?  1, and *out but for the mark; or 0. */
int mr_ckpt_name_parse(const char *name, struct mr_ckpt_item *out);

/* The format whose head's ending `name` has, and the length of what is before it: its number, or
 * -1. */
int mr_ckpt_format_of(const char *name, size_t *stem_len);
/* Does `text` end in `end`? */
int mr_ends_in(const char *text, const char *end);

/* The name under which the owner with `token` writes `name` before it is renamed.  0, or
 * -ENAMETOOLONG. */
int mr_ckpt_temp_name(char out[MR_CKPT_MAX_NAME], const char *name, uint32_t token);
/* 1 when `temp` is such a name; then `name` and `token` (if not NULL) get what it was made of. */
int mr_ckpt_temp_parse(const char *temp, char name[MR_CKPT_MAX_NAME], uint32_t *token);

#endif
