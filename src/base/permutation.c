/* permutation.c - a keyed bijection of 0 .. n-1 by an unbalanced Feistel network.
 *
 * Write i as (row, col) of a nearly square table of rows x cols >= n cells.  A round adds to each
 * coordinate a keyed hash of the other one:
 *
 *     row = (row + F(key[2r],   col)) mod rows
 *     col = (col + F(key[2r+1], row)) mod cols
 *
 * Each line can be undone, so any number of rounds is a bijection of the table's cells.  A cell
 * outside 0 .. n-1 is sent through again until it falls inside ("cycle walking"), which keeps the
 * map a bijection of 0 .. n-1.  Because the table is cut to n and not to a power of two, it has
 * fewer than rows extra cells, and a second pass is rare.
 *
 * Reduction mod rows of a hash h is (h >> 32) * rows >> 32, which is why both sides stay
 * below 2^32.  The network is for statistical shuffling, not for secrecy. */
#include "permutation.h"

#include "draw.h"

#include <math.h>

void mr_permutation_init(struct mr_permutation *p, uint64_t n, uint64_t key)
{
    uint64_t rows = (uint64_t)sqrt((double)n);
    while (rows * rows < n)
        rows++;
    p->n = n;
    p->rows = rows;
    p->cols = (n + rows - 1) / rows;
    for (int r = 0; r < 2 * MR_PERMUTATION_ROUNDS; r++)
        p->key[r] = mr_mix(key + 0x9e3779b97f4a7c15u * (uint64_t)(r + 1));
}

/* 0 .. m-1 from x and key, m < 2^32. */
static inline uint64_t hash_below(uint64_t x, uint64_t key, uint64_t m)
{
    uint64_t h = (x ^ key) * 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
    return ((h >> 32) * m) >> 32;
}

uint64_t mr_permutation_at(const struct mr_permutation *p, uint64_t i)
{
    do {
        uint64_t row = i / p->cols, col = i % p->cols;
        for (int r = 0; r < MR_PERMUTATION_ROUNDS; r++) {
            row += hash_below(col, p->key[2 * r], p->rows);
            row -= row >= p->rows ? p->rows : 0;
            col += hash_below(row, p->key[2 * r + 1], p->cols);
            col -= col >= p->cols ? p->cols : 0;
        }
        i = row * p->cols + col;
    } while (i >= p->n);
    return i;
}
