/* ckpt_slice.c - see ckpt_slice.h.
 *
 * A box is a number of rows: runs of bytes that lie side by side in the file and in memory.  Rows
 * are visited in the order of the file.  Rows that lie close together are read at once, with what
 * is between them, and a cursor picks them out of the bytes that go by:
 *
 *   file   |....[row 0]....[row 1]....[row 2]..................................[row 3]....|
 *   reads       |------------- one -------------|                              |-- two --|
 *
 * No lock: one thread has a struct mr_ckpt_file. */
#include "ckpt_slice.h"

#include "ckpt_open.h"
#include "crc32c.h"
#include "errtext.h"

#include <errno.h>
#include <string.h>

/* Reading this much for nothing costs less than another read. */
#define GAP_BYTES (64u << 10)

/* The rows of a box; where the present one begins. */
struct rows {
    const struct mr_ckpt_box *box;
    unsigned n_axes;    /* the outer ones, that are counted in `at` */
    uint64_t row_bytes; /* of each row */
    uint64_t n_left;    /* rows, the present one included */
    uint64_t at[MR_TENSOR_MAX_DIMS];
    uint64_t from_step[MR_TENSOR_MAX_DIMS], to_step[MR_TENSOR_MAX_DIMS]; /* bytes */
    uint64_t from, to;                                                   /* bytes */
};

/* Inner dimensions that are whole on both sides make one row together with the next one. */
static void begin_rows(struct rows *r, const struct mr_ckpt_box *b)
{
    uint64_t from_step = b->each, to_step = b->each;
    int whole = 1;
    *r = (struct rows){.box = b, .row_bytes = b->each, .n_left = 1};
    for (unsigned d = b->n_dims; d-- > 0;) {
        r->from += b->from[d] * from_step;
        r->to += b->to[d] * to_step;
        r->from_step[d] = from_step;
        r->to_step[d] = to_step;
        if (whole)
            r->row_bytes *= b->extent[d];
        else
            r->n_left *= b->extent[d];
        r->n_axes = whole ? d : r->n_axes;
        whole = whole && b->extent[d] == b->from_dims[d] && b->extent[d] == b->to_dims[d];
        from_step *= b->from_dims[d];
        to_step *= b->to_dims[d];
    }
    if (!r->row_bytes)
        r->n_left = 0;
}

static void next_row(struct rows *r)
{
    r->n_left--;
    for (unsigned d = r->n_axes; d-- > 0;) {
        r->from += r->from_step[d];
        r->to += r->to_step[d];
        if (++r->at[d] < r->box->extent[d])
            return;
        r->from -= r->at[d] * r->from_step[d];
        r->to -= r->at[d] * r->to_step[d];
        r->at[d] = 0;
    }
}

/* Bytes go by, from `pos` of what is stored on. */
struct cursor {
    struct rows rows;
    uint64_t pos;
    uint32_t crc;
    int wants_crc;
    uint8_t *out;
};

static int take(void *ctx, const uint8_t *bytes, size_t n)
{
    struct cursor *c = ctx;
    struct rows *r = &c->rows;
    uint64_t end = c->pos + n;
    if (c->wants_crc)
        c->crc = mr_crc32c(c->crc, bytes, n);
    while (r->n_left && r->from < end) {
        uint64_t begin = r->from > c->pos ? r->from : c->pos, row_end = r->from + r->row_bytes;
        uint64_t stop = row_end < end ? row_end : end;
        memcpy(c->out + r->to + (begin - r->from), bytes + (begin - c->pos), stop - begin);
        if (row_end > end)
            break;
        next_row(r);
    }
    c->pos = end;
    return 0;
}

static int is_all(const struct mr_ckpt_box *b)
{
    for (unsigned d = 0; d < b->n_dims; d++)
        if (b->extent[d] != b->from_dims[d])
            return 0;
    return 1;
}

int mr_ckpt_read_box(struct mr_ckpt_file *c, uint32_t shard, uint64_t offset,
                     const struct mr_ckpt_box *box, const uint32_t *crc, uint8_t *out)
{
    struct cursor k = {.wants_crc = crc && is_all(box), .out = out};
    struct rows ahead;
    int r = 0;
    begin_rows(&k.rows, box);
    ahead = k.rows;
    while (!r && ahead.n_left) {
        uint64_t begin = ahead.from, end = begin;
        for (; ahead.n_left && ahead.from - end <= GAP_BYTES; next_row(&ahead))
            end = ahead.from + ahead.row_bytes;
        k.pos = begin;
        r = mr_in_each(&c->data[shard], &c->buf, offset + begin, end - begin, take, &k);
    }
    return !r && k.wants_crc && k.crc != *crc ? -EBADMSG : r;
}

/* ---- tensors ---- */

/* The part of the slice that is in part p, NULL: of the whole tensor.  0: nothing. */
static int cut_out(const struct mr_tensor *t, const struct mr_bundle_part *p, const uint64_t *start,
                   const uint64_t *extent, struct mr_ckpt_box *b)
{
    for (unsigned d = 0; d < t->n_dims; d++) {
        uint64_t first = p ? p->start[d] : 0, length = p ? p->length[d] : t->dims[d];
        uint64_t begin = start[d] > first ? start[d] : first;
        uint64_t end = start[d] + extent[d], stored_end = first + length;
        end = end < stored_end ? end : stored_end;
        if (begin >= end)
            return 0;
        b->extent[d] = end - begin;
        b->from_dims[d] = length;
        b->from[d] = begin - first;
        b->to_dims[d] = extent[d];
        b->to[d] = begin - start[d];
    }
    b->n_dims = t->n_dims;
    return 1;
}

/* Elements of less than a byte: the last dimension is counted in bytes. */
static int count_in_bytes(struct mr_ckpt_box *b, unsigned bits)
{
    unsigned d = b->n_dims - 1;
    uint64_t *const counts[] = {&b->extent[d], &b->from_dims[d], &b->from[d], &b->to_dims[d],
                                &b->to[d]};
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (*counts[i] * bits % 8)
            return -ENOTSUP;
        *counts[i] = *counts[i] * bits / 8;
    }
    b->each = 1;
    return 0;
}

static int shares_bytes(const struct mr_ckpt_file *c, const struct mr_tensor *t,
                        struct mr_error *err)
{
    return mr_fail(err, -ENOTSUP, "%s: '%.200s': the slice does not begin and end at bytes",
                   c->view.path, t->name);
}

static int read_one(struct mr_ckpt_file *c, const struct mr_tensor *t,
                    const struct mr_bundle_part *p, const uint64_t *start, const uint64_t *extent,
                    uint8_t *out, struct mr_error *err)
{
    unsigned bits = mr_dtype_bits(t->dtype);
    struct mr_ckpt_box b = {.each = bits / 8};
    const uint32_t *crc = p ? &p->crc : t->has_crc ? &t->crc : NULL;
    if (!cut_out(t, p, start, extent, &b))
        return 0;
    if (bits % 8 && count_in_bytes(&b, bits))
        return shares_bytes(c, t, err);
    int r = mr_ckpt_read_box(c, p ? p->shard : t->shard, p ? p->offset : t->offset, &b, crc, out);
    return r ? mr_ckpt_file_wrong(c, t, r, err) : 0;
}

static int read_parts(struct mr_ckpt_file *c, const struct mr_tensor *t,
                      const struct mr_bundle_part *parts, size_t n, const uint64_t *start,
                      const uint64_t *extent, uint8_t *out, struct mr_error *err)
{
    int r = 0;
    for (size_t i = 0; !r && i < n; i++)
        r = read_one(c, t, &parts[i], start, extent, out, err);
    return r;
}

int mr_ckpt_read_parts(struct mr_ckpt_file *c, size_t i, uint8_t *out, struct mr_error *err)
{
    static const uint64_t begin[MR_TENSOR_MAX_DIMS];
    const struct mr_tensor *t = &c->view.bundle.tensors.tensors[i];
    const struct mr_bundle_part *parts;
    size_t n = mr_bundle_parts_of(&c->view.bundle, i, &parts);
    return read_parts(c, t, parts, n, begin, t->dims, out, err);
}

static int is_whole(const struct mr_tensor *t, const uint64_t *extent)
{
    for (unsigned d = 0; d < t->n_dims; d++)
        if (extent[d] != t->dims[d])
            return 0;
    return 1;
}

int mr_ckpt_slice_bytes(const struct mr_ckpt_file *c, size_t i, const uint64_t *start,
                        const uint64_t *extent, uint64_t *bytes, struct mr_error *err)
{
    const struct mr_tensor *t = &c->view.bundle.tensors.tensors[i];
    if (t->dtype == MR_DT_STRING)
        return mr_fail(err, -ENOTSUP, "%s: '%.200s': strings have no slices", c->view.path,
                       t->name);
    for (unsigned d = 0; d < t->n_dims; d++)
        if (start[d] > t->dims[d] || extent[d] > t->dims[d] - start[d])
            return mr_fail(err, -EINVAL,
                           "%s: '%.200s': %llu elements from %llu on are not in dimension %u, "
                           "which has %llu",
                           c->view.path, t->name, (unsigned long long)extent[d],
                           (unsigned long long)start[d], d, (unsigned long long)t->dims[d]);
    return mr_tensor_size(t->dtype, t->n_dims, extent, bytes) ? shares_bytes(c, t, err) : 0;
}

int mr_ckpt_read_slice(struct mr_ckpt_file *c, size_t i, const uint64_t *start,
                       const uint64_t *extent, uint8_t *out, struct mr_error *err)
{
    const struct mr_tensor *t = &c->view.bundle.tensors.tensors[i];
    const struct mr_bundle_part *parts;
    size_t n = mr_bundle_parts_of(&c->view.bundle, i, &parts);
    if (is_whole(t, extent))
        return mr_ckpt_file_read(c, i, out, err);
    return n ? read_parts(c, t, parts, n, start, extent, out, err)
             : read_one(c, t, NULL, start, extent, out, err);
}
