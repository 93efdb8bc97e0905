/* ckpt_view.c - see ckpt_view.h.  The format's row reads the head; paths are put together here. */
#include "ckpt_view.h"

#include "ckpt_format.h"
#include "errtext.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parts become rows of the table, the tensors they are parts of lose their bytes. */
static int expand_parts(struct mr_bundle *b)
{
    int r = 0;
    for (size_t i = 0; !r && i < b->n_parts; i++) {
        const struct mr_bundle_part *p = &b->parts[i];
        struct mr_tensor *whole = &b->tensors.tensors[p->tensor], row = *whole;
        char name[MR_TENSOR_MAX_NAME + 1];
        snprintf(name, sizeof name, "%.*s (part %zu)", MR_TENSOR_MAX_NAME - 32, whole->name, i);
        row.name = name;
        memcpy(row.dims, p->length, sizeof row.dims);
        row.shard = p->shard;
        row.offset = p->offset;
        row.bytes = p->bytes;
        row.crc = p->crc;
        row.has_crc = 1;
        whole->bytes = whole->offset = whole->crc = 0;
        r = mr_tensor_table_add(&b->tensors, &row);
    }
    if (!r) {
        free(b->parts);
        b->parts = NULL;
        b->n_parts = 0;
    }
    return r;
}

static int open_view(struct mr_ckpt_view *v, const char *path, const char *file,
                     struct mr_device *device, struct mr_error *err)
{
    char head[MR_CKPT_MAX_PATH];
    mr_bundle_init(&v->bundle);
    v->row = mr_ckpt_format_row(v->format);
    if (strlen(path) >= sizeof v->path)
        return mr_fail(err, -ENAMETOOLONG, "%.100s...: the path is too long", path);
    strcpy(v->path, path);
    mr_ckpt_view_head(v, head);
    return v->row->read_head(v, file ? file : head, device, err);
}

int mr_ckpt_view_open(int at, const char *path, enum mr_checkpoint_format format,
                      struct mr_device *device, struct mr_ckpt_view *out, struct mr_error *err)
{
    struct mr_ckpt_view v = {.dir_fd = at, .format = format};
    int r = open_view(&v, path, NULL, device, err);
    if (!r)
        *out = v;
    return r;
}

static int join(const struct mr_ckpt_dir *dir, const char *name, char out[PATH_MAX],
                struct mr_error *err)
{
    int n = snprintf(out, PATH_MAX, "%s/%s", dir->path, name);
    return n >= 0 && n < PATH_MAX
               ? 0
               : mr_fail(err, -ENAMETOOLONG, "%.100s...: the path is too long", dir->path);
}

int mr_ckpt_view_open_as(const struct mr_ckpt_dir *dir, const char *stem, const char *file,
                         enum mr_checkpoint_format format, struct mr_ckpt_view *out,
                         struct mr_error *err)
{
    char path[PATH_MAX], head[PATH_MAX];
    struct mr_ckpt_view v = {.dir_fd = dir->fd, .name_at = strlen(dir->path) + 1, .format = format};
    int r = join(dir, stem, path, err);
    if (!r)
        r = join(dir, file, head, err);
    if (!r)
        r = open_view(&v, path, head, NULL, err);
    if (!r)
        *out = v;
    return r;
}

int mr_ckpt_view_open_flat(const struct mr_ckpt_dir *dir, const struct mr_ckpt_item *item,
                           struct mr_device *device, struct mr_ckpt_view *out, struct mr_error *err)
{
    char path[PATH_MAX], stem[MR_CKPT_MAX_NAME];
    struct mr_ckpt_view v = {
        .dir_fd = dir->fd, .name_at = strlen(dir->path) + 1, .format = item->format};
    mr_ckpt_stem(item, stem);
    int r = join(dir, stem, path, err);
    if (!r)
        r = open_view(&v, path, NULL, device, err);
    if (r)
        return r;
    r = expand_parts(&v.bundle);
    if (r) {
        mr_ckpt_view_fini(&v);
        return mr_fail(err, r, "%s: %s", path, mr_errno_text(r));
    }
    *out = v;
    return 0;
}

void mr_ckpt_view_fini(struct mr_ckpt_view *v)
{
    mr_bundle_fini(&v->bundle);
}

void mr_ckpt_view_file(const struct mr_ckpt_view *v, uint32_t s, char out[MR_CKPT_MAX_PATH])
{
    if (v->row->data_name)
        v->row->data_name(v->path, s, v->bundle.n_shards, out, MR_CKPT_MAX_PATH);
    else
        mr_ckpt_view_head(v, out);
}

void mr_ckpt_view_head(const struct mr_ckpt_view *v, char out[MR_CKPT_MAX_PATH])
{
    snprintf(out, MR_CKPT_MAX_PATH, "%s%s", v->path, v->row->ending);
}

void mr_ckpt_view_side(const struct mr_ckpt_view *v, char out[MR_CKPT_MAX_PATH])
{
    snprintf(out, MR_CKPT_MAX_PATH, "%s%s", v->path, v->row->side_ending);
}

const char *mr_ckpt_view_name(const struct mr_ckpt_view *v, const char *file)
{
    return file + v->name_at;
}

uint8_t *mr_ckpt_view_used(const struct mr_ckpt_view *v)
{
    const struct mr_bundle *b = &v->bundle;
    const struct mr_bundle_part *parts;
    uint8_t *used = calloc(b->n_shards, 1);
    for (size_t i = 0; used && i < b->tensors.n; i++)
        if (!mr_bundle_parts_of(b, i, &parts))
            used[b->tensors.tensors[i].shard] = 1;
    for (size_t i = 0; used && i < b->n_parts; i++)
        used[b->parts[i].shard] = 1;
    return used;
}
