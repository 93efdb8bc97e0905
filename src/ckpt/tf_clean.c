/* tf_clean.c - see tf_clean.h. */
#include "tf_clean.h"

#include "ckpt_clean.h"
#include "ckpt_format.h"
#include "ckpt_mark.h"
#include "crc32c.h"
#include "in_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STEM (MR_CKPT_MAX_NAME - 32)

/* Five digits, as TensorFlow writes them. */
static int parse_five(const char *at, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 5; i++) {
        if (at[i] < '0' || at[i] > '9')
            return 0;
        *out = *out * 10 + (uint32_t)(at[i] - '0');
    }
    return 1;
}

/* Is `name` STEM.data-SHARD-of-N? */
static int parse_data(const char *name, char stem[MR_CKPT_MAX_NAME], uint32_t *shard,
                      uint32_t *n_shards)
{
    size_t len = strlen(name), end = strlen(".data-00000-of-00001");
    const char *data = len > end ? name + len - end : NULL;
    if (!data || memcmp(data, ".data-", 6) || memcmp(data + 11, "-of-", 4) ||
        !parse_five(data + 6, shard) || !parse_five(data + 15, n_shards))
        return 0;
    snprintf(stem, MR_CKPT_MAX_NAME, "%.*s", (int)(len - end), name);
    return 1;
}

/* `data` was being replaced: does .index use it? */
static int clean_data(struct mr_out_dir *dir, const char *stem, const char *data, uint32_t shard,
                      uint32_t n_shards)
{
    struct mr_ckpt_files kept = {0};
    int r = mr_ckpt_head_files(dir, MR_CHECKPOINT_TF, stem, &kept);
    int used = r > 0 && mr_ckpt_files_has(&kept, shard, n_shards);
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
    int r = mr_in_small_file(mr_out_dir_fd(dir), name, MR_CKPT_MAX_SIDE, NULL, &bytes, &len);
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

/* `temp` holds the older version of `graph`, of the bundle `stem`: which of the two is the .index
 * saved with? */
static int clean_graph(struct mr_out_dir *dir, const char *stem, const char *graph,
                       const char *temp)
{
    struct mr_ckpt_dir where = {mr_out_dir_fd(dir), mr_out_dir_path(dir)};
    char index[MR_CKPT_MAX_NAME];
    struct mr_ckpt_view v;
    uint64_t seal[2], old[2], now[2];
    snprintf(index, sizeof index, "%.*s.index", MAX_STEM, stem);
    int r = mr_out_exists(dir, index);
    if (r <= 0)
        return r;
    r = mr_ckpt_view_open_as(&where, stem, index, MR_CHECKPOINT_TF, &v, NULL);
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

int mr_tf_clean(struct mr_out_dir *dir, const char *name, const char *temp)
{
    char file[MR_CKPT_MAX_NAME], stem[MR_CKPT_MAX_NAME];
    uint32_t shard, n_shards;
    if (!mr_ends_in(name, MR_OLD))
        return 0;
    snprintf(file, sizeof file, "%.*s", (int)(strlen(name) - strlen(MR_OLD)), name);
    if (parse_data(file, stem, &shard, &n_shards))
        return clean_data(dir, stem, file, shard, n_shards);
    if (!mr_ends_in(file, ".meta"))
        return 0;
    snprintf(stem, sizeof stem, "%.*s", (int)(strlen(file) - strlen(".meta")), file);
    return clean_graph(dir, stem, file, temp);
}
