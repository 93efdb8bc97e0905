/* range_file.h - ranges of a large file, read around the page cache where that is possible. */
#ifndef MR_RANGE_FILE_H
#define MR_RANGE_FILE_H

#include "buffer.h"

#include <stdint.h>

#define MR_RANGE_PIECE ((size_t)4 << 20)

struct mr_range_file {
    int fd; /* -1: not open */
    uint64_t bytes;
    int64_t mtime_s;
    int direct;
    struct mr_buffer buf; /* of one piece, page-aligned */
};

/* A regular file.  0 or -errno; `f` can be closed in any case. */
int mr_range_open(struct mr_range_file *f, const char *path);
void mr_range_close(struct mr_range_file *f);

/* Hand over bytes [offset, offset + len) in pieces; stops at a result other than 0.  -ENODATA: the
 * file ends before. */
int mr_range_each(struct mr_range_file *f, uint64_t offset, uint64_t len,
                  int (*each)(void *ctx, const uint8_t *bytes, size_t n), void *ctx);

/* A whole small file to new memory (free it); `max` limits its size.  An empty file gives -ENODATA.
 */
int mr_small_file(const char *path, uint64_t max, uint8_t **out, size_t *len);

#endif
