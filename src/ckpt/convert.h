/* convert.h - a checkpoint again, in another format or place.
 *
 * What is written appears whole or not at all: data, then the graph, then the index that makes it
 * valid, each on stable storage before it gets its name; then TensorFlow's `checkpoint` file. */
#ifndef MR_CONVERT_H
#define MR_CONVERT_H

#include "ckpt_file.h"

struct mr_convert_opts {
    enum mr_checkpoint_format format;
    int packed;                        /* TensorFlow's own layout, without gaps */
    const struct mr_ckpt_watch *watch; /* NULL: nobody watches */
};

/* Write `c` to folder `dir` (made if need be) under its own name.  Every tensor is verified as it
 * is read.  `path` gets where it is, PREFIX or FILE.safetensors.  -EEXIST: there is one already. */
int mr_ckpt_convert(struct mr_ckpt_file *c, const char *dir, const struct mr_convert_opts *opts,
                    char path[MR_CKPT_MAX_PATH], struct mr_error *err);
/* The same, byte for byte: every file is copied, read back and compared. */
int mr_ckpt_copy(struct mr_ckpt_file *c, const char *dir, const struct mr_ckpt_watch *watch,
                 char path[MR_CKPT_MAX_PATH], struct mr_error *err);

#endif
