/* byte_hash.h - a number from some bytes, for a place in a hash table (FNV-1a). */
#ifndef MR_BYTE_HASH_H
#define MR_BYTE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint32_t mr_byte_hash(const void *bytes, size_t len);

#endif
