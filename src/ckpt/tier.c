/* tier.c - a folder that a run writes: publish, settle, remove.
 *
 *   publish   data, .meta, .index, in the order of publish_set.c; .index makes it valid
 *   settle    `checkpoint` -> temporary, synced, renamed; folder synced
 *             one of those that stay is read back, unless one has been
 *             old ones are removed, .index first
 *
 * A step that is there already is replaced: its data stay under one name while the new data are
 * written under the other (ckpt_name.h), and the rename of .index switches over at once.  A mark,
 * an empty temporary called after the older data, is there from before that until those are
 * removed, so that a start after a crash knows them for ours.
 *
 * No lock: see tier.h. */
#include "tier.h"

#include "ckpt_clean.h"
#include "errtext.h"
#include "publish_set.h"
#include "whole_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char way_out[] = "free some, keep fewer, or drain elsewhere";

static int fail(const struct mr_tier *t, int code, const char *name, struct mr_error *err)
{
    struct mr_publish_set none;
    mr_publish_begin(&none, t->dir, way_out);
    return mr_publish_fail(&none, code, name, err);
}

/* ---- opening ---- */

int mr_tier_open(const struct mr_tier_opts *o, struct mr_tier *t, struct mr_error *err)
{
    struct mr_out_opts out = {.device = o->device, .hook = o->hook, .tag = o->which};
    struct mr_ckpt_list all = {0};
    *t = (struct mr_tier){.o = *o, .verified = -1};
    int r = mr_out_dir_open(o->path, &out, &t->dir, err);
    if (r)
        return r;
    r = mr_ckpt_clean(t->dir);
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

int64_t mr_tier_newest(const struct mr_tier *t)
{
    return t->list.n ? (int64_t)t->list.items[t->list.n - 1].step : -1;
}

int mr_tier_has(const struct mr_tier *t, uint64_t step)
{
    return mr_ckpt_list_find(&t->list, t->o.prefix, step, t->o.format) >= 0;
}

/* ---- publishing ---- */

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

static int write_data(struct mr_publish_set *s, const char *name, const struct mr_tier_source *src,
                      struct mr_error *err)
{
    struct mr_out_file f;
    int r = mr_publish_create(s, name, src->data_bytes, 1, &f, err);
    if (r)
        return r;
    r = src->write_data(src->ctx, &f, err);
    if (!r && src->data_bytes % MR_DIRECT_ALIGN)
        r = mr_out_truncate(&f, src->data_bytes);
    return mr_publish_finish(s, &f, r, err);
}

static int write_blob(struct mr_publish_set *s, const char *name, const struct mr_bytes *b,
                      struct mr_error *err)
{
    return b->error ? mr_publish_fail(s, b->error, name, err)
                    : mr_publish_small(s, name, b->data, b->len, err);
}

/* The data of a step that is to be replaced. */
struct old_data {
    char name[MR_CKPT_MAX_NAME], mark[MR_CKPT_MAX_NAME];
    int marked;
};

static int mark_old(struct mr_tier *t, struct old_data *old, struct mr_error *err)
{
    int r = mr_publish_temp(t->dir, old->name, NULL, 0, old->mark);
    old->marked = !r;
    return r ? fail(t, r, old->name, err) : 0;
}

/* If it has been replaced, they go.  A failure leaves them to the next start. */
static void remove_old(struct mr_tier *t, const struct old_data *old, int replaced)
{
    int r = replaced ? mr_out_unlink(t->dir, old->name) : 0;
    if (!r && replaced)
        r = mr_out_sync_dir(t->dir);
    if (!r && old->marked)
        mr_out_unlink(t->dir, old->mark);
}

static int publish_bundle(struct mr_tier *t, uint64_t step, const struct mr_tier_source *src,
                          uint64_t *bytes, struct mr_error *err)
{
    char data[MR_CKPT_MAX_NAME], graph[MR_CKPT_MAX_NAME], head[MR_CKPT_MAX_NAME];
    struct mr_publish_set set;
    struct old_data old = {.marked = 0};
    struct mr_bytes meta, index;
    int was = data_part(t, t->o.prefix, step), again = was == MR_PART_DATA;
    mr_ckpt_name(data, t->o.prefix, step, again ? MR_PART_DATA_AGAIN : MR_PART_DATA);
    mr_ckpt_name(graph, t->o.prefix, step, MR_PART_META);
    mr_ckpt_name(head, t->o.prefix, step, MR_PART_INDEX);
    mr_bytes_init(&meta);
    mr_bytes_init(&index);
    mr_publish_begin(&set, t->dir, way_out);
    set.replaces = was >= 0;
    int r = write_data(&set, data, src, err);
    if (!r)
        r = src->write_small(src->ctx, (uint32_t)again, again ? 2 : 1, &meta, &index, err);
    if (!r)
        r = write_blob(&set, graph, &meta, err);
    if (!r)
        r = write_blob(&set, head, &index, err);
    if (was >= 0)
        mr_ckpt_name(old.name, t->o.prefix, step, (enum mr_ckpt_part)was);
    if (!r && was >= 0)
        r = mark_old(t, &old, err);
    if (!r)
        r = mr_publish_commit(&set, err);
    if (r)
        mr_publish_undo(&set);
    else
        *bytes = src->data_bytes + meta.len + index.len;
    if (was >= 0 && (!r || !mr_publish_is_named(&set))) /* else a crash may show either */
        remove_old(t, &old, !r);
    mr_publish_end(&set);
    mr_bytes_fini(&index);
    mr_bytes_fini(&meta);
    return r;
}

static int publish_safetensors(struct mr_tier *t, uint64_t step, const struct mr_tier_source *src,
                               uint64_t *bytes, struct mr_error *err)
{
    char name[MR_CKPT_MAX_NAME];
    struct mr_publish_set set;
    mr_ckpt_name(name, t->o.prefix, step, MR_PART_SAFETENSORS);
    mr_publish_begin(&set, t->dir, way_out);
    set.replaces = mr_out_exists(t->dir, name) != 0;
    int r = write_data(&set, name, src, err);
    if (!r)
        r = mr_publish_commit(&set, err);
    if (r)
        mr_publish_undo(&set);
    else
        *bytes = src->data_bytes;
    mr_publish_end(&set);
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

/* Write `checkpoint`: those that stay, the latest last. */
static int write_state(struct mr_tier *t, uint64_t latest, struct mr_error *err)
{
    size_t first = n_victims(t), n = 0;
    const char **names = calloc(t->list.n + 1, sizeof *names);
    char(*texts)[MR_CKPT_MAX_NAME] = calloc(t->list.n + 1, sizeof *texts);
    int r = names && texts ? 0 : -ENOMEM;
    for (size_t i = first; !r && i <= t->list.n; i++) {
        uint64_t s = i < t->list.n ? t->list.items[i].step : latest;
        if (i < t->list.n && s == latest)
            continue;
        snprintf(texts[n], sizeof *texts, "%s-%" PRIu64, t->o.prefix, s);
        names[n] = texts[n];
        n++;
    }
    if (!r)
        r = mr_publish_state(t->dir, names, n);
    free(texts);
    free(names);
    return r ? fail(t, r, "checkpoint", err) : 0;
}

int mr_tier_remove(struct mr_tier *t, uint64_t step, struct mr_error *err)
{
    static const enum mr_ckpt_part parts[] = {MR_PART_DATA, MR_PART_DATA_AGAIN, MR_PART_META};
    char head[MR_CKPT_MAX_NAME], rest[3][MR_CKPT_MAX_NAME];
    int tf = t->o.format == MR_CHECKPOINT_TF;
    mr_ckpt_name(head, t->o.prefix, step, tf ? MR_PART_INDEX : MR_PART_SAFETENSORS);
    for (size_t i = 0; i < 3; i++)
        mr_ckpt_name(rest[i], t->o.prefix, step, parts[i]);
    int r = mr_publish_remove(t->dir, head, rest, tf ? 3 : 0);
    if (r)
        return fail(t, r, head, err);
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

int mr_tier_settle(struct mr_tier *t, uint64_t step, uint64_t latest, struct mr_error *err)
{
    int r = t->o.format == MR_CHECKPOINT_TF ? write_state(t, latest, err) : 0;
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
