/* write_all.c - see write_all.h. */
#include "write_all.h"

#include <errno.h>
#include <unistd.h>

int mr_write_all(int fd, const void *bytes, size_t n)
{
    const char *at = bytes;
    while (n) {
        ssize_t done = write(fd, at, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -errno;
        at += done;
        n -= (size_t)done;
    }
    return 0;
}

int mr_sync_file(int fd)
{
    int r;
    do
        r = fsync(fd) ? -errno : 0;
    while (r == -EINTR);
    return r;
}
