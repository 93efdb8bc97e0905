/* ckpt_verify.c - read a whole checkpoint back and say what is wrong first.
 *
 * Tensors are visited in the order of their bytes on the disk, so that the first complaint is about
 * the first bad byte, and reading is sequential.  Then the format checks its side file. */
#include "ckpt_file.h"

#include "ckpt_format.h"
#include "ckpt_open.h"
#include "errtext.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *mr_ckpt_file_path(struct mr_ckpt_file *c, unsigned i)
{
    const struct mr_ckpt_format *row = c->view.row;
    for (uint32_t s = 0; s < c->n_data; s++)
        if (c->data[s].fd >= 0 && !i--) {
            mr_ckpt_view_file(&c->view, s, c->path);
            return c->path;
        }
    if (!row->data_name)
        return NULL;
    if (row->side_ending) {
        mr_ckpt_view_side(&c->view, c->path);
        if (!access(c->path, F_OK) && !i--)
            return c->path;
    }
    mr_ckpt_view_head(&c->view, c->path);
    return i ? NULL : c->path;
}

struct place {
    size_t tensor;
    uint32_t shard;
    uint64_t offset;
};

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

/* Tensors by where they begin; one in slices by its first slice. */
static struct place *in_order(const struct mr_ckpt_file *c)
{
    const struct mr_tensor_table *t = &c->view.bundle.tensors;
    struct place *order = malloc((t->n ? t->n : 1) * sizeof *order);
    if (!order)
        return NULL;
    for (size_t i = 0; i < t->n; i++) {
        const struct mr_bundle_part *p;
        size_t n = mr_bundle_parts_of(&c->view.bundle, i, &p);
        order[i] = n ? (struct place){i, p->shard, p->offset}
                     : (struct place){i, t->tensors[i].shard, t->tensors[i].offset};
    }
    if (t->n)
        qsort(order, t->n, sizeof *order, by_place);
    return order;
}

struct sink {
    const struct mr_checkpoint_watch *watch;
    uint64_t done, total;
};

static int count(void *ctx, const void *bytes, size_t len)
{
    struct sink *s = ctx;
    s->done += len;
    if (!s->watch)
        return 0;
    if (s->watch->progress)
        s->watch->progress(s->watch->ctx, s->done, s->total);
    return s->watch->should_stop && s->watch->should_stop(s->watch->ctx) ? -ECANCELED : 0;
}

static int check_side(struct mr_ckpt_file *c, struct mr_checkpoint_verdict *v, struct mr_error *err)
{
    char file[MR_CKPT_MAX_PATH];
    if (!c->view.row->side_ending)
        return 0;
    int r = c->view.row->read_side(&c->view, NULL, NULL, err);
    mr_ckpt_view_side(&c->view, file);
    if (r)
        snprintf(v->where, sizeof v->where, "%.255s", file);
    return r;
}

int mr_ckpt_file_verify(struct mr_ckpt_file *c, const struct mr_checkpoint_watch *watch,
                        struct mr_checkpoint_verdict *v, struct mr_error *err)
{
    const struct mr_tensor_table *t = &c->view.bundle.tensors;
    struct sink s = {.watch = watch};
    struct place *order = in_order(c);
    int r = order ? 0 : mr_fail(err, -ENOMEM, "%s: no memory", c->view.path);
    memset(v, 0, sizeof *v);
    for (size_t i = 0; i < t->n; i++)
        s.total += t->tensors[i].bytes;
    for (size_t i = 0; !r && i < t->n; i++) {
        const struct mr_tensor *x = &t->tensors[order[i].tensor];
        r = mr_ckpt_file_stream(c, order[i].tensor, count, &s, err);
        if (r == -ECANCELED)
            mr_fail(err, r, "%s: stopped", c->view.path);
        else if (r)
            snprintf(v->where, sizeof v->where, "%.255s", x->name);
        if (r)
            break;
        v->bytes += x->bytes;
        v->n_tensors++;
        v->n_unchecked += !c->view.has_checksums;
    }
    free(order);
    return r ? r : check_side(c, v, err);
}
