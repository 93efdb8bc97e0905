/* out_dir.c - the operations that change files, each in one place.
 *
 * begin() asks the hook and reserves the emulated device's time, the system call follows, end()
 * waits until the device would be done and tells the hook.  The reservation comes first, so that
 * the real and the emulated work overlap as they would on one device.
 *
 * The folder is owned by a lease (lease.c), which is read again before every change of a name: an
 * owner that was replaced while it stood still must not touch what the new one writes.
 *
 * Direct writes need aligned memory, offsets and lengths.  A short direct write is continued from
 * the last whole block; a file that refuses direct I/O (-EINVAL) is written through the page cache,
 * which mr_out_sync then frees of it.
 *
 * Signals: every call that says -EINTR is made again, fsync too, for it has said nothing about the
 * data then.  A network file system may have done what it was interrupted in: then a rename does
 * not find the old name any more, a removal no file, mkdir a folder, and all of these count as
 * done; a file that was made is removed and made again.
 *
 * No state is shared but the descriptor, so there is no lock here. */
#include "out_dir.h"

#include "device.h"
#include "errtext.h"
#include "whole_file.h"
#include "write_all.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* So many direct writes in a row that bring less than a block are one too many. */
#define MAX_STALLS 8

struct mr_out_dir {
    int fd;
    unsigned tag;
    struct mr_lease *lease;
    struct mr_device *device;
    const struct mr_out_hook *hook;
    char path[];
};

/* Somebody whose quota is used up has no space left. */
static int plain_code(int code)
{
    return code == -EDQUOT ? -ENOSPC : code;
}

/* Ask the hook, reserve the device.  *deadline is 0 without a device.  `f` for writes: several
 * threads write a file from front to back and are a little out of step; a device's queue puts that
 * right, so what is charged is one run from the file's start. */
static int begin(struct mr_out_dir *d, struct mr_out_op *op, struct mr_out_file *f,
                 uint64_t *deadline)
{
    static const enum mr_device_op device_op[] = {
        [MR_OUT_CREATE] = MR_DEV_META, [MR_OUT_ALLOCATE] = MR_DEV_META,
        [MR_OUT_WRITE] = MR_DEV_WRITE, [MR_OUT_TRUNCATE] = MR_DEV_META,
        [MR_OUT_SYNC] = MR_DEV_SYNC,   [MR_OUT_RENAME] = MR_DEV_META,
        [MR_OUT_UNLINK] = MR_DEV_META, [MR_OUT_SYNC_DIR] = MR_DEV_SYNC,
    };
    int names = op->kind == MR_OUT_CREATE || op->kind == MR_OUT_RENAME || op->kind == MR_OUT_UNLINK;
    op->tag = d->tag;
    *deadline = 0;
    int r = names ? mr_lease_check(d->lease) : 0;
    if (r)
        return r;
    r = d->hook && d->hook->before ? d->hook->before(d->hook->ctx, op) : 0;
    if (r < 0)
        return plain_code(r);
    if (!d->device)
        return 0;
    struct mr_device_place place = {.file = f ? f->inode : 0};
    if (f)
        place.offset = atomic_fetch_add(&f->charged, op->len);
    *deadline =
        mr_device_reserve(d->device, device_op[op->kind], f ? &place : NULL, f ? op->len : 0);
    return 0;
}

static int end(struct mr_out_dir *d, const struct mr_out_op *op, uint64_t deadline, int result)
{
    if (deadline)
        mr_device_wait_until(deadline);
    if (!result && d->hook && d->hook->after)
        d->hook->after(d->hook->ctx, op);
    return plain_code(result);
}

static int open_existing(const char *path)
{
    int fd;
    do
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

/* The folder above `path`, made durable: a new folder is no good if a power cut takes it.
 */
static int sync_parent(const char *path)
{
    char parent[PATH_MAX];
    strcpy(parent, path);
    char *slash = strrchr(parent, '/');
    if (!slash)
        strcpy(parent, ".");
    else if (slash == parent)
        slash[1] = 0;
    else
        *slash = 0;
    int fd = open_existing(parent);
    if (fd < 0)
        return fd;
    int r = mr_sync_file(fd);
    close(fd);
    return r;
}

static int make_folder(const char *path)
{
    int r, interrupted = 0;
    while ((r = mkdir(path, 0777) ? -errno : 0) == -EINTR)
        interrupted = 1;
    return interrupted && r == -EEXIST ? 0 : r;
}

static int make_folders(const char *path)
{
    char part[PATH_MAX];
    if (strlen(path) >= sizeof part)
        return -ENAMETOOLONG;
    strcpy(part, path);
    for (char *p = part; *p;) {
        p += strspn(p, "/");
        p += strcspn(p, "/");
        char was = *p;
        *p = 0;
        int r = make_folder(part);
        if (!r)
            r = sync_parent(part);
        if (r && r != -EEXIST)
            return r;
        *p = was;
    }
    return 0;
}

static int open_folder(const char *path)
{
    int fd = open_existing(path);
    if (fd != -ENOENT)
        return fd;
    int r = make_folders(path);
    return r ? r : open_existing(path);
}

int mr_out_dir_open(const char *path, const struct mr_out_opts *opts, struct mr_out_dir **out,
                    struct mr_error *err)
{
    struct mr_out_dir *d = malloc(sizeof *d + strlen(path) + 1);
    if (!d)
        return mr_fail(err, -ENOMEM, "%s: no memory", path);
    strcpy(d->path, path);
    d->tag = opts ? opts->tag : 0;
    d->device = opts ? opts->device : NULL;
    d->hook = opts ? opts->hook : NULL;
    d->lease = NULL;
    d->fd = open_folder(path);
    int r = d->fd < 0 ? mr_fail(err, d->fd, "%s: %s", path, mr_errno_text(d->fd)) : 0;
    if (!r)
        r = mr_lease_acquire(d->fd, path, opts ? &opts->lease : NULL, &d->lease, err);
    if (r) {
        mr_out_dir_close(d);
        return r;
    }
    *out = d;
    return 0;
}

void mr_out_dir_close(struct mr_out_dir *d)
{
    if (!d)
        return;
    mr_lease_release(d->lease);
    if (d->fd >= 0)
        close(d->fd);
    free(d);
}

const char *mr_out_dir_path(const struct mr_out_dir *d)
{
    return d->path;
}

int mr_out_dir_fd(const struct mr_out_dir *d)
{
    return d->fd;
}

uint32_t mr_out_dir_token(const struct mr_out_dir *d)
{
    return mr_lease_token(d->lease);
}

/* O_DIRECT where the file system opens with it. */
static int open_new(struct mr_out_dir *d, const char *name, int *direct)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    for (int interrupted = 0;;) {
        int fd = openat(d->fd, name, flags | (*direct ? O_DIRECT : 0), 0666);
        if (fd >= 0)
            return fd;
        if (errno == EINTR) {
            interrupted = 1;
        } else if (errno == EINVAL && *direct) {
            unlinkat(d->fd, name, 0); /* some make it before they refuse */
            *direct = 0;
        } else if (errno == EEXIST && interrupted) {
            unlinkat(d->fd, name, 0);
            interrupted = 0;
        } else {
            return -errno;
        }
    }
}

static int allocate(struct mr_out_file *f, uint64_t len)
{
    struct mr_out_op op = {.kind = MR_OUT_ALLOCATE, .name = f->name, .len = len};
    uint64_t deadline;
    int r = begin(f->dir, &op, NULL, &deadline);
    if (r)
        return r;
    do
        r = fallocate(f->fd, 0, 0, (off_t)len) ? -errno : 0;
    while (r == -EINTR);
    if (r == -EOPNOTSUPP) { /* then at least there must be room */
        struct statvfs v;
        r = fstatvfs(f->fd, &v) ? -errno : (uint64_t)v.f_bavail * v.f_frsize < len ? -ENOSPC : 0;
    }
    return end(f->dir, &op, deadline, r);
}

int mr_out_create(struct mr_out_dir *d, const char *name, uint64_t len, int direct,
                  struct mr_out_file *f)
{
    struct mr_out_op op = {.kind = MR_OUT_CREATE, .name = name};
    uint64_t deadline;
    if (strlen(name) >= sizeof f->name)
        return -ENAMETOOLONG;
    int r = begin(d, &op, NULL, &deadline);
    int fd = r ? r : open_new(d, name, &direct);
    r = r ? r : end(d, &op, deadline, fd < 0 ? fd : 0);
    if (r)
        return r;
    f->dir = d;
    f->fd = fd;
    f->direct = direct;
    f->charged = 0;
    strcpy(f->name, name);
    struct stat st;
    r = fstat(fd, &st) ? -errno : 0;
    f->inode = r ? 0 : st.st_ino;
    if (!r && len)
        r = allocate(f, len);
    if (r) {
        mr_out_close(f);
        mr_out_unlink(d, name);
    }
    return r;
}

static void stop_direct(struct mr_out_file *f)
{
    mr_set_direct(f->fd, 0);
    f->direct = 0;
}

static int write_all(struct mr_out_file *f, const uint8_t *data, size_t len, uint64_t offset)
{
    int direct = f->direct;
    unsigned n_stalls = 0;
    for (size_t done = 0; done < len;) {
        ssize_t n = pwrite(f->fd, data + done, len - done, (off_t)(offset + done));
        if (n > 0) {
            size_t was = done;
            done += (size_t)n;
            if (direct && done < len) /* go on at a whole block */
                done &= ~(MR_DIRECT_ALIGN - 1);
            if (done == was && ++n_stalls > MAX_STALLS)
                return -EIO;
        } else if (n == 0) {
            return -EIO;
        } else if (errno == EINVAL && direct) {
            stop_direct(f);
            direct = 0;
        } else if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

int mr_out_write(struct mr_out_file *f, const void *data, size_t len, uint64_t offset)
{
    struct mr_out_op op = {
        .kind = MR_OUT_WRITE, .name = f->name, .offset = offset, .len = len, .data = data};
    uint64_t deadline;
    int r = begin(f->dir, &op, f, &deadline);
    return r ? r : end(f->dir, &op, deadline, write_all(f, data, len, offset));
}

int mr_out_truncate(struct mr_out_file *f, uint64_t len)
{
    struct mr_out_op op = {.kind = MR_OUT_TRUNCATE, .name = f->name, .len = len};
    uint64_t deadline;
    int r = begin(f->dir, &op, NULL, &deadline);
    if (r)
        return r;
    do
        r = ftruncate(f->fd, (off_t)len) ? -errno : 0;
    while (r == -EINTR);
    return end(f->dir, &op, deadline, r);
}

static int sync_fd(struct mr_out_dir *d, int fd, struct mr_out_op *op)
{
    uint64_t deadline;
    int r = begin(d, op, NULL, &deadline);
    return r ? r : end(d, op, deadline, mr_sync_file(fd));
}

int mr_out_sync(struct mr_out_file *f)
{
    struct mr_out_op op = {.kind = MR_OUT_SYNC, .name = f->name};
    int r = sync_fd(f->dir, f->fd, &op);
    if (!r && !f->direct)
        posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
    return r;
}

void mr_out_close(struct mr_out_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

int mr_out_small_file(struct mr_out_dir *d, const char *name, const void *data, size_t len)
{
    struct mr_out_file f;
    int r = mr_out_create(d, name, 0, 0, &f);
    if (r)
        return r;
    r = mr_out_write(&f, data, len, 0);
    if (!r)
        r = mr_out_sync(&f);
    mr_out_close(&f);
    if (r)
        mr_out_unlink(d, name);
    return r;
}

int mr_out_rename(struct mr_out_dir *d, const char *name, const char *to)
{
    struct mr_out_op op = {.kind = MR_OUT_RENAME, .name = name, .to = to};
    uint64_t deadline;
    int r = begin(d, &op, NULL, &deadline);
    if (r)
        return r;
    int interrupted = 0;
    while ((r = renameat(d->fd, name, d->fd, to) ? -errno : 0) == -EINTR)
        interrupted = 1;
    if (interrupted && r == -ENOENT)
        r = 0;
    return end(d, &op, deadline, r);
}

int mr_out_unlink(struct mr_out_dir *d, const char *name)
{
    struct mr_out_op op = {.kind = MR_OUT_UNLINK, .name = name};
    uint64_t deadline;
    int r = begin(d, &op, NULL, &deadline);
    if (r)
        return r;
    do
        r = unlinkat(d->fd, name, 0) ? -errno : 0;
    while (r == -EINTR);
    end(d, &op, deadline, r);
    return r == -ENOENT ? 0 : r;
}

int mr_out_sync_dir(struct mr_out_dir *d)
{
    struct mr_out_op op = {.kind = MR_OUT_SYNC_DIR, .name = ""};
    return sync_fd(d, d->fd, &op);
}

int mr_out_exists(struct mr_out_dir *d, const char *name)
{
    struct stat st;
    if (fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return 1;
    return errno == ENOENT ? 0 : -errno;
}
