/* bytes.h - a string of bytes that grows at its end.  Appending does not report failure: once
 * there is no memory, nothing more is added, and `error` says so.  Check it once, when all is
 * written. */
#ifndef MR_BYTES_H
#define MR_BYTES_H

#include <stddef.h>
#include <stdint.h>

struct mr_bytes {
    uint8_t *data;
    size_t len, cap;
    int error; /* 0 or -ENOMEM */
};

void mr_bytes_init(struct mr_bytes *b);
/* Append `len` bytes; NULL appends zeros. */
void mr_bytes_add(struct mr_bytes *b, const void *bytes, size_t len);
void mr_bytes_add_u8(struct mr_bytes *b, uint8_t v);
void mr_bytes_add_u32(struct mr_bytes *b, uint32_t v); /* little-endian */
void mr_bytes_add_u64(struct mr_bytes *b, uint64_t v);
void mr_bytes_add_text(struct mr_bytes *b, const char *text);
void mr_bytes_printf(struct mr_bytes *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* up to 511 characters */
void mr_bytes_fini(struct mr_bytes *b);

/* Little-endian numbers from memory of any alignment. */
uint32_t mr_get_u32(const void *p);
uint64_t mr_get_u64(const void *p);

#endif
