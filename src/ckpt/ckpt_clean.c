/* ckpt_clean.c - see ckpt_clean.h.
 *
 * A temporary is ours when its name has the checksum of its name (ckpt_name.h).  Two kinds tell of
 * files that have names already (publish_set.c says in which order they get them):
 *
 *   NAME.index, temporary    A publication or a removal was under way.  It is the index itself,
 *                            synced before the first file that it names was renamed: the data files
 *                            that it names, and NAME.meta, are of that checkpoint.  One that is not
 *                            whole was never relied on, and nothing was renamed.
 *   NAME.data-*, temporary   Besides a data file that was being written, the mark of one that is
 *                            being replaced (tier.c): it goes when NAME.index does not use it.
 *
 * What an .index that exists uses stays, and with an .index that is there but damaged everything
 * does.  So only files are removed that this library wrote, and none that anybody can restore. */
#include "ckpt_clean.h"

#include "ckpt_name.h"
#include "ckpt_scan.h"
#include "in_file.h"
#include "tf_bundle.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STEM (MR_CKPT_MAX_NAME - 32)

/* The data files that an index names. */
struct shards {
    uint32_t n;
    uint8_t *used; /* [n] */
};

static int list_shards(const struct mr_bundle *b, struct shards *out)
{
    const struct mr_bundle_part *parts;
    out->n = b->n_shards;
    out->used = calloc(b->n_shards, 1);
    if (!out->used)
        return -ENOMEM;
    for (size_t i = 0; i < b->tensors.n; i++)
        if (!mr_bundle_parts_of(b, i, &parts))
            out->used[b->tensors.tensors[i].shard] = 1;
    for (size_t i = 0; i < b->n_parts; i++)
        out->used[b->parts[i].shard] = 1;
    return 0;
}

/* -EBADMSG: it is no index, whatever else it is; -EAGAIN: it cannot be read now. */
static int read_index(struct mr_out_dir *dir, const char *name, struct shards *out)
{
    char path[PATH_MAX + MR_CKPT_MAX_NAME];
    struct mr_bundle b;
    uint8_t *bytes;
    size_t len;
    snprintf(path, sizeof path, "%s/%s", mr_out_dir_path(dir), name);
    int r = mr_in_small_file(path, MR_BUNDLE_MAX_INDEX, NULL, &bytes, &len);
    if (r)
        return r == -ENODATA || r == -EFBIG || r == -EISDIR || r == -EINVAL ? -EBADMSG
               : r == -ENOMEM                                               ? r
                                                                            : -EAGAIN;
    r = mr_bundle_parse(path, bytes, len, &b, NULL);
    free(bytes);
    if (r)
        return r == -ENOMEM ? r : -EBADMSG;
    r = list_shards(&b, out);
    mr_bundle_fini(&b);
    return r;
}

static int is_used(const struct shards *s, uint32_t shard, uint32_t n)
{
    return s->n == n && shard < n && s->used[shard];
}

static int remove_named(struct mr_out_dir *dir, const char *stem, const struct shards *doomed,
                        const struct shards *kept, int has_index)
{
    char file[MR_CKPT_MAX_NAME];
    int r = 0;
    for (uint32_t s = 0; !r && s < doomed->n; s++) {
        if (!doomed->used[s] || is_used(kept, s, doomed->n))
            continue;
        snprintf(file, sizeof file, "%.*s.data-%05u-of-%05u", MAX_STEM, stem, s, doomed->n);
        r = mr_out_unlink(dir, file);
    }
    if (!r && !has_index) {
        snprintf(file, sizeof file, "%.*s.meta", MAX_STEM, stem);
        r = mr_out_unlink(dir, file);
    }
    return r ? r : mr_out_sync_dir(dir);
}

/* What NAME.index uses: 1 and *kept, 0 when it is not there, or -errno. */
static int look_at_index(struct mr_out_dir *dir, const char *index, struct shards *kept)
{
    int there = mr_out_exists(dir, index);
    int r = there > 0 ? read_index(dir, index, kept) : 0;
    return r ? r : there;
}

/* `temp` was to be the index of `stem`. */
static int clean_index(struct mr_out_dir *dir, const char *index, const char *stem,
                       const char *temp)
{
    struct shards doomed = {0}, kept = {0};
    int there = look_at_index(dir, index, &kept);
    int r = there < 0 ? there : read_index(dir, temp, &doomed);
    if (!r)
        r = remove_named(dir, stem, &doomed, &kept, there);
    free(kept.used);
    free(doomed.used);
    return r;
}

/* A temporary of `data`, shard `shard` of `n_shards`: is a file of that name left over?  Without an
 * index, but with its temporary, all of that checkpoint is. */
static int clean_data(struct mr_out_dir *dir, const char *index, const char *data, uint32_t shard,
                      uint32_t n_shards)
{
    char temp[MR_CKPT_MAX_NAME];
    struct shards kept = {0};
    int r = look_at_index(dir, index, &kept), used = r > 0 && is_used(&kept, shard, n_shards);
    if (!r) {
        r = mr_ckpt_temp_name(temp, index);
        r = r ? r : look_at_index(dir, temp, &kept);
    }
    free(kept.used);
    if (r <= 0 || used)
        return r < 0 ? r : 0;
    r = mr_out_unlink(dir, data);
    return r ? r : mr_out_sync_dir(dir);
}

struct pass {
    struct mr_out_dir *dir;
    int indexes; /* data come first: they want to see the temporary of the index */
};

static int clean(void *ctx, const char *temp)
{
    const struct pass *p = ctx;
    char name[MR_CKPT_MAX_NAME], stem[MR_CKPT_MAX_NAME] = "", index[MR_CKPT_MAX_NAME];
    uint32_t shard = 0, n_shards = 0;
    if (!mr_ckpt_temp_parse(temp, name))
        return 0;
    int r = 0, kind = mr_ckpt_stem_parse(name, stem, &shard, &n_shards);
    if ((kind == MR_STEM_INDEX) != p->indexes)
        return 0;
    if (strlen(stem) > MAX_STEM) /* with data of its own we could not have published it */
        kind = MR_STEM_NONE;
    snprintf(index, sizeof index, "%.*s.index", MAX_STEM, stem);
    if (kind == MR_STEM_INDEX)
        r = clean_index(p->dir, index, stem, temp);
    else if (kind == MR_STEM_DATA)
        r = clean_data(p->dir, index, name, shard, n_shards);
    if (r == -EAGAIN)
        return 0; /* a later start may know more */
    return r && r != -EBADMSG ? r : mr_out_unlink(p->dir, temp);
}

int mr_ckpt_clean(struct mr_out_dir *dir)
{
    const char *path = mr_out_dir_path(dir);
    int r = mr_ckpt_each_name(path, clean, &(struct pass){dir, 0});
    return r ? r : mr_ckpt_each_name(path, clean, &(struct pass){dir, 1});
}
