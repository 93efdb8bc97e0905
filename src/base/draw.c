/* draw.c - a counter-based generator: each input word is folded into the state and scrambled.
 * The odd constants keep (a, b) and (b, a) apart. */
#include "draw.h"

uint64_t mr_draw(uint64_t seed, enum mr_draw_use use, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t x = mr_mix(seed + 0x9e3779b97f4a7c15u * (uint64_t)use);
    x = mr_mix(x ^ (a * 0xff51afd7ed558ccdu + 1));
    x = mr_mix(x ^ (b * 0xc4ceb9fe1a85ec53u + 2));
    return mr_mix(x ^ (c * 0x94d049bb133111ebu + 3));
}
