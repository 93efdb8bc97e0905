/* ckpt_open.h - the inside of an open checkpoint, for the files that read and verify it. */
#ifndef MR_CKPT_OPEN_H
#define MR_CKPT_OPEN_H

#include "ckpt_file.h"
#include "range_file.h"
#include "safetensors.h"
#include "tf_bundle.h"

#include <limits.h>

struct mr_ckpt_file {
    enum mr_checkpoint_format format;
    char prefix[PATH_MAX];
    struct mr_bundle bundle; /* safetensors: its tensors only, shard 0 is the file */
    int has_checksums;
    uint64_t small_bytes; /* of the index */
    struct mr_range_file *data;
    uint32_t n_data;
    char path[MR_CKPT_MAX_PATH]; /* for mr_ckpt_file_path */
};

void ckpt_shard_path(const struct mr_ckpt_file *c, uint32_t shard, char out[MR_CKPT_MAX_PATH]);

#endif
