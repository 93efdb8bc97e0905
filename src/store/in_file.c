/* in_file.c - see in_file.h.  Threads read a file from front to back and are a little out of step;
 * an emulated device is charged one run, as in out_dir.c.  Where direct I/O is refused the page
 * cache is used, and asked to forget when the file is closed. */
#include "in_file.h"

#include "buffer.h"
#include "device.h"
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void set_direct(struct mr_in_file *f, int on)
{
    f->direct = !mr_set_direct(f->fd, on) && on;
}

int mr_in_open(int dir, const char *path, struct mr_device *device, struct mr_in_file *f)
{
    struct stat st;
    int fd = mr_open_for_reading(dir, path, &st);
    if (fd < 0)
        return fd;
    int r = mr_whole_file_allowed(st.st_mode, 1, 1); /* of any size */
    if (r) {
        close(fd);
        return r;
    }
    *f = (struct mr_in_file){
        .fd = fd, .bytes = (uint64_t)st.st_size, .inode = st.st_ino, .device = device};
    set_direct(f, 1);
    if (device)
        mr_device_wait_until(mr_device_reserve(device, MR_DEV_META, NULL, 0));
    return 0;
}

static int read_all(struct mr_in_file *f, uint8_t *buf, size_t len, uint64_t offset)
{
    for (size_t got = 0; got < len;) {
        int direct = f->direct;
        size_t want = direct ? mr_direct_round(len - got) : len - got;
        ssize_t n = pread(f->fd, buf + got, want, (off_t)(offset + got));
        if (n > 0) {
            got += (size_t)n;
            if (direct && got < len && got % MR_DIRECT_ALIGN)
                set_direct(f, 0); /* cannot go on between two blocks */
        } else if (n == 0) {
            return -ENODATA;
        } else if (errno == EINVAL && direct) {
            set_direct(f, 0);
        } else if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

int mr_in_read(struct mr_in_file *f, void *buf, size_t len, uint64_t offset)
{
    if (offset > f->bytes || len > f->bytes - offset)
        return -ENODATA;
    uint64_t due = 0;
    if (f->device) {
        struct mr_device_place place = {.file = f->inode};
        place.offset = atomic_fetch_add(&f->charged, len);
        due = mr_device_reserve(f->device, MR_DEV_READ, &place, len);
    }
    int r = read_all(f, buf, len, offset);
    mr_device_wait_until(due);
    return r;
}

/* Direct reads begin at a multiple of 4096: so does each piece, and what lies before is skipped. */
int mr_in_each(struct mr_in_file *f, struct mr_buffer *buf, uint64_t offset, uint64_t len,
               int (*each)(void *ctx, const uint8_t *bytes, size_t n), void *ctx)
{
    if (offset > f->bytes || len > f->bytes - offset)
        return -ENODATA;
    int r = 0;
    while (!r && len) {
        size_t skip = offset % MR_DIRECT_ALIGN, room = MR_IN_PIECE - skip;
        size_t n = len < room ? (size_t)len : room;
        r = mr_in_read(f, buf->data, skip + n, offset - skip);
        if (!r)
            r = each(ctx, buf->data + skip, n);
        offset += n;
        len -= n;
    }
    return r;
}

void mr_in_close(struct mr_in_file *f)
{
    if (f->fd < 0)
        return;
    if (!f->direct)
        posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
    close(f->fd);
    f->fd = -1;
}

int mr_in_small_file(int dir, const char *path, uint64_t max, struct mr_device *device,
                     uint8_t **out, size_t *len)
{
    size_t size;
    int fd = mr_whole_file_open(dir, path, 0, max, &size);
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
    if (device) {
        mr_device_wait_until(mr_device_reserve(device, MR_DEV_META, NULL, 0));
        mr_device_wait_until(mr_device_reserve(device, MR_DEV_READ, NULL, size));
    }
    *out = bytes;
    *len = size;
    return 0;
}
