/* jpeg_header.h - the markers of a baseline JPEG file: what its one scan is decoded with. */
#ifndef MR_JPEG_HEADER_H
#define MR_JPEG_HEADER_H

#include <stddef.h>
#include <stdint.h>

#define MR_JPEG_COMPONENTS 3
#define MR_JPEG_TABLES     4  /* of each kind */
#define MR_JPEG_MCU_BLOCKS 10 /* that the standard allows in an MCU of several components */

struct mr_jpeg_component {
    uint8_t id;
    uint8_t h, v; /* blocks in an MCU, across and down */
    uint8_t quantiser, dc_table, ac_table;
};

/* A Huffman table as the file has it; points into the file. */
struct mr_jpeg_huffman {
    const uint8_t *counts;  /* [16] codes of 1, 2, ... 16 bits; NULL: not sent */
    const uint8_t *symbols; /* [n_symbols] in the order of their codes */
    unsigned n_symbols;
};

struct mr_jpeg_header {
    uint32_t width, height;
    unsigned n_components; /* 1 or 3 */
    struct mr_jpeg_component component[MR_JPEG_COMPONENTS];
    unsigned max_h, max_v;
    uint32_t n_mcus, n_mcu_rows; /* across and down */
    uint32_t restart_interval;   /* MCUs; 0: none */
    /* As the inverse transform wants them: row after row, not in zigzag. */
    int16_t quantiser[MR_JPEG_TABLES][64] __attribute__((aligned(64)));
    uint8_t has_quantiser[MR_JPEG_TABLES];
    struct mr_jpeg_huffman dc[MR_JPEG_TABLES], ac[MR_JPEG_TABLES];
    size_t scan_at; /* the entropy-coded data begins at this byte of the file */
};

/* Row * 8 + column of the coefficient at each place of the zigzag. */
extern const uint8_t mr_jpeg_zigzag[64];

/* Nonzero when the file is a plain one up to and including the header of its scan: then `out`
 * holds tables for every component.  0: something is missing, odd, damaged or not baseline. */
int mr_jpeg_header_parse(const uint8_t *bytes, size_t len, struct mr_jpeg_header *out);

#endif
