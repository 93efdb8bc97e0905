/* sstable.c - read and write sorted tables.
 *
 *   file:   data block*  metaindex block  index block  footer
 *   block:  entry*  fixed32 restart[n]  fixed32 n   |  type byte  fixed32 masked crc32c
 *   entry:  varint shared  varint unshared  varint value_len  key[shared..]  value
 *   footer: metaindex handle, index handle, zeros up to 40 bytes, magic
 *   handle: varint64 offset, varint64 size (without the 5 bytes of type and crc)
 *
 * An entry's key begins with `shared` bytes of the key before it; at a restart nothing is shared.
 * The crc is over the block as stored and its type byte.  The index block has one entry a data
 * block: a key not smaller than the block's last and smaller than the next one's first.
 *
 * Reading trusts nothing: data blocks must come one behind the other, which bounds the work by the
 * file's size, and keys must increase over the whole table.  A compressed block may claim at most
 * what snappy can possibly make of its bytes. */
#include "sstable.h"

#include "crc32c.h"
#include "errtext.h"
#include "wire.h"

#include <errno.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <string.h>

#define FOOTER           48
#define MAGIC            0xdb4775248b80fb57u
#define TRAILER          5
#define BLOCK_SIZE       262144
#define RESTART_INTERVAL 16
#define MAX_EXPANSION    32 /* snappy: 64 bytes from a copy of 3, never more than 22 */

struct handle {
    uint64_t offset, size;
};

struct reader {
    const char *name;
    const uint8_t *file;
    size_t len;
    mr_sstable_entry *entry;
    void *ctx;
    struct mr_bytes last; /* the last key of the table so far */
    int any;              /* an entry has been read */
    uint64_t data_end;    /* end of the last data block */
    const uint8_t *limit; /* the index's key of the block being read */
    size_t limit_len;
    struct mr_error *err;
};

static int compare(const void *a, size_t a_len, const void *b, size_t b_len)
{
    size_t n = a_len < b_len ? a_len : b_len;
    int c = n ? memcmp(a, b, n) : 0;
    return c ? c : (a_len > b_len) - (a_len < b_len);
}

static int bad(const struct reader *r, uint64_t offset, const char *what)
{
    return mr_fail(r->err, -EBADMSG, "%s: block at %llu: %s", r->name, (unsigned long long)offset,
                   what);
}

static int decompress(struct reader *r, const struct handle *h, struct mr_bytes *plain)
{
    const char *packed = (const char *)r->file + h->offset;
    size_t n;
    if (snappy_uncompressed_length(packed, h->size, &n) != SNAPPY_OK || n / MAX_EXPANSION > h->size)
        return bad(r, h->offset, "bad snappy length");
    mr_bytes_add(plain, NULL, n + 1);
    if (plain->error)
        return mr_fail(r->err, -ENOMEM, "%s: no memory", r->name);
    if (snappy_uncompress(packed, h->size, (char *)plain->data, &n) != SNAPPY_OK)
        return bad(r, h->offset, "bad snappy data");
    plain->len = n;
    return 0;
}

/* The contents of a block whose crc is right; `plain` is for one that was compressed. */
static int fetch(struct reader *r, const struct handle *h, struct mr_bytes *plain,
                 struct mr_wire *out)
{
    size_t space = r->len - FOOTER;
    if (h->size > space || space - h->size < TRAILER || h->offset > space - h->size - TRAILER)
        return bad(r, h->offset, "lies outside of the file");
    const uint8_t *p = r->file + h->offset;
    uint32_t crc = mr_crc32c_unmask(mr_get_u32(p + h->size + 1));
    if (crc != mr_crc32c(0, p, h->size + 1))
        return bad(r, h->offset, "bad crc");
    if (p[h->size] == 1) {
        int e = decompress(r, h, plain);
        *out = mr_wire_over(plain->data, plain->len);
        return e;
    }
    if (p[h->size])
        return mr_fail(r->err, -ENOTSUP, "%s: block at %llu: compression %u is not known", r->name,
                       (unsigned long long)h->offset, p[h->size]);
    *out = mr_wire_over(p, h->size);
    return 0;
}

typedef int entry_in_block(struct reader *r, uint64_t block, const struct mr_bytes *key,
                           const uint8_t *value, size_t value_len);

/* One entry: its key replaces *key. */
static int parse_entry(struct reader *r, uint64_t block, struct mr_wire *w, int restart,
                       struct mr_bytes *key, struct mr_wire *value)
{
    uint64_t shared, unshared, value_len;
    if (mr_wire_varint(w, &shared) || mr_wire_varint(w, &unshared) || mr_wire_varint(w, &value_len))
        return bad(r, block, "an entry is cut off");
    size_t left = mr_wire_left(w);
    if (unshared > left || value_len > left - unshared)
        return bad(r, block, "an entry is cut off");
    if (shared > key->len || (restart && shared))
        return bad(r, block, "a key shares more than there is");
    if (shared + unshared > MR_SSTABLE_MAX_KEY)
        return bad(r, block, "a key is too long");
    key->len = (size_t)shared;
    mr_bytes_add(key, w->at, (size_t)unshared);
    if (key->error)
        return mr_fail(r->err, -ENOMEM, "%s: no memory", r->name);
    w->at += unshared;
    *value = mr_wire_over(w->at, (size_t)value_len);
    w->at += value_len;
    return 0;
}

/* Call `each` for the entries of a block's contents. */
static int walk_entries(struct reader *r, uint64_t block, const uint8_t *data, size_t len,
                        struct mr_bytes *key, entry_in_block *each)
{
    if (len < 4)
        return bad(r, block, "too short");
    uint32_t n = mr_get_u32(data + len - 4), next = 0;
    if (!n || n > (len - 4) / 4)
        return bad(r, block, "more restarts than fit");
    size_t end = len - 4 - 4 * (size_t)n;
    const uint8_t *restarts = data + end;
    struct mr_wire w = mr_wire_over(data, end), value;
    int e = 0;
    while (!e && w.at < w.end) {
        int restart = next < n && mr_get_u32(restarts + 4 * (size_t)next) == w.at - data;
        next += (uint32_t)restart;
        e = parse_entry(r, block, &w, restart, key, &value);
        if (!e)
            e = each(r, block, key, value.at, mr_wire_left(&value));
    }
    int empty = n == 1 && !end && !mr_get_u32(restarts);
    if (!e && next != n && !empty)
        return bad(r, block, "a restart is not at an entry");
    return e;
}

static int walk(struct reader *r, const struct handle *h, entry_in_block *each)
{
    struct mr_bytes plain, key;
    struct mr_wire block;
    mr_bytes_init(&plain);
    mr_bytes_init(&key);
    int e = fetch(r, h, &plain, &block);
    if (!e)
        e = walk_entries(r, h->offset, block.at, mr_wire_left(&block), &key, each);
    mr_bytes_fini(&plain);
    mr_bytes_fini(&key);
    return e;
}

static int data_entry(struct reader *r, uint64_t block, const struct mr_bytes *key,
                      const uint8_t *value, size_t value_len)
{
    if (r->any && compare(r->last.data, r->last.len, key->data, key->len) >= 0)
        return bad(r, block, "keys are not in order");
    if (compare(key->data, key->len, r->limit, r->limit_len) > 0)
        return bad(r, block, "a key is larger than the index says");
    r->any = 1;
    r->last.len = 0;
    mr_bytes_add(&r->last, key->data, key->len);
    if (r->last.error)
        return mr_fail(r->err, -ENOMEM, "%s: no memory", r->name);
    return r->entry(r->ctx, key->data, key->len, value, value_len, r->err);
}

/* A number in as few bytes as it needs.  The footer is under no crc: a longer way to write the same
 * number would be a change that nobody sees. */
static int short_varint(struct mr_wire *w, uint64_t *out)
{
    const uint8_t *begin = w->at;
    int r = mr_wire_varint(w, out);
    return r || (w->at - begin > 1 && !w->at[-1]) ? -EBADMSG : 0;
}

static int parse_handle(struct mr_wire *w, struct handle *h)
{
    return short_varint(w, &h->offset) || short_varint(w, &h->size) ? -EBADMSG : 0;
}

static int index_entry(struct reader *r, uint64_t block, const struct mr_bytes *key,
                       const uint8_t *value, size_t value_len)
{
    struct mr_wire w = mr_wire_over(value, value_len);
    struct handle h;
    if (parse_handle(&w, &h) || w.at != w.end)
        return bad(r, block, "a bad handle in the index");
    if (h.offset < r->data_end)
        return bad(r, h.offset, "blocks overlap");
    r->limit = key->data;
    r->limit_len = key->len;
    int e = walk(r, &h, data_entry);
    r->data_end = h.offset + h.size + TRAILER; /* fetch has checked that it is in the file */
    return e;
}

/* The metaindex of these tables is empty; other entries (filters) are allowed and not used. */
static int metaindex_entry(struct reader *r, uint64_t block, const struct mr_bytes *key,
                           const uint8_t *value, size_t value_len)
{
    return 0;
}

static int read_footer(struct reader *r, struct handle *metaindex, struct handle *index)
{
    if (r->len < FOOTER)
        return mr_fail(r->err, -ENODATA, "%s: too short for an index", r->name);
    const uint8_t *p = r->file + r->len - FOOTER;
    if (mr_get_u64(p + 40) != MAGIC)
        return mr_fail(r->err, -EBADMSG, "%s: not an index: the magic number is missing", r->name);
    struct mr_wire w = mr_wire_over(p, 40);
    if (parse_handle(&w, metaindex) || parse_handle(&w, index))
        return mr_fail(r->err, -EBADMSG, "%s: bad footer", r->name);
    while (w.at < w.end)
        if (*w.at++)
            return mr_fail(r->err, -EBADMSG, "%s: bad footer", r->name);
    return 0;
}

int mr_sstable_read(const char *name, const uint8_t *file, size_t len, mr_sstable_entry *entry,
                    void *ctx, struct mr_error *err)
{
    struct reader r = {name, file, len, entry, ctx, .err = err};
    struct handle metaindex, index;
    int e = read_footer(&r, &metaindex, &index);
    if (!e)
        e = walk(&r, &metaindex, metaindex_entry);
    if (!e)
        e = walk(&r, &index, index_entry);
    mr_bytes_fini(&r.last);
    return e;
}

static void block_init(struct mr_sstable_block *b, unsigned interval)
{
    memset(b, 0, sizeof *b);
    b->interval = interval;
    mr_bytes_add_u32(&b->restarts, 0);
}

static void block_fini(struct mr_sstable_block *b)
{
    mr_bytes_fini(&b->bytes);
    mr_bytes_fini(&b->restarts);
    mr_bytes_fini(&b->last_key);
}

static size_t shared_prefix(const struct mr_bytes *last, const uint8_t *key, size_t len)
{
    size_t n = 0, max = last->len < len ? last->len : len;
    while (n < max && last->data[n] == key[n])
        n++;
    return n;
}

static void block_add(struct mr_sstable_block *b, const uint8_t *key, size_t key_len,
                      const void *value, size_t value_len)
{
    size_t shared = 0;
    if (b->since_restart < b->interval)
        shared = shared_prefix(&b->last_key, key, key_len);
    else {
        mr_bytes_add_u32(&b->restarts, (uint32_t)b->bytes.len);
        b->since_restart = 0;
    }
    mr_wire_put_varint(&b->bytes, shared);
    mr_wire_put_varint(&b->bytes, key_len - shared);
    mr_wire_put_varint(&b->bytes, value_len);
    if (key_len) /* an empty key may be NULL */
        mr_bytes_add(&b->bytes, key + shared, key_len - shared);
    mr_bytes_add(&b->bytes, value, value_len);
    b->last_key.len = 0;
    mr_bytes_add(&b->last_key, key, key_len);
    b->since_restart++;
}

/* Append the block to the table and make it empty.  A failure to grow stays in the block's bytes,
 * which the table then inherits. */
static struct handle write_block(struct mr_sstable_writer *w, struct mr_sstable_block *b)
{
    struct mr_bytes *out = w->out;
    struct handle h = {out->len - w->base, 0};
    size_t begin = out->len;
    mr_bytes_add(&b->bytes, b->restarts.data, b->restarts.len);
    mr_bytes_add_u32(&b->bytes, (uint32_t)(b->restarts.len / 4));
    if (b->bytes.error || b->restarts.error || b->last_key.error)
        out->error = -ENOMEM;
    mr_bytes_add(out, b->bytes.data, b->bytes.len);
    h.size = out->len - begin;
    mr_bytes_add_u8(out, 0);
    if (!out->error)
        mr_bytes_add_u32(out, mr_crc32c_mask(mr_crc32c(0, out->data + begin, out->len - begin)));
    b->bytes.len = b->restarts.len = b->last_key.len = 0;
    b->since_restart = 0;
    mr_bytes_add_u32(&b->restarts, 0);
    return h;
}

/* The finished data block gets its entry in the index. */
static void add_pending(struct mr_sstable_writer *w)
{
    struct mr_bytes value;
    mr_bytes_init(&value);
    mr_wire_put_varint(&value, w->pending_offset);
    mr_wire_put_varint(&value, w->pending_size);
    if (value.error || w->pending.error)
        w->out->error = -ENOMEM;
    else
        block_add(&w->index, w->pending.data, w->pending.len, value.data, value.len);
    mr_bytes_fini(&value);
    w->has_pending = 0;
}

static void flush(struct mr_sstable_writer *w)
{
    if (!w->data.bytes.len && !w->data.bytes.error) /* a failure is for write_block to pass on */
        return;
    w->pending.len = 0;
    mr_bytes_add(&w->pending, w->data.last_key.data, w->data.last_key.len);
    struct handle h = write_block(w, &w->data);
    w->pending_offset = h.offset;
    w->pending_size = h.size;
    w->has_pending = 1;
}

/* Shorten the pending key to something still smaller than `key`. */
static void shorten_below(struct mr_bytes *pending, const uint8_t *key, size_t len)
{
    size_t n = shared_prefix(pending, key, len);
    if (n == pending->len || n == len)
        return;
    if (pending->data[n] < 0xff && pending->data[n] + 1 < key[n]) {
        pending->data[n]++;
        pending->len = n + 1;
    }
}

/* The same for the last block: a short key that is not smaller. */
static void shorten_end(struct mr_bytes *pending)
{
    for (size_t i = 0; i < pending->len; i++)
        if (pending->data[i] != 0xff) {
            pending->data[i]++;
            pending->len = i + 1;
            return;
        }
}

void mr_sstable_init(struct mr_sstable_writer *w, struct mr_bytes *out)
{
    memset(w, 0, sizeof *w);
    w->out = out;
    w->base = out->len;
    block_init(&w->data, RESTART_INTERVAL);
    block_init(&w->index, 1);
}

int mr_sstable_add(struct mr_sstable_writer *w, const void *key, size_t key_len, const void *value,
                   size_t value_len)
{
    const struct mr_bytes *last = w->data.bytes.len ? &w->data.last_key : &w->pending;
    if (w->n_entries && compare(last->data, last->len, key, key_len) >= 0)
        return -EINVAL;
    if (w->n_entries && key_len + value_len >= 2 * BLOCK_SIZE)
        flush(w);
    if (w->has_pending) {
        shorten_below(&w->pending, key, key_len);
        add_pending(w);
    }
    block_add(&w->data, key, key_len, value, value_len);
    w->n_entries++;
    if (w->data.bytes.len + w->data.restarts.len + 4 >= BLOCK_SIZE)
        flush(w);
    return 0;
}

static void put_handle(struct mr_bytes *b, const struct handle *h)
{
    mr_wire_put_varint(b, h->offset);
    mr_wire_put_varint(b, h->size);
}

int mr_sstable_finish(struct mr_sstable_writer *w)
{
    struct mr_sstable_block none;
    flush(w);
    if (w->data.bytes.error) /* its first entry found no memory: there was nothing to flush */
        w->out->error = -ENOMEM;
    block_init(&none, RESTART_INTERVAL);
    struct handle metaindex = write_block(w, &none);
    block_fini(&none);
    if (w->has_pending) {
        shorten_end(&w->pending);
        add_pending(w);
    }
    struct handle index = write_block(w, &w->index);
    size_t footer = w->out->len;
    put_handle(w->out, &metaindex);
    put_handle(w->out, &index);
    mr_bytes_add(w->out, NULL, footer + 40 - w->out->len);
    mr_bytes_add_u64(w->out, MAGIC);
    return w->out->error;
}

void mr_sstable_fini(struct mr_sstable_writer *w)
{
    block_fini(&w->data);
    block_fini(&w->index);
    mr_bytes_fini(&w->pending);
}
