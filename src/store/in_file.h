/* in_file.h - read files: ranges of a large one around the page cache, or a small one whole. */
#ifndef MR_IN_FILE_H
#define MR_IN_FILE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct mr_buffer;
struct mr_device;

#define MR_IN_PIECE ((size_t)4 << 20) /* what mr_in_each reads at once */

struct mr_in_file {
    int fd; /* -1: not open */
    atomic_int direct;
    uint64_t bytes, inode;
    struct mr_device *device;
    atomic_uint_fast64_t charged;
};

/* Open a regular file; a relative path begins at the folder `dir`, or at the present one for
 * AT_FDCWD.  `device` is borrowed, NULL = the real storage.  0 or -errno. */
int mr_in_open(int dir, const char *path, struct mr_device *device, struct mr_in_file *f);
/* Bytes [offset, offset + len) to `buf`.  Offset and buffer are multiples of 4096; the buffer has
 * room for `len` rounded up to that.  -ENODATA: the file ends before.  Any thread. */
int mr_in_read(struct mr_in_file *f, void *buf, size_t len, uint64_t offset);
/* Hand over any range in pieces, in order, from a buffer of MR_IN_PIECE bytes; stops at a result
 * other than 0.  -ENODATA: the file ends before. */
int mr_in_each(struct mr_in_file *f, struct mr_buffer *buf, uint64_t offset, uint64_t len,
               int (*each)(void *ctx, const uint8_t *bytes, size_t n), void *ctx);
/* Leaves nothing of the file in the page cache that reading it brought there. */
void mr_in_close(struct mr_in_file *f);

/* A whole small file to new memory (free it); `max` limits its size.  -ENODATA: it is empty. */
int mr_in_small_file(int dir, const char *path, uint64_t max, struct mr_device *device,
                     uint8_t **out, size_t *len);

#endif
