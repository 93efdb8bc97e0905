/* inflate.h - inflate a stream piece by piece: zlib, which only base knows. */
#ifndef MR_INFLATE_H
#define MR_INFLATE_H

#include <stddef.h>
#include <stdint.h>

enum mr_inflate_kind { MR_INFLATE_ZLIB, MR_INFLATE_GZIP }; /* the stream's wrapper */

enum mr_inflate_said {
    MR_INFLATE_MORE,  /* it got on: call again with more input or room */
    MR_INFLATE_STUCK, /* it cannot get on without */
    MR_INFLATE_END,   /* the stream has ended; what is left of the input is not of it */
    MR_INFLATE_BAD,
    MR_INFLATE_NO_MEMORY,
};

struct mr_inflate;

/* -ENOMEM. */
int mr_inflate_new(enum mr_inflate_kind kind, struct mr_inflate **out);
/* Another stream; keeps the memory. */
void mr_inflate_reset(struct mr_inflate *z);
void mr_inflate_free(struct mr_inflate *z);
/* From *in to *out; both are moved on and their lengths made smaller by what was used. */
enum mr_inflate_said mr_inflate_run(struct mr_inflate *z, const uint8_t **in, size_t *n_in,
                                    uint8_t **out, size_t *n_out);
/* The CRC-32 of zlib, gzip and PNG; begins with 0. */
uint32_t mr_crc32(uint32_t crc, const uint8_t *bytes, size_t len);

#endif
