/* tier.h - a folder of checkpoints: publish a new one, remove old ones, in an order that no crash
 * can turn into a loss.
 *
 * One thread at a time uses a tier. */
#ifndef MR_TIER_H
#define MR_TIER_H

#include "ckpt_mark.h"
#include "loader.h"
#include "out_dir.h"

#include "bytes.h"

struct mr_tier_opts {
    const char *path, *prefix;
    enum mr_checkpoint_format format;
    unsigned keep; /* MR_NONE: all */
    struct mr_device *device;
    const struct mr_out_hook *hook;
    enum mr_checkpoint_tier which;
    struct mr_lease_opts lease;
};

struct mr_tier {
    struct mr_tier_opts o; /* strings are the caller's */
    struct mr_out_dir *dir;
    const struct mr_ckpt_format *row;
    struct mr_ckpt_list list; /* of our prefix and format, with our mark: only these are removed */
    struct mr_ckpt_list superseded; /* older versions of steps on the list, to be removed */
    uint64_t generation;            /* the largest that was found, whatever the prefix and format */
    int64_t ours;             /* newest step with our prefix and mark, in either format; -1: none */
    struct mr_loader *loader; /* to read one back */
    int64_t verified;         /* newest step that was read back and was right, -1 */
};

/* Where a checkpoint's bytes come from; the two are called in this order. */
struct mr_tier_source {
    uint64_t data_bytes;
    uint32_t shard, n_shards; /* that name the data file */
    /* Write the data file, from 0 to data_bytes rounded up to 4096; with the head in front of it
     * where the format has it there. */
    int (*write_data)(void *ctx, struct mr_out_file *f, struct mr_error *err);
    /* Append the side file and the head.  Not called where the head is in the data file. */
    int (*write_small)(void *ctx, struct mr_bytes *side, struct mr_bytes *head,
                       struct mr_error *err);
    void *ctx;
};

/* Own the folder, remove what a crash left of ours, see what is there. */
int mr_tier_open(const struct mr_tier_opts *o, struct mr_tier *t, struct mr_error *err);
/* Half-open ones too. */
void mr_tier_close(struct mr_tier *t);

/* Make checkpoint `step` exist, whose mark says `mark`.  When this returns 0 it is durable;
 * otherwise it does not exist, and all that did before still does.  An older one of that step is
 * replaced if it is ours (settle removes it, where that takes a removal); -EEXIST: it is not;
 * -ESTALE: it is as new; another error: that cannot be read.  With no space left, old ones are
 * removed as mr_tier_prune does, and it is tried once more.  *bytes: of its files. */
int mr_tier_publish(struct mr_tier *t, uint64_t step, const struct mr_ckpt_mark *mark,
                    const struct mr_tier_source *src, uint64_t *bytes, struct mr_error *err);
/* Name the checkpoints in TensorFlow's file `checkpoint`, `latest` as the one to take, remove what
 * is superseded, and old ones: all but the newest `keep` and `step`, which was made just now, once
 * one of those that stay has been read back.  A failure loses nothing. */
int mr_tier_settle(struct mr_tier *t, uint64_t step, uint64_t latest, struct mr_error *err);
/* Remove what is superseded, and old ones: all but the newest `keep`, once one of those that stay
 * has been read back.  How many went, or -errno. */
int mr_tier_prune(struct mr_tier *t, struct mr_error *err);
/* The newest one of the list, NULL: none. */
const struct mr_ckpt_item *mr_tier_newest(const struct mr_tier *t);
/* That step's, NULL: it is not on the list. */
const struct mr_ckpt_item *mr_tier_find(const struct mr_tier *t, uint64_t step);
/* Remove one, after a look at its mark: what is not (any more) proven ours stays, and leaves the
 * list. */
int mr_tier_remove(struct mr_tier *t, uint64_t step, struct mr_error *err);
struct mr_ckpt_dir mr_tier_dir(const struct mr_tier *t);

#endif
