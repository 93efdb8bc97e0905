/* draw.h - random numbers that are functions of their place: no state, any order, any thread. */
#ifndef MR_DRAW_H
#define MR_DRAW_H

#include <stdint.h>

/* Scramble 64 bits; a bijection. */
static inline uint64_t mr_mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

/* What a draw is for, so that two uses with the same numbers stay independent. */
enum mr_draw_use {
    MR_DRAW_ORDER = 1,  /* the key of an epoch's permutation */
    MR_DRAW_WINDOW,     /* which element leaves the shuffle window */
    MR_DRAW_SUBSTITUTE, /* who replaces a bad sample */
    MR_DRAW_SAMPLE,     /* a sample's own key, handed to the map */
    MR_DRAW_SPLIT,      /* who is held out for validation */
    MR_DRAW_SYNTHETIC,  /* made-up data */
    MR_DRAW_CROP,       /* which part of an image is shown */
    MR_DRAW_PLACE,      /* where in a file the raw device is read, and how much */
    MR_DRAW_WEIGHT,     /* initial weights */
    MR_DRAW_DROPOUT,    /* which units a training step leaves out */
};

/* 64 random bits for (seed, use, a, b, c). */
uint64_t mr_draw(uint64_t seed, enum mr_draw_use use, uint64_t a, uint64_t b, uint64_t c);

/* Reduce 64 random bits to 0 .. n-1; the bias is below n / 2^64. */
static inline uint64_t mr_below(uint64_t bits, uint64_t n)
{
    return (uint64_t)(((unsigned __int128)bits * n) >> 64);
}

#endif
