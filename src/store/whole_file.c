/* whole_file.c - open, fstat, read, close.
 *
 * The size that fstat reports is what the file must deliver.  Fewer bytes mean that it shrank while
 * it was read, and a sample made of half a file must not pass as whole: -ENODATA.  A file that
 * grows is cut at the size it had, as any reader that came a moment earlier would have seen it.
 * Opening with O_NONBLOCK keeps a pipe in the data set from blocking a worker for ever; regular
 * files ignore it. */
#include "whole_file.h"

#include <millrace/store.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int mr_whole_file_allowed(unsigned mode, uint64_t size, uint64_t max)
{
    if (S_ISDIR(mode))
        return -EISDIR;
    if (!S_ISREG(mode))
        return -EINVAL;
    if (!size)
        return -ENODATA;
    return size > max ? -EFBIG : 0;
}

int mr_open_for_reading(const char *path, struct stat *st)
{
    int fd;
    do
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return -errno;
    if (fstat(fd, st)) {
        int r = -errno;
        close(fd);
        return r;
    }
    return fd;
}

int mr_whole_file_open(const char *path, uint64_t max, size_t *size)
{
    struct stat st;
    int fd = mr_open_for_reading(path, &st);
    int r = fd < 0 ? fd : mr_whole_file_allowed(st.st_mode, (uint64_t)st.st_size, max);
    if (r && fd >= 0)
        close(fd);
    if (r)
        return r;
    *size = (size_t)st.st_size;
    return fd;
}

int mr_whole_file_fill(int fd, void *buf, size_t size)
{
    int r = 0;
    for (size_t got = 0; !r && got < size;) {
        ssize_t n = read(fd, (uint8_t *)buf + got, size - got);
        if (n > 0)
            got += (size_t)n;
        else if (n == 0)
            r = -ENODATA;
        else if (errno != EINTR)
            r = -errno;
    }
    close(fd);
    return r;
}

int mr_file_read(const char *path, void *buf, size_t cap, size_t *len)
{
    size_t size;
    int fd = mr_whole_file_open(path, cap, &size);
    int r = fd < 0 ? fd : mr_whole_file_fill(fd, buf, size);
    if (!r)
        *len = size;
    return r;
}
