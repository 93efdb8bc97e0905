/* tier.c - a folder that a run writes: publish, settle, remove.
 *
 *   publish   data files, side file, head, in the order of publish_set.c
 *   settle    `checkpoint` -> temporary, synced, renamed; folder synced
 *             a version of a step that a newer one has replaced is removed
 *             one of the checkpoints that stay is read back, unless one has been
 *             old checkpoints are removed, head first
 *
 * A step that exists is replaced if it carries our mark (ckpt_mark.h).  A checkpoint of one file is
 * replaced by the rename that publishes it.  One of several files cannot be: it is published under
 * the other stem (ckpt_name.h), and the older version, which is superseded then, is removed like
 * any old checkpoint.  Between the two, both are whole, and their generations tell which is newer.
 * A start after a crash finds both, and removes the older one.
 *
 * Nothing is removed or replaced by its name alone: look_at() asks for the mark first.
 *
 * No lock: see tier.h. */
#include "tier.h"

#include "ckpt_clean.h"
#include "ckpt_format.h"
#include "errtext.h"
#include "publish_set.h"
#include "whole_file.h"

#include <errno.h>
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

struct mr_ckpt_dir mr_tier_dir(const struct mr_tier *t)
{
    return (struct mr_ckpt_dir){mr_out_dir_fd(t->dir), t->o.path};
}

static int is_older(const struct mr_ckpt_item *a, const struct mr_ckpt_item *b)
{
    return a->mark.generation < b->mark.generation;
}

/* Put one of ours on the list; of two of one step the newer. */
static int list_one(struct mr_tier *t, const struct mr_ckpt_item *item)
{
    const struct mr_ckpt_item *other = mr_tier_find(t, item->step);
    if (other && is_older(item, other))
        return mr_ckpt_list_add(&t->superseded, item);
    int r = other ? mr_ckpt_list_add(&t->superseded, other) : 0;
    return r ? r : mr_ckpt_list_add(&t->list, item);
}

/* Of the checkpoints that the names promise, those with our mark.  One that cannot be read is not
 * proven ours and stays out.  Other prefixes and formats count for the generation only. */
static int list_ours(struct mr_tier *t, struct mr_ckpt_list *all)
{
    struct mr_ckpt_dir dir = mr_tier_dir(t);
    uint64_t newest = 0;
    int r = 0;
    for (size_t i = 0; !r && i < all->n; i++) {
        struct mr_ckpt_item *item = &all->items[i];
        int ours = mr_ckpt_mark_read(&dir, item, t->o.device, &item->mark, NULL);
        if (ours == -ENOMEM)
            return ours;
        if (ours > 0 && item->mark.generation > t->generation)
            t->generation = item->mark.generation;
        if (ours <= 0 || strcmp(item->prefix, t->o.prefix))
            continue;
        if (item->mark.generation >= newest) {
            newest = item->mark.generation;
            t->ours = (int64_t)item->step;
        }
        r = item->format == t->o.format ? list_one(t, item) : 0;
    }
    return r;
}

int mr_tier_open(const struct mr_tier_opts *o, struct mr_tier *t, struct mr_error *err)
{
    struct mr_out_opts out = {
        .device = o->device, .hook = o->hook, .tag = o->which, .lease = o->lease};
    struct mr_ckpt_list all = {0};
    *t =
        (struct mr_tier){.o = *o, .row = mr_ckpt_format_row(o->format), .verified = -1, .ours = -1};
    int r = mr_out_dir_open(o->path, &out, &t->dir, err);
    if (r)
        return r;
    r = mr_ckpt_clean(t->dir);
    if (!r)
        r = mr_ckpt_scan(mr_out_dir_fd(t->dir), ".", NULL, &all);
    if (!r)
        r = list_ours(t, &all);
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
    mr_ckpt_list_fini(&t->superseded);
    t->loader = NULL;
    t->dir = NULL;
}

const struct mr_ckpt_item *mr_tier_newest(const struct mr_tier *t)
{
    return t->list.n ? &t->list.items[t->list.n - 1] : NULL;
}

const struct mr_ckpt_item *mr_tier_find(const struct mr_tier *t, uint64_t step)
{
    ptrdiff_t at = mr_ckpt_list_find(&t->list, t->o.prefix, step, t->o.format);
    return at >= 0 ? &t->list.items[at] : NULL;
}

static struct mr_ckpt_item item_of(const struct mr_tier *t, uint64_t step, int resaved)
{
    struct mr_ckpt_item item = {.step = step, .format = t->o.format, .resaved = resaved};
    snprintf(item.prefix, sizeof item.prefix, "%s", t->o.prefix);
    return item;
}

/* ---- what is there ---- */

/* A checkpoint as it is on the disk now. */
struct present {
    struct mr_ckpt_mark mark;
    char head[MR_CKPT_MAX_NAME];
    char rest[2][MR_CKPT_MAX_NAME]; /* its other files */
    size_t n_rest;
};

static void list_files(const struct mr_tier *t, const struct mr_ckpt_view *v, struct present *out)
{
    char path[MR_CKPT_MAX_PATH];
    if (!t->row->data_name)
        return;
    mr_ckpt_view_file(v, v->bundle.n_shards - 1, path);
    snprintf(out->rest[out->n_rest++], sizeof *out->rest, "%s", mr_ckpt_view_name(v, path));
    if (!t->row->side_ending)
        return;
    mr_ckpt_view_side(v, path);
    snprintf(out->rest[out->n_rest++], sizeof *out->rest, "%s", mr_ckpt_view_name(v, path));
}

/* 1: there is one, it is ours, and *out is written; 0: there is none; -EEXIST: there is one that is
 * not ours; else it cannot be read. */
static int look_at(const struct mr_tier *t, const struct mr_ckpt_item *item, struct present *out,
                   struct mr_error *err)
{
    struct mr_ckpt_dir dir = mr_tier_dir(t);
    struct mr_ckpt_view v;
    *out = (struct present){.n_rest = 0};
    mr_ckpt_head_name(item, out->head);
    int r = mr_out_exists(t->dir, out->head);
    if (r <= 0)
        return r < 0 ? fail(t, r, out->head, err) : 0;
    r = mr_ckpt_view_open_flat(&dir, item, t->o.device, &v, err);
    if (r)
        return r == -ENOENT ? -EIO : r;
    int ours = mr_ckpt_mark_of(&v, item->step, t->o.device, &out->mark, err);
    list_files(t, &v, out);
    mr_ckpt_view_fini(&v);
    if (!ours)
        return mr_fail(err, -EEXIST,
                       "%s/%s: is there already and was not written by a run of millrace; move it "
                       "away or take another folder or prefix",
                       t->o.path, out->head);
    return ours;
}

/* Remove one, after a look at its mark: what is not (any more) proven ours, or has another
 * generation by now, stays. */
static int remove_item(struct mr_tier *t, const struct mr_ckpt_item *item, struct mr_error *err)
{
    struct present there;
    struct mr_error why = {0};
    /* 0: somebody else removed it, or an attempt of ours renamed its head, and the next start goes
     * on from there. */
    int ours = look_at(t, item, &there, &why);
    int unproven = ours == -EEXIST || ours == -EBADMSG || ours == -ENODATA || ours == -ENOENT;
    if (ours < 0 && !unproven)
        return mr_fail(err, ours, "%s", why.text);
    int same = ours > 0 && there.mark.generation == item->mark.generation;
    int r = same ? mr_publish_remove(t->dir, there.head, there.rest, there.n_rest) : 0;
    return r ? fail(t, r, there.head, err) : 0;
}

/* ---- publishing ---- */

/* A checkpoint that is being published: the names of its files. */
struct publication {
    struct mr_ckpt_item item;
    char data[MR_CKPT_MAX_NAME], side[MR_CKPT_MAX_NAME], head[MR_CKPT_MAX_NAME]; /* "": none */
    int replaces;                                                                /* by its rename */
};

static void name_files(const struct mr_tier *t, const struct mr_tier_source *src,
                       struct publication *p)
{
    char stem[MR_CKPT_MAX_NAME];
    p->data[0] = p->side[0] = 0;
    mr_ckpt_head_name(&p->item, p->head);
    mr_ckpt_stem(&p->item, stem);
    if (!t->row->data_name)
        return;
    t->row->data_name(stem, src->shard, src->n_shards, p->data, sizeof p->data);
    if (t->row->side_ending)
        snprintf(p->side, sizeof p->side, "%.*s%s", MR_CKPT_MAX_NAME - 32, stem,
                 t->row->side_ending);
}

/* Does nobody have these names?  1, 0 and the name that is taken, or -errno. */
static int is_free(const struct mr_tier *t, const struct publication *p, const char **taken)
{
    const char *const names[] = {p->data, p->side};
    for (unsigned i = 0; i < 2; i++) {
        int there = names[i][0] ? mr_out_exists(t->dir, names[i]) : 0;
        *taken = names[i];
        if (there)
            return there < 0 ? there : 0;
    }
    return 1;
}

/* Names that we may use: nobody has them, or a removal of ours that failed has left the files.  Its
 * temporary proves that.  1, 0 or -errno. */
static int may_use(struct mr_tier *t, const struct publication *p, const char **taken)
{
    char temp[MR_CKPT_MAX_NAME];
    int r = is_free(t, p, taken);
    if (r)
        return r;
    r = mr_ckpt_temp_name(temp, p->head, mr_out_dir_token(t->dir));
    return r ? r : mr_out_exists(t->dir, temp);
}

/* A stem that is free, for a checkpoint of several files.  `has`: stems that are used by versions
 * of this step. */
static int choose_stem(struct mr_tier *t, const int has[2], const struct mr_tier_source *src,
                       struct publication *p, struct mr_error *err)
{
    const char *taken = "";
    for (p->item.resaved = 0; p->item.resaved < 2; p->item.resaved++) {
        if (has[p->item.resaved])
            continue;
        name_files(t, src, p);
        int r = may_use(t, p, &taken);
        if (r)
            return r < 0 ? fail(t, r, taken, err) : 0;
    }
    return mr_fail(err, -EEXIST,
                   "%s/%s: is there already and is not known to be millrace's; move it away or "
                   "take another folder or prefix",
                   t->o.path, taken);
}

/* Which versions of the step there are, by stem.  -ESTALE: one is as new as `mark`. */
static int find_versions(struct mr_tier *t, uint64_t step, const struct mr_ckpt_mark *mark,
                         struct mr_ckpt_item item[2], int has[2], struct mr_error *err)
{
    for (int i = 0; i < 2; i++) {
        struct present there;
        item[i] = item_of(t, step, i);
        has[i] = look_at(t, &item[i], &there, err);
        if (has[i] < 0)
            return has[i];
        item[i].mark = there.mark;
        if (has[i] && there.mark.generation >= mark->generation)
            return mr_fail(err, -ESTALE, "%s: what it has of step %llu is as new", t->o.path,
                           (unsigned long long)step);
    }
    return 0;
}

/* Names for the new version of a step, and room for them: of two that are there the older goes. */
static int name_all(struct mr_tier *t, uint64_t step, const struct mr_ckpt_mark *mark,
                    const struct mr_tier_source *src, struct publication *p, struct mr_error *err)
{
    struct mr_ckpt_item item[2];
    int has[2];
    p->item = item_of(t, step, 0);
    p->item.mark = *mark;
    int r = find_versions(t, step, mark, item, has, err);
    if (r)
        return r;
    if (!t->row->data_name) {
        name_files(t, src, p);
        p->replaces = has[0];
        return 0;
    }
    if (has[0] && has[1]) {
        int older = !is_older(&item[0], &item[1]);
        r = remove_item(t, &item[older], err);
        has[older] = 0;
    }
    return r ? r : choose_stem(t, has, src, p, err);
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

/* Side file and head, behind the data. */
static int write_small(struct mr_publish_set *s, const struct publication *p,
                       const struct mr_tier_source *src, uint64_t *bytes, struct mr_error *err)
{
    struct mr_bytes side, head;
    mr_bytes_init(&side);
    mr_bytes_init(&head);
    int r = src->write_small(src->ctx, &side, &head, err);
    if (!r && p->side[0])
        r = write_blob(s, p->side, &side, err);
    if (!r)
        r = write_blob(s, p->head, &head, err);
    *bytes = src->data_bytes + side.len + head.len;
    mr_bytes_fini(&head);
    mr_bytes_fini(&side);
    return r;
}

static int publish(struct mr_tier *t, uint64_t step, const struct mr_ckpt_mark *mark,
                   const struct mr_tier_source *src, struct publication *p, uint64_t *bytes,
                   struct mr_error *err)
{
    struct mr_publish_set set;
    int r = name_all(t, step, mark, src, p, err);
    if (r)
        return r;
    mr_publish_begin(&set, t->dir, way_out);
    set.replaces = p->replaces;
    *bytes = src->data_bytes;
    r = write_data(&set, p->data[0] ? p->data : p->head, src, err);
    if (!r && p->data[0])
        r = write_small(&set, p, src, bytes, err);
    if (!r)
        r = mr_publish_commit(&set, err);
    if (r)
        mr_publish_undo(&set);
    mr_publish_end(&set);
    return r;
}

int mr_tier_publish(struct mr_tier *t, uint64_t step, const struct mr_ckpt_mark *mark,
                    const struct mr_tier_source *src, uint64_t *bytes, struct mr_error *err)
{
    struct publication p = {.replaces = 0};
    struct mr_error first = {0}, why = {0};
    int r = publish(t, step, mark, src, &p, bytes, &first);
    if (r == -ENOSPC && mr_tier_prune(t, &why) > 0) {
        first = (struct mr_error){0};
        r = publish(t, step, mark, src, &p, bytes, &first);
    }
    if (r)
        return mr_fail(err, r, "%s", first.text);
    if (t->verified == (int64_t)step)
        t->verified = -1; /* that one is replaced */
    /* Not being on a list costs a checkpoint nothing but its removal some day. */
    const struct mr_ckpt_item *older = mr_tier_find(t, step);
    int two = older && older->resaved != p.item.resaved;
    r = two ? mr_ckpt_list_add(&t->superseded, older) : 0;
    if (r || mr_ckpt_list_add(&t->list, &p.item))
        mr_fail(err, -ENOMEM, "%s: no memory", t->o.path);
    return 0;
}

/* ---- after it ---- */

/* How many of the oldest go: all but the newest `keep`. */
static size_t n_victims(const struct mr_tier *t)
{
    return t->o.keep == MR_NONE || t->list.n <= t->o.keep ? 0 : t->list.n - t->o.keep;
}

/* Write TensorFlow's `checkpoint`: those that stay, the latest last. */
static int write_state(struct mr_tier *t, uint64_t latest, struct mr_error *err)
{
    size_t first = n_victims(t), n = 0;
    if (!t->row->in_state_file)
        return 0;
    const struct mr_ckpt_item *last = mr_tier_find(t, latest);
    const char **names = calloc(t->list.n + 1, sizeof *names);
    char(*texts)[MR_CKPT_MAX_NAME] = calloc(t->list.n + 1, sizeof *texts);
    int r = names && texts ? 0 : -ENOMEM;
    for (size_t i = first; !r && i <= t->list.n; i++) {
        const struct mr_ckpt_item *item = i < t->list.n ? &t->list.items[i] : last;
        if (!item || (i < t->list.n && item == last))
            continue;
        mr_ckpt_stem(item, texts[n]);
        names[n] = texts[n];
        n++;
    }
    if (!r && n)
        r = mr_publish_state(t->dir, names, n);
    free(texts);
    free(names);
    return r ? fail(t, r, "checkpoint", err) : 0;
}

int mr_tier_remove(struct mr_tier *t, uint64_t step, struct mr_error *err)
{
    ptrdiff_t at = mr_ckpt_list_find(&t->list, t->o.prefix, step, t->o.format);
    int r = at < 0 ? 0 : remove_item(t, &t->list.items[at], err);
    if (!r && at >= 0)
        mr_ckpt_list_remove(&t->list, (size_t)at);
    return r;
}

/* Remove what newer versions have replaced: how many went.  These are durable: the folder is synced
 * before the first one goes.  What cannot be removed now stays on the list. */
static int drop_superseded(struct mr_tier *t, struct mr_error *err)
{
    size_t before = t->superseded.n;
    int r = before ? mr_out_sync_dir(t->dir) : 0;
    if (r)
        fail(t, r, "", err);
    for (size_t i = 0; !r && i < t->superseded.n;)
        if (remove_item(t, &t->superseded.items[i], err))
            i++;
        else
            mr_ckpt_list_remove(&t->superseded, i);
    return (int)(before - t->superseded.n);
}

/* Read checkpoint i back. */
static int read_back(struct mr_tier *t, size_t i, struct mr_error *err)
{
    struct mr_ckpt_dir dir = mr_tier_dir(t);
    struct mr_ckpt_view v;
    uint64_t bytes;
    int r = mr_ckpt_view_open_flat(&dir, &t->list.items[i], t->o.device, &v, err);
    if (r)
        return r;
    r = mr_loader_run(t->loader, &v, t->o.device, &bytes, err);
    if (!r)
        t->verified = (int64_t)t->list.items[i].step;
    mr_ckpt_view_fini(&v);
    return r;
}

/* See that one of those from `first` on has been read back, or read one back now. */
static int find_verified(struct mr_tier *t, size_t first, struct mr_error *err)
{
    for (size_t i = first; i < t->list.n; i++)
        if (t->verified >= 0 && t->list.items[i].step == (uint64_t)t->verified)
            return 0;
    struct mr_error why = {0};
    int r = -ENOENT;
    for (size_t i = t->list.n; r && i-- > first;)
        r = read_back(t, i, &why);
    return r ? mr_fail(err, r, "old checkpoints stay, because no newer one can be read back: %s",
                       why.text)
             : 0;
}

/* Remove all but the newest `keep` and `step`: how many went, or -errno when none may go.  If one
 * cannot be removed, `err` says so, and the others are removed all the same. */
static int prune(struct mr_tier *t, int64_t step, struct mr_error *err)
{
    size_t n = n_victims(t), before = t->list.n;
    int r = n ? find_verified(t, n, err) : 0;
    for (size_t i = 0; !r && n--;)
        if ((int64_t)t->list.items[i].step == step || /* was published just now */
            mr_tier_remove(t, t->list.items[i].step, err))
            i++;
    return r ? r : (int)(before - t->list.n);
}

int mr_tier_prune(struct mr_tier *t, struct mr_error *err)
{
    int dropped = 0;
    const struct mr_ckpt_item *newest = mr_tier_newest(t);
    if (t->superseded.n && newest) {
        write_state(t, newest->step, err); /* the latest that it names may be one of those */
        dropped = drop_superseded(t, err);
    }
    int r = prune(t, -1, err);
    return r < 0 ? (dropped ? dropped : r) : r + dropped;
}

int mr_tier_settle(struct mr_tier *t, uint64_t step, uint64_t latest, struct mr_error *err)
{
    struct mr_error pointer = {0};
    int r = write_state(t, latest, &pointer);
    int dropped = drop_superseded(t, err);
    int n = prune(t, (int64_t)step, err);
    if (r == -ENOSPC && (n > 0 || dropped)) { /* what went has made room for it */
        pointer = (struct mr_error){0};
        r = write_state(t, latest, &pointer);
    }
    if (r)
        mr_fail(err, r, "%s", pointer.text);
    return r ? r : n < 0 ? n : 0;
}
