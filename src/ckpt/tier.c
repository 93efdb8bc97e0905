/* tier.c - the order of operations that makes a checkpoint exist or not.
 *
 *   publish   1  data   -> temporary, written, synced
 *             2  .meta  -> temporary, written, synced
 *             3  .index -> temporary, written, synced; folder synced    (safetensors: 1 and 5)
 *             4  data, .meta renamed; folder synced
 *             5  .index renamed; folder synced                 <- from here on it exists
 *   settle    6  `checkpoint` -> temporary, synced, renamed; folder synced
 *             7  one of those that stay is read back, unless one has been
 *             8  old ones: .index renamed to a temporary; folder synced; data and .meta removed;
 *                folder synced; that temporary removed
 *
 * Before 5 there is no .index, so nobody takes the new one; after 5 it is whole.  4 is synced
 * before 5 so that an .index never stands without its data, in whatever order a file system writes
 * its folder, and 8 takes the .index away first for the same reason.  An error anywhere up to 5
 * undoes what was done.
 *
 * A step that is there already is replaced: its data stay under one name while the new data are
 * written under the other (ckpt_name.h), and the rename of .index switches over at once.  An empty
 * temporary, called after the older data, is there from 3 until those are removed.
 *
 * After a crash, opening removes temporaries of ours.  They are synced before what they stand for:
 * one of .index says that its data were renamed in 4 already, or are left of 8; one of data that a
 * replaced checkpoint used them.  Such data go first, unless an .index that exists uses them.  So
 * nothing is left that nobody knows of.
 *
 * No lock: see tier.h. */
#include "tier.h"

#include "errtext.h"
#include "tf_state.h"
#include "whole_file.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const struct mr_tier *t, int code, const char *name, struct mr_error *err)
{
    if (code == -ENOSPC)
        return mr_fail(err, code, "%s/%s: no space left: free some, keep fewer, or drain elsewhere",
                       t->o.path, name);
    return mr_fail(err, code, "%s/%s: %s", t->o.path, name, mr_errno_text(code));
}

/* ---- opening ---- */

/* Which data file an .index uses: MR_PART_DATA or _AGAIN; or -errno, -ENOENT when there is no
 * .index. */
static int data_part(const struct mr_tier *t, const char *prefix, uint64_t step)
{
    struct mr_ckpt_item item = {.step = step, .format = MR_CHECKPOINT_TF};
    struct mr_ckpt_view v;
    char index[MR_CKPT_MAX_NAME];
    snprintf(item.prefix, sizeof item.prefix, "%s", prefix);
    mr_ckpt_name(index, prefix, step, MR_PART_INDEX);
    int there = mr_out_exists(t->dir, index);
    if (there <= 0)
        return there ? there : -ENOENT;
    int r = mr_ckpt_view_open_flat(t->o.path, &item, NULL, &v, NULL);
    if (r)
        return r == -ENOENT ? -EIO : r;
    int part = v.bundle.n_shards == 2 ? MR_PART_DATA_AGAIN : MR_PART_DATA;
    mr_ckpt_view_fini(&v);
    return part;
}

/* A crash left a temporary of `name`: an .index, and then its data and .meta may be left too, or
 * the data of a checkpoint that was replaced.  Remove what no .index uses. */
static int remove_unused(struct mr_tier *t, const char *name)
{
    static const enum mr_ckpt_part parts[] = {MR_PART_DATA, MR_PART_DATA_AGAIN, MR_PART_META};
    char prefix[MR_CKPT_MAX_NAME], file[MR_CKPT_MAX_NAME];
    uint64_t step;
    int part = mr_ckpt_part_parse(name, prefix, &step), r = 0;
    if (part != MR_PART_INDEX && part != MR_PART_DATA && part != MR_PART_DATA_AGAIN)
        return 0;
    int used = data_part(t, prefix, step);
    if (used < 0 && (used != -ENOENT || part != MR_PART_INDEX))
        return 0; /* an .index that cannot be read may need them; without one, they were not there
                   */
    for (size_t i = 0; !r && i < sizeof parts / sizeof *parts; i++) {
        if ((int)parts[i] == used || (used >= 0 && parts[i] == MR_PART_META))
            continue;
        mr_ckpt_name(file, prefix, step, parts[i]);
        r = mr_out_unlink(t->dir, file);
    }
    return r ? r : mr_out_sync_dir(t->dir);
}

static int clean(void *ctx, const char *temp)
{
    struct mr_tier *t = ctx;
    char name[MR_CKPT_MAX_NAME];
    if (!mr_ckpt_temp_parse(temp, name))
        return 0;
    int r = remove_unused(t, name);
    return r ? r : mr_out_unlink(t->dir, temp);
}

int mr_tier_open(const struct mr_tier_opts *o, struct mr_tier *t, struct mr_error *err)
{
    struct mr_out_opts out = {.device = o->device, .hook = o->hook, .tag = o->which};
    struct mr_ckpt_list all = {0};
    *t = (struct mr_tier){.o = *o, .verified = -1};
    int r = mr_out_dir_open(o->path, &out, &t->dir, err);
    if (r)
        return r;
    r = mr_ckpt_each_name(o->path, clean, t);
    if (!r)
        r = mr_ckpt_scan(o->path, o->prefix, &all);
    for (size_t i = 0; !r && i < all.n; i++)
        if (all.items[i].format == o->format)
            r = mr_ckpt_list_add(&t->list, &all.items[i]);
    if (!r && o->keep != MR_NONE)
        r = mr_loader_open(1, &t->loader);
    mr_ckpt_list_fini(&all);
    if (r) {
        mr_fail(err, r, "%s: %s", o->path, mr_errno_text(r));
        mr_tier_close(t);
    }
    return r;
}

void mr_tier_close(struct mr_tier *t)
{
    mr_loader_close(t->loader);
    mr_out_dir_close(t->dir);
    mr_ckpt_list_fini(&t->list);
    t->loader = NULL;
    t->dir = NULL;
}

int mr_tier_has(const struct mr_tier *t, uint64_t step)
{
    return mr_ckpt_list_find(&t->list, t->o.prefix, step, t->o.format) >= 0;
}

/* ---- publishing ---- */

struct file {
    char name[MR_CKPT_MAX_NAME], temp[MR_CKPT_MAX_NAME];
    int exists; /* the temporary */
};

static void name_file(struct mr_tier *t, uint64_t step, enum mr_ckpt_part part, struct file *f)
{
    mr_ckpt_name(f->name, t->o.prefix, step, part);
    mr_ckpt_temp_name(f->temp, f->name);
    f->exists = 0;
}

/* A temporary of ours may be left of an attempt whose removal failed as well. */
static int make_way(struct mr_tier *t, const char *temp)
{
    int there = mr_out_exists(t->dir, temp);
    return there > 0 ? mr_out_unlink(t->dir, temp) : there;
}

static int write_temp(struct mr_tier *t, const char *temp, const struct mr_bytes *b)
{
    int r = b->error ? b->error : make_way(t, temp);
    return r ? r : mr_out_small_file(t->dir, temp, b->data, b->len);
}

static int write_data(struct mr_tier *t, struct file *file, const struct mr_tier_source *src,
                      struct mr_error *err)
{
    struct mr_out_file f;
    int r = make_way(t, file->temp);
    if (!r)
        r = mr_out_create(t->dir, file->temp, src->data_bytes, 1, &f);
    if (r)
        return fail(t, r, file->temp, err);
    file->exists = 1;
    r = src->write_data(src->ctx, &f, err);
    if (!r && src->data_bytes % MR_DIRECT_ALIGN)
        r = mr_out_truncate(&f, src->data_bytes);
    if (!r)
        r = mr_out_sync(&f);
    mr_out_close(&f);
    return r ? fail(t, r, file->temp, err) : 0;
}

static int write_blob(struct mr_tier *t, struct file *f, const struct mr_bytes *b,
                      struct mr_error *err)
{
    int r = write_temp(t, f->temp, b);
    if (r)
        return fail(t, r, f->temp, err);
    f->exists = 1;
    return 0;
}

/* Rename in the order of the array; the folder is synced before the first, before the last and
 * after it.  *n_renamed says how far it came. */
static int commit(struct mr_tier *t, struct file *files, unsigned n, unsigned *n_renamed,
                  struct mr_error *err)
{
    for (*n_renamed = 0; *n_renamed < n; ++*n_renamed) {
        struct file *f = &files[*n_renamed];
        int r = n > 1 && (!*n_renamed || *n_renamed == n - 1) ? mr_out_sync_dir(t->dir) : 0;
        if (!r)
            r = mr_out_rename(t->dir, f->temp, f->name);
        if (r)
            return fail(t, r, f->name, err);
        f->exists = 0;
    }
    int r = mr_out_sync_dir(t->dir);
    return r ? fail(t, r, "", err) : 0;
}

/* The attempt failed.  What was renamed goes before the temporary of the last file, by which the
 * next start would know it for ours.  `replaces`: there was an older one of this step, with the
 * same .meta; when its .index has been replaced, the new one is all there is, and it stays. */
static void undo(struct mr_tier *t, uint64_t step, struct file *files, unsigned n,
                 unsigned n_renamed, int replaces)
{
    if (n_renamed == n) {
        if (!replaces)
            mr_tier_remove(t, step, NULL);
        return;
    }
    int r = 0;
    for (unsigned i = 0; i < n_renamed; i++)
        if (!replaces || i == 0)
            r |= mr_out_unlink(t->dir, files[i].name);
    for (unsigned i = 0; !r && i < n; i++)
        if (files[i].exists)
            r = mr_out_unlink(t->dir, files[i].temp);
}

/* The older data of a step that was to be replaced: if it has been, they go.  A failure leaves them
 * to the next start. */
static void remove_old(struct mr_tier *t, struct file *old, int replaced)
{
    int r = replaced ? mr_out_unlink(t->dir, old->name) : 0;
    if (!r && replaced)
        r = mr_out_sync_dir(t->dir);
    if (!r && old->exists)
        mr_out_unlink(t->dir, old->temp);
}

static int publish_bundle(struct mr_tier *t, uint64_t step, const struct mr_tier_source *src,
                          uint64_t *bytes, struct mr_error *err)
{
    struct file files[3];
    struct file old = {.exists = 0};
    struct mr_bytes meta, index;
    unsigned n_renamed = 0;
    int was = data_part(t, t->o.prefix, step), again = was == MR_PART_DATA;
    name_file(t, step, again ? MR_PART_DATA_AGAIN : MR_PART_DATA, &files[0]);
    name_file(t, step, MR_PART_META, &files[1]);
    name_file(t, step, MR_PART_INDEX, &files[2]);
    mr_bytes_init(&meta);
    mr_bytes_init(&index);
    int r = write_data(t, &files[0], src, err);
    if (!r)
        r = src->write_small(src->ctx, (uint32_t)again, again ? 2 : 1, &meta, &index, err);
    if (!r)
        r = write_blob(t, &files[1], &meta, err);
    if (!r)
        r = write_blob(t, &files[2], &index, err);
    if (!r && was >= 0) {
        struct mr_bytes none;
        mr_bytes_init(&none);
        name_file(t, step, (enum mr_ckpt_part)was, &old);
        r = write_blob(t, &old, &none, err);
    }
    if (!r)
        r = commit(t, files, 3, &n_renamed, err);
    if (r)
        undo(t, step, files, 3, n_renamed, was >= 0);
    else
        *bytes = src->data_bytes + meta.len + index.len;
    if (was >= 0 && (!r || n_renamed < 3)) /* else either one may be there after a crash */
        remove_old(t, &old, !r);
    mr_bytes_fini(&index);
    mr_bytes_fini(&meta);
    return r;
}

static int publish_safetensors(struct mr_tier *t, uint64_t step, const struct mr_tier_source *src,
                               uint64_t *bytes, struct mr_error *err)
{
    struct file file;
    unsigned n_renamed = 0;
    name_file(t, step, MR_PART_SAFETENSORS, &file);
    int replaces = mr_out_exists(t->dir, file.name) != 0;
    int r = write_data(t, &file, src, err);
    if (!r)
        r = commit(t, &file, 1, &n_renamed, err);
    if (r)
        undo(t, step, &file, 1, n_renamed, replaces);
    else
        *bytes = src->data_bytes;
    return r;
}

int mr_tier_publish(struct mr_tier *t, uint64_t step, const struct mr_tier_source *src,
                    uint64_t *bytes, struct mr_error *err)
{
    struct mr_ckpt_item item = {.step = step, .format = t->o.format};
    snprintf(item.prefix, sizeof item.prefix, "%s", t->o.prefix);
    int r = t->o.format == MR_CHECKPOINT_TF ? publish_bundle(t, step, src, bytes, err)
                                            : publish_safetensors(t, step, src, bytes, err);
    if (!r && t->verified == (int64_t)step)
        t->verified = -1; /* that one is replaced */
    /* Not being on the list costs it nothing but its removal some day. */
    if (!r && mr_ckpt_list_add(&t->list, &item))
        mr_fail(err, -ENOMEM, "%s: no memory", t->o.path);
    return r;
}

/* ---- after it ---- */

/* How many of the oldest go: all but the newest `keep`. */
static size_t n_victims(const struct mr_tier *t)
{
    return t->o.keep == MR_NONE || t->list.n <= t->o.keep ? 0 : t->list.n - t->o.keep;
}

/* Write `checkpoint`: those that stay, `step` last, for it is the latest. */
static int write_state(struct mr_tier *t, uint64_t step, struct mr_error *err)
{
    static const char name[] = "checkpoint";
    char temp[MR_CKPT_MAX_NAME];
    size_t first = n_victims(t), n = 0;
    struct mr_bytes text;
    mr_bytes_init(&text);
    const char **names = calloc(t->list.n + 1, sizeof *names);
    char(*texts)[MR_CKPT_MAX_NAME] = calloc(t->list.n + 1, sizeof *texts);
    int r = names && texts ? 0 : -ENOMEM;
    for (size_t i = first; !r && i <= t->list.n; i++) {
        uint64_t s = i < t->list.n ? t->list.items[i].step : step;
        if (i < t->list.n && s == step)
            continue;
        snprintf(texts[n], sizeof *texts, "%s-%" PRIu64, t->o.prefix, s);
        names[n] = texts[n];
        n++;
    }
    mr_ckpt_temp_name(temp, name);
    if (!r) {
        mr_tf_state_write(names, n, &text);
        r = write_temp(t, temp, &text);
    }
    if (!r) {
        r = mr_out_rename(t->dir, temp, name);
        if (r)
            mr_out_unlink(t->dir, temp);
        else
            r = mr_out_sync_dir(t->dir);
    }
    mr_bytes_fini(&text);
    free(texts);
    free(names);
    return r ? fail(t, r, name, err) : 0;
}

/* .index becomes a temporary, so that a start after a crash knows what follows for ours. */
static int remove_bundle(struct mr_tier *t, uint64_t step, char name[MR_CKPT_MAX_NAME])
{
    static const enum mr_ckpt_part rest[] = {MR_PART_DATA, MR_PART_DATA_AGAIN, MR_PART_META};
    char temp[MR_CKPT_MAX_NAME];
    mr_ckpt_name(name, t->o.prefix, step, MR_PART_INDEX);
    mr_ckpt_temp_name(temp, name);
    int r = mr_out_rename(t->dir, name, temp);
    if (r == -ENOENT) /* an earlier attempt came further */
        r = 0;
    if (!r)
        r = mr_out_sync_dir(t->dir);
    for (size_t i = 0; !r && i < sizeof rest / sizeof *rest; i++) {
        mr_ckpt_name(name, t->o.prefix, step, rest[i]);
        r = mr_out_unlink(t->dir, name);
    }
    if (!r)
        r = mr_out_sync_dir(t->dir);
    return r ? r : mr_out_unlink(t->dir, temp);
}

int mr_tier_remove(struct mr_tier *t, uint64_t step, struct mr_error *err)
{
    char name[MR_CKPT_MAX_NAME];
    int r;
    if (t->o.format == MR_CHECKPOINT_TF) {
        r = remove_bundle(t, step, name);
    } else {
        mr_ckpt_name(name, t->o.prefix, step, MR_PART_SAFETENSORS);
        r = mr_out_unlink(t->dir, name);
    }
    if (r)
        return fail(t, r, name, err);
    ptrdiff_t at = mr_ckpt_list_find(&t->list, t->o.prefix, step, t->o.format);
    if (at >= 0)
        mr_ckpt_list_remove(&t->list, (size_t)at);
    return 0;
}

/* Read checkpoint i back. */
static int read_back(struct mr_tier *t, size_t i, struct mr_error *err)
{
    struct mr_ckpt_view v;
    uint64_t bytes;
    int r = mr_ckpt_view_open_flat(t->o.path, &t->list.items[i], t->o.device, &v, err);
    if (r)
        return r;
    r = mr_loader_run(t->loader, &v, t->o.device, &bytes, err);
    if (!r)
        t->verified = (int64_t)t->list.items[i].step;
    mr_ckpt_view_fini(&v);
    return r;
}

/* One that was read back is among those from `first` on, or is found there now. */
static int find_verified(struct mr_tier *t, size_t first, struct mr_error *err)
{
    for (size_t i = first; i < t->list.n; i++)
        if (t->verified >= 0 && t->list.items[i].step == (uint64_t)t->verified)
            return 0;
    struct mr_error why = {0};
    int r = -ENOENT;
    for (size_t i = t->list.n; r && i-- > first;)
        r = read_back(t, i, &why);
    return r ? mr_fail(err, r, "old checkpoints stay, for no newer one can be read back: %s",
                       why.text)
             : 0;
}

int mr_tier_settle(struct mr_tier *t, uint64_t step, struct mr_error *err)
{
    int r = t->o.format == MR_CHECKPOINT_TF ? write_state(t, step, err) : 0;
    size_t n = n_victims(t);
    if (!r && n)
        r = find_verified(t, n, err);
    for (size_t i = 0; !r && n--;) {
        if (t->list.items[i].step == step)
            i++; /* older by number, but it has only just been made */
        else
            r = mr_tier_remove(t, t->list.items[i].step, err);
    }
    return r;
}
