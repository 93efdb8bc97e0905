/* whole_file.c - open, fstat, read, close.
 *
 * The size that fstat reports is what the file must deliver.  Fewer bytes mean that it shrank while
 * it was read, and a sample made of half a file must not pass as whole: -ENODATA.  A file that
 * grows is cut at the size it had, as any reader that came a moment earlier would have seen it.
 *
 * Whoever has read a file before knows how long it was.  A read that asks for one byte more and
 * gets just the bytes that were there then has seen the end of the file where it was, and fstat
 * would say nothing new; one that gets anything else begins anew and asks.
 *
 * Opening with O_NONBLOCK keeps a pipe in the data set from blocking a worker for ever; regular
 * files ignore it. */
#include "whole_file.h"

#include "buffer.h"
#include "errtext.h"
#include "plain_calls.h"

#include <millrace/store.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

/* What an opening has returned, with fstat: the descriptor or -errno. */
static int stat_opened(int fd, struct stat *st)
{
    if (fd < 0)
        return -errno;
    if (fstat(fd, st)) {
        int r = -errno;
        close(fd);
        return r;
    }
    return fd;
}

static int open_plain(int dir, const char *path)
{
    int fd;
    do
        fd = mr_plain_openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (fd < 0 && errno == EINTR);
    return fd;
}

int mr_open_for_reading(int dir, const char *path, struct stat *st)
{
    return stat_opened(open_plain(dir, path), st);
}

int mr_open_cached(int dir, const char *path, int flags, struct stat *st)
{
    struct open_how how = {.flags = (uint64_t)(O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags),
                           .resolve = RESOLVE_CACHED};
    int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM || (errno == EINVAL && !flags)))
        return -ENOTSUP;
    return stat_opened(fd, st);
}

int mr_set_direct(int fd, int on)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT))
        return -errno;
    return 0;
}

int mr_whole_file_open(int dir, const char *path, int direct, uint64_t max, size_t *size)
{
    struct stat st;
    int fd = mr_open_for_reading(dir, path, &st);
    int r = fd < 0 ? fd : mr_whole_file_allowed(st.st_mode, (uint64_t)st.st_size, max);
    if (r && fd >= 0)
        close(fd);
    if (r)
        return r;
    if (direct)
        mr_set_direct(fd, 1); /* without it, it just stays off */
    *size = (size_t)st.st_size;
    return fd;
}

int mr_part_fill(int fd, int direct, void *buf, uint64_t offset, size_t size)
{
    for (size_t got = 0; got < size;) {
        /* A direct read that stopped between two blocks cannot go on there. */
        if (direct && got % MR_DIRECT_ALIGN)
            mr_set_direct(fd, direct = 0);
        size_t left = direct ? mr_direct_round(size - got) : size - got;
        ssize_t n = pread(fd, (uint8_t *)buf + got, left, (off_t)(offset + got));
        if (n > 0)
            got += (size_t)n;
        else if (n == 0)
            return -ENODATA;
        else if (errno == EINVAL && direct)
            mr_set_direct(fd, direct = 0);
        else if (errno != EINTR)
            return -errno;
    }
    return 0;
}

int mr_whole_file_fill(int fd, int direct, void *buf, size_t size)
{
    int r = 0;
    for (size_t got = 0; !r && got < size;) {
        /* A direct read that stopped between two blocks cannot go on there. */
        if (direct && got % MR_DIRECT_ALIGN) {
            mr_set_direct(fd, 0);
            direct = 0;
        }
        size_t left = direct ? mr_direct_round(size - got) : size - got;
        ssize_t n = mr_plain_read(fd, (uint8_t *)buf + got, left);
        if (n > 0)
            got += (size_t)n;
        else if (n == 0)
            r = -ENODATA;
        else if (errno == EINVAL && direct)
            mr_set_direct(fd, direct = 0);
        else if (errno != EINTR)
            r = -errno;
    }
    mr_plain_close(fd);
    return r;
}

int mr_whole_file_again(int dir, const char *path, void *buf, size_t size)
{
    int fd = open_plain(dir, path);
    if (fd < 0)
        return 0;
    ssize_t n = mr_plain_read(fd, buf, size + 1);
    mr_plain_close(fd);
    return n == (ssize_t)size;
}

int mr_whole_file_load(const char *path, uint64_t max, struct mr_buffer *into, size_t *size)
{
    size_t n;
    int fd = mr_whole_file_open(AT_FDCWD, path, 0, max, &n);
    if (fd < 0)
        return fd;
    int r = mr_buffer_reserve(into, n);
    if (r) {
        close(fd);
        return r;
    }
    r = mr_whole_file_fill(fd, 0, into->data, n);
    if (!r)
        *size = n;
    return r;
}

int mr_file_read(const char *path, void *buf, size_t cap, size_t *len, struct mr_error *err)
{
    size_t size;
    int fd = mr_whole_file_open(AT_FDCWD, path, 0, cap, &size);
    int r = fd < 0 ? fd : mr_whole_file_fill(fd, 0, buf, size);
    if (r)
        return mr_fail(err, r, "%s: %s", path, mr_errno_text(r));
    *len = size;
    return 0;
}
