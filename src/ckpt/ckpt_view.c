/* ckpt_view.c - see ckpt_view.h.  Index and header are read whole; their parsers check them. */
#include "ckpt_view.h"

#include "crc32c.h"
#include "device.h"
#include "errtext.h"
#include "in_file.h"
#include "range_file.h"
#include "safetensors.h"
#include "tf_bundle.h"
#include "whole_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int mr_ckpt_read_small(const char *file, size_t max, struct mr_device *device, uint8_t **out,
                       size_t *len, struct mr_error *err)
{
    uint8_t *bytes;
    int r = mr_small_file(file, max, &bytes, len);
    if (r)
        return mr_fail(err, r, "%s: %s", file, mr_errno_text(r));
    if (device) {
        mr_device_wait_until(mr_device_reserve(device, MR_DEV_META, NULL, 0));
        mr_device_wait_until(mr_device_reserve(device, MR_DEV_READ, NULL, *len));
    }
    *out = bytes;
    return 0;
}

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
    return r;
}

static int open_bundle(struct mr_ckpt_view *v, struct mr_device *device, struct mr_error *err)
{
    struct mr_bundle b;
    uint8_t *index;
    size_t len;
    char file[1280];
    snprintf(file, sizeof file, "%s.index", v->path);
    int r = mr_ckpt_read_small(file, MR_BUNDLE_MAX_INDEX, device, &index, &len, err);
    if (r)
        return r;
    r = mr_bundle_parse(file, index, len, &b, err);
    free(index);
    if (r)
        return r;
    r = expand_parts(&b);
    if (r) {
        mr_bundle_fini(&b);
        return mr_fail(err, r, "%s: %s", file, mr_errno_text(r));
    }
    v->table = b.tensors;
    v->n_shards = b.n_shards;
    v->index_bytes = len;
    mr_tensor_table_init(&b.tensors);
    mr_bundle_fini(&b);
    return 0;
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
    char file[1280];
    snprintf(file, sizeof file, "%s.safetensors", v->path);
    int r = mr_in_open(file, device, &f);
    if (r)
        return mr_fail(err, r, "%s: %s", file, mr_errno_text(r));
    r = read_header(file, &f, &header, &bytes, err);
    if (r) {
        mr_fail(err, r, "%s: %s", file, mr_errno_text(r));
    } else {
        r = mr_safetensors_parse(file, header, (size_t)bytes, f.bytes, &s, err);
        v->head_crc = mr_crc32c(0, header, (size_t)bytes);
        free(header);
    }
    mr_in_close(&f);
    if (r)
        return r;
    v->table = s.tensors;
    v->head_bytes = (size_t)s.header_bytes;
    v->n_shards = 1;
    mr_tensor_table_init(&s.tensors);
    mr_safetensors_fini(&s);
    return 0;
}

int mr_ckpt_view_open(const char *dir, const struct mr_ckpt_item *item, struct mr_device *device,
                      struct mr_ckpt_view *out, struct mr_error *err)
{
    struct mr_ckpt_view v = {.format = item->format};
    int n = snprintf(v.path, sizeof v.path, "%s/%s-%" PRIu64, dir, item->prefix, item->step);
    if (n < 0 || (size_t)n >= sizeof v.path)
        return mr_fail(err, -ENAMETOOLONG, "%s: the path is too long", dir);
    int r = v.format == MR_CHECKPOINT_TF ? open_bundle(&v, device, err)
                                         : open_safetensors(&v, device, err);
    if (!r)
        *out = v;
    return r;
}

void mr_ckpt_view_fini(struct mr_ckpt_view *v)
{
    mr_tensor_table_fini(&v->table);
}

void mr_ckpt_view_file(const struct mr_ckpt_view *v, uint32_t s, char out[1280])
{
    if (v->format == MR_CHECKPOINT_SAFETENSORS)
        snprintf(out, 1280, "%s.safetensors", v->path);
    else
        snprintf(out, 1280, "%s.data-%05" PRIu32 "-of-%05" PRIu32, v->path, s, v->n_shards);
}
