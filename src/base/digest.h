/* digest.h - a 64-bit fingerprint of a stream of bytes, the same on every machine.
 * For "are these two runs equal", not against forgery. */
#ifndef MR_DIGEST_H
#define MR_DIGEST_H

#include <stddef.h>
#include <stdint.h>

struct mr_digest {
    uint64_t lane[4];
    uint64_t n_bytes;
};

void mr_digest_init(struct mr_digest *d);
/* The division of a stream into calls is part of what is hashed: add(ab) differs from add(a),
 * add(b). */
void mr_digest_add(struct mr_digest *d, const void *bytes, size_t len);
void mr_digest_add_u64(struct mr_digest *d, uint64_t value);
uint64_t mr_digest_value(const struct mr_digest *d);

#endif
