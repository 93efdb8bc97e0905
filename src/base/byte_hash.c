/* byte_hash.c - see byte_hash.h. */
#include "byte_hash.h"

uint32_t mr_byte_hash(const void *bytes, size_t len)
{
    const unsigned char *s = bytes;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ s[i]) * 0x100000001b3u;
    return (uint32_t)(h ^ h >> 32);
}
