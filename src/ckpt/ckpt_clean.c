/* ckpt_clean.c - see ckpt_clean.h.
 *
 * A temporary is ours when its name has the checksum of its name (ckpt_name.h).  The temporary of a
 * head tells about files that have their names already (publish_set.c has the order): a publication
 * or a removal was under way.  It is the head itself, synced before the first file that it names
 * was renamed.  So the data files that it names, and the side file, are of that checkpoint.  One
 * that is torn was never relied on: nothing had been renamed.
 *
 * What a head that exists uses stays.  If such a head is damaged, everything of its stem stays.  So
 * only files are removed that this library wrote, and none that anybody can restore. */
#include "ckpt_clean.h"

#include "ckpt_format.h"
#include "ckpt_scan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STEM (MR_CKPT_MAX_NAME - 32)

int mr_ckpt_read_files(struct mr_out_dir *dir, enum mr_checkpoint_format format, const char *stem,
                       const char *file, struct mr_ckpt_files *out)
{
    struct mr_ckpt_dir where = {mr_out_dir_fd(dir), mr_out_dir_path(dir)};
    struct mr_ckpt_view v;
    int r = mr_ckpt_view_open_as(&where, stem, file, format, &v, NULL);
    if (r == -ENODATA || r == -EFBIG || r == -EISDIR || r == -EINVAL || r == -ENOTSUP)
        r = -EBADMSG;
    if (r)
        return r == -ENOMEM || r == -EBADMSG ? r : -EAGAIN;
    out->n = v.bundle.n_shards;
    out->used = mr_ckpt_view_used(&v);
    mr_ckpt_view_fini(&v);
    return out->used ? 0 : -ENOMEM;
}

int mr_ckpt_files_has(const struct mr_ckpt_files *f, uint32_t shard, uint32_t n)
{
    return f->n == n && shard < n && f->used[shard];
}

static int remove_named(struct mr_out_dir *dir, const struct mr_ckpt_format *row, const char *stem,
                        const struct mr_ckpt_files *doomed, const struct mr_ckpt_files *kept,
                        int has_head)
{
    char file[MR_CKPT_MAX_NAME];
    int r = 0;
    for (uint32_t s = 0; !r && s < doomed->n; s++) {
        if (!doomed->used[s] || mr_ckpt_files_has(kept, s, doomed->n))
            continue;
        row->data_name(stem, s, doomed->n, file, sizeof file);
        r = mr_out_unlink(dir, file);
    }
    if (!r && !has_head && row->side_ending) {
        snprintf(file, sizeof file, "%.*s%s", MAX_STEM, stem, row->side_ending);
        r = mr_out_unlink(dir, file);
    }
    return r ? r : mr_out_sync_dir(dir);
}

int mr_ckpt_head_files(struct mr_out_dir *dir, enum mr_checkpoint_format format, const char *stem,
                       struct mr_ckpt_files *out)
{
    char head[MR_CKPT_MAX_NAME];
    snprintf(head, sizeof head, "%.*s%s", MAX_STEM, stem, mr_ckpt_format_row(format)->ending);
    int there = mr_out_exists(dir, head);
    int r = there > 0 ? mr_ckpt_read_files(dir, format, stem, head, out) : 0;
    return r ? r : there;
}

/* `temp` was to be the head of `stem`. */
static int clean_head(struct mr_out_dir *dir, enum mr_checkpoint_format format, const char *stem,
                      const char *temp)
{
    struct mr_ckpt_files doomed = {0}, kept = {0};
    int there = mr_ckpt_head_files(dir, format, stem, &kept);
    int r = there < 0 ? there : mr_ckpt_read_files(dir, format, stem, temp, &doomed);
    if (!r)
        r = remove_named(dir, mr_ckpt_format_row(format), stem, &doomed, &kept, there);
    free(kept.used);
    free(doomed.used);
    return r;
}

/* What formats have of kinds of their own. */
static int clean_other(struct mr_out_dir *dir, const char *name, const char *temp)
{
    const struct mr_ckpt_format *row;
    int r = 0;
    for (unsigned i = 0; !r && (row = mr_ckpt_format_row(i)); i++)
        r = row->clean ? row->clean(dir, name, temp) : 0;
    return r;
}

static int clean(void *ctx, const char *temp)
{
    struct mr_out_dir *dir = ctx;
    char name[MR_CKPT_MAX_NAME], stem[MR_CKPT_MAX_NAME];
    size_t n = 0;
    if (!mr_ckpt_temp_parse(temp, name, NULL))
        return 0;
    int format = mr_ckpt_format_of(name, &n), r = 0;
    if (format < 0) {
        r = clean_other(dir, name, temp);
    } else if (mr_ckpt_format_row((unsigned)format)->data_name && n <= MAX_STEM) {
        /* A longer stem leaves no room for the names of its data. */
        snprintf(stem, sizeof stem, "%.*s", (int)n, name);
        r = clean_head(dir, (enum mr_checkpoint_format)format, stem, temp);
    }
    if (r == -EAGAIN)
        return 0; /* a later start may know more */
    return r && r != -EBADMSG ? r : mr_out_unlink(dir, temp);
}

int mr_ckpt_clean(struct mr_out_dir *dir)
{
    return mr_ckpt_each_name(mr_out_dir_fd(dir), ".", clean, dir);
}
