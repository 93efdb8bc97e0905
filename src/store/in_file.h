/* in_file.h - read ranges of a large file around the page cache. */
#ifndef MR_IN_FILE_H
#define MR_IN_FILE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct mr_device;

struct mr_in_file {
    int fd; /* -1: not open */
    atomic_int direct;
    uint64_t bytes, inode;
    struct mr_device *device;
    atomic_uint_fast64_t charged;
};

/* Open a regular file; `device` is borrowed, NULL = the real storage.  0 or -errno. */
int mr_in_open(const char *path, struct mr_device *device, struct mr_in_file *f);
/* Bytes [offset, offset + len) to `buf`.  Offset and buffer are multiples of 4096; the buffer has
 * room for `len` rounded up to that.  -ENODATA: the file ends before.  Any thread. */
int mr_in_read(struct mr_in_file *f, void *buf, size_t len, uint64_t offset);
/* Leaves nothing of the file in the page cache that reading it brought there. */
void mr_in_close(struct mr_in_file *f);

#endif
