/* ckpt_clean.h - remove what a crash left of ours in a folder, and nothing else. */
#ifndef MR_CKPT_CLEAN_H
#define MR_CKPT_CLEAN_H

#include "out_dir.h"

#include <millrace/checkpoint.h>

/* Remove our temporaries, and the files that they prove to be of a checkpoint that does not exist.
 * The folder is owned (mr_out_dir_open), so nobody is writing them.  0 or -errno; a temporary that
 * could not be read stays for the next time. */
int mr_ckpt_clean(struct mr_out_dir *dir);

/* For the formats' own clean-up: the data files that a head uses. */
struct mr_ckpt_files {
    uint32_t n;
    uint8_t *used; /* [n]; free it */
};

/* Of `file`, which is or was to be the head of `stem`.  -EBADMSG: it is no head; -EAGAIN: it cannot
 * be read now. */
int mr_ckpt_read_files(struct mr_out_dir *dir, enum mr_checkpoint_format format, const char *stem,
                       const char *file, struct mr_ckpt_files *out);
/* Of the head of `stem`: 1, 0 when there is none, or -errno as above. */
int mr_ckpt_head_files(struct mr_out_dir *dir, enum mr_checkpoint_format format, const char *stem,
                       struct mr_ckpt_files *out);
/* Is data file `shard` of `n` among them? */
int mr_ckpt_files_has(const struct mr_ckpt_files *f, uint32_t shard, uint32_t n);

#endif
