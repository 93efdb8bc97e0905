/* tf_bundle.c - the index of a TensorFlow checkpoint.
 *
 * The index is a sorted table (sstable.c) of small protocol buffers:
 *
 *   key ""            BundleHeader {1 num_shards  2 endianness  3 version {1 producer
 *                                   2 min_consumer}}
 *   key NAME          BundleEntry  {1 dtype  2 shape {2 dim {1 size}}  3 shard  4 offset  5 size
 *                                   6 crc32c (fixed32, masked)  7 slice {1 extent {1 start
 *                                   2 length}}}
 *   key "\0" ...      BundleEntry of one slice; name and extents are in the key (slice_key.c)
 *
 * Zero fields are left out, but the shape is always there.  An entry with slices has no data of its
 * own.  Strings are stored as varint64 lengths, the masked crc of the lengths, and the bytes.
 *
 * Numbers are checked as they are read: a tensor's size against its shape, shards against the
 * header, ranges against overflow.  Whether they lie in the data file is checked by who opens it.
 */
#include "tf_bundle.h"

#include "crc32c.h"
#include "errtext.h"
#include "grow.h"
#include "slice_key.h"
#include "sstable.h"
#include "tf_types.h"
#include "wire.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VERSION   1
#define MAX_PARTS 4096 /* of a tensor: they are compared with each other */

/* A part as the index says it: the key of its own entry is looked up in the end. */
struct loose_entry {
    struct mr_bytes key;
    struct mr_tensor entry;
};

struct parser {
    const char *name;
    struct mr_bundle b;
    size_t cap_parts;
    struct loose_entry *loose; /* sorted by key, as the table is */
    size_t n_loose, cap_loose;
    int has_header;
};

/* One BundleEntry; slices are left for the second look. */
struct entry {
    struct mr_tensor t;
    uint64_t tf_type; /* as the file has it */
    unsigned n_slices;
};

void mr_bundle_init(struct mr_bundle *b)
{
    memset(b, 0, sizeof *b);
    b->n_shards = 1;
}

void mr_bundle_fini(struct mr_bundle *b)
{
    mr_tensor_table_fini(&b->tensors);
    free(b->parts);
    mr_bundle_init(b);
}

static int no_memory(const struct parser *p, struct mr_error *err)
{
    return mr_fail(err, -ENOMEM, "%s: no memory", p->name);
}

static int parse_version(const struct parser *p, struct mr_wire w, struct mr_error *err)
{
    struct mr_wire_field f;
    int r;
    while ((r = mr_wire_next(&w, &f)) > 0)
        if (f.number == 2 && f.type == MR_WIRE_VARINT && f.value > VERSION)
            return mr_fail(err, -ENOTSUP, "%s: needs a reader of version %llu", p->name,
                           (unsigned long long)f.value);
    return r ? mr_fail(err, r, "%s: bad version in the header", p->name) : 0;
}

static int parse_header(struct parser *p, struct mr_wire w, struct mr_error *err)
{
    struct mr_wire_field f;
    uint64_t n_shards = 0, endianness = 0;
    int r, v = 0;
    while (!v && (r = mr_wire_next(&w, &f)) > 0)
        if (f.number == 1 && f.type == MR_WIRE_VARINT)
            n_shards = f.value;
        else if (f.number == 2 && f.type == MR_WIRE_VARINT)
            endianness = f.value;
        else if (f.number == 3 && f.type == MR_WIRE_BYTES)
            v = parse_version(p, f.body, err);
    if (v)
        return v;
    if (r < 0)
        return mr_fail(err, r, "%s: bad header", p->name);
    if (endianness)
        return mr_fail(err, -ENOTSUP,
                       "%s: was written by a big-endian machine, which is not supported", p->name);
    if (!n_shards || n_shards > MR_BUNDLE_MAX_SHARDS)
        return mr_fail(err, -EBADMSG, "%s: %llu data files cannot be", p->name,
                       (unsigned long long)n_shards);
    p->b.n_shards = (uint32_t)n_shards;
    p->has_header = 1;
    return 0;
}

/* One Dim; a field that is absent is 0. */
static int parse_dim(struct mr_wire w, uint64_t *size)
{
    struct mr_wire_field f;
    int r;
    *size = 0;
    while ((r = mr_wire_next(&w, &f)) > 0)
        if (f.number == 1 && f.type == MR_WIRE_VARINT)
            *size = f.value;
    return r < 0 || *size > INT64_MAX ? -EBADMSG : 0;
}

static int parse_shape(struct mr_wire w, struct mr_tensor *t)
{
    struct mr_wire_field f;
    int r;
    t->n_dims = 0;
    while ((r = mr_wire_next(&w, &f)) > 0) {
        if (f.number == 3 && f.type == MR_WIRE_VARINT && f.value)
            return -EBADMSG; /* unknown rank */
        if (f.number != 2 || f.type != MR_WIRE_BYTES)
            continue;
        if (t->n_dims == MR_TENSOR_MAX_DIMS)
            return -ENOTSUP;
        if (parse_dim(f.body, &t->dims[t->n_dims++]))
            return -EBADMSG;
    }
    return r;
}

static int take_field(const struct mr_wire_field *f, struct entry *e, uint64_t *shard)
{
    struct mr_tensor *t = &e->t;
    if (f->number == 1 && f->type == MR_WIRE_VARINT)
        t->dtype = mr_tf_type_of(e->tf_type = f->value);
    else if (f->number == 2 && f->type == MR_WIRE_BYTES)
        return parse_shape(f->body, t);
    else if (f->number == 3 && f->type == MR_WIRE_VARINT)
        *shard = f->value;
    else if (f->number == 4 && f->type == MR_WIRE_VARINT)
        t->offset = f->value;
    else if (f->number == 5 && f->type == MR_WIRE_VARINT)
        t->bytes = f->value;
    else if (f->number == 6 && f->type == MR_WIRE_I32)
        t->crc = mr_crc32c_unmask((uint32_t)f->value);
    else if (f->number == 7 && f->type == MR_WIRE_BYTES)
        e->n_slices++;
    return 0;
}

/* Does the entry's size follow from its shape?  A tensor in slices gets the size that its shape
 * asks for. */
static int check_size(const struct parser *p, struct entry *e, const char *what,
                      struct mr_error *err)
{
    struct mr_tensor *t = &e->t;
    uint64_t bytes, n;
    int r = mr_tensor_elements(t->n_dims, t->dims, &n);
    if (!r && t->dtype == MR_DT_STRING) /* each has a length of at least one byte */
        return !e->n_slices && n <= t->bytes
                   ? 0
                   : mr_fail(err, -EBADMSG, "%s: '%s': %llu strings do not fit in %llu bytes",
                             p->name, what, (unsigned long long)n, (unsigned long long)t->bytes);
    if (!r)
        r = mr_tensor_size(t->dtype, t->n_dims, t->dims, &bytes);
    if (r == -ENOTSUP)
        return mr_fail(err, -ENOTSUP, "%s: '%s' has type %llu, which cannot be read", p->name, what,
                       (unsigned long long)e->tf_type);
    if (!r && e->n_slices)
        t->bytes = bytes;
    if (r || bytes != t->bytes)
        return mr_fail(err, -EBADMSG, "%s: '%s': its size does not follow from its shape", p->name,
                       what);
    return 0;
}

static int parse_entry(const struct parser *p, struct mr_wire w, const char *what, struct entry *e,
                       struct mr_error *err)
{
    struct mr_wire_field f;
    uint64_t shard = 0, end;
    int r, bad = 0;
    *e = (struct entry){.t = {.has_crc = 1}};
    while (!bad && (r = mr_wire_next(&w, &f)) > 0)
        bad = take_field(&f, e, &shard);
    if (bad == -ENOTSUP)
        return mr_fail(err, bad, "%s: '%s' has more than %d dimensions", p->name, what,
                       MR_TENSOR_MAX_DIMS);
    if (bad || r)
        return mr_fail(err, -EBADMSG, "%s: '%s': bad entry", p->name, what);
    if (shard >= p->b.n_shards)
        return mr_fail(err, -EBADMSG, "%s: '%s' is in data file %llu of %u", p->name, what,
                       (unsigned long long)shard, p->b.n_shards);
    if (__builtin_add_overflow(e->t.offset, e->t.bytes, &end) || end > INT64_MAX)
        return mr_fail(err, -EBADMSG, "%s: '%s': bad place", p->name, what);
    e->t.shard = (uint32_t)shard;
    return check_size(p, e, what, err);
}

/* One extent of a slice: none of the two fields means all of the dimension. */
static int parse_extent(struct mr_wire w, uint64_t dim, struct mr_bundle_part *part, unsigned d)
{
    struct mr_wire_field f;
    uint64_t end;
    int r, has_length = 0;
    part->start[d] = part->length[d] = 0;
    while ((r = mr_wire_next(&w, &f)) > 0)
        if (f.number == 1 && f.type == MR_WIRE_VARINT)
            part->start[d] = f.value;
        else if (f.number == 2 && f.type == MR_WIRE_VARINT) {
            part->length[d] = f.value;
            has_length = 1;
        }
    if (!has_length) {
        part->full |= 1u << d;
        part->length[d] = dim;
    }
    if (r || __builtin_add_overflow(part->start[d], part->length[d], &end) || end > dim)
        return -EBADMSG;
    return 0;
}

static int parse_slice(struct mr_wire w, const struct mr_tensor *t, struct mr_bundle_part *part)
{
    struct mr_wire_field f;
    unsigned d = 0;
    int r;
    while ((r = mr_wire_next(&w, &f)) > 0) {
        if (f.number != 1 || f.type != MR_WIRE_BYTES)
            continue;
        if (d == t->n_dims || parse_extent(f.body, t->dims[d], part, d))
            return -EBADMSG;
        d++;
    }
    return r || d != t->n_dims ? -EBADMSG : 0;
}

/* The slices of the tensor that was added last. */
static int add_parts(struct parser *p, struct mr_wire w, struct mr_error *err)
{
    size_t i = p->b.tensors.n - 1, before = p->b.n_parts;
    struct mr_wire_field f;
    while (mr_wire_next(&w, &f) > 0) {
        struct mr_bundle_part part = {.tensor = i};
        if (f.number != 7 || f.type != MR_WIRE_BYTES)
            continue;
        if (parse_slice(f.body, &p->b.tensors.tensors[i], &part))
            return mr_fail(err, -EBADMSG, "%s: '%s': bad slice", p->name,
                           p->b.tensors.tensors[i].name);
        if (p->b.n_parts - before == MAX_PARTS)
            return mr_fail(err, -ENOTSUP, "%s: '%s' has too many slices", p->name,
                           p->b.tensors.tensors[i].name);
        struct mr_bundle_part *grown =
            mr_grown(p->b.parts, p->b.n_parts, &p->cap_parts, sizeof *grown);
        if (!grown)
            return no_memory(p, err);
        p->b.parts = grown;
        p->b.parts[p->b.n_parts++] = part;
    }
    return 0;
}

static int add_loose(struct parser *p, const uint8_t *key, size_t len, struct mr_wire value,
                     struct mr_error *err)
{
    struct entry e;
    int r = parse_entry(p, value, "a slice", &e, err);
    if (r)
        return r;
    if (e.n_slices)
        return mr_fail(err, -EBADMSG, "%s: a slice in slices", p->name);
    struct loose_entry *grown = mr_grown(p->loose, p->n_loose, &p->cap_loose, sizeof *grown);
    if (!grown)
        return no_memory(p, err);
    p->loose = grown;
    struct loose_entry *l = &p->loose[p->n_loose++];
    mr_bytes_init(&l->key);
    mr_bytes_add(&l->key, key, len);
    l->entry = e.t;
    return l->key.error ? no_memory(p, err) : 0;
}

static int add_entry(void *ctx, const uint8_t *key, size_t key_len, const uint8_t *value,
                     size_t value_len, struct mr_error *err)
{
    struct parser *p = ctx;
    struct mr_wire w = mr_wire_over(value, value_len);
    char name[MR_TENSOR_MAX_NAME + 1];
    struct entry e;
    if (!p->has_header)
        return key_len ? mr_fail(err, -EBADMSG, "%s: no header", p->name) : parse_header(p, w, err);
    if (!key[0])
        return add_loose(p, key, key_len, w, err);
    if (key_len > MR_TENSOR_MAX_NAME || memchr(key, 0, key_len))
        return mr_fail(err, -EBADMSG, "%s: a tensor's name is too long or has a zero byte",
                       p->name);
    memcpy(name, key, key_len);
    name[key_len] = 0;
    int r = parse_entry(p, w, name, &e, err);
    if (r)
        return r;
    e.t.name = name;
    r = mr_tensor_table_add(&p->b.tensors, &e.t);
    if (r)
        return no_memory(p, err);
    return e.n_slices ? add_parts(p, w, err) : 0;
}

static int by_key(const void *a, const void *b)
{
    const struct mr_bytes *x = a, *y = &((const struct loose_entry *)b)->key;
    size_t n = x->len < y->len ? x->len : y->len;
    int c = memcmp(x->data, y->data, n);
    return c ? c : (x->len > y->len) - (x->len < y->len);
}

/* A part's data is described by an entry of its own. */
static int find_part(struct parser *p, struct mr_bundle_part *part, struct mr_bytes *key,
                     struct mr_error *err)
{
    const struct mr_tensor *t = &p->b.tensors.tensors[part->tensor];
    key->len = 0;
    mr_slice_key(t, part, key);
    if (key->error)
        return no_memory(p, err);
    const struct loose_entry *l =
        p->n_loose ? bsearch(key, p->loose, p->n_loose, sizeof *p->loose, by_key) : NULL;
    uint64_t bytes;
    if (!l || l->entry.dtype != t->dtype ||
        mr_tensor_size(t->dtype, t->n_dims, part->length, &bytes) || bytes != l->entry.bytes)
        return mr_fail(err, -EBADMSG, "%s: '%s': a slice is missing or does not fit", p->name,
                       t->name);
    part->shard = l->entry.shard;
    part->offset = l->entry.offset;
    part->bytes = bytes;
    part->crc = l->entry.crc;
    return 0;
}

/* Parts lie inside of their tensor and have as many bytes together: with that, and being apart,
 * they cover it. */
static int check_cover(struct parser *p, size_t first, size_t end, struct mr_error *err)
{
    const struct mr_bundle_part *q = p->b.parts;
    const struct mr_tensor *t = &p->b.tensors.tensors[q[first].tensor];
    uint64_t sum = 0;
    int bad = 0;
    for (size_t i = first; i < end; i++) {
        bad |= __builtin_add_overflow(sum, q[i].bytes, &sum);
        for (size_t j = first; j < i && !bad; j++) {
            int apart = !q[i].bytes || !q[j].bytes;
            for (unsigned d = 0; d < t->n_dims; d++)
                apart |= q[i].start[d] >= q[j].start[d] + q[j].length[d] ||
                         q[j].start[d] >= q[i].start[d] + q[i].length[d];
            bad |= !apart;
        }
    }
    return bad || sum != t->bytes
               ? mr_fail(err, -EBADMSG, "%s: '%s': its slices do not make it up", p->name, t->name)
               : 0;
}

static int join_parts(struct parser *p, struct mr_error *err)
{
    struct mr_bytes key;
    int r = 0;
    mr_bytes_init(&key);
    if (p->b.n_parts > p->n_loose) /* each slice has an entry of its own */
        r = mr_fail(err, -EBADMSG, "%s: slices are missing", p->name);
    for (size_t i = 0; !r && i < p->b.n_parts; i++)
        r = find_part(p, &p->b.parts[i], &key, err);
    for (size_t i = 0, end; !r && i < p->b.n_parts; i = end) {
        for (end = i + 1; end < p->b.n_parts && p->b.parts[end].tensor == p->b.parts[i].tensor;)
            end++;
        r = check_cover(p, i, end, err);
    }
    mr_bytes_fini(&key);
    return r;
}

int mr_bundle_parse(const char *name, const uint8_t *index, size_t len, struct mr_bundle *out,
                    struct mr_error *err)
{
    struct parser p = {.name = name};
    mr_bundle_init(&p.b);
    int r = mr_sstable_read(name, index, len, add_entry, &p, err);
    if (!r && !p.has_header)
        r = mr_fail(err, -EBADMSG, "%s: no header", name);
    if (!r)
        r = join_parts(&p, err);
    for (size_t i = 0; i < p.n_loose; i++)
        mr_bytes_fini(&p.loose[i].key);
    free(p.loose);
    if (r)
        mr_bundle_fini(&p.b);
    else
        *out = p.b;
    return r;
}

size_t mr_bundle_parts_of(const struct mr_bundle *b, size_t i, const struct mr_bundle_part **first)
{
    size_t low = 0, high = b->n_parts, n = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (b->parts[middle].tensor < i)
            low = middle + 1;
        else
            high = middle;
    }
    while (low + n < b->n_parts && b->parts[low + n].tensor == i)
        n++;
    *first = n ? &b->parts[low] : NULL;
    return n;
}

int mr_bundle_layout(struct mr_tensor_table *t, uint64_t align, uint64_t *data_bytes)
{
    uint64_t at = 0;
    for (size_t i = 0; i < t->n; i++) {
        uint64_t end, gap = (align - at % align) % align;
        if (__builtin_add_overflow(at, gap, &at) ||
            __builtin_add_overflow(at, t->tensors[i].bytes, &end) || end > INT64_MAX)
            return -EOVERFLOW;
        t->tensors[i].offset = at;
        t->tensors[i].shard = 0;
        at = end;
    }
    *data_bytes = at;
    return 0;
}

int mr_bundle_strings_crc(const uint8_t *data, size_t bytes, uint64_t n, uint32_t *crc)
{
    struct mr_wire w = mr_wire_over(data, bytes);
    uint64_t sum = 0, len;
    uint32_t c = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (mr_wire_varint(&w, &len) || __builtin_add_overflow(sum, len, &sum))
            return -EBADMSG;
        uint64_t stored = htole64(len);
        c = mr_crc32c(c, &stored, len > UINT32_MAX ? 8 : 4);
    }
    if (mr_wire_left(&w) < 4 || mr_wire_left(&w) - 4 != sum ||
        mr_crc32c_unmask(mr_get_u32(w.at)) != c)
        return -EBADMSG;
    *crc = mr_crc32c(c, w.at, mr_wire_left(&w));
    return 0;
}
