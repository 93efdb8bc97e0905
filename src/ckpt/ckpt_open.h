/* ckpt_open.h - the inside of an open checkpoint, for the files that read and verify it. */
#ifndef MR_CKPT_OPEN_H
#define MR_CKPT_OPEN_H

#include "buffer.h"
#include "ckpt_file.h"
#include "in_file.h"

struct mr_ckpt_file {
    struct mr_ckpt_view view;
    struct mr_in_file *data; /* by shard; those that no tensor needs are not open */
    uint32_t n_data;
    struct mr_buffer buf;        /* of one piece */
    char path[MR_CKPT_MAX_PATH]; /* for mr_ckpt_file_path */
};

/* Words for what reading tensor t met. */
int mr_ckpt_file_wrong(const struct mr_ckpt_file *c, const struct mr_tensor *t, int r,
                       struct mr_error *err);

#endif
