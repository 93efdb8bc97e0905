/* plain_calls.h - open, read and close for those who call them for every file.
 *
 * The C library's own are cancellation points: in a program with threads each pays for two atomic
 * operations, and nobody cancels ours.  A sanitizer watches only the C library's. */
#ifndef MR_PLAIN_CALLS_H
#define MR_PLAIN_CALLS_H

#include "sanitizers.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int mr_plain_openat(int dir, const char *path, int flags)
{
    return MR_SANITIZED ? openat(dir, path, flags)
                        : (int)syscall(SYS_openat, dir, path, flags | O_LARGEFILE);
}

static inline ssize_t mr_plain_read(int fd, void *buf, size_t n)
{
    return MR_SANITIZED ? read(fd, buf, n) : (ssize_t)syscall(SYS_read, fd, buf, n);
}

static inline int mr_plain_close(int fd)
{
    return MR_SANITIZED ? close(fd) : (int)syscall(SYS_close, fd);
}

#endif
