/* restore.c - find the newest checkpoint whose every byte is right, and read it.
 *
 * Both folders are listed; no pointer file is asked.  Candidates are tried by step, newest first,
 * on the fast tier before the slow one.  One that does not parse, lacks an array, has another shape
 * or a wrong checksum is passed over with the reason.  Reading and verifying are one pass, straight
 * into the arrays: a candidate that turns out bad at its last byte has overwritten them, and the
 * next one does so again. */
#include <millrace/checkpoint.h>

#include "errtext.h"
#include "loader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    struct candidate *list;
    size_t n;
};

static int newest_first(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->item.step != y->item.step)
        return x->item.step > y->item.step ? -1 : 1;
    if (x->tier != y->tier)
        return (int)x->tier - (int)y->tier;
    int r = strcmp(x->item.prefix, y->item.prefix);
    return r ? r : (int)x->item.format - (int)y->item.format;
}

static const char *dir_of(const struct mr_restore_opts *o, enum mr_checkpoint_tier tier)
{
    return tier == MR_TIER_FAST ? o->dir : o->drain_dir;
}

/* List a tier.  One that is not there has nothing. */
static int look(struct search *s, enum mr_checkpoint_tier tier, struct mr_error *err)
{
    struct mr_ckpt_list found = {0};
    const char *dir = dir_of(s->o, tier);
    int r = dir ? mr_ckpt_scan(dir, s->o->prefix, &found) : 0;
    if (r && r != -ENOMEM) {
        if (r != -ENOENT && s->o->passed_over)
            s->o->passed_over(s->o->passed_over_ctx, dir, mr_errno_text(r));
        r = 0;
    }
    struct candidate *list = r ? NULL : realloc(s->list, (s->n + found.n + 1) * sizeof *s->list);
    if (list) {
        s->list = list;
        for (size_t i = 0; i < found.n; i++)
            s->list[s->n++] = (struct candidate){found.items[i], tier};
    }
    mr_ckpt_list_fini(&found);
    return list ? 0 : mr_fail(err, -ENOMEM, "%s: no memory", dir);
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
    struct mr_device *device = c->tier == MR_TIER_FAST ? s->o->storage : s->o->drain_storage;
    struct mr_ckpt_view v;
    uint64_t bytes;
    int r = mr_ckpt_view_open_flat(dir_of(s->o, c->tier), &c->item, device, &v, err);
    if (r)
        return r;
    r = fit(s, &v, err);
    if (!r)
        r = mr_loader_run(s->loader, &v, device, &bytes, err);
    if (!r) {
        *out = (struct mr_restored){
            .step = c->item.step, .bytes = bytes, .tier = c->tier, .format = c->item.format};
        snprintf(out->path, sizeof out->path, "%.1023s", v.path);
    }
    mr_ckpt_view_fini(&v);
    return r;
}

static void pass_over(const struct search *s, const struct candidate *c, const char *why)
{
    char path[1280];
    if (!s->o->passed_over)
        return;
    snprintf(path, sizeof path, "%.1000s/%s-%llu", dir_of(s->o, c->tier), c->item.prefix,
             (unsigned long long)c->item.step);
    s->o->passed_over(s->o->passed_over_ctx, path, why);
}

int mr_checkpoint_restore(const struct mr_array *arrays, unsigned n_arrays,
                          const struct mr_restore_opts *opts, struct mr_restored *out,
                          struct mr_error *err)
{
    struct search s = {.o = opts, .arrays = arrays, .n_arrays = n_arrays};
    struct mr_error first = {0};
    unsigned depth = opts->io_depth ? opts->io_depth : DEFAULT_DEPTH;
    int r = depth > MAX_DEPTH ? mr_fail(err, -EINVAL, "restore: depth %u is too much", depth) : 0;
    if (!r)
        r = look(&s, MR_TIER_FAST, err);
    if (!r)
        r = look(&s, MR_TIER_SLOW, err);
    if (!r && !s.n)
        r = mr_fail(err, -ENOENT, "%s%s%s: no checkpoint", opts->dir ? opts->dir : "",
                    opts->dir && opts->drain_dir ? " and " : "",
                    opts->drain_dir ? opts->drain_dir : "");
    if (!r && (r = mr_loader_open(depth, &s.loader)))
        mr_fail(err, r, "restore: cannot start: %s", mr_errno_text(r));
    if (r)
        goto done;
    qsort(s.list, s.n, sizeof *s.list, newest_first);
    r = -EBADMSG;
    for (size_t i = 0; r && i < s.n; i++) {
        struct mr_error why = {0};
        r = try_one(&s, &s.list[i], out, &why);
        if (r == -ENOMEM) {
            mr_fail(err, r, "%s", why.text);
            goto done;
        }
        if (r) {
            pass_over(&s, &s.list[i], why.text);
            mr_fail(&first, r, "%s", why.text);
            r = -EBADMSG;
        }
    }
    if (r)
        mr_fail(err, r, "no checkpoint of %zu verifies and fits; the newest: %.400s", s.n,
                first.text);
done:
    mr_loader_close(s.loader);
    free(s.list);
    return r;
}
