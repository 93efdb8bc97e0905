/* whole_file.h - read a whole regular file in two steps, so that the caller can find room for it.
 */
#ifndef MR_WHOLE_FILE_H
#define MR_WHOLE_FILE_H

#include <stddef.h>
#include <stdint.h>

struct mr_buffer;
struct stat;

/* Direct I/O: buffers, lengths and offsets are multiples of this. */
#define MR_DIRECT_ALIGN ((size_t)4096)
static inline size_t mr_direct_round(size_t size)
{
    return (size + MR_DIRECT_ALIGN - 1) & ~(MR_DIRECT_ALIGN - 1);
}
/* What a direct read of `length` bytes from `offset` on takes, in whole blocks. */
static inline size_t mr_direct_span(uint64_t offset, size_t length)
{
    return mr_direct_round(offset % MR_DIRECT_ALIGN + length);
}

/* Open a file of 1 .. max bytes: its descriptor and *size.  A relative path begins at the folder
 * `dir`, or at the present one for AT_FDCWD.  With `direct` around the page cache,
 * where the file system can.  -EISDIR, -EINVAL (a device or pipe),
 * -ENODATA (empty), -EFBIG, or what open says (-ENXIO for a socket). */
int mr_whole_file_open(int dir, const char *path, int direct, uint64_t max, size_t *size);
/* Read its `size` bytes and close it in any case.  -ENODATA: it shrank meanwhile.  A file that was
 * opened direct needs an aligned buffer of mr_direct_round(size) bytes. */
int mr_whole_file_fill(int fd, int direct, void *buf, size_t size);
/* Read `size` bytes from `offset` on of a file that stays open.  -ENODATA: it ends before.  A file
 * that was opened direct needs an aligned offset and an aligned buffer of mr_direct_round(size). */
int mr_part_fill(int fd, int direct, void *buf, uint64_t offset, size_t size);
/* Open, read and close a file that is believed to have `size` bytes, without asking: 1 when just so
 * many came, and then its end.  0: anything else; ask.  The buffer has room for one byte more. */
int mr_whole_file_again(int dir, const char *path, void *buf, size_t size);
/* Both at once, into a buffer that grows to its size.  -ENOMEM is possible. */
int mr_whole_file_load(const char *path, uint64_t max, struct mr_buffer *into, size_t *size);

/* Have an open file read and written around the page cache, or through it again.  Done after
 * opening, so that a file system without direct I/O still opens: -EINVAL. */
int mr_set_direct(int fd, int on);

/* Open for reading as above and fstat, but only if no I/O is needed to find the file: everything on
 * its path is in memory.  `flags` are added to O_RDONLY.  -EAGAIN: it is not, open it otherwise;
 * -ENOTSUP: this kernel (before 5.12) or sandbox never can. */
int mr_open_cached(int dir, const char *path, int flags, struct stat *st);

/* The rule of mr_whole_file_open about type and size, for other ways of opening. */
int mr_whole_file_allowed(unsigned mode, uint64_t size, uint64_t max);
/* Open for reading without ever blocking on a pipe, and fstat: the descriptor, or -errno. */
int mr_open_for_reading(int dir, const char *path, struct stat *st);

#endif
