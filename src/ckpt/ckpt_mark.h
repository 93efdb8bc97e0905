/* ckpt_mark.h - the proof that this library wrote a checkpoint, and when.
 *
 * Every checkpoint that a run saves holds one tensor more, MR_STATE_MARK, uint64[4]:
 *
 *   [0]  MR_MARK_MAGIC
 *   [1]  the step; a file under another name (somebody's copy) is not ours to remove
 *   [2]  the generation: larger than that of every checkpoint that the run found in its folders or
 *        saved before, and not below the time of saving in microseconds since 1970
 *   [3]  the run: drawn at random, kept when a run is resumed
 *
 * Generations decide which of two checkpoints is newer, never their tier or the times of their
 * files.  Where a folder was absent when a run began, the clock puts them in order. */
#ifndef MR_CKPT_MARK_H
#define MR_CKPT_MARK_H

#include "ckpt_view.h"

#define MR_MARK_WORDS 4
#define MR_MARK_MAGIC UINT64_C(0x316b72616d2d726d) /* "mr-mark1" in the file */

/* What the mark says of a checkpoint.  1: it is ours, and *out (not NULL) is written; 0: it is not;
 * -errno: it cannot be read, or is damaged. */
int mr_ckpt_mark_read(const struct mr_ckpt_dir *dir, const struct mr_ckpt_item *item,
                      struct mr_device *device, struct mr_ckpt_mark *out, struct mr_error *err);
/* The same of one that is open; `step` is what its name says. */
int mr_ckpt_mark_of(const struct mr_ckpt_view *v, uint64_t step, struct mr_device *device,
                    struct mr_ckpt_mark *out, struct mr_error *err);
/* Length and crc32c of .meta as a bundle has them: 1, 0 when it does not say, or -errno. */
int mr_ckpt_meta_seal(const struct mr_ckpt_view *v, struct mr_device *device, uint64_t seal[2],
                      struct mr_error *err);

#endif
