/* bytes.c - see bytes.h.  Capacity doubles, so appending costs constant time in the mean. */
#include "bytes.h"

#include <endian.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mr_bytes_init(struct mr_bytes *b)
{
    memset(b, 0, sizeof *b);
}

static int make_room(struct mr_bytes *b, size_t more)
{
    if (b->error)
        return b->error;
    if (more <= b->cap - b->len)
        return 0;
    size_t cap = b->cap ? b->cap : 256;
    while (cap - b->len < more) {
        if (cap > SIZE_MAX / 4)
            return b->error = -ENOMEM;
        cap *= 2;
    }
    uint8_t *data = realloc(b->data, cap);
    if (!data)
        return b->error = -ENOMEM;
    b->data = data;
    b->cap = cap;
    return 0;
}

void mr_bytes_add(struct mr_bytes *b, const void *bytes, size_t len)
{
    if (!len || make_room(b, len))
        return;
    if (bytes)
        memcpy(b->data + b->len, bytes, len);
    else
        memset(b->data + b->len, 0, len);
    b->len += len;
}

void mr_bytes_add_u8(struct mr_bytes *b, uint8_t v)
{
    mr_bytes_add(b, &v, 1);
}

void mr_bytes_add_u32(struct mr_bytes *b, uint32_t v)
{
    v = htole32(v);
    mr_bytes_add(b, &v, sizeof v);
}

void mr_bytes_add_u64(struct mr_bytes *b, uint64_t v)
{
    v = htole64(v);
    mr_bytes_add(b, &v, sizeof v);
}

void mr_bytes_add_text(struct mr_bytes *b, const char *text)
{
    mr_bytes_add(b, text, strlen(text));
}

void mr_bytes_printf(struct mr_bytes *b, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    mr_bytes_add_text(b, text);
}

void mr_bytes_fini(struct mr_bytes *b)
{
    free(b->data);
    mr_bytes_init(b);
}

uint32_t mr_get_u32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return le32toh(v);
}

uint64_t mr_get_u64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return le64toh(v);
}
