/* restore.c - find the newest checkpoint whose every byte is right, and read it.
 *
 * Both folders are listed; no pointer file is read.  Candidates are tried by generation
 * (ckpt_mark.h), newest first, on the fast tier before the slow one.  Those without a mark come
 * last, by step.  One whose mark could not be read comes first and is read again: if that works, it
 * gets its place among the others; if not, it is passed over.  A candidate that does not parse,
 * lacks an array, or has another shape or a wrong checksum is passed over with the reason. Reading
 * and verifying are one pass, straight into the arrays.  A candidate with a bad last byte has
 * overwritten the arrays; the next one overwrites them again. */
#include <millrace/checkpoint.h>

#include "ckpt_mark.h"
#include "errtext.h"
#include "sized.h"
#include "loader.h"
#include "open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_DEPTH 8
#define MAX_DEPTH     64

struct candidate {
    struct mr_ckpt_item item;
    enum mr_checkpoint_tier tier;
};

struct search {
    const struct mr_restore_opts *o;
    const struct mr_array *arrays;
    unsigned n_arrays;
    struct mr_loader *loader;
    struct mr_ckpt_dir dirs[MR_N_TIERS];
    struct candidate *list;
    size_t n;
    struct mr_error unlisted; /* the first folder that could not be listed */
};

static int newest_first(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    uint64_t g = x->item.mark.generation, h = y->item.mark.generation;
    if (g != h)
        return g > h ? -1 : 1;
    if (x->item.step != y->item.step)
        return x->item.step > y->item.step ? -1 : 1;
    if (x->tier != y->tier)
        return (int)x->tier - (int)y->tier;
    int r = strcmp(x->item.prefix, y->item.prefix);
    if (!r)
        r = (int)x->item.format - (int)y->item.format;
    return r ? r : x->item.resaved - y->item.resaved;
}

static struct mr_device *device_of(const struct search *s, enum mr_checkpoint_tier tier)
{
    return tier == MR_TIER_FAST ? s->o->storage : s->o->drain_storage;
}

/* A missing folder holds nothing.  What one that cannot be listed holds is unknown. */
static int cannot_list(struct search *s, enum mr_checkpoint_tier tier, int code)
{
    const char *dir = s->dirs[tier].path;
    if (code == -ENOMEM)
        return code;
    if (code == -ENOENT)
        return 0;
    if (s->o->passed_over)
        s->o->passed_over(s->o->passed_over_ctx, dir, mr_errno_text(code));
    mr_fail(&s->unlisted, code, "%s: cannot be listed, so its checkpoints are unknown: %s", dir,
            mr_errno_text(code));
    return 0;
}

static int add_candidate(struct search *s, const struct mr_ckpt_item *item,
                         enum mr_checkpoint_tier tier)
{
    struct candidate *c = &s->list[s->n];
    *c = (struct candidate){*item, tier};
    int ours = mr_ckpt_mark_read(&s->dirs[tier], item, device_of(s, tier), &c->item.mark, NULL);
    if (ours == -ENOMEM)
        return ours;
    if (ours < 0)
        c->item.mark.generation = UINT64_MAX;
    s->n++;
    return 0;
}

/* List a tier. */
static int look(struct search *s, enum mr_checkpoint_tier tier, struct mr_error *err)
{
    struct mr_ckpt_list found = {0};
    const char *dir = tier == MR_TIER_FAST ? s->o->dir : s->o->drain_dir;
    if (!dir)
        return 0;
    int fd = mr_open_file(dir, O_RDONLY | O_DIRECTORY, 0);
    s->dirs[tier] = (struct mr_ckpt_dir){fd, dir};
    int r = fd < 0 ? fd : mr_ckpt_scan(fd, ".", s->o->prefix, &found);
    r = r ? cannot_list(s, tier, r) : 0;
    struct candidate *list = r ? NULL : realloc(s->list, (s->n + found.n + 1) * sizeof *s->list);
    if (list)
        s->list = list;
    else
        r = -ENOMEM;
    for (size_t i = 0; !r && i < found.n; i++)
        r = add_candidate(s, &found.items[i], tier);
    mr_ckpt_list_fini(&found);
    return r ? mr_fail(err, r, "%s: no memory", dir) : 0;
}

/* Of two arrays with one name only one would be filled. */
static int check_names(const struct search *s, struct mr_error *err)
{
    struct mr_tensor_table names = {0};
    int r = 0;
    for (unsigned i = 0; !r && i < s->n_arrays; i++)
        r = mr_tensor_table_add(&names, &(struct mr_tensor){.name = s->arrays[i].name});
    if (r)
        mr_fail(err, r, "restore: no memory");
    mr_tensor_table_sort(&names);
    for (size_t i = 1; !r && i < names.n; i++)
        if (!strcmp(names.tensors[i - 1].name, names.tensors[i].name))
            r = mr_fail(err, -EINVAL, "restore: two arrays are called %s", names.tensors[i].name);
    mr_tensor_table_fini(&names);
    return r;
}

/* Point the tensors of `v` at the arrays. */
static int fit(const struct search *s, struct mr_ckpt_view *v, struct mr_error *err)
{
    for (unsigned i = 0; i < s->n_arrays; i++) {
        const struct mr_array *a = &s->arrays[i];
        struct mr_tensor *t = mr_tensor_table_find(&v->bundle.tensors, a->name);
        uint64_t bytes;
        if (!t)
            return mr_fail(err, -ENOKEY, "it has no tensor %s", a->name);
        if (t->dtype != a->dtype || t->n_dims != a->n_dims ||
            memcmp(t->dims, a->dims, a->n_dims * sizeof *a->dims) ||
            mr_tensor_size(a->dtype, a->n_dims, a->dims, &bytes))
            return mr_fail(err, -EINVAL, "tensor %s has another type or shape", a->name);
        if (bytes != t->bytes)
            return mr_fail(err, -ENOTSUP, "tensor %s is saved in parts", a->name);
        t->data = a->data;
    }
    return 0;
}

static int try_one(struct search *s, const struct candidate *c, struct mr_restored *out,
                   struct mr_error *err)
{
    struct mr_device *device = device_of(s, c->tier);
    struct mr_ckpt_view v;
    uint64_t bytes;
    int r = mr_ckpt_view_open_flat(&s->dirs[c->tier], &c->item, device, &v, err);
    if (r)
        return r;
    r = fit(s, &v, err);
    if (!r)
        r = mr_loader_run(s->loader, &v, device, &bytes, err);
    if (!r) {
        *out = (struct mr_restored){.step = c->item.step,
                                    .bytes = bytes,
                                    .tier = c->tier,
                                    .format = c->item.format,
                                    .run = c->item.mark.run};
        snprintf(out->path, sizeof out->path, "%.1023s", v.path);
    }
    mr_ckpt_view_fini(&v);
    return r;
}

static void pass_over(const struct search *s, const struct candidate *c, const char *why)
{
    char path[1280], stem[MR_CKPT_MAX_NAME];
    if (!s->o->passed_over)
        return;
    mr_ckpt_stem(&c->item, stem);
    snprintf(path, sizeof path, "%.1000s/%s", s->dirs[c->tier].path, stem);
    s->o->passed_over(s->o->passed_over_ctx, path, why);
}

/* The mark of candidate i could not be read: try again.  1: it can be read now, and the list is
 * sorted again from i on. */
static int look_again(struct search *s, size_t i, struct mr_error *err)
{
    struct candidate *c = &s->list[i];
    struct mr_ckpt_mark mark = {0};
    int r = mr_ckpt_mark_read(&s->dirs[c->tier], &c->item, device_of(s, c->tier), &mark, err);
    if (r < 0)
        return r;
    c->item.mark = mark;
    qsort(s->list + i, s->n - i, sizeof *s->list, newest_first);
    return 1;
}

/* The first one that verifies and fits. */
static int try_all(struct search *s, struct mr_restored *out, struct mr_error *err)
{
    struct mr_error first = {0};
    for (size_t i = 0; i < s->n;) {
        struct mr_error why = {0};
        int unread = s->list[i].item.mark.generation == UINT64_MAX;
        int r = unread ? look_again(s, i, &why) : try_one(s, &s->list[i], out, &why);
        if (r > 0)
            continue;
        if (!r)
            return 0;
        if (r == -ENOMEM)
            return mr_fail(err, r, "%s", why.text);
        pass_over(s, &s->list[i], why.text);
        mr_fail(&first, r, "%s", why.text);
        i++;
    }
    return mr_fail(err, -EBADMSG, "no checkpoint of %zu verifies and fits; the newest: %.400s",
                   s->n, first.text);
}

static int restore(const struct mr_array *arrays, unsigned n_arrays,
                   const struct mr_restore_opts *opts, struct mr_restored *out,
                   struct mr_error *err)
{
    struct search s = {
        .o = opts, .arrays = arrays, .n_arrays = n_arrays, .dirs = {{.fd = -1}, {.fd = -1}}};
    unsigned depth = opts->io_depth ? opts->io_depth : DEFAULT_DEPTH;
    int r = depth > MAX_DEPTH ? mr_fail(err, -EINVAL, "restore: depth %u is too much", depth) : 0;
    if (!r)
        r = check_names(&s, err);
    for (unsigned tier = 0; !r && tier < MR_N_TIERS; tier++)
        r = look(&s, tier, err);
    if (!r && !s.n)
        r = s.unlisted.code
                ? mr_fail(err, s.unlisted.code, "%s", s.unlisted.text)
                : mr_fail(err, -ENOENT, "%s%s%s: no checkpoint", opts->dir ? opts->dir : "",
                          opts->dir && opts->drain_dir ? " and " : "",
                          opts->drain_dir ? opts->drain_dir : "");
    if (!r && (r = mr_loader_open(depth, &s.loader)))
        mr_fail(err, r, "restore: cannot start: %s", mr_errno_text(r));
    if (r)
        goto done;
    qsort(s.list, s.n, sizeof *s.list, newest_first);
    r = try_all(&s, out, err);
done:
    for (unsigned tier = 0; tier < MR_N_TIERS; tier++)
        if (s.dirs[tier].fd >= 0)
            close(s.dirs[tier].fd);
    mr_loader_close(s.loader);
    free(s.list);
    return r;
}

int mr_checkpoint_restore_sized(const struct mr_array *arrays, unsigned n_arrays,
                                const struct mr_restore_opts *opts, size_t opts_size,
                                struct mr_restored *out, size_t out_size, struct mr_error *err)
{
    struct mr_restore_opts o;
    struct mr_restored got = {0};
    int r = mr_take_sized(&o, sizeof o, opts, opts_size, "mr_restore_opts", err);
    if (!r)
        r = restore(arrays, n_arrays, &o, &got, err);
    if (!r)
        mr_give_sized(out, out_size, &got, sizeof got);
    return r;
}
