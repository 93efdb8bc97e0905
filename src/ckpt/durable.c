/* durable.c - see durable.h. */
#include "durable.h"

#include "errtext.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int failed(const char *path, const char *what, int r, struct mr_error *err)
{
    return mr_fail(err, r, "%s: %s: %s", path, what, mr_errno_text(r));
}

static int open_again(const char *path, int flags, int mode)
{
    int fd;
    do
        fd = open(path, flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

int mr_durable_open(struct mr_durable *f, const char *path, struct mr_error *err)
{
    *f = MR_DURABLE_NONE;
    int n = snprintf(f->path, sizeof f->path, "%s", path);
    if (n < 0 || (size_t)n + 16 >= sizeof f->path)
        return failed(path, "create", -ENAMETOOLONG, err);
    memcpy(f->temp, f->path, (size_t)n);
    strcpy(f->temp + n, ".millrace-tmp");
    int fd = open_again(f->temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return failed(f->temp, "create", fd, err);
    f->fd = fd;
    f->has_temp = 1;
    return 0;
}

int mr_durable_write_at(struct mr_durable *f, const void *bytes, size_t len, uint64_t offset,
                        struct mr_error *err)
{
    const char *p = bytes;
    while (len) {
        ssize_t n = pwrite(f->fd, p, len, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return failed(f->temp, "write", n ? -errno : -EIO, err);
        p += n;
        len -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

int mr_durable_write(struct mr_durable *f, const void *bytes, size_t len, struct mr_error *err)
{
    int r = mr_durable_write_at(f, bytes, len, f->len, err);
    if (!r)
        f->len += len;
    return r;
}

int mr_durable_sync(struct mr_durable *f, struct mr_error *err)
{
    int r = fsync(f->fd) ? -errno : 0;
    if (close(f->fd) && !r)
        r = -errno;
    f->fd = -1;
    return r ? failed(f->temp, "sync", r, err) : 0;
}

int mr_durable_publish(struct mr_durable *f, struct mr_error *err)
{
    if (rename(f->temp, f->path))
        return failed(f->path, "rename", -errno, err);
    f->has_temp = 0;
    return 0;
}

void mr_durable_abort(struct mr_durable *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    if (f->has_temp)
        unlink(f->temp);
    f->has_temp = 0;
}

int mr_durable_sync_dir(const char *dir, struct mr_error *err)
{
    int fd = open_again(dir, O_RDONLY | O_DIRECTORY, 0), r = fd < 0 ? fd : 0;
    if (fd >= 0) {
        r = fsync(fd) ? -errno : 0;
        close(fd);
    }
    return r ? failed(dir, "sync", r, err) : 0;
}
