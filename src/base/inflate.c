/* inflate.c - see inflate.h.  zlib counts in 32 bits: longer pieces are given to it in parts, and
 * the caller comes again. */
#include "inflate.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

#define WINDOW    15 /* inflateInit2: the largest there is */
#define PLUS_GZIP 16 /* and gzip's header in place of zlib's */

struct mr_inflate {
    z_stream zip;
};

int mr_inflate_new(enum mr_inflate_kind kind, struct mr_inflate **out)
{
    struct mr_inflate *z = calloc(1, sizeof *z);
    if (!z)
        return -ENOMEM;
    if (inflateInit2(&z->zip, WINDOW + (kind == MR_INFLATE_GZIP ? PLUS_GZIP : 0)) != Z_OK) {
        free(z);
        return -ENOMEM;
    }
    *out = z;
    return 0;
}

void mr_inflate_reset(struct mr_inflate *z)
{
    inflateReset(&z->zip); /* fails for a state that never was one */
}

void mr_inflate_free(struct mr_inflate *z)
{
    if (!z)
        return;
    inflateEnd(&z->zip);
    free(z);
}

static uInt piece(size_t n)
{
    return n > UINT_MAX ? UINT_MAX : (uInt)n;
}

enum mr_inflate_said mr_inflate_run(struct mr_inflate *z, const uint8_t **in, size_t *n_in,
                                    uint8_t **out, size_t *n_out)
{
    uInt give = piece(*n_in), room = piece(*n_out);
    z->zip.next_in = (Bytef *)*in; /* zlib does not say const; it only reads */
    z->zip.avail_in = give;
    z->zip.next_out = *out;
    z->zip.avail_out = room;
    int said = inflate(&z->zip, Z_NO_FLUSH);
    *in += give - z->zip.avail_in;
    *n_in -= give - z->zip.avail_in;
    *out += room - z->zip.avail_out;
    *n_out -= room - z->zip.avail_out;
    switch (said) {
    case Z_OK:
        return MR_INFLATE_MORE;
    case Z_BUF_ERROR:
        return MR_INFLATE_STUCK;
    case Z_STREAM_END:
        return MR_INFLATE_END;
    case Z_MEM_ERROR:
        return MR_INFLATE_NO_MEMORY;
    default:
        return MR_INFLATE_BAD;
    }
}

uint32_t mr_crc32(uint32_t crc, const uint8_t *bytes, size_t len)
{
    return (uint32_t)crc32_z(crc, bytes, len);
}
