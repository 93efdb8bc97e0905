/* tier.c - a folder that a run writes: publish, settle, remove.
 *
 *   publish   data, .meta, .index, in the order of publish_set.c; .index makes it valid
 *   settle    `checkpoint` -> temporary, synced, renamed; folder synced
 *             one of those that stay is read back, unless one has been
 *             old ones are removed, .index first
 *
 * A step that is there already is replaced if it carries our mark (ckpt_mark.h).  Its data stay
 * under one name while the new data are written under the other (ckpt_name.h), and the rename of
 * .index switches over at once.  Two temporaries tell a start after a crash what to do:
 *
 *   NAME.data-*-old   empty, there from before the switch until the older data are removed: they
 * are
 *                     ours and go when .index does not use them
 *   NAME.meta-old     the older .meta, if the new one differs: it gets its name back when .index is
 *                     the older one
 *
 * Nothing is removed or replaced by its name alone: of_step() and mr_tier_remove() ask for the
 * mark.
 *
 * No lock: see tier.h. */
#include "tier.h"

#include "ckpt_clean.h"
#include "crc32c.h"
#include "errtext.h"
#include "in_file.h"
#include "publish_set.h"
#include "tf_meta.h"
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

struct mr_ckpt_dir mr_tier_dir(const struct mr_tier *t)
{
    return (struct mr_ckpt_dir){mr_out_dir_fd(t->dir), t->o.path};
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
        r = item->format == t->o.format ? mr_ckpt_list_add(&t->list, item) : 0;
    }
    return r;
}

int mr_tier_open(const struct mr_tier_opts *o, struct mr_tier *t, struct mr_error *err)
{
    struct mr_out_opts out = {
        .device = o->device, .hook = o->hook, .tag = o->which, .lease = o->lease};
    struct mr_ckpt_list all = {0};
    *t = (struct mr_tier){.o = *o, .verified = -1, .ours = -1};
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

static struct mr_ckpt_item item_of(const struct mr_tier *t, uint64_t step)
{
    struct mr_ckpt_item item = {.step = step, .format = t->o.format};
    snprintf(item.prefix, sizeof item.prefix, "%s", t->o.prefix);
    return item;
}

static enum mr_ckpt_part head_part(const struct mr_tier *t)
{
    return t->o.format == MR_CHECKPOINT_TF ? MR_PART_INDEX : MR_PART_SAFETENSORS;
}

/* ---- what is there ---- */

/* The checkpoint of a step as it is on the disk now. */
struct present {
    struct mr_ckpt_mark mark;
    enum mr_ckpt_part data; /* a bundle's data file */
    uint64_t seal[2];       /* of its .meta; */
    int sealed;             /* 0: it has none, -errno: it cannot be read */
};

/* 1: there is one, it is ours, and *out is written; 0: there is none; -EEXIST: there is one that is
 * not ours; else it cannot be read. */
static int of_step(const struct mr_tier *t, uint64_t step, struct present *out,
                   struct mr_error *err)
{
    struct mr_ckpt_item item = item_of(t, step);
    struct mr_ckpt_dir dir = mr_tier_dir(t);
    struct mr_ckpt_view v;
    char head[MR_CKPT_MAX_NAME];
    mr_ckpt_name(head, t->o.prefix, step, head_part(t));
    int r = mr_out_exists(t->dir, head);
    if (r <= 0)
        return r < 0 ? fail(t, r, head, err) : 0;
    r = mr_ckpt_view_open_flat(&dir, &item, t->o.device, &v, err);
    if (r)
        return r == -ENOENT ? -EIO : r;
    int ours = mr_ckpt_mark_of(&v, step, t->o.device, &out->mark, err);
    out->data = v.bundle.n_shards == 2 ? MR_PART_DATA_AGAIN : MR_PART_DATA;
    out->sealed = ours > 0 && t->o.format == MR_CHECKPOINT_TF
                      ? mr_ckpt_meta_seal(&v, t->o.device, out->seal, NULL)
                      : 0;
    mr_ckpt_view_fini(&v);
    if (!ours)
        return mr_fail(err, -EEXIST,
                       "%s/%s: is there already and was not written by a run of millrace; move it "
                       "away or take another folder or prefix",
                       t->o.path, head);
    return ours;
}

/* The same for one that is to be replaced by `mark`.  -ESTALE: it is as new. */
static int to_replace(const struct mr_tier *t, uint64_t step, const struct mr_ckpt_mark *mark,
                      struct present *out, struct mr_error *err)
{
    int r = of_step(t, step, out, err);
    if (r > 0 && out->mark.generation >= mark->generation)
        return mr_fail(err, -ESTALE, "%s: what it has of step %llu is as new", t->o.path,
                       (unsigned long long)step);
    return r;
}

/* ---- publishing ---- */

/* A temporary that tells of the older file `name`. */
static int name_old(const struct mr_tier *t, const char *name, char out[MR_CKPT_MAX_NAME])
{
    char old[MR_CKPT_MAX_NAME + sizeof MR_OLD];
    snprintf(old, sizeof old, "%s" MR_OLD, name);
    return mr_ckpt_temp_name(out, old, mr_out_dir_token(t->dir));
}

/* A name that we may give to a new file: nobody has it, or it is what was replaced and could not be
 * removed.  1, 0 or -errno. */
static int is_free(const struct mr_tier *t, const char *name)
{
    char mark[MR_CKPT_MAX_NAME];
    int there = mr_out_exists(t->dir, name);
    if (there <= 0)
        return there ? there : 1;
    int r = name_old(t, name, mark);
    return r ? r : mr_out_exists(t->dir, mark);
}

static int taken(const struct mr_tier *t, int r, const char *name, struct mr_error *err)
{
    if (r < 0)
        return fail(t, r, name, err);
    return mr_fail(err, -EEXIST,
                   "%s/%s: is there already and is not known to be millrace's; move it away or "
                   "take another folder or prefix",
                   t->o.path, name);
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

/* Write that temporary; `temp` is empty after a failure. */
static int put_old(struct mr_tier *t, const char *name, const void *bytes, size_t len,
                   char temp[MR_CKPT_MAX_NAME])
{
    char old[MR_CKPT_MAX_NAME + sizeof MR_OLD];
    snprintf(old, sizeof old, "%s" MR_OLD, name);
    int r = mr_publish_temp(t->dir, old, bytes, len, temp);
    if (r)
        temp[0] = 0;
    return r;
}

/* A bundle that is being published, and what it replaces. */
struct bundle {
    char data[MR_CKPT_MAX_NAME], graph[MR_CKPT_MAX_NAME], head[MR_CKPT_MAX_NAME];
    char old_data[MR_CKPT_MAX_NAME];                          /* "": replaces nothing */
    char mark[MR_CKPT_MAX_NAME], old_graph[MR_CKPT_MAX_NAME]; /* temporaries; "": not made */
    struct mr_bytes meta, index;
    uint32_t shard;
};

static int name_bundle(struct mr_tier *t, uint64_t step, const struct present *old, int has_old,
                       struct bundle *b, struct mr_error *err)
{
    mr_ckpt_name(b->graph, t->o.prefix, step, MR_PART_META);
    mr_ckpt_name(b->head, t->o.prefix, step, MR_PART_INDEX);
    if (has_old)
        mr_ckpt_name(b->old_data, t->o.prefix, step, old->data);
    int r = has_old ? 1 : is_free(t, b->graph);
    if (r <= 0)
        return taken(t, r, b->graph, err);
    for (b->shard = 0; b->shard < 2; b->shard++) {
        enum mr_ckpt_part part = b->shard ? MR_PART_DATA_AGAIN : MR_PART_DATA;
        mr_ckpt_name(b->data, t->o.prefix, step, part);
        r = has_old && part == old->data ? 0 : is_free(t, b->data);
        if (r)
            return r < 0 ? taken(t, r, b->data, err) : 0;
    }
    return taken(t, 0, b->data, err);
}

static int mark_old(struct mr_tier *t, struct bundle *b, struct mr_error *err)
{
    int r = put_old(t, b->old_data, NULL, 0, b->mark);
    return r ? fail(t, r, b->old_data, err) : 0;
}

/* The older .meta under another name, if the new one differs. */
static int save_old_graph(struct mr_tier *t, const struct present *old, struct bundle *b,
                          struct mr_error *err)
{
    uint8_t *bytes;
    size_t len;
    if (old->sealed < 0)
        return fail(t, old->sealed, b->old_data, err);
    if (!old->sealed ||
        (old->seal[0] == b->meta.len && old->seal[1] == mr_crc32c(0, b->meta.data, b->meta.len)))
        return 0;
    int r = mr_in_small_file(mr_out_dir_fd(t->dir), b->graph, MR_META_MAX_FILE, t->o.device, &bytes,
                             &len);
    if (r == -ENOENT)
        return 0;
    if (!r) {
        r = put_old(t, b->graph, bytes, len, b->old_graph);
        free(bytes);
    }
    return r ? fail(t, r, b->graph, err) : 0;
}

/* What it replaced goes.  A failure leaves it, with its temporary, to the next start. */
static void drop_old(struct mr_tier *t, const struct bundle *b)
{
    if (b->old_graph[0])
        mr_out_unlink(t->dir, b->old_graph);
    int r = mr_out_unlink(t->dir, b->old_data);
    if (!r)
        r = mr_out_sync_dir(t->dir);
    if (!r && b->mark[0])
        mr_out_unlink(t->dir, b->mark);
}

/* It did not come to that: all is as it was. */
static void keep_old(struct mr_tier *t, const struct bundle *b)
{
    if (b->old_graph[0])
        mr_out_rename(t->dir, b->old_graph, b->graph);
    if (b->mark[0])
        mr_out_unlink(t->dir, b->mark);
}

static int write_bundle(struct mr_tier *t, struct mr_publish_set *set, struct bundle *b,
                        const struct mr_tier_source *src, const struct present *old,
                        struct mr_error *err)
{
    int r = write_data(set, b->data, src, err);
    if (!r)
        r = src->write_small(src->ctx, b->shard, b->shard + 1, &b->meta, &b->index, err);
    if (!r)
        r = write_blob(set, b->graph, &b->meta, err);
    if (!r)
        r = write_blob(set, b->head, &b->index, err);
    if (!r && b->old_data[0])
        r = mark_old(t, b, err);
    if (!r && b->old_data[0])
        r = save_old_graph(t, old, b, err);
    return r ? r : mr_publish_commit(set, err);
}

static int publish_bundle(struct mr_tier *t, uint64_t step, const struct mr_ckpt_mark *mark,
                          const struct mr_tier_source *src, uint64_t *bytes, struct mr_error *err)
{
    struct mr_publish_set set;
    struct present old = {.data = MR_PART_DATA};
    struct bundle b = {.shard = 0};
    mr_bytes_init(&b.meta);
    mr_bytes_init(&b.index);
    int has_old = to_replace(t, step, mark, &old, err);
    int r = has_old < 0 ? has_old : name_bundle(t, step, &old, has_old, &b, err);
    if (r)
        return r;
    mr_publish_begin(&set, t->dir, way_out);
    set.replaces = has_old;
    r = write_bundle(t, &set, &b, src, &old, err);
    if (r)
        mr_publish_undo(&set);
    else
        *bytes = src->data_bytes + b.meta.len + b.index.len;
    if (has_old && !r)
        drop_old(t, &b);
    else if (has_old && !mr_publish_is_named(&set)) /* else a crash may show either */
        keep_old(t, &b);
    mr_publish_end(&set);
    mr_bytes_fini(&b.index);
    mr_bytes_fini(&b.meta);
    return r;
}

static int publish_safetensors(struct mr_tier *t, uint64_t step, const struct mr_ckpt_mark *mark,
                               const struct mr_tier_source *src, uint64_t *bytes,
                               struct mr_error *err)
{
    char name[MR_CKPT_MAX_NAME];
    struct mr_publish_set set;
    struct present old = {.data = MR_PART_DATA};
    int has_old = to_replace(t, step, mark, &old, err);
    if (has_old < 0)
        return has_old;
    mr_ckpt_name(name, t->o.prefix, step, MR_PART_SAFETENSORS);
    mr_publish_begin(&set, t->dir, way_out);
    set.replaces = has_old;
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

int mr_tier_publish(struct mr_tier *t, uint64_t step, const struct mr_ckpt_mark *mark,
                    const struct mr_tier_source *src, uint64_t *bytes, struct mr_error *err)
{
    struct mr_ckpt_item item = item_of(t, step);
    struct mr_error first = {0}, why = {0};
    int (*publish)(struct mr_tier *, uint64_t, const struct mr_ckpt_mark *,
                   const struct mr_tier_source *, uint64_t *, struct mr_error *) =
        t->o.format == MR_CHECKPOINT_TF ? publish_bundle : publish_safetensors;
    item.mark = *mark;
    int r = publish(t, step, mark, src, bytes, &first);
    if (r == -ENOSPC && mr_tier_prune(t, &why) > 0) {
        first = (struct mr_error){0};
        r = publish(t, step, mark, src, bytes, &first);
    }
    if (r)
        return mr_fail(err, r, "%s", first.text);
    if (t->verified == (int64_t)step)
        t->verified = -1; /* that one is replaced */
    /* Not being on the list costs it nothing but its removal some day. */
    if (mr_ckpt_list_add(&t->list, &item))
        mr_fail(err, -ENOMEM, "%s: no memory", t->o.path);
    return 0;
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
    char head[MR_CKPT_MAX_NAME], rest[2][MR_CKPT_MAX_NAME];
    struct present there = {.data = MR_PART_DATA};
    struct mr_error why = {0};
    mr_ckpt_name(head, t->o.prefix, step, head_part(t));
    /* None: somebody else removed it, or an attempt of ours came so far, and the next start goes on
     * from its temporary. */
    int ours = of_step(t, step, &there, &why);
    int unproven = ours == -EEXIST || ours == -EBADMSG || ours == -ENODATA || ours == -ENOENT;
    if (ours < 0 && !unproven)
        return mr_fail(err, ours, "%s", why.text);
    mr_ckpt_name(rest[0], t->o.prefix, step, there.data);
    mr_ckpt_name(rest[1], t->o.prefix, step, MR_PART_META);
    int r = ours > 0
                ? mr_publish_remove(t->dir, head, rest, t->o.format == MR_CHECKPOINT_TF ? 2 : 0)
                : 0;
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

/* All but the newest `keep` and `step`: how many went, or -errno when none could go.  One that
 * cannot be removed keeps the others from nothing; `err` has it. */
static int prune(struct mr_tier *t, int64_t step, struct mr_error *err)
{
    size_t n = n_victims(t), before = t->list.n;
    int r = n ? find_verified(t, n, err) : 0;
    for (size_t i = 0; !r && n--;)
        if ((int64_t)t->list.items[i].step == step || /* has only just come here */
            mr_tier_remove(t, t->list.items[i].step, err))
            i++;
    return r ? r : (int)(before - t->list.n);
}

int mr_tier_prune(struct mr_tier *t, struct mr_error *err)
{
    return prune(t, -1, err);
}

int mr_tier_settle(struct mr_tier *t, uint64_t step, uint64_t latest, struct mr_error *err)
{
    struct mr_error pointer = {0};
    int tf = t->o.format == MR_CHECKPOINT_TF;
    int r = tf ? write_state(t, latest, &pointer) : 0;
    int n = prune(t, (int64_t)step, err);
    if (r == -ENOSPC && n > 0) { /* what went has made room for it */
        pointer = (struct mr_error){0};
        r = write_state(t, latest, &pointer);
    }
    if (r)
        mr_fail(err, r, "%s", pointer.text);
    return r ? r : n < 0 ? n : 0;
}
