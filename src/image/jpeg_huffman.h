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
 *     31       24 23       16 15        8 7       6 5      5 4     0
 *    +-----------+-----------+-----------+---------+--------+-------+
 *    | value 2   | advance   | value 1   | first   | SLOW   | bits  |
 *    +-----------+-----------+-----------+---------+--------+-------+
 *
 * A symbol lies `advance` further in the zigzag than the last coefficient and has value 2.  A
 * symbol in front of it lies `first` + 1 further and has value 1; all together take `bits`. Symbols
 * are paired where the first has a run below 4.  Sixteen zeros are an advance of 16 with the value
 * 0, or 16 more for the symbol behind them.
 *
 * The decoder stores both values, always, so value 1 of a single symbol must do no harm.  It is 0
 * and goes one place further: into the symbol's run, where there is nothing yet.  Only a symbol
 * without a run lies there itself, and then value 1 is its own.
 *
 * The end of block adds MR_AC_END to the advance of the symbol in front of it.  Alone it has the
 * value 0, which no other symbol in front of an end has, and advances by MR_AC_END + 1.
 *
 * SLOW: no symbol fits with its value.  Then `advance` is the symbol and `value 1` the length of
 * its code, or 0 where that too is longer than 11 bits.
 *
 * The values and `advance` are whole bytes, which processors extract in an instruction or two. Four
 * bytes an entry: two tables, coefficients and input must share the first-level cache, often with
 * another thread.  More bits find more pairs and still lose. */
struct mr_jpeg_ac_table {
    uint32_t lookup[1 << MR_AC_BITS];
    struct mr_jpeg_codes codes;
    int paired;
};
#define MR_AC_SLOW 32  /* a bit of its own: shifts need not wait until `bits` was looked at */
#define MR_AC_END  128 /* more than any place, so that the end of a block is one comparison */
#define MR_AC_MOST 32  /* that two symbols advance without the end */

enum { MR_AC_FIRST_AT = 6, MR_AC_VALUE_1_AT = 8, MR_AC_ADVANCE_AT = 16, MR_AC_VALUE_2_AT = 24 };

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
