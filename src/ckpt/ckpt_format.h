/* ckpt_format.h - a checkpoint format is one row: names, facts and a few functions.
 *
 * Everything else in this folder is the same for all formats: snapshots, publishing, tiers, drain,
 * restore, verify, convert.  docs/extending.md shows how to add a row.
 *
 *   STEM                  PREFIX-STEP, with the folder where a path is meant
 *   head                  STEM + ending; a checkpoint exists when its head does, so it comes last
 *   data files            the tensors' bytes.  Without data_name the head is the only file: a
 *                         header, then the tensors
 *   side file             STEM + side_ending: a small file more, named before the head */
#ifndef MR_CKPT_FORMAT_H
#define MR_CKPT_FORMAT_H

#include "bytes.h"
#include "ckpt_plan.h"
#include "ckpt_view.h"
#include "out_dir.h"

/* All names of the table below, in its order, for lists of choices. */
#define MR_CKPT_FORMAT_NAMES "tf|safetensors"

/* Of a side file. */
#define MR_CKPT_MAX_SIDE ((size_t)1 << 30)

struct mr_ckpt_format {
    const char *name;        /* "tf": in options and in JSON */
    const char *title;       /* "TensorFlow": in messages */
    const char *ending;      /* ".index": of the head */
    const char *side_ending; /* ".meta"; NULL: no side file */
    int shown_with_ending;   /* users name it STEM.ending; 0: STEM */
    int in_state_file;       /* TensorFlow's file `checkpoint` lists it */

    /* Can it hold elements of this type?  NULL: every type. */
    int (*holds)(int dtype);
    /* The name of data file `shard` of `n_shards`.  NULL: the head holds the data. */
    void (*data_name)(const char *stem, uint32_t shard, uint32_t n_shards, char *out, size_t cap);
    /* Is it a data file's name, less the stem?  With data_name. */
    int (*is_data)(const char *rest);

    /* Read and check the head, which is in `file` (a path of mr_ckpt_view_file's kind; a temporary
     * perhaps): set v->bundle and what follows it.  -EBADMSG, -ENODATA and -ENOTSUP mean that the
     * file is no head that this library can use; v->bundle is then as it was. */
    int (*read_head)(struct mr_ckpt_view *v, const char *file, struct mr_device *device,
                     struct mr_error *err);
    /* Read the side file, check it against the checkpoint, append it to `out` (may be NULL).  One
     * that nothing says must be there may be missing.  With side_ending. */
    int (*read_side)(const struct mr_ckpt_view *v, struct mr_device *device, struct mr_bytes *out,
                     struct mr_error *err);

    /* Make p->side if it is empty, and add tensors of the format's own.  NULL: neither. */
    int (*prepare)(struct mr_ckpt_plan *p, struct mr_error *err);
    /* Order the tensors, give each its offset, set p->data_bytes and p->head_bytes. */
    int (*lay_out)(struct mr_ckpt_plan *p, int packed, struct mr_error *err);
    /* Append the head, when the tensors have their crcs; without data_name p->head_bytes of it. */
    int (*write_head)(const struct mr_ckpt_plan *p, struct mr_bytes *out, struct mr_error *err);

    /* What the temporary `temp` of a file `name` tells about other files, if it is of a kind that
     * only this format has.  0, -EAGAIN (keep the temporary), or -errno.  NULL: no such kinds. */
    int (*clean)(struct mr_out_dir *dir, const char *name, const char *temp);
};

/* Row i of the table; i is an enum mr_checkpoint_format.  NULL behind the last one. */
const struct mr_ckpt_format *mr_ckpt_format_row(unsigned i);

extern const struct mr_ckpt_format mr_tf_format, mr_safetensors_format;

#endif
