/* ckpt_clean.c - see ckpt_clean.h.
 *
 * A temporary is ours when its name has the checksum of its name (ckpt_name.h).  Two kinds tell of
 * files that have names already (publish_set.c says in which order they get them):
 *
 *   NAME.index, temporary    A publication or a removal was under way.  It is the index itself,
 *                            synced before the first file that it names was renamed: the data files
 *                            that it names, and NAME.meta, are of that checkpoint.  One that is not
 *                            whole was never relied on, and nothing was renamed.
 *   NAME.data-*-old          The mark of a data file that is being replaced (tier.c): that goes
 *                            when NAME.index does not use it.
 *   NAME.meta-old            The older .meta of a step that was being replaced.  If NAME.index is
 *                            the older one too, it gets its name back.
 *
 * What an .index that exists uses stays, and with an .index that is there but damaged everything
 * does.  So only files are removed that this library wrote, and none that anybody can restore. */
#include "ckpt_clean.h"

#include "ckpt_mark.h"
#include "ckpt_name.h"
#include "crc32c.h"
#include "in_file.h"
#include "tf_bundle.h"
#include "tf_meta.h"

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
    int r = mr_in_small_file(mr_out_dir_fd(dir), name, MR_BUNDLE_MAX_INDEX, NULL, &bytes, &len);
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

/* `data`, shard `shard` of `n_shards`, was being replaced: does .index use it? */
static int clean_data(struct mr_out_dir *dir, const char *index, const char *data, uint32_t shard,
                      uint32_t n_shards)
{
    struct shards kept = {0};
    int r = look_at_index(dir, index, &kept), used = r > 0 && is_used(&kept, shard, n_shards);
    free(kept.used);
    if (r < 0 || used)
        return r < 0 ? r : 0;
    r = mr_out_unlink(dir, data);
    return r ? r : mr_out_sync_dir(dir);
}

/* Length and crc32c of a graph: 0 or -errno. */
static int sum_of(struct mr_out_dir *dir, const char *name, uint64_t sum[2])
{
    uint8_t *bytes;
    size_t len;
    int r = mr_in_small_file(mr_out_dir_fd(dir), name, MR_META_MAX_FILE, NULL, &bytes, &len);
    if (r)
        return r;
    sum[0] = len;
    sum[1] = mr_crc32c(0, bytes, len);
    free(bytes);
    return 0;
}

static int same_sum(const uint64_t a[2], const uint64_t b[2])
{
    return a[0] == b[0] && a[1] == b[1];
}

/* `temp` holds the older version of `graph`, of the bundle `stem`: who does .index go with? */
static int clean_graph(struct mr_out_dir *dir, const char *stem, const char *graph,
                       const char *temp)
{
    struct mr_ckpt_dir where = {mr_out_dir_fd(dir), mr_out_dir_path(dir)};
    struct mr_ckpt_item item = {.format = MR_CHECKPOINT_TF};
    char index[MR_CKPT_MAX_NAME];
    struct mr_ckpt_view v;
    uint64_t seal[2], old[2], now[2];
    size_t n;
    snprintf(index, sizeof index, "%.*s.index", MAX_STEM, stem);
    if (!mr_ckpt_name_parse(index, &n, &item.step, &item.format) || n >= sizeof item.prefix)
        return 0;
    memcpy(item.prefix, stem, n);
    int r = mr_out_exists(dir, index);
    if (r <= 0)
        return r;
    r = mr_ckpt_view_open_flat(&where, &item, NULL, &v, NULL);
    if (r)
        return r == -ENOMEM ? r : -EAGAIN;
    r = mr_ckpt_meta_seal(&v, NULL, seal, NULL);
    mr_ckpt_view_fini(&v);
    if (r <= 0)
        return r == -ENOMEM || !r ? r : -EAGAIN;
    r = sum_of(dir, temp, old);
    if (r || !same_sum(old, seal)) /* torn: it was never relied on */
        return r == -ENODATA ? 0 : r;
    r = sum_of(dir, graph, now);
    if (r && r != -ENOENT && r != -ENODATA)
        return r == -ENOMEM ? r : -EAGAIN;
    if (!r && same_sum(now, seal))
        return 0;
    r = mr_out_rename(dir, temp, graph);
    return r ? r : mr_out_sync_dir(dir);
}

/* Is `name` about an older file?  Then `file` is that. */
static int is_old(const char *name, char file[MR_CKPT_MAX_NAME])
{
    size_t len = strlen(name), old = strlen(MR_OLD);
    if (len <= old || strcmp(name + len - old, MR_OLD))
        return 0;
    snprintf(file, MR_CKPT_MAX_NAME, "%.*s", (int)(len - old), name);
    return 1;
}

/* `temp` tells of the older version of `file`. */
static int clean_old(struct mr_out_dir *dir, const char *file, const char *temp)
{
    static const char graph[] = ".meta";
    char stem[MR_CKPT_MAX_NAME], index[MR_CKPT_MAX_NAME];
    uint32_t shard, n_shards;
    size_t len = strlen(file), end = sizeof graph - 1;
    if (mr_ckpt_stem_parse(file, stem, &shard, &n_shards) == MR_STEM_DATA) {
        snprintf(index, sizeof index, "%.*s.index", MAX_STEM, stem);
        return clean_data(dir, index, file, shard, n_shards);
    }
    if (len <= end || strcmp(file + len - end, graph))
        return 0;
    snprintf(stem, sizeof stem, "%.*s", (int)(len - end), file);
    return clean_graph(dir, stem, file, temp);
}

static int clean(void *ctx, const char *temp)
{
    struct mr_out_dir *dir = ctx;
    char name[MR_CKPT_MAX_NAME], stem[MR_CKPT_MAX_NAME] = "", index[MR_CKPT_MAX_NAME];
    char file[MR_CKPT_MAX_NAME];
    uint32_t shard, n_shards;
    if (!mr_ckpt_temp_parse(temp, name, NULL))
        return 0;
    int r = 0;
    if (mr_ckpt_stem_parse(name, stem, &shard, &n_shards) == MR_STEM_INDEX &&
        strlen(stem) <=
            MAX_STEM) { /* with data of its own we could not have published a longer one */
        snprintf(index, sizeof index, "%.*s.index", MAX_STEM, stem);
        r = clean_index(dir, index, stem, temp);
    } else if (is_old(name, file)) {
        r = clean_old(dir, file, temp);
    }
    if (r == -EAGAIN)
        return 0; /* a later start may know more */
    return r && r != -EBADMSG ? r : mr_out_unlink(dir, temp);
}

int mr_ckpt_clean(struct mr_out_dir *dir)
{
    return mr_ckpt_each_name(mr_out_dir_fd(dir), ".", clean, dir);
}
