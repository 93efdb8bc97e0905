/* tier.h - a folder of checkpoints: publish a new one, remove old ones, in an order that no crash
 * can turn into a loss.
 *
 * One thread at a time uses a tier. */
#ifndef MR_TIER_H
#define MR_TIER_H

#include "ckpt_scan.h"
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
};

struct mr_tier {
    struct mr_tier_opts o; /* strings are the caller's */
    struct mr_out_dir *dir;
    struct mr_ckpt_list list; /* of our prefix and format */
    struct mr_loader *loader; /* to read one back */
    int64_t verified;         /* newest step that was read back and was right, -1 */
};

/* Where a checkpoint's bytes come from; the three are called in this order. */
struct mr_tier_source {
    uint64_t data_bytes;
    /* Write the data file, from 0 to data_bytes rounded up to 4096. */
    int (*write_data)(void *ctx, struct mr_out_file *f, struct mr_error *err);
    /* Append .meta and .index (neither for safetensors); `shard` and `n_shards` name the data file.
     */
    int (*write_small)(void *ctx, uint32_t shard, uint32_t n_shards, struct mr_bytes *meta,
                       struct mr_bytes *index, struct mr_error *err);
    void *ctx;
};

/* Lock the folder, remove what a crash left of ours, see what is there. */
int mr_tier_open(const struct mr_tier_opts *o, struct mr_tier *t, struct mr_error *err);
/* Half-open ones too. */
void mr_tier_close(struct mr_tier *t);

/* Make checkpoint `step` exist.  When this returns 0 it is durable; otherwise it does not exist,
 * and all that did before still does.  *bytes: of its files. */
int mr_tier_publish(struct mr_tier *t, uint64_t step, const struct mr_tier_source *src,
                    uint64_t *bytes, struct mr_error *err);
/* Name the checkpoints in TensorFlow's file `checkpoint`, `latest` as the one to take, and remove
 * old ones: all but the newest `keep` and `step`, which was made just now, once one of those that
 * stay has been read back.  A failure loses nothing. */
int mr_tier_settle(struct mr_tier *t, uint64_t step, uint64_t latest, struct mr_error *err);
/* The newest step, -1: none. */
int64_t mr_tier_newest(const struct mr_tier *t);
/* Remove one. */
int mr_tier_remove(struct mr_tier *t, uint64_t step, struct mr_error *err);
int mr_tier_has(const struct mr_tier *t, uint64_t step);

#endif
