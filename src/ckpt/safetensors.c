/* safetensors.c - read the header of a .safetensors file, trusting nothing.
 *
 *   u64 N | N bytes of JSON, spaces at the end allowed | data
 *   {"__metadata__": {"key": "text", ...},
 *    "NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...}
 *
 * Offsets count from the end of the header.  In the order of their offsets the tensors begin at 0,
 * have neither holes nor overlaps, and end with the file; each has exactly the bytes that its shape
 * and type ask for.  Anything else is refused.
 *
 * A file of ours carries a crc for every tensor and one of the header, so no byte of it can change
 * unseen.  As soon as one of our keys is there, all of them have to be. */
#include "safetensors.h"

#include "errtext.h"
#include "json.h"
#include "safetensors_types.h"
#include "tf_types.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    const char *name;
    struct mr_safetensors s;
    const struct mr_json *metadata; /* NULL: none */
    struct mr_error *err;
};

static int bad(const struct parser *p, const char *tensor, const char *what)
{
    return mr_fail(p->err, -EBADMSG, "%s: '%.200s': %s", p->name, tensor, what);
}

int mr_safetensors_header_bytes(const char *name, const uint8_t first[8], uint64_t file_bytes,
                                uint64_t *out, struct mr_error *err)
{
    if (file_bytes < 8)
        return mr_fail(err, -ENODATA, "%s: too short for a safetensors file", name);
    uint64_t n = mr_get_u64(first);
    if (n > MR_SAFETENSORS_MAX_HEADER)
        return mr_fail(err, -EBADMSG, "%s: a header of %llu bytes is not allowed", name,
                       (unsigned long long)n);
    if (n > file_bytes - 8)
        return mr_fail(err, -ENODATA, "%s: ends inside of its header", name);
    *out = n + 8;
    return 0;
}

static int is_text(void *ctx, const char *key, const struct mr_json *value)
{
    struct parser *p = ctx;
    if (!mr_json_text(value))
        return bad(p, key, "metadata that is no text");
    if (!strcmp(key, MR_ST_VERSION) || !strcmp(key, MR_ST_HEADER_CRC) ||
        !strncmp(key, MR_ST_CRC, strlen(MR_ST_CRC)))
        p->s.sealed = 1;
    return 0;
}

static int parse_metadata(struct parser *p, const struct mr_json *root)
{
    p->metadata = mr_json_member(root, "__metadata__");
    if (!p->metadata)
        return 0;
    if (!mr_json_is_object(p->metadata))
        return bad(p, "__metadata__", "is no object");
    return mr_json_each(p->metadata, is_text, p);
}

static int parse_shape(const struct parser *p, const struct mr_json *shape, struct mr_tensor *t)
{
    size_t n = mr_json_len(shape);
    if (!mr_json_is_array(shape))
        return bad(p, t->name, "no shape");
    if (n > MR_TENSOR_MAX_DIMS)
        return mr_fail(p->err, -ENOTSUP, "%s: '%.200s' has more than %d dimensions", p->name,
                       t->name, MR_TENSOR_MAX_DIMS);
    t->n_dims = (unsigned)n;
    for (size_t i = 0; i < n; i++) {
        int64_t v;
        if (mr_json_integer(mr_json_item(shape, i), &v) || v < 0)
            return bad(p, t->name, "a dimension that is no size");
        t->dims[i] = (uint64_t)v;
    }
    return 0;
}

static int parse_offsets(const struct parser *p, const struct mr_json *offsets, struct mr_tensor *t)
{
    int64_t begin, end;
    if (!mr_json_is_array(offsets) || mr_json_len(offsets) != 2 ||
        mr_json_integer(mr_json_item(offsets, 0), &begin) ||
        mr_json_integer(mr_json_item(offsets, 1), &end) || begin < 0 || end < begin)
        return bad(p, t->name, "bad data_offsets");
    t->offset = (uint64_t)begin;
    t->bytes = (uint64_t)(end - begin);
    return 0;
}

static int parse_tensor(void *ctx, const char *key, const struct mr_json *value)
{
    struct parser *p = ctx;
    struct mr_tensor t = {.name = key};
    uint64_t bytes;
    if (!strcmp(key, "__metadata__"))
        return 0;
    const char *type = mr_json_text(mr_json_member(value, "dtype"));
    t.dtype = type ? mr_st_type_number(type) : -1;
    if (t.dtype < 0)
        return bad(p, key, type ? "an unknown dtype" : "no dtype");
    int r = parse_shape(p, mr_json_member(value, "shape"), &t);
    if (!r)
        r = parse_offsets(p, mr_json_member(value, "data_offsets"), &t);
    if (r)
        return r;
    if (mr_tensor_size(t.dtype, t.n_dims, t.dims, &bytes) || bytes != t.bytes)
        return bad(p, key, "its size does not follow from its shape");
    r = mr_tensor_table_add(&p->s.tensors, &t);
    if (r == -EINVAL)
        return mr_fail(p->err, -ENOTSUP, "%s: a tensor's name is empty or too long", p->name);
    return r ? mr_fail(p->err, r, "%s: no memory", p->name) : 0;
}

static int by_offset(const void *a, const void *b)
{
    const struct mr_tensor *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Neither holes nor overlaps, up to the end of the file; offsets then count from its beginning. */
static int check_places(struct parser *p, uint64_t file_bytes)
{
    struct mr_tensor_table *t = &p->s.tensors;
    uint64_t at = 0;
    mr_tensor_table_sort_by(t, by_offset);
    for (size_t i = 0; i < t->n; i++) {
        if (t->tensors[i].offset != at)
            return bad(p, t->tensors[i].name, "a hole or an overlap before its data");
        if (t->tensors[i].bytes > file_bytes - p->s.header_bytes - at)
            return mr_fail(p->err, -ENODATA, "%s: '%.200s': the file ends before its data does",
                           p->name, t->tensors[i].name);
        at += t->tensors[i].bytes;
        t->tensors[i].offset += p->s.header_bytes;
    }
    return at + p->s.header_bytes == file_bytes
               ? 0
               : mr_fail(p->err, -EBADMSG, "%s: there is something behind the last tensor",
                         p->name);
}

/* Eight hex digits, as we write them. */
static int parse_crc(const char *text, uint32_t *crc)
{
    char *end;
    if (!text || strlen(text) != 8 || strspn(text, "0123456789abcdef") != 8)
        return -EBADMSG;
    *crc = (uint32_t)strtoul(text, &end, 16);
    return 0;
}

/* "NUMBER:d,d,d": the type and shape of what is stored as bytes. */
static int restore_type(const char *text, struct mr_tensor *t)
{
    struct mr_tensor real = *t;
    uint64_t bytes, n;
    char *end;
    real.dtype = mr_tf_type_of(strtoull(text, &end, 10));
    real.n_dims = 0;
    if (*end++ != ':' || !real.dtype)
        return -EBADMSG;
    while (*end) {
        if (real.n_dims == MR_TENSOR_MAX_DIMS || *end < '0' || *end > '9')
            return -EBADMSG;
        real.dims[real.n_dims++] = strtoull(end, &end, 10);
        if (*end && *end++ != ',')
            return -EBADMSG;
    }
    if (mr_tensor_elements(real.n_dims, real.dims, &n))
        return -EBADMSG;
    if (real.dtype == MR_DT_STRING
            ? n > t->bytes
            : mr_tensor_size(real.dtype, real.n_dims, real.dims, &bytes) || bytes != t->bytes)
        return -EBADMSG;
    *t = real;
    return 0;
}

/* What our own keys say about a tensor. */
static int read_notes(const struct parser *p, struct mr_tensor *t)
{
    char key[MR_TENSOR_MAX_NAME + 16];
    snprintf(key, sizeof key, MR_ST_CRC "%s", t->name);
    if (parse_crc(mr_json_text(mr_json_member(p->metadata, key)), &t->crc))
        return bad(p, t->name, "its crc is missing");
    t->has_crc = 1;
    snprintf(key, sizeof key, MR_ST_TYPE "%s", t->name);
    const char *type = mr_json_text(mr_json_member(p->metadata, key));
    return type && restore_type(type, t) ? bad(p, t->name, "its type is not understood") : 0;
}

static int check_seal(const struct parser *p, const uint8_t *header, size_t len)
{
    char expected[9];
    size_t digits;
    uint32_t crc;
    if (!p->s.sealed)
        return 0;
    if (mr_st_header_crc(header, len, &digits, &crc))
        return mr_fail(p->err, -EBADMSG, "%s: the header's crc is missing", p->name);
    snprintf(expected, sizeof expected, "%08x", crc);
    if (memcmp(expected, header + digits, 8))
        return mr_fail(p->err, -EBADMSG, "%s: bad crc of the header", p->name);
    for (size_t i = 0; i < p->s.tensors.n; i++) {
        int r = read_notes(p, &p->s.tensors.tensors[i]);
        if (r)
            return r;
    }
    return 0;
}

int mr_safetensors_parse(const char *name, const uint8_t *header, size_t len, uint64_t file_bytes,
                         struct mr_safetensors *out, struct mr_error *err)
{
    struct parser p = {.name = name, .err = err};
    int r = len < 8 ? mr_fail(err, -ENODATA, "%s: too short for a safetensors file", name)
                    : mr_safetensors_header_bytes(name, header, file_bytes, &p.s.header_bytes, err);
    if (r)
        return r;
    if (p.s.header_bytes != len)
        return mr_fail(err, -EBADMSG, "%s: its header is not whole", name);
    struct mr_json *root = mr_json_parse((const char *)header + 8, len - 8);
    if (!mr_json_is_object(root))
        r = mr_fail(err, -EBADMSG,
                    "%s: its header is not a JSON object in UTF-8 with every name once", name);
    if (!r)
        r = parse_metadata(&p, root);
    if (!r)
        r = mr_json_each(root, parse_tensor, &p);
    if (!r)
        r = check_places(&p, file_bytes);
    if (!r)
        r = check_seal(&p, header, len);
    mr_json_free(root);
    if (r)
        mr_safetensors_fini(&p.s);
    else
        *out = p.s;
    return r;
}

void mr_safetensors_fini(struct mr_safetensors *s)
{
    mr_tensor_table_fini(&s->tensors);
    memset(s, 0, sizeof *s);
}
