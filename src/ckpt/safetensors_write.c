/* safetensors_write.c - the header of a .safetensors file from a table of tensors.
 *
 * The text's length does not depend on the crcs, which always have eight digits, so the places of
 * all tensors are known before any data has been seen.  Spaces let the data begin at a page. */
#include "safetensors.h"

#include "errtext.h"
#include "json.h"
#include "safetensors_types.h"
#include "tf_types.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int stored_type(const struct mr_tensor *t)
{
    return mr_st_rank(t->dtype) < 0 ? MR_DT_U8 : t->dtype;
}

/* Largest type first, then by name. */
static int by_place(const void *a, const void *b)
{
    const struct mr_tensor *x = a, *y = b;
    int d = mr_st_rank(stored_type(y)) - mr_st_rank(stored_type(x));
    return d ? d : strcmp(x->name, y->name);
}

static void put_escaped(struct mr_bytes *b, const char *s)
{
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            mr_bytes_printf(b, "\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            mr_bytes_printf(b, "\\u%04x", (unsigned)*s);
        else
            mr_bytes_add(b, s, 1);
}

static void put_dims(struct mr_bytes *b, unsigned n_dims, const uint64_t *dims)
{
    for (unsigned d = 0; d < n_dims; d++)
        mr_bytes_printf(b, "%s%llu", d ? "," : "", (unsigned long long)dims[d]);
}

static void put_metadata(struct mr_bytes *b, const struct mr_tensor_table *t)
{
    mr_bytes_add_text(b, "{\"__metadata__\":{\"format\":\"pt\",\"" MR_ST_VERSION
                         "\":\"1\",\"" MR_ST_HEADER_CRC "\":\"00000000\"");
    for (size_t i = 0; i < t->n; i++) {
        const struct mr_tensor *x = &t->tensors[i];
        mr_bytes_add_text(b, ",\"" MR_ST_CRC);
        put_escaped(b, x->name);
        mr_bytes_printf(b, "\":\"%08x\"", x->crc);
        if (mr_st_rank(x->dtype) >= 0)
            continue;
        mr_bytes_add_text(b, ",\"" MR_ST_TYPE);
        put_escaped(b, x->name);
        mr_bytes_printf(b, "\":\"%u:", mr_tf_type(x->dtype));
        put_dims(b, x->n_dims, x->dims);
        mr_bytes_add_text(b, "\"");
    }
    mr_bytes_add_text(b, "}");
}

static void put_tensor(struct mr_bytes *b, const struct mr_tensor *t, uint64_t at)
{
    int known = mr_st_rank(t->dtype) >= 0;
    mr_bytes_add_text(b, ",\"");
    put_escaped(b, t->name);
    mr_bytes_printf(b, "\":{\"dtype\":\"%s\",\"shape\":[", mr_st_type_name(stored_type(t)));
    put_dims(b, known ? t->n_dims : 1, known ? t->dims : &t->bytes);
    mr_bytes_printf(b, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at,
                    (unsigned long long)(at + t->bytes));
}

/* All of the header but its own crc; the table is sorted. */
static int build(const struct mr_tensor_table *t, struct mr_bytes *b, uint64_t *data_bytes,
                 struct mr_error *err)
{
    uint64_t at = 0;
    size_t begin = b->len;
    mr_bytes_add_u64(b, 0);
    put_metadata(b, t);
    for (size_t i = 0; i < t->n; i++) {
        const struct mr_tensor *x = &t->tensors[i];
        if (!mr_json_is_utf8(x->name) || !strcmp(x->name, "__metadata__"))
            return mr_fail(err, -EINVAL, "'%s': safetensors cannot have a tensor of this name",
                           x->name);
        put_tensor(b, x, at);
        if (__builtin_add_overflow(at, x->bytes, &at) || at > INT64_MAX / 2)
            return mr_fail(err, -EOVERFLOW, "'%s': too large", x->name);
    }
    mr_bytes_add_text(b, "}");
    size_t rest = (b->len - begin) % MR_SAFETENSORS_ALIGN;
    for (size_t i = rest; rest && i < MR_SAFETENSORS_ALIGN; i++)
        mr_bytes_add_u8(b, ' ');
    if (b->error)
        return mr_fail(err, b->error, "no memory for a header");
    size_t len = b->len - begin;
    if (len - 8 > MR_SAFETENSORS_MAX_HEADER)
        return mr_fail(err, -EFBIG, "a safetensors header of %zu bytes is not allowed", len);
    for (int i = 0; i < 8; i++)
        b->data[begin + (size_t)i] = (uint8_t)((uint64_t)(len - 8) >> 8 * i);
    *data_bytes = at;
    return 0;
}

int mr_safetensors_layout(struct mr_tensor_table *t, uint64_t *header_bytes, uint64_t *file_bytes,
                          struct mr_error *err)
{
    struct mr_bytes b;
    uint64_t data_bytes;
    mr_bytes_init(&b);
    mr_tensor_table_sort(t);
    for (size_t i = 1; i < t->n; i++)
        if (!strcmp(t->tensors[i].name, t->tensors[i - 1].name))
            return mr_fail(err, -EINVAL, "two tensors are named '%s'", t->tensors[i].name);
    mr_tensor_table_sort_by(t, by_place);
    int r = build(t, &b, &data_bytes, err);
    if (!r) {
        uint64_t at = b.len;
        for (size_t i = 0; i < t->n; i++) {
            t->tensors[i].offset = at;
            t->tensors[i].shard = 0;
            at += t->tensors[i].bytes;
        }
        *header_bytes = b.len;
        *file_bytes = at;
    }
    mr_bytes_fini(&b);
    return r;
}

int mr_safetensors_write_header(const struct mr_tensor_table *t, struct mr_bytes *out,
                                struct mr_error *err)
{
    size_t begin = out->len, digits;
    uint64_t data_bytes;
    uint32_t crc;
    char text[9];
    int r = build(t, out, &data_bytes, err);
    if (r)
        return r;
    if (mr_st_header_crc(out->data + begin, out->len - begin, &digits, &crc))
        return mr_fail(err, -EINVAL, "the header has no place for its crc");
    snprintf(text, sizeof text, "%08x", crc);
    memcpy(out->data + begin + digits, text, 8);
    return 0;
}
