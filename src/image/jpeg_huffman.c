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
 * are left after the first symbol of entry i is (i << bits), whose last bits are zeros and not the
 * file's; it is right for i if it uses none of these.
 *
 * Photographs carry tables of their own, so a table is built for nearly every image; it is kept in
 * case the next has the same one. */
#include "jpeg_huffman.h"

#include <string.h>

#define N_ENTRIES (1u << MR_AC_BITS)
#define MAX_SIZE  7 /* bits of a value that fits into an entry */
#define MAX_FIRST 4 /* places that the first of two symbols may advance */

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

/* A symbol alone. */
static uint32_t entry(unsigned bits, unsigned advance, int value)
{
    uint32_t v = (uint32_t)value & 255;
    return bits | (advance == 1 ? v << MR_AC_VALUE_1_AT : 0) | advance << MR_AC_ADVANCE_AT |
           v << MR_AC_VALUE_2_AT;
}

static uint32_t slow_entry(unsigned code_bits, unsigned symbol)
{
    return MR_AC_SLOW | code_bits << MR_AC_VALUE_1_AT | symbol << MR_AC_ADVANCE_AT;
}

static unsigned bits_of(uint32_t e)
{
    return e & 63;
}

static unsigned advance_of(uint32_t e)
{
    return e >> MR_AC_ADVANCE_AT & 255;
}

static uint32_t value_of(uint32_t e)
{
    return e >> MR_AC_VALUE_2_AT;
}

static unsigned fill(uint32_t *at, uint32_t e, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        at[i] = e;
    return n;
}

/* The entries of a symbol whose code has `bits` bits; how many there are. */
static unsigned fill_symbol(uint32_t *at, unsigned symbol, unsigned bits)
{
    unsigned run = symbol >> 4, size = symbol & 15, room = MR_AC_BITS - bits;
    if (!size && run == 15)
        return fill(at, entry(bits, 16, 0), 1u << room);
    if (!size) /* as libjpeg has it, whatever the run */
        return fill(at, entry(bits, MR_AC_END + 1, 0), 1u << room);
    if (size > room || size > MAX_SIZE)
        return fill(at, slow_entry(bits, symbol), 1u << room);
    int half = 1 << (size - 1);
    for (int i = 0; i < 1 << room; i++) { /* values without their leading 1 are negative */
        int v = i >> (room - size);
        at[i] = entry(bits + size, run + 1, v < half ? v - 2 * half + 1 : v);
    }
    return 1u << room;
}

/* The entry of two symbols, of which neither is slow and the first is not the end; that of the
 * first alone where an entry cannot hold both. */
static uint32_t pair(uint32_t e, uint32_t next)
{
    const uint32_t value_1 = 255u << MR_AC_VALUE_1_AT;
    int is_zeros = value_of(e) == 0;
    if (advance_of(next) > MR_AC_END)
        return is_zeros ? e : e + bits_of(next) + ((uint32_t)MR_AC_END << MR_AC_ADVANCE_AT);
    if (is_zeros)
        return (next & ~value_1) + bits_of(e) + (advance_of(e) << MR_AC_ADVANCE_AT);
    if (advance_of(e) > MAX_FIRST)
        return e;
    return (next & ~value_1) + bits_of(e) + (advance_of(e) << MR_AC_ADVANCE_AT) +
           (value_of(e) << MR_AC_VALUE_1_AT) + ((advance_of(e) - 1) << MR_AC_FIRST_AT);
}

/* Add to n entries, of one symbol with its value, the symbol that follows, where that fits. */
static void add_second(const uint32_t *single, uint32_t *lookup, unsigned at, unsigned n)
{
    unsigned bits = bits_of(single[at]);
    if (bits & MR_AC_SLOW || advance_of(single[at]) > MR_AC_END || bits + 1 >= MR_AC_BITS) {
        memcpy(lookup + at, single + at, n * sizeof *lookup);
        return;
    }
    for (unsigned i = at; i < at + n; i++) {
        uint32_t next = single[(i << bits) & (N_ENTRIES - 1)];
        /* A slow one has too many. */
        lookup[i] = bits + bits_of(next) <= MR_AC_BITS ? pair(single[i], next) : single[i];
    }
}

/* All entries, of pairs or only of single symbols. */
static void fill_lookup(const struct mr_jpeg_codes *c, uint32_t *lookup, int pairs)
{
    uint32_t memory[N_ENTRIES], *single = pairs ? memory : lookup;
    uint16_t n_entries[256];
    unsigned at = 0, n = 0;
    for (unsigned bits = 1; bits <= MR_AC_BITS; bits++)
        for (unsigned i = 0; i < c->counts[bits - 1]; i++, n++) {
            n_entries[n] = (uint16_t)fill_symbol(single + at, c->symbols[n], bits);
            at += n_entries[n];
        }
    fill(single + at, slow_entry(0, 0), N_ENTRIES - at);
    if (!pairs)
        return;
    memcpy(lookup + at, single + at, (N_ENTRIES - at) * sizeof *lookup);
    at = 0;
    for (unsigned i = 0; i < n; i++) {
        add_second(single, lookup, at, n_entries[i]);
        at += n_entries[i];
    }
}

int mr_jpeg_ac_build(struct mr_jpeg_ac_table *t, const struct mr_jpeg_huffman *h, int pairs)
{
    if (is_same(&t->codes, h) && t->paired >= pairs)
        return 1;
    if (!assign_codes(&t->codes, h))
        return 0;
    fill_lookup(&t->codes, t->lookup, pairs);
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
