/* wire.c - see wire.h.
 *
 * A field is a varint (number << 3 | type) and its value: a varint, 8 or 4 bytes, or a varint
 * length and that many bytes.  The group types (3, 4) left the format long ago and are refused.
 * When a message inside another is begun, one byte is left for its length; a longer length moves
 * the message up, which happens once per message of more than 127 bytes. */
#include "wire.h"

#include <errno.h>
#include <string.h>

struct mr_wire mr_wire_over(const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    return (struct mr_wire){p, p ? p + len : p};
}

int mr_wire_varint(struct mr_wire *w, uint64_t *out)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (w->at == w->end)
            return -EBADMSG;
        uint8_t byte = *w->at++;
        if (shift == 63 && byte > 1)
            return -EBADMSG;
        v |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *out = v;
            return 0;
        }
    }
    return -EBADMSG;
}

int mr_wire_next(struct mr_wire *w, struct mr_wire_field *out)
{
    uint64_t key, len;
    if (w->at == w->end)
        return 0;
    if (mr_wire_varint(w, &key) || !(key >> 3) || key >> 3 >= 1u << 29)
        return -EBADMSG;
    *out = (struct mr_wire_field){.number = (uint32_t)(key >> 3),
                                  .type = (enum mr_wire_type)(key & 7)};
    switch (out->type) {
    case MR_WIRE_VARINT:
        return mr_wire_varint(w, &out->value) ? -EBADMSG : 1;
    case MR_WIRE_I64:
        if (mr_wire_left(w) < 8)
            return -EBADMSG;
        out->value = mr_get_u64(w->at);
        w->at += 8;
        return 1;
    case MR_WIRE_I32:
        if (mr_wire_left(w) < 4)
            return -EBADMSG;
        out->value = mr_get_u32(w->at);
        w->at += 4;
        return 1;
    case MR_WIRE_BYTES:
        if (mr_wire_varint(w, &len) || len > mr_wire_left(w))
            return -EBADMSG;
        out->body = mr_wire_over(w->at, (size_t)len);
        w->at += len;
        return 1;
    }
    return -EBADMSG;
}

static size_t encode(uint64_t v, uint8_t out[10])
{
    size_t n = 0;
    for (; v >= 128; v >>= 7)
        out[n++] = (uint8_t)(v | 128);
    out[n++] = (uint8_t)v;
    return n;
}

void mr_wire_put_varint(struct mr_bytes *b, uint64_t v)
{
    uint8_t text[10];
    mr_bytes_add(b, text, encode(v, text));
}

static void put_key(struct mr_bytes *b, uint32_t number, enum mr_wire_type type)
{
    mr_wire_put_varint(b, (uint64_t)number << 3 | type);
}

void mr_wire_put_int(struct mr_bytes *b, uint32_t number, uint64_t v)
{
    put_key(b, number, MR_WIRE_VARINT);
    mr_wire_put_varint(b, v);
}

void mr_wire_put_i32(struct mr_bytes *b, uint32_t number, uint32_t v)
{
    put_key(b, number, MR_WIRE_I32);
    mr_bytes_add_u32(b, v);
}

void mr_wire_put_bytes(struct mr_bytes *b, uint32_t number, const void *bytes, size_t len)
{
    put_key(b, number, MR_WIRE_BYTES);
    mr_wire_put_varint(b, len);
    mr_bytes_add(b, bytes, len);
}

void mr_wire_put_text(struct mr_bytes *b, uint32_t number, const char *text)
{
    mr_wire_put_bytes(b, number, text, strlen(text));
}

size_t mr_wire_begin(struct mr_bytes *b, uint32_t number)
{
    put_key(b, number, MR_WIRE_BYTES);
    mr_bytes_add_u8(b, 0);
    return b->len;
}

void mr_wire_end(struct mr_bytes *b, size_t mark)
{
    uint8_t text[10];
    if (b->error)
        return;
    size_t len = b->len - mark, n = encode(len, text);
    mr_bytes_add(b, NULL, n - 1);
    if (b->error)
        return;
    memmove(b->data + mark + n - 1, b->data + mark, len);
    memcpy(b->data + mark - 1, text, n);
}
