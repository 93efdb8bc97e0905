/* ckpt_view.c - see ckpt_view.h.  Index and header are read whole; their parsers check them. */
#include "ckpt_view.h"

#include "crc32c.h"
#include "errtext.h"
#include "in_file.h"
#include "safetensors.h"
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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

static int open_bundle(struct mr_ckpt_view *v, struct mr_device *device, struct mr_error *err)
{
    uint8_t *index;
    size_t len;
    char file[MR_CKPT_MAX_PATH];
    snprintf(file, sizeof file, "%s.index", v->path);
    int r = mr_in_small_file(v->dir_fd, mr_ckpt_view_name(v, file), MR_BUNDLE_MAX_INDEX, device,
                             &index, &len);
    if (r)
        return mr_fail(err, r, "%s: %s", file, mr_errno_text(r));
    r = mr_bundle_parse(file, index, len, &v->bundle, err);
    free(index);
    v->index_bytes = len;
    v->has_checksums = 1;
    return r;
}

/* The header's bytes: read through an aligned buffer, for the file is not read through the cache.
 */
static int read_header(const char *file, struct mr_in_file *f, uint8_t **out, uint64_t *bytes,
                       struct mr_error *err)
{
    uint8_t *buf = aligned_alloc(MR_DIRECT_ALIGN, MR_DIRECT_ALIGN);
    int r = !buf ? -ENOMEM : f->bytes < 8 ? -ENODATA : mr_in_read(f, buf, 8, 0);
    if (!r)
        r = mr_safetensors_header_bytes(file, buf, f->bytes, bytes, err);
    free(buf);
    if (r)
        return r;
    *out = aligned_alloc(MR_DIRECT_ALIGN, mr_direct_round((size_t)*bytes));
    if (!*out)
        return -ENOMEM;
    r = mr_in_read(f, *out, (size_t)*bytes, 0);
    if (r)
        free(*out);
    return r;
}

static int open_safetensors(struct mr_ckpt_view *v, struct mr_device *device, struct mr_error *err)
{
    struct mr_safetensors s;
    struct mr_in_file f;
    uint8_t *header;
    uint64_t bytes;
    char file[MR_CKPT_MAX_PATH];
    snprintf(file, sizeof file, "%s.safetensors", v->path);
    int r = mr_in_open(v->dir_fd, mr_ckpt_view_name(v, file), device, &f);
    if (r)
        return mr_fail(err, r, "%s: %s", file, mr_errno_text(r));
    r = read_header(file, &f, &header, &bytes, err);
    if (r) {
        mr_fail(err, r, "%s: %s", file,
                r == -ENODATA ? "too short for a safetensors file" : mr_errno_text(r));
    } else {
        r = mr_safetensors_parse(file, header, (size_t)bytes, f.bytes, &s, err);
        v->head_crc = mr_crc32c(0, header, (size_t)bytes);
        free(header);
    }
    mr_in_close(&f);
    if (r)
        return r;
    v->bundle.tensors = s.tensors;
    v->has_checksums = s.sealed;
    v->head_bytes = (size_t)s.header_bytes;
    return 0;
}

static int open_view(int dir_fd, const char *path, size_t name_at, enum mr_checkpoint_format format,
                     struct mr_device *device, struct mr_ckpt_view *out, struct mr_error *err)
{
    struct mr_ckpt_view v = {.dir_fd = dir_fd, .name_at = name_at, .format = format};
    mr_bundle_init(&v.bundle);
    if (strlen(path) >= sizeof v.path)
        return mr_fail(err, -ENAMETOOLONG, "%.100s...: the path is too long", path);
    strcpy(v.path, path);
    int r = format == MR_CHECKPOINT_TF ? open_bundle(&v, device, err)
                                       : open_safetensors(&v, device, err);
    if (!r)
        *out = v;
    return r;
}

int mr_ckpt_view_open(int at, const char *path, enum mr_checkpoint_format format,
                      struct mr_device *device, struct mr_ckpt_view *out, struct mr_error *err)
{
    return open_view(at, path, 0, format, device, out, err);
}

int mr_ckpt_view_open_flat(const struct mr_ckpt_dir *dir, const struct mr_ckpt_item *item,
                           struct mr_device *device, struct mr_ckpt_view *out, struct mr_error *err)
{
    char path[PATH_MAX];
    struct mr_ckpt_view v;
    int n = snprintf(path, sizeof path, "%s/%s-%" PRIu64, dir->path, item->prefix, item->step);
    if (n < 0 || (size_t)n >= sizeof path)
        return mr_fail(err, -ENAMETOOLONG, "%.100s...: the path is too long", dir->path);
    int r = open_view(dir->fd, path, strlen(dir->path) + 1, item->format, device, &v, err);
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
    if (v->format == MR_CHECKPOINT_SAFETENSORS)
        snprintf(out, MR_CKPT_MAX_PATH, "%s.safetensors", v->path);
    else
        snprintf(out, MR_CKPT_MAX_PATH, "%s.data-%05" PRIu32 "-of-%05" PRIu32, v->path, s,
                 v->bundle.n_shards);
}

const char *mr_ckpt_view_name(const struct mr_ckpt_view *v, const char *file)
{
    return file + v->name_at;
}
