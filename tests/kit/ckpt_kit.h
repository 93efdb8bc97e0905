/* ckpt_kit.h - a small model to checkpoint: arrays whose every byte follows from (step, version).
 */
#ifndef MR_TEST_CKPT_KIT_H
#define MR_TEST_CKPT_KIT_H

#include <millrace/checkpoint.h>

#define KIT_N_ARRAYS 6

struct ckpt_kit {
    struct mr_array arrays[KIT_N_ARRAYS]; /* "step" is number KIT_STEP */
    uint64_t bytes;
};
#define KIT_STEP 0

/* `large_bytes` is the size of the largest array (a multiple of 4); others are small, one is empty.
 */
struct ckpt_kit *ckpt_kit_new(uint64_t large_bytes);
void ckpt_kit_free(struct ckpt_kit *k);
/* What array i holds at (step, version); call before_write first while a checkpoint is under way.
 */
void ckpt_kit_fill_one(struct ckpt_kit *k, unsigned i, uint64_t step, uint64_t version);
void ckpt_kit_fill(struct ckpt_kit *k, uint64_t step, uint64_t version);
/* 1 when every byte is that of (step, version). */
int ckpt_kit_is(const struct ckpt_kit *k, uint64_t step, uint64_t version);
/* Overwrite everything with other bytes. */
void ckpt_kit_scramble(struct ckpt_kit *k);

#endif
