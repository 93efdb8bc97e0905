/* convert.c - write an open checkpoint in either format.
 *
 * Tensors are streamed in the order in which they will lie, their crcs taken on the way, so memory
 * stays at one piece.  The header of a safetensors file needs those crcs and comes before the data:
 * its size is known beforehand, and it is written last.
 *
 * The .meta file of a bundle is kept when there is one, because it may be a whole graph of
 * somebody's; otherwise one is made from the tensors.  A tensor of ours has its size and crc, and
 * is made anew. */
#include "convert.h"

#include "bytes.h"
#include "ckpt_folder.h"
#include "ckpt_open.h"
#include "crc32c.h"
#include "durable.h"
#include "errtext.h"
#include "publish_set.h"
#include "safetensors.h"
#include "tf_meta.h"
#include "train_state.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job {
    struct mr_ckpt_file *from;
    const struct mr_convert_opts *opts;
    struct mr_publish_set set;
    struct mr_tensor_table table; /* as it will be */
    struct mr_bytes meta;
    uint8_t meta_note[16];
    uint64_t done, total;
    uint32_t crc; /* of the tensor being written */
    struct mr_durable *out;
    struct mr_error *err;
};

/* All tensors but the note about .meta. */
static int copy_table(struct job *j)
{
    const struct mr_tensor_table *t = mr_ckpt_file_tensors(j->from);
    int r = 0;
    for (size_t i = 0; !r && i < t->n; i++)
        if (strcmp(t->tensors[i].name, MR_STATE_META))
            r = mr_tensor_table_add(&j->table, &t->tensors[i]);
    return r ? mr_fail(j->err, r, "no memory") : 0;
}

static int source_meta(struct job *j)
{
    char path[MR_CKPT_MAX_PATH];
    uint8_t *bytes;
    size_t len;
    snprintf(path, sizeof path, "%s.meta", mr_ckpt_file_prefix(j->from));
    int r = mr_ckpt_file_format(j->from) == MR_CHECKPOINT_TF
                ? mr_in_small_file(path, MR_META_MAX_FILE, NULL, &bytes, &len)
                : -ENOENT;
    if (r == -ENOENT)
        r = mr_tf_meta_write(&j->table, &j->meta);
    else if (!r) {
        mr_bytes_add(&j->meta, bytes, len);
        free(bytes);
        r = j->meta.error;
    }
    return r ? mr_fail(j->err, r, "%s: %s", path, mr_errno_text(r)) : 0;
}

static int add_meta_note(struct job *j)
{
    uint64_t note[2] = {htole64(j->meta.len), htole64(mr_crc32c(0, j->meta.data, j->meta.len))};
    memcpy(j->meta_note, note, sizeof note);
    struct mr_tensor t = {.name = MR_STATE_META,
                          .dtype = MR_DT_I64,
                          .n_dims = 1,
                          .dims = {2},
                          .data = j->meta_note,
                          .bytes = sizeof j->meta_note};
    int r = mr_tensor_table_add(&j->table, &t);
    return r ? mr_fail(j->err, r, "no memory") : 0;
}

static int put(void *ctx, const void *bytes, size_t len)
{
    struct job *j = ctx;
    const struct mr_ckpt_watch *w = j->opts->watch;
    j->crc = mr_crc32c(j->crc, bytes, len);
    int r = mr_durable_write(j->out, bytes, len, j->err);
    if (r)
        return r;
    j->done += len;
    if (w && w->progress)
        w->progress(w->ctx, j->done, j->total);
    return w && w->should_stop && w->should_stop(w->ctx) ? mr_fail(j->err, -ECANCELED, "stopped")
                                                         : 0;
}

/* One tensor to its place, which is not before the end of what is written. */
static int put_tensor(struct job *j, struct mr_tensor *t)
{
    const struct mr_tensor_table *from = mr_ckpt_file_tensors(j->from);
    j->out->len = t->offset; /* a gap reads as zeros */
    j->crc = 0;
    int r = t->data
                ? put(j, t->data, t->bytes)
                : mr_ckpt_file_stream(j->from,
                                      (size_t)(mr_tensor_table_find(from, t->name) - from->tensors),
                                      put, j, j->err);
    /* Strings have a crc by a rule of their own, which does not change. */
    if (!r && t->dtype != MR_DT_STRING)
        t->crc = j->crc;
    if (!r && t->dtype == MR_DT_STRING && !t->has_crc)
        r = mr_fail(j->err, -EBADMSG, "'%s': strings without a checksum", t->name);
    t->has_crc = 1;
    return r;
}

static int put_all(struct job *j)
{
    int r = 0;
    for (size_t i = 0; i < j->table.n; i++)
        j->total += j->table.tensors[i].bytes;
    for (size_t i = 0; !r && i < j->table.n; i++)
        r = put_tensor(j, &j->table.tensors[i]);
    return r;
}

static int write_bundle(struct job *j)
{
    struct mr_bundle b;
    struct mr_bytes index;
    uint64_t bytes;
    mr_bytes_init(&index);
    int r = source_meta(j);
    if (!r)
        r = add_meta_note(j);
    if (!r && mr_bundle_layout(&j->table, j->opts->packed ? 1 : MR_BUNDLE_ALIGN, &bytes))
        r = mr_fail(j->err, -EOVERFLOW, "too large");
    if (!r)
        r = mr_publish_set_open(&j->set, ".data-00000-of-00001", &j->out, j->err);
    if (!r)
        r = put_all(j);
    if (!r)
        r = mr_durable_sync(j->out, j->err);
    mr_bundle_init(&b);
    b.tensors = j->table; /* borrowed */
    if (!r)
        r = mr_bundle_write_index(&b, &index, j->err);
    if (!r)
        r = mr_publish_set_small(&j->set, ".meta", j->meta.data, j->meta.len, j->err);
    if (!r)
        r = mr_publish_set_small(&j->set, ".index", index.data, index.len, j->err);
    mr_bytes_fini(&index);
    return r;
}

static int write_safetensors(struct job *j)
{
    struct mr_bytes header;
    uint64_t header_bytes, file_bytes;
    mr_bytes_init(&header);
    int r = mr_safetensors_layout(&j->table, &header_bytes, &file_bytes, j->err);
    if (!r)
        r = mr_publish_set_open(&j->set, ".safetensors", &j->out, j->err);
    if (!r)
        r = put_all(j);
    if (!r)
        r = mr_safetensors_write_header(&j->table, &header, j->err);
    if (!r)
        r = mr_durable_write_at(j->out, header.data, header.len, 0, j->err);
    if (!r)
        r = mr_durable_sync(j->out, j->err);
    mr_bytes_fini(&header);
    return r;
}

int mr_ckpt_convert(struct mr_ckpt_file *c, const char *dir, const struct mr_convert_opts *opts,
                    char path[MR_CKPT_MAX_PATH], struct mr_error *err)
{
    struct job j = {.from = c, .opts = opts, .err = err};
    int tf = opts->format == MR_CHECKPOINT_TF;
    int r = mr_publish_set_begin(&j.set, dir, mr_ckpt_file_prefix(c),
                                 tf ? ".index" : ".safetensors", err);
    if (!r)
        r = copy_table(&j);
    if (!r)
        r = tf ? write_bundle(&j) : write_safetensors(&j);
    if (!r)
        r = mr_publish_set_commit(&j.set, err);
    if (!r)
        snprintf(path, MR_CKPT_MAX_PATH, "%s%s", j.set.prefix, tf ? "" : ".safetensors");
    mr_publish_set_abort(&j.set);
    mr_tensor_table_fini(&j.table);
    mr_bytes_fini(&j.meta);
    return r;
}

struct copy {
    struct mr_durable *out; /* NULL: compare only */
    uint32_t crc;
    struct mr_buffer *buf;
    const struct mr_ckpt_watch *watch;
    uint64_t *done, total;
    struct mr_error *err;
};

static int copy_piece(void *ctx, const uint8_t *bytes, size_t n)
{
    struct copy *k = ctx;
    k->crc = mr_crc32c(k->crc, bytes, n);
    if (!k->out)
        return 0;
    *k->done += n;
    if (k->watch && k->watch->progress)
        k->watch->progress(k->watch->ctx, *k->done, k->total);
    if (k->watch && k->watch->should_stop && k->watch->should_stop(k->watch->ctx))
        return mr_fail(k->err, -ECANCELED, "stopped");
    return mr_durable_write(k->out, bytes, n, k->err);
}

/* All of a file through copy_piece. */
static int each_piece(const char *path, struct copy *k)
{
    struct mr_in_file f = {.fd = -1};
    k->crc = 0;
    int r = mr_in_open(path, NULL, &f);
    if (!r)
        r = mr_in_each(&f, k->buf, 0, f.bytes, copy_piece, k);
    mr_in_close(&f);
    return r ? mr_fail(k->err, r, "%s: %s", path, mr_errno_text(r)) : 0;
}

static int copy_file(struct mr_publish_set *set, const char *path, const char *end, struct copy *k)
{
    int r = mr_publish_set_open(set, end, &k->out, k->err);
    if (!r)
        r = each_piece(path, k);
    uint32_t crc = k->crc;
    struct mr_durable *out = k->out;
    if (!r)
        r = mr_durable_sync(out, k->err);
    k->out = NULL;
    if (!r)
        r = each_piece(out->temp, k);
    if (!r && k->crc != crc)
        r = mr_fail(k->err, -EIO, "%s: reads back other than it was written", out->temp);
    return r;
}

int mr_ckpt_copy(struct mr_ckpt_file *c, const char *dir, const struct mr_ckpt_watch *watch,
                 char path[MR_CKPT_MAX_PATH], struct mr_error *err)
{
    struct mr_publish_set set;
    uint64_t done = 0;
    struct copy k = {
        .buf = &c->buf, .watch = watch, .done = &done, .total = mr_ckpt_file_bytes(c), .err = err};
    int tf = mr_ckpt_file_format(c) == MR_CHECKPOINT_TF;
    const char *prefix = mr_ckpt_file_prefix(c), *file;
    int r = mr_publish_set_begin(&set, dir, prefix, tf ? ".index" : ".safetensors", err);
    for (unsigned i = 0; !r && (file = mr_ckpt_file_path(c, i)); i++)
        r = copy_file(&set, file, file + strlen(prefix), &k);
    if (!r)
        r = mr_publish_set_commit(&set, err);
    if (!r)
        snprintf(path, MR_CKPT_MAX_PATH, "%s%s", set.prefix, tf ? "" : ".safetensors");
    mr_publish_set_abort(&set);
    return r;
}
