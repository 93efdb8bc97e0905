/* jpeg_huffman.c - build the lookup tables of a scan.
 *
 * Codes are canonical: symbols in the file's order get consecutive codes, and a code of the next
 * length begins at twice the number after the last.  So the entries of one symbol in a table that
 * is indexed by the next 11 bits are a run, and the runs of all symbols follow each other from
 * entry 0 on: filling the table is one walk.
 *
 * An AC symbol is a run of zeros and the number of bits of the value behind it, and short codes
 * often leave room in the 11 bits for the value as well.  Then the entry holds the finished
 * coefficient.  If even the next symbol fits, a second walk adds it: the entry for the bits that
 * are left after the first symbol is entry (i << bits), whose last bits are zeros and not the
 * file's; it is right for i if it uses none of these.
 *
 * Photographs carry tables of their own, so a table is built for nearly every image; it is kept in
 * case the next has the same one. */
#include "jpeg_huffman.h"

#include <string.h>

#define N_ENTRIES (1u << MR_AC_BITS)

static int is_same(const struct mr_jpeg_codes *c, const struct mr_jpeg_huffman *h)
{
    return c->valid && c->n_symbols == h->n_symbols && !memcmp(c->counts, h->counts, 16) &&
           !memcmp(c->symbols, h->symbols, h->n_symbols);
}

/* Give every symbol its code.  As in libjpeg, no code may be all ones. */
static int assign_codes(struct mr_jpeg_codes *c, const struct mr_jpeg_huffman *h)
{
    uint32_t code = 0, n = 0;
    c->valid = 0;
    for (unsigned bits = 1; bits <= 16; bits++) {
        c->offset[bits] = (int32_t)n - (int32_t)code;
        code += h->counts[bits - 1];
        n += h->counts[bits - 1];
        if (n && code >= 1u << bits)
            return 0;
        c->limit[bits] = code << (16 - bits);
        code <<= 1;
    }
    c->limit[17] = UINT32_MAX;
    memcpy(c->counts, h->counts, 16);
    memcpy(c->symbols, h->symbols, n);
    c->n_symbols = n;
    return 1;
}

int mr_jpeg_long_code(const struct mr_jpeg_codes *c, uint32_t next, unsigned seen, unsigned *n_bits)
{
    unsigned bits = seen + 1;
    while (next >= c->limit[bits])
        bits++;
    if (bits > 16)
        return -1;
    *n_bits = bits;
    return c->symbols[((int32_t)(next >> (16 - bits)) + c->offset[bits]) & 255];
}

static uint64_t entry(unsigned bits, unsigned bits_1, unsigned advance_1, unsigned advance,
                      int value_1, int value_2)
{
    return bits | (uint64_t)advance_1 << 8 | (uint64_t)(uint16_t)value_1 << 16 |
           (uint64_t)(uint16_t)value_2 << 32 | (uint64_t)bits_1 << 48 | (uint64_t)advance << 56;
}

static uint64_t *fill(uint64_t *at, uint64_t e, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        at[i] = e;
    return at + n;
}

/* The entries of a symbol whose code has `bits` bits; the address after them. */
static uint64_t *fill_symbol(uint64_t *at, unsigned symbol, unsigned bits)
{
    unsigned run = symbol >> 4, size = symbol & 15, room = MR_AC_BITS - bits;
    if (!size) { /* fifteen zeros and one more, or, as libjpeg has it, any other run: the end */
        unsigned advance = run == 15 ? 16 : MR_AC_END;
        return fill(at, entry(bits, bits, advance, advance, 0, 0), 1u << room);
    }
    if (size > room)
        return fill(at, entry(0, bits, 0, 0, 0, (int)symbol), 1u << room);
    int half = 1 << (size - 1);
    for (int v = 0; v < 2 * half; v++) { /* values without their leading 1 are negative */
        int value = v < half ? v - 2 * half + 1 : v;
        at = fill(at, entry(bits + size, bits + size, run + 1, run + 1, value, value),
                  1u << (room - size));
    }
    return at;
}

static void fill_single(struct mr_jpeg_ac_table *t)
{
    uint64_t *at = t->lookup;
    const uint8_t *symbol = t->codes.symbols;
    for (unsigned bits = 1; bits <= MR_AC_BITS; bits++)
        for (unsigned i = 0; i < t->codes.counts[bits - 1]; i++)
            at = fill_symbol(at, *symbol++, bits);
    fill(at, entry(0, 0, 0, 0, 0, 0), N_ENTRIES - (unsigned)(at - t->lookup));
}

static unsigned field(uint64_t e, unsigned shift)
{
    return (unsigned)(e >> shift) & 255;
}

/* Entry (i << bits) mod 2048 is read when it is still single or already a pair; `bits 1`,
 * `advance 1` and `value 1` are those of its first symbol in either case. */
static void add_second(struct mr_jpeg_ac_table *t)
{
    for (unsigned i = 0; i < N_ENTRIES; i++) {
        uint64_t e = t->lookup[i];
        unsigned bits = field(e, 0), advance = field(e, 8);
        if (!bits || advance == MR_AC_END)
            continue;
        uint64_t next = t->lookup[(i << bits) & (N_ENTRIES - 1)];
        unsigned more = field(next, 48);
        if (!field(next, 0) || bits + more > MR_AC_BITS)
            continue;
        t->lookup[i] = entry(bits + more, bits, advance, advance + field(next, 8),
                             (int)(e >> 16 & 0xffff), (int)(next >> 16 & 0xffff));
    }
}

int mr_jpeg_ac_build(struct mr_jpeg_ac_table *t, const struct mr_jpeg_huffman *h, int pairs)
{
    if (is_same(&t->codes, h) && t->paired >= pairs)
        return 1;
    if (!assign_codes(&t->codes, h))
        return 0;
    fill_single(t);
    if (pairs)
        add_second(t);
    t->paired = pairs;
    t->codes.valid = 1;
    return 1;
}

int mr_jpeg_dc_build(struct mr_jpeg_dc_table *t, const struct mr_jpeg_huffman *h)
{
    if (is_same(&t->codes, h))
        return 1;
    if (!assign_codes(&t->codes, h))
        return 0;
    for (unsigned i = 0; i < h->n_symbols; i++)
        if (h->symbols[i] > 15)
            return 0;
    uint32_t *at = t->lookup;
    const uint8_t *symbol = t->codes.symbols;
    for (unsigned bits = 1; bits <= MR_DC_BITS; bits++)
        for (unsigned i = 0; i < t->codes.counts[bits - 1]; i++, symbol++)
            for (unsigned k = 0; k < 1u << (MR_DC_BITS - bits); k++)
                *at++ = (bits + *symbol) | bits << 8 | (uint32_t)*symbol << 16;
    memset(at, 0, (size_t)(t->lookup + (1 << MR_DC_BITS) - at) * sizeof *at);
    t->codes.valid = 1;
    return 1;
}
