/* ckpt_verify.c - read a whole checkpoint back and say what is wrong first.
 *
 * Tensors are visited in the order of their bytes on the disk, so that the first complaint is about
 * the first bad byte, and reading is sequential.  The .meta file of a checkpoint of ours is covered
 * by a tensor of its own (train_state.h); that of others has no checksum and is parsed. */
#include "ckpt_file.h"

#include "bytes.h"
#include "ckpt_open.h"
#include "crc32c.h"
#include "errtext.h"
#include "tf_meta.h"
#include "train_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *mr_ckpt_file_path(struct mr_ckpt_file *c, unsigned i)
{
    if (c->view.format == MR_CHECKPOINT_SAFETENSORS) {
        mr_ckpt_view_file(&c->view, 0, c->path);
        return i ? NULL : c->path;
    }
    for (uint32_t s = 0; s < c->n_data; s++)
        if (c->data[s].fd >= 0 && !i--) {
            mr_ckpt_view_file(&c->view, s, c->path);
            return c->path;
        }
    snprintf(c->path, sizeof c->path, "%s.meta", c->view.path);
    if (!access(c->path, F_OK) && !i--)
        return c->path;
    snprintf(c->path, sizeof c->path, "%s.index", c->view.path);
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
    const struct mr_ckpt_watch *watch;
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

static int wrong_meta(struct mr_ckpt_verdict *v, const char *path, const char *what,
                      struct mr_error *err)
{
    snprintf(v->where, sizeof v->where, "%.255s", path);
    return mr_fail(err, -EBADMSG, "%s: %s", path, what);
}

/* A graph against the tensor that has its size and crc. */
static int check_our_meta(struct mr_ckpt_file *c, const struct mr_tensor *note, const char *path,
                          const uint8_t *meta, size_t len, struct mr_ckpt_verdict *v,
                          struct mr_error *err)
{
    uint8_t text[16];
    if (note->dtype != MR_DT_I64 || note->bytes != sizeof text)
        return wrong_meta(v, path, "'" MR_STATE_META "' is not what it should be", err);
    int r = mr_ckpt_file_read(c, (size_t)(note - c->view.bundle.tensors.tensors), text, err);
    if (r)
        return r;
    if (mr_get_u64(text) != len || mr_get_u64(text + 8) != mr_crc32c(0, meta, len))
        return wrong_meta(v, path, "its bytes do not match its checksum", err);
    return 0;
}

static int check_meta(struct mr_ckpt_file *c, struct mr_ckpt_verdict *v, struct mr_error *err)
{
    const struct mr_tensor *note = mr_tensor_table_find(&c->view.bundle.tensors, MR_STATE_META);
    char path[MR_CKPT_MAX_PATH];
    struct mr_tf_meta info;
    uint8_t *meta;
    size_t len;
    snprintf(path, sizeof path, "%s.meta", c->view.path);
    int r = mr_in_small_file(c->view.dir_fd, mr_ckpt_view_name(&c->view, path), MR_META_MAX_FILE,
                             NULL, &meta, &len);
    if (r == -ENOENT && !note)
        return 0;
    if (r)
        return wrong_meta(v, path, mr_errno_text(r), err);
    if (note)
        r = check_our_meta(c, note, path, meta, len, v, err);
    if (!r)
        r = mr_tf_meta_parse(path, meta, len, note ? &c->view.bundle.tensors : NULL, &info, err);
    if (r && !v->where[0])
        snprintf(v->where, sizeof v->where, "%.255s", path);
    free(meta);
    return r;
}

int mr_ckpt_file_verify(struct mr_ckpt_file *c, const struct mr_ckpt_watch *watch,
                        struct mr_ckpt_verdict *v, struct mr_error *err)
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
    if (!r && c->view.format == MR_CHECKPOINT_TF)
        r = check_meta(c, v, err);
    return r;
}
