/* digest.c - four lanes of multiply-and-rotate over 32-byte blocks, so that hashing a batch keeps
 * up with reading it.  Words are taken as little-endian whatever the machine.  A last block shorter
 * than 32 bytes is padded with zeros; the length enters the state, so padding is not ambiguous. */
#include "digest.h"

#include "draw.h"

#include <endian.h>
#include <string.h>

#define MULTIPLIER 0x9fb21c651e98df25u

void mr_digest_init(struct mr_digest *d)
{
    *d = (struct mr_digest){.lane = {0x243f6a8885a308d3u, 0x13198a2e03707344u, 0xa4093822299f31d0u,
                                     0x082efa98ec4e6c89u}};
}

static inline uint64_t step(uint64_t lane, uint64_t word)
{
    lane = (lane ^ le64toh(word)) * MULTIPLIER;
    return (lane << 29) | (lane >> 35);
}

static inline void add_block(uint64_t lane[4], const uint8_t *block)
{
    uint64_t w[4];
    memcpy(w, block, sizeof w);
    for (int i = 0; i < 4; i++)
        lane[i] = step(lane[i], w[i]);
}

void mr_digest_add(struct mr_digest *d, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    uint64_t lane[4];
    memcpy(lane, d->lane, sizeof lane);
    size_t left = len;
    for (; left >= 32; left -= 32, p += 32)
        add_block(lane, p);
    if (left) {
        uint8_t tail[32] = {0};
        memcpy(tail, p, left);
        add_block(lane, tail);
    }
    lane[0] = step(lane[0], htole64(len));
    memcpy(d->lane, lane, sizeof lane);
    d->n_bytes += len;
}

void mr_digest_add_u64(struct mr_digest *d, uint64_t value)
{
    d->lane[1] = step(d->lane[1], htole64(value));
}

uint64_t mr_digest_value(const struct mr_digest *d)
{
    uint64_t x = mr_mix(d->n_bytes);
    for (int i = 0; i < 4; i++)
        x = mr_mix(x ^ d->lane[i]) + (uint64_t)i;
    return mr_mix(x);
}
