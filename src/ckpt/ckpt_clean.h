/* ckpt_clean.h - remove what a crash left of ours in a folder, and nothing else. */
#ifndef MR_CKPT_CLEAN_H
#define MR_CKPT_CLEAN_H

#include "out_dir.h"

/* Remove our temporaries, and the files that they prove to be of a checkpoint that does not exist.
 * The folder is locked (mr_out_dir_open), so nobody is writing them.  0 or -errno; what could not
 * be read is left with its temporary for the next time. */
int mr_ckpt_clean(struct mr_out_dir *dir);

#endif
