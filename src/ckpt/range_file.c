/* range_file.c - see range_file.h.
 *
 * Direct reads want offsets, lengths and addresses in multiples of 4096, so a piece is read from
 * the multiple below its first byte.  A file system that refuses gets ordinary reads. */
#include "range_file.h"

#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void set_direct(struct mr_range_file *f, int on)
{
    int flags = fcntl(f->fd, F_GETFL);
    f->direct =
        flags >= 0 && !fcntl(f->fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) && on;
}

int mr_range_open(struct mr_range_file *f, const char *path)
{
    struct stat st;
    memset(f, 0, sizeof *f);
    f->fd = mr_open_for_reading(path, &st);
    if (f->fd < 0) {
        int r = f->fd;
        f->fd = -1;
        return r;
    }
    int r = mr_whole_file_allowed(st.st_mode, 1, 1);
    if (!r)
        r = mr_buffer_reserve(&f->buf, MR_RANGE_PIECE);
    if (r) {
        mr_range_close(f);
        return r;
    }
    f->bytes = (uint64_t)st.st_size;
    f->mtime_s = (int64_t)st.st_mtime;
    set_direct(f, 1);
    return 0;
}

void mr_range_close(struct mr_range_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    mr_buffer_fini(&f->buf);
}

/* Fill the buffer from `at`, a multiple of 4096: at least `want` bytes. */
static int fill(struct mr_range_file *f, uint64_t at, size_t want)
{
    size_t got = 0;
    while (got < want) {
        if (f->direct && got % MR_DIRECT_ALIGN)
            set_direct(f, 0);
        size_t len = f->direct ? mr_direct_round(want - got) : want - got;
        ssize_t n = pread(f->fd, f->buf.data + got, len, (off_t)(at + got));
        if (n > 0)
            got += (size_t)n;
        else if (!n)
            return -ENODATA;
        else if (errno == EINVAL && f->direct)
            set_direct(f, 0);
        else if (errno != EINTR)
            return -errno;
    }
    return 0;
}

int mr_range_each(struct mr_range_file *f, uint64_t offset, uint64_t len,
                  int (*each)(void *ctx, const uint8_t *bytes, size_t n), void *ctx)
{
    if (offset > f->bytes || len > f->bytes - offset)
        return -ENODATA;
    int r = 0;
    while (!r && len) {
        size_t skip = offset % MR_DIRECT_ALIGN, room = MR_RANGE_PIECE - skip;
        size_t n = len < room ? (size_t)len : room;
        r = fill(f, offset - skip, skip + n);
        if (!r)
            r = each(ctx, f->buf.data + skip, n);
        offset += n;
        len -= n;
    }
    return r;
}

int mr_small_file(const char *path, uint64_t max, uint8_t **out, size_t *len)
{
    size_t size;
    int fd = mr_whole_file_open(path, 0, max, &size);
    if (fd < 0)
        return fd;
    uint8_t *bytes = malloc(size);
    if (!bytes) {
        close(fd);
        return -ENOMEM;
    }
    int r = mr_whole_file_fill(fd, 0, bytes, size);
    if (r) {
        free(bytes);
        return r;
    }
    *out = bytes;
    *len = size;
    return 0;
}
