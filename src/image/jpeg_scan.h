/* jpeg_scan.h - the entropy-coded data of a baseline JPEG file to coefficients.
 *
 *   mr_jpeg_scan_begin(s, header, bytes, len, kernels)
 *   for each row of MCUs, four at a time from the left (fewer at its end):
 *       mr_jpeg_scan_group(s, n)
 *       use the units, and leave them zero
 *   mr_jpeg_scan_end(s)
 */
#ifndef MR_JPEG_SCAN_H
#define MR_JPEG_SCAN_H

#include "jpeg_bytes.h"
#include "jpeg_huffman.h"

#define MR_JPEG_GROUP       4 /* MCUs that are decoded together */
#define MR_JPEG_UNIT_BLOCKS 4 /* side by side, as mr_idct_fn wants them */
#define MR_JPEG_UNIT_VALUES (MR_JPEG_UNIT_BLOCKS * 64)

struct mr_jpeg_kernels;

/* The next bits of the scan: `left` of them (modulo 64) at the top of `buffer`; below them there
 * may be more, which `next` will bring again. */
struct mr_jpeg_bits {
    uint64_t buffer;
    uint64_t left;
    const uint8_t *next;
};

/* One block of a group of MCUs. */
struct mr_jpeg_block {
    const struct mr_jpeg_dc_table *dc;
    const struct mr_jpeg_ac_table *ac;
    int16_t *out;     /* its first coefficient in the unit */
    int32_t *last_dc; /* of its component */
    uint8_t *last;    /* its place in the zigzag of the last coefficient */
};

/* Decode n blocks.  Nonzero, or 0 when no plain file has such bits. */
typedef int mr_decode_blocks_fn(struct mr_jpeg_bits *bits, const struct mr_jpeg_block *blocks,
                                unsigned n);

struct mr_jpeg_scan {
    /* Four MCUs have as many units as an MCU has blocks.  A component's units follow each other in
     * the order of its blocks in the image: row by row. */
    int16_t units[MR_JPEG_MCU_BLOCKS][MR_JPEG_UNIT_VALUES] __attribute__((aligned(64)));
    /* Place in the zigzag of the last coefficient of each block of a unit. */
    uint8_t last[MR_JPEG_MCU_BLOCKS][MR_JPEG_UNIT_BLOCKS];
    unsigned first_unit[MR_JPEG_COMPONENTS];

    struct mr_jpeg_bits bits;
    struct mr_jpeg_bytes bytes;
    struct mr_jpeg_block blocks[MR_JPEG_GROUP * MR_JPEG_MCU_BLOCKS];
    unsigned n_blocks; /* in an MCU */
    mr_decode_blocks_fn *decode_blocks;
    int32_t last_dc[MR_JPEG_COMPONENTS];
    uint32_t restart_interval, restart_left; /* MCUs */
    unsigned n_restarts;

    struct mr_jpeg_dc_table dc[MR_JPEG_TABLES];
    struct mr_jpeg_ac_table ac[MR_JPEG_TABLES];
};

/* The decoder for processors with shifts by any register (BMI2), and for all. */
mr_decode_blocks_fn mr_decode_blocks_plain;
#ifdef __x86_64__
mr_decode_blocks_fn mr_decode_blocks_bmi2;
#endif

enum mr_jpeg_verdict {
    MR_JPEG_GOOD = 0,
    MR_JPEG_ODD = 1, /* not a plain file: libjpeg-turbo decides */
};

/* All zero before the first use; 64-byte aligned.  A verdict or -ENOMEM.  Borrows `bytes`. */
int mr_jpeg_scan_begin(struct mr_jpeg_scan *s, const struct mr_jpeg_header *h, const uint8_t *bytes,
                       size_t len, const struct mr_jpeg_kernels *k);
void mr_jpeg_scan_fini(struct mr_jpeg_scan *s);

/* Decode the next n_mcus, 1 to MR_JPEG_GROUP, into the units.  A verdict. */
int mr_jpeg_scan_group(struct mr_jpeg_scan *s, unsigned n_mcus);

/* Zero the units without using them. */
void mr_jpeg_scan_drop(struct mr_jpeg_scan *s);

/* A verdict on what is left when all MCUs were decoded: the end marker. */
int mr_jpeg_scan_end(struct mr_jpeg_scan *s);

#endif
