/* jpeg_huffman.h - tables that turn the next bits of a scan into symbols, or pairs of them. */
#ifndef MR_JPEG_HUFFMAN_H
#define MR_JPEG_HUFFMAN_H

#include "jpeg_header.h"

#define MR_AC_BITS 11 /* that a lookup sees */
#define MR_DC_BITS 9

/* A file's table, kept to tell whether the next file's is the same, and what codes that are longer
 * than a lookup need: bits, left-aligned in 16, below limit[n] begin with a code of at most n bits;
 * the code itself plus offset[n] is the number of its symbol. */
struct mr_jpeg_codes {
    int valid;
    uint8_t counts[16];
    unsigned n_symbols;
    uint8_t symbols[256];
    uint32_t limit[18];
    int32_t offset[17];
};

/* lookup[next 11 bits]:
 *
 *     31       25 24       18 17       11 10        6 5         0
 *    +-----------+-----------+-----------+-----------+-----------+
 *    | value 2   | value 1   | advance   | advance 1 | bits      |
 *    +-----------+-----------+-----------+-----------+-----------+
 *
 * The first symbol lies `advance 1` further in the zigzag than the last coefficient and has value
 * 1; the second lies `advance` further and has value 2; both together take `bits`.  Where only one
 * fits into 11 bits, the second is the first again.  Sixteen zeros are an advance of 16 with the
 * value 0.  The end of block adds MR_AC_END to `advance`; as a first symbol it has an `advance 1`
 * of 31 and the value 0, which is stored where there is nothing yet.
 *
 * bits = MR_AC_SLOW: no symbol fits with its value.  Then `value 1` and the bit above it are the
 * symbol and `advance 1` is the length of its code, or 0 where that too is longer than 11 bits.
 *
 * Four bytes an entry: two tables, coefficients and input must share the first-level cache, often
 * with another thread.  More bits find more pairs and still lose. */
struct mr_jpeg_ac_table {
    uint32_t lookup[1 << MR_AC_BITS];
    struct mr_jpeg_codes codes;
    int paired;
};
#define MR_AC_SLOW 32 /* a bit of its own: shifts need not wait until `bits` was looked at */
#define MR_AC_END  64 /* more than any place, so that the end of a block is one comparison */

enum { MR_AC_FIRST_AT = 6, MR_AC_ADVANCE_AT = 11, MR_AC_VALUE_1_AT = 18, MR_AC_VALUE_2_AT = 25 };

/* lookup[next 9 bits]: 0..7 bits of code and value, 8..15 bits of the code, 16..23 bits of the
 * value.  0: a longer code. */
struct mr_jpeg_dc_table {
    uint32_t lookup[1 << MR_DC_BITS];
    struct mr_jpeg_codes codes;
};

/* Build what the file's table says, or nothing if the table is already that.  `pairs` asks for two
 * symbols per lookup: worth its time for more than a few KB of data.  Nonzero: done; 0: not a table
 * that libjpeg accepts, and then nothing of the last one is left. */
int mr_jpeg_ac_build(struct mr_jpeg_ac_table *t, const struct mr_jpeg_huffman *h, int pairs);
int mr_jpeg_dc_build(struct mr_jpeg_dc_table *t, const struct mr_jpeg_huffman *h);

/* The symbol whose code of more than `seen` bits begins the 16 bits `next`, and that code's length
 * in *n_bits; -1 when no code does. */
int mr_jpeg_long_code(const struct mr_jpeg_codes *c, uint32_t next, unsigned seen,
                      unsigned *n_bits);

#endif
