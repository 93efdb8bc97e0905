/* whole_file.h - read a whole regular file in two steps, so that the caller can find room for it.
 */
#ifndef MR_WHOLE_FILE_H
#define MR_WHOLE_FILE_H

#include <stddef.h>
#include <stdint.h>

struct stat;

/* Open a file of 1 .. max bytes: its descriptor and *size.  -EISDIR, -EINVAL (a device or pipe),
 * -ENODATA (empty), -EFBIG, or what open says (-ENXIO for a socket). */
int mr_whole_file_open(const char *path, uint64_t max, size_t *size);
/* Read its `size` bytes and close it in any case.  -ENODATA: it shrank meanwhile. */
int mr_whole_file_fill(int fd, void *buf, size_t size);

/* The rule of mr_whole_file_open about type and size, for other ways of opening. */
int mr_whole_file_allowed(unsigned mode, uint64_t size, uint64_t max);
/* Open for reading without ever blocking on a pipe, and fstat: the descriptor, or -errno. */
int mr_open_for_reading(const char *path, struct stat *st);

#endif
