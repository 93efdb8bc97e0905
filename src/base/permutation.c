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
 * The number of rows is even: were both sides odd, each line would be an even permutation, and
 * half of all orders could never come up.
 *
 * Four rounds make a large table look random.  In a tiny one a round has few different outcomes
 * (a 2 x 2 table: four), and it takes more of them until all orders are equally likely: with
 * eight, the 720 orders of six elements are still measurably uneven.  Twelve are used below 256
 * elements, where speed does not matter.
 *
 * Speed comes from several elements under way at once, so nothing here may branch on the data:
 * add_mod corrects by a mask, since a compiler's jump would be mispredicted half of the time.
 *
 * Reduction mod rows of a hash h is (h >> 32) * rows >> 32, which is why both sides stay
 * below 2^32.  The network is for statistical shuffling, not for secrecy. */
#include "permutation.h"

#include "draw.h"

#include <math.h>

enum { SMALL_BELOW = 256, SMALL_ROUNDS = 12, ROUNDS = 4 };

_Static_assert(2 * SMALL_ROUNDS <= MR_PERMUTATION_MAX_KEYS, "every round has two keys");

void mr_permutation_init(struct mr_permutation *p, uint64_t n, uint64_t key)
{
    uint64_t rows = (uint64_t)sqrt((double)n);
    while (rows * rows < n)
        rows++;
    rows += rows % 2;
    p->n = n;
    p->rows = rows;
    p->cols = (n + rows - 1) / rows;
    p->n_keys = 2 * (n < SMALL_BELOW ? SMALL_ROUNDS : ROUNDS);
    for (unsigned r = 0; r < p->n_keys; r++)
        p->key[r] = mr_mix(key + 0x9e3779b97f4a7c15u * (uint64_t)(r + 1));
}

/* 0 .. m-1 from x and key, m < 2^32. */
static inline uint64_t hash_below(uint64_t x, uint64_t key, uint64_t m)
{
    uint64_t h = (x ^ key) * 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
    return ((h >> 32) * m) >> 32;
}

/* (a + b) mod m for a, b < m < 2^32. */
static inline uint64_t add_mod(uint64_t a, uint64_t b, uint64_t m)
{
    uint64_t sum = a + b - m; /* wraps when a + b < m: then the top bit is set */
    return sum + (m & -(sum >> 63));
}

uint64_t mr_permutation_at(const struct mr_permutation *p, uint64_t i)
{
    do {
        uint64_t row = i / p->cols, col = i % p->cols;
        for (unsigned r = 0; r < p->n_keys; r += 2) {
            row = add_mod(row, hash_below(col, p->key[r], p->rows), p->rows);
            col = add_mod(col, hash_below(row, p->key[r + 1], p->cols), p->cols);
        }
        i = row * p->cols + col;
    } while (i >= p->n);
    return i;
}
