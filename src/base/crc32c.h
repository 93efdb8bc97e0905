/* crc32c.h - the Castagnoli checksum, as storage formats use it, at the speed of memory.
 *
 * A crc begins with 0 and is extended by more bytes: crc(ab) = extend(crc(a), b). */
#ifndef MR_CRC32C_H
#define MR_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Extend `crc` (0 for nothing so far) by `len` bytes. */
uint32_t mr_crc32c(uint32_t crc, const void *bytes, size_t len);
/* The same while the bytes are copied from `src` to `dst`, which must not overlap: each is
 * fetched once.  `dst` is written around the caches when it is large. */
uint32_t mr_crc32c_copy(uint32_t crc, void *dst, const void *src, size_t len);
/* crc of two pieces in a row from their crcs; `len_b` is the length of the second one. */
uint32_t mr_crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t len_b);

/* TensorFlow and LevelDB store checksums masked: the crc of bytes that hold crcs is weak. */
static inline uint32_t mr_crc32c_mask(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static inline uint32_t mr_crc32c_unmask(uint32_t masked)
{
    uint32_t turned = masked - 0xa282ead8u;
    return (turned >> 17) | (turned << 15);
}

/* The same by one way of computing, for tests and comparisons; `dst` NULL: no copy.  A way that
 * this processor lacks must not be called. */
enum mr_crc32c_way { MR_CRC32C_SCALAR, MR_CRC32C_SSE, MR_CRC32C_AVX512, MR_CRC32C_N_WAYS };
int mr_crc32c_has(enum mr_crc32c_way way);
uint32_t mr_crc32c_by(enum mr_crc32c_way way, uint32_t crc, void *dst, const void *src, size_t len);

#endif
