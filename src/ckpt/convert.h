/* convert.h - write a checkpoint again, in another format or folder.
 *
 * What is written appears whole or not at all, in the order in which a run publishes its own
 * (publish_set.h), in a folder that is owned and cleaned up as by a run; then TensorFlow's
 * `checkpoint` file names it. */
#ifndef MR_CONVERT_H
#define MR_CONVERT_H

#include "ckpt_file.h"

struct mr_out_hook;

struct mr_convert_opts {
    enum mr_checkpoint_format format;
    int packed;                              /* without gaps between tensors */
    const struct mr_checkpoint_watch *watch; /* NULL: nobody watches */
    const struct mr_out_hook *hook;          /* NULL; tests see (and break) every change to files */
    void (*waiting)(void *ctx, const char *text); /* as in mr_checkpoint_opts; may be NULL */
    void *waiting_ctx;
};

/* Write `c` to folder `dir` (made if need be) under its own name.  Every tensor is verified as it
 * is read.  `path` gets where it is, as users name it.  -EEXIST: one of its files is
 * there already; -EBUSY: a run writes in that folder. */
int mr_ckpt_convert(struct mr_ckpt_file *c, const char *dir, const struct mr_convert_opts *opts,
                    char path[MR_CKPT_MAX_PATH], struct mr_error *err);
/* The same, byte for byte: every file is copied, read back and compared; the format stays. */
int mr_ckpt_copy(struct mr_ckpt_file *c, const char *dir, const struct mr_convert_opts *opts,
                 char path[MR_CKPT_MAX_PATH], struct mr_error *err);

#endif
