/* ckpt_view.h - what a checkpoint on disk says about itself, in either format.
 *
 * Every reader begins here: restore, the drain, verify, convert. */
#ifndef MR_CKPT_VIEW_H
#define MR_CKPT_VIEW_H

#include "ckpt_scan.h"
#include "tf_bundle.h"

#include <limits.h>

#define MR_CKPT_MAX_PATH (PATH_MAX + 64)

struct mr_device;

/* Where checkpoints lie: files are opened relative to `fd`, and `path` is for words only. */
struct mr_ckpt_dir {
    int fd;
    const char *path;
};

/* What a checkpoint says about itself, before its data are read. */
struct mr_ckpt_view {
    int dir_fd;          /* borrowed; AT_FDCWD: `path` says it all */
    size_t name_at;      /* where in a file's path the part begins that is relative to dir_fd */
    char path[PATH_MAX]; /* without the ending, with the folder */
    enum mr_checkpoint_format format;
    struct mr_bundle bundle; /* offsets in the file of `shard`; .data NULL, to be set by who wants
                              * the bytes.  safetensors: tensors only; shard 0 is the file */
    int has_checksums;       /* of every tensor: always in a bundle */
    size_t head_bytes;       /* safetensors: in front of the tensors, */
    uint32_t head_crc;       /* and their crc32c */
    uint64_t index_bytes;    /* of the .index file */
};

/* Read and check the index or header of the checkpoint at `path`, which is without the ending and
 * begins at the folder `at` (borrowed), or at the present one for AT_FDCWD.  *out is written on
 * success only, and then finished. */
int mr_ckpt_view_open(int at, const char *path, enum mr_checkpoint_format format,
                      struct mr_device *device, struct mr_ckpt_view *out, struct mr_error *err);
/* The same for one of a list, flat: a tensor that is saved in parts has 0 bytes, and its parts
 * follow as tensors under names of their own.  Borrows the descriptor. */
int mr_ckpt_view_open_flat(const struct mr_ckpt_dir *dir, const struct mr_ckpt_item *item,
                           struct mr_device *device, struct mr_ckpt_view *out,
                           struct mr_error *err);
void mr_ckpt_view_fini(struct mr_ckpt_view *v);
/* Path of the file of shard s, with the folder: for words, and for mr_ckpt_view_name. */
void mr_ckpt_view_file(const struct mr_ckpt_view *v, uint32_t s, char out[MR_CKPT_MAX_PATH]);
/* The name to open, relative to dir_fd, of a file of this checkpoint. */
const char *mr_ckpt_view_name(const struct mr_ckpt_view *v, const char *file);

#endif
