/* ckpt_view.h - what a checkpoint on disk says about itself, whatever its format.
 *
 * Every reader begins here: restore, the drain, verify, convert. */
#ifndef MR_CKPT_VIEW_H
#define MR_CKPT_VIEW_H

#include "ckpt_scan.h"
#include "tf_bundle.h"

#include <limits.h>

#define MR_CKPT_MAX_PATH (PATH_MAX + 64)

struct mr_ckpt_format; /* ckpt_format.h */
struct mr_device;

/* Where checkpoints lie: files are opened relative to `fd`, and `path` is for words only. */
struct mr_ckpt_dir {
    int fd;
    const char *path;
};

/* What a checkpoint says about itself, before its data are read. */
struct mr_ckpt_view {
    int dir_fd;          /* borrowed; AT_FDCWD: paths are whole */
    size_t name_at;      /* where the part of a path that is relative to dir_fd begins */
    char path[PATH_MAX]; /* the stem, with the folder */
    enum mr_checkpoint_format format;
    const struct mr_ckpt_format *row; /* of that format */

    /* Set by row->read_head: */
    struct mr_bundle bundle; /* offsets in the file of `shard`; .data NULL, set by readers that want
                              * the bytes */
    int has_checksums;       /* of every tensor */
    uint32_t head_crc;       /* crc32c of the head */
    size_t head_bytes;       /* of the head, if it lies in front of the tensors */
    uint64_t index_bytes;    /* of the head, if it is a file of its own */
};

/* Read and check the head of the checkpoint at `path`, a stem, which begins at the folder `at`
 * (borrowed), or at the present one for AT_FDCWD.  *out is written on success only, and then
 * finished. */
int mr_ckpt_view_open(int at, const char *path, enum mr_checkpoint_format format,
                      struct mr_device *device, struct mr_ckpt_view *out, struct mr_error *err);
/* The same for `file`, a name in `dir`, that was to be the head of `stem`: a temporary. */
int mr_ckpt_view_open_as(const struct mr_ckpt_dir *dir, const char *stem, const char *file,
                         enum mr_checkpoint_format format, struct mr_ckpt_view *out,
                         struct mr_error *err);
/* The same for one of a list, flat: a tensor that is saved in parts has 0 bytes, and its parts
 * follow as tensors under names of their own.  Borrows the descriptor. */
int mr_ckpt_view_open_flat(const struct mr_ckpt_dir *dir, const struct mr_ckpt_item *item,
                           struct mr_device *device, struct mr_ckpt_view *out,
                           struct mr_error *err);
void mr_ckpt_view_fini(struct mr_ckpt_view *v);
/* Paths of its files, with the folder: for words, and for mr_ckpt_view_name.  The data file of
 * shard s, the head, and the side file, if the format has one. */
void mr_ckpt_view_file(const struct mr_ckpt_view *v, uint32_t s, char out[MR_CKPT_MAX_PATH]);
void mr_ckpt_view_head(const struct mr_ckpt_view *v, char out[MR_CKPT_MAX_PATH]);
void mr_ckpt_view_side(const struct mr_ckpt_view *v, char out[MR_CKPT_MAX_PATH]);
/* The name to open, relative to dir_fd, of a file of this checkpoint. */
const char *mr_ckpt_view_name(const struct mr_ckpt_view *v, const char *file);

/* used[s] is 1 for each data file that holds bytes of a tensor; [n_shards], free it.  NULL: no
 * memory. */
uint8_t *mr_ckpt_view_used(const struct mr_ckpt_view *v);

#endif
