/* tf_bundle_write.c - an index from a table of tensors; tf_bundle.c says how it is built.
 *
 * The keys are gathered first, because a table is written in their order: the names, and for
 * tensors in parts the keys of the parts, which begin with a zero byte and so come before. */
#include "tf_bundle.h"

#include "crc32c.h"
#include "errtext.h"
#include "slice_key.h"
#include "sstable.h"
#include "tf_types.h"
#include "wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct item {
    const uint8_t *key;
    size_t key_len;
    const struct mr_tensor *tensor;
    const struct mr_bundle_part *part; /* NULL: the tensor itself */
};

static int by_key(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    size_t n = x->key_len < y->key_len ? x->key_len : y->key_len;
    int c = n ? memcmp(x->key, y->key, n) : 0;
    return c ? c : (x->key_len > y->key_len) - (x->key_len < y->key_len);
}

static void put_nonzero(struct mr_bytes *b, uint32_t number, uint64_t v)
{
    if (v)
        mr_wire_put_int(b, number, v);
}

static void put_slice(struct mr_bytes *b, const struct mr_bundle_part *part, unsigned n_dims)
{
    size_t slice = mr_wire_begin(b, 7);
    for (unsigned d = 0; d < n_dims; d++) {
        size_t extent = mr_wire_begin(b, 1);
        if (!(part->full >> d & 1)) {
            put_nonzero(b, 1, part->start[d]);
            mr_wire_put_int(b, 2, part->length[d]);
        }
        mr_wire_end(b, extent);
    }
    mr_wire_end(b, slice);
}

static void put_shape(struct mr_bytes *b, unsigned n_dims, const uint64_t *dims)
{
    size_t shape = mr_wire_begin(b, 2);
    for (unsigned d = 0; d < n_dims; d++) {
        size_t dim = mr_wire_begin(b, 2);
        put_nonzero(b, 1, dims[d]);
        mr_wire_end(b, dim);
    }
    mr_wire_end(b, shape);
}

static void put_entry(const struct mr_bundle *b, const struct item *it, struct mr_bytes *value)
{
    const struct mr_tensor *t = it->tensor;
    const struct mr_bundle_part *p = it->part, *parts;
    size_t n_parts = p ? 0 : mr_bundle_parts_of(b, (size_t)(t - b->tensors.tensors), &parts);
    mr_wire_put_int(value, 1, mr_tf_type(t->dtype));
    put_shape(value, t->n_dims, p ? p->length : t->dims);
    if (!n_parts) {
        put_nonzero(value, 3, p ? p->shard : t->shard);
        put_nonzero(value, 4, p ? p->offset : t->offset);
        put_nonzero(value, 5, p ? p->bytes : t->bytes);
        mr_wire_put_i32(value, 6, mr_crc32c_mask(p ? p->crc : t->crc));
    }
    for (size_t i = 0; i < n_parts; i++)
        put_slice(value, &parts[i], t->n_dims);
}

static void put_header(const struct mr_bundle *b, struct mr_bytes *value)
{
    mr_wire_put_int(value, 1, b->n_shards);
    size_t version = mr_wire_begin(value, 3);
    mr_wire_put_int(value, 1, 1);
    mr_wire_end(value, version);
}

static int write_items(const struct mr_bundle *b, const struct item *items, size_t n,
                       struct mr_bytes *out, struct mr_error *err)
{
    struct mr_sstable_writer w;
    struct mr_bytes value;
    int r = 0;
    mr_sstable_init(&w, out);
    mr_bytes_init(&value);
    put_header(b, &value);
    mr_sstable_add(&w, "", 0, value.data, value.len);
    for (size_t i = 0; !r && i < n; i++) {
        value.len = 0;
        put_entry(b, &items[i], &value);
        r = mr_sstable_add(&w, items[i].key, items[i].key_len, value.data, value.len);
        if (r)
            mr_fail(err, r, "two tensors are named '%s'", items[i].tensor->name);
    }
    if (!r)
        r = mr_sstable_finish(&w);
    if (!r)
        r = value.error;
    mr_sstable_fini(&w);
    mr_bytes_fini(&value);
    return r;
}

int mr_bundle_write_index(const struct mr_bundle *b, struct mr_bytes *out, struct mr_error *err)
{
    size_t n = b->tensors.n + b->n_parts, at = 0;
    struct item *items = calloc(n ? n : 1, sizeof *items);
    struct mr_bytes *keys = calloc(b->n_parts ? b->n_parts : 1, sizeof *keys);
    int r = items && keys ? 0 : -ENOMEM;
    for (size_t i = 0; !r && i < b->tensors.n; i++) {
        const struct mr_tensor *t = &b->tensors.tensors[i];
        if (!mr_tf_type(t->dtype))
            r = mr_fail(err, -ENOTSUP, "'%s': TensorFlow has no type %s", t->name,
                        mr_dtype_name(t->dtype));
        items[at++] = (struct item){(const uint8_t *)t->name, strlen(t->name), t, NULL};
    }
    for (size_t i = 0; !r && i < b->n_parts; i++) {
        const struct mr_tensor *t = &b->tensors.tensors[b->parts[i].tensor];
        mr_slice_key(t, &b->parts[i], &keys[i]);
        r = keys[i].error;
        items[at++] = (struct item){keys[i].data, keys[i].len, t, &b->parts[i]};
    }
    if (!r) {
        qsort(items, n, sizeof *items, by_key);
        r = write_items(b, items, n, out, err);
    }
    for (size_t i = 0; keys && i < b->n_parts; i++)
        mr_bytes_fini(&keys[i]);
    free(keys);
    free(items);
    return r == -ENOMEM ? mr_fail(err, r, "no memory for an index") : r;
}
