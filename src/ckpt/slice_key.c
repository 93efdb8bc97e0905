/* slice_key.c - keys of slices, in an encoding whose byte order is the order of what it encodes.
 *
 *   0x00   name   number of dimensions   (start, length) of each dimension
 *
 * An unsigned number is its length in bytes and the bytes, largest first; 0 has no bytes.
 * A string has 00 as 00 ff, ff as ff 00, and ends in 00 01.
 * A signed number of n bytes begins with n one-bits (for a negative one: n zero-bits) and an
 * opposite bit, in front of its two's complement, largest byte first.  A dimension that is taken
 * whole has start 0 and length -1. */
#include "slice_key.h"

#include <string.h>

static void put_number(struct mr_bytes *out, uint64_t v)
{
    uint8_t text[9];
    unsigned n = 0;
    for (uint64_t rest = v; rest; rest >>= 8)
        n++;
    text[0] = (uint8_t)n;
    for (unsigned i = 0; i < n; i++)
        text[1 + i] = (uint8_t)(v >> 8 * (n - 1 - i));
    mr_bytes_add(out, text, n + 1);
}

static void put_string(struct mr_bytes *out, const char *s)
{
    for (; *s; s++) {
        mr_bytes_add(out, s, 1);
        if ((uint8_t)*s == 0xff)
            mr_bytes_add_u8(out, 0);
    }
    mr_bytes_add(out, "\0\1", 2);
}

static void put_signed(struct mr_bytes *out, int64_t v)
{
    static const uint8_t marks[11][2] = {{0, 0},    {0x80, 0},    {0xc0, 0},   {0xe0, 0},
                                         {0xf0, 0}, {0xf8, 0},    {0xfc, 0},   {0xfe, 0},
                                         {0xff, 0}, {0xff, 0x80}, {0xff, 0xc0}};
    uint8_t text[10];
    uint64_t size = v < 0 ? ~(uint64_t)v : (uint64_t)v;
    unsigned bits = size ? 64 - (unsigned)__builtin_clzll(size) : 0, n = bits / 7 + 1;
    text[0] = text[1] = v < 0 ? 0xff : 0;
    for (unsigned i = 0; i < 8; i++)
        text[2 + i] = (uint8_t)((uint64_t)v >> 8 * (7 - i));
    uint8_t *begin = text + sizeof text - n;
    begin[0] ^= marks[n][0];
    if (n > 1)
        begin[1] ^= marks[n][1];
    mr_bytes_add(out, begin, n);
}

void mr_slice_key(const struct mr_tensor *t, const struct mr_bundle_part *part,
                  struct mr_bytes *out)
{
    put_number(out, 0);
    put_string(out, t->name);
    put_number(out, t->n_dims);
    for (unsigned d = 0; d < t->n_dims; d++) {
        int full = part->full >> d & 1;
        put_signed(out, full ? 0 : (int64_t)part->start[d]);
        put_signed(out, full ? -1 : (int64_t)part->length[d]);
    }
}
