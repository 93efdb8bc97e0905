/* crc32c_x86.h - crc32c with the instructions of newer x86 processors; crc32c.c chooses.
 * `state` is a crc without its initial and final inversion; `dst` NULL: no copy. */
#ifndef MR_CRC32C_X86_H
#define MR_CRC32C_X86_H

#include <stddef.h>
#include <stdint.h>

uint32_t mr_crc32c_sse(uint32_t state, uint8_t *dst, const uint8_t *src, size_t len);
uint32_t mr_crc32c_avx512(uint32_t state, uint8_t *dst, const uint8_t *src, size_t len);

#endif
