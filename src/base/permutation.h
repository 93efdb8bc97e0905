/* permutation.h - a random order of 0 .. n-1 that takes no memory: any element on demand. */
#ifndef MR_PERMUTATION_H
#define MR_PERMUTATION_H

#include <stdint.h>

#define MR_PERMUTATION_MAX_KEYS 24

struct mr_permutation {
    uint64_t n, rows, cols; /* rows * cols >= n, both below 2^32 */
    unsigned n_keys;        /* two a round */
    uint64_t key[MR_PERMUTATION_MAX_KEYS];
};

/* n from 1 to 2^62. */
void mr_permutation_init(struct mr_permutation *p, uint64_t n, uint64_t key);
/* Where element i < n goes; a bijection of 0 .. n-1. */
uint64_t mr_permutation_at(const struct mr_permutation *p, uint64_t i);

#endif
