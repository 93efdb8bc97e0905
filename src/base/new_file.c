/* new_file.c - see new_file.h.
 *
 *   begin    folder = open(dirname)          one descriptor for all that follows, so that a folder
 *            openat(random, O_EXCL)          or a working directory that changes makes no
 * difference commit   fsync, close, renameat(random, name)
 *
 * Nobody can prepare the random name (64 bits, O_EXCL), and renameat does not follow a link at the
 * final name.  A name is written to directly only when it leads to something that is no regular
 * file; after opening this is asked again, without having created or truncated anything. */
#include "new_file.h"

#include "open_file.h"
#include "write_all.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTEMPTS 16
#define LINKS    40 /* as many as the kernel follows */

/* "a/b/c" -> "a/b" and "c". */
static int split(const char *path, char folder[PATH_MAX], const char **name)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (!*path)
        return -ENOENT;
    if (slash && !slash[1])
        return -EISDIR;
    if (n >= PATH_MAX || strlen(slash ? slash + 1 : path) > NAME_MAX)
        return -ENAMETOOLONG;
    snprintf(folder, PATH_MAX, "%.*s", slash && !n ? 1 : (int)n, path);
    if (!slash)
        strcpy(folder, ".");
    *name = slash ? slash + 1 : path;
    return 0;
}

/* Is the path our own descriptor N, as /proc/self/fd shows it?  N, or -1. */
static int own_descriptor(const char *path)
{
    char folder[PATH_MAX], real[PATH_MAX], ours[64], *end;
    const char *name;
    if (split(path, folder, &name) || !realpath(folder, real))
        return -1;
    snprintf(ours, sizeof ours, "/proc/%ld/fd", (long)getpid());
    if (strcmp(real, ours) || *name < '0' || *name > '9')
        return -1;
    long n = strtol(name, &end, 10);
    return *end || n > INT_MAX ? -1 : (int)n;
}

/* /dev/stdout, /dev/fd/3 and links to them: a copy of that descriptor, so that all who write to it
 * go on where the others ended.  -1: it is none of these. */
static int as_descriptor(const char *path)
{
    char at[PATH_MAX], to[PATH_MAX], folder[PATH_MAX];
    const char *name;
    if (strlen(path) >= sizeof at)
        return -1;
    strcpy(at, path);
    for (unsigned i = 0; i < LINKS; i++) {
        int fd = own_descriptor(at);
        if (fd >= 0)
            return fcntl(fd, F_DUPFD_CLOEXEC, 3);
        ssize_t n = readlink(at, to, sizeof to - 1);
        if (n < 0 || split(at, folder, &name))
            return -1;
        to[n] = 0;
        int absolute = to[0] == '/';
        int len =
            snprintf(at, sizeof at, "%s%s%s", absolute ? "" : folder, absolute ? "" : "/", to);
        if (len >= (int)sizeof at)
            return -1;
    }
    return -1;
}

static int is_mount_point(int folder, const char *name)
{
    struct statx x;
    return !statx(folder, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &x) &&
           x.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

static int open_to_write(int folder, const char *name, int flags)
{
    int fd = openat(folder, name, O_WRONLY | O_NOCTTY | O_CLOEXEC | flags, 0666);
    return fd < 0 ? -errno : fd;
}

/* A device, a pipe, a socket: something that cannot be replaced by a file. */
static int open_special(int folder, const char *name)
{
    struct stat st;
    int fd;
    while ((fd = open_to_write(folder, name, 0)) == -EINTR) /* a pipe waits for its reader */
        ;
    if (fd < 0)
        return fd;
    int r = fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? -ELOOP : 0; /* changed meanwhile */
    if (r)
        close(fd);
    return r ? r : fd;
}

/* What stands at the name. */
struct present {
    int special, mounted; /* written to directly */
    int file;             /* a regular file, of this state */
    struct stat st;
};

/* In a sticky folder only its owner, the entry's owner and root may replace an entry. */
static int may_replace(int folder, const struct stat *entry)
{
    struct stat in;
    uid_t we = geteuid();
    if (fstat(folder, &in))
        return -errno;
    return in.st_mode & S_ISVTX && we && we != in.st_uid && we != entry->st_uid ? -EPERM : 0;
}

static int look(int folder, const char *name, struct present *p)
{
    struct stat to;
    *p = (struct present){0};
    if (fstatat(folder, name, &p->st, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? 0 : -errno;
    if (fstatat(folder, name, &to, 0))
        return -errno;
    p->special = !S_ISREG(to.st_mode);
    p->file = S_ISREG(p->st.st_mode);
    p->mounted = p->file && is_mount_point(folder, name);
    if (S_ISDIR(to.st_mode))
        return -EISDIR;
    if (S_ISBLK(to.st_mode)) /* a disk, by a slip or by somebody's link */
        return -EINVAL;
    /* Of a link to a file nothing is asked: the file is none of our business. */
    if ((p->special || p->file) && faccessat(folder, name, W_OK, AT_EACCESS))
        return -errno;
    return p->special || p->mounted ? 0 : may_replace(folder, &p->st);
}

static int draw_name(char name[40])
{
    uint64_t random;
    ssize_t n;
    do
        n = getrandom(&random, sizeof random, 0);
    while (n < 0 && errno == EINTR);
    if (n != sizeof random)
        return n < 0 ? -errno : -EIO;
    snprintf(name, 40, ".millrace-%016llx.part", (unsigned long long)random);
    return 0;
}

/* Permissions of the file that is replaced; of its group only where the group is the same. */
static void take_over(int fd, const struct stat *st)
{
    mode_t mode = st->st_mode & 0777;
    if (fchown(fd, st->st_uid, st->st_gid) && fchown(fd, (uid_t)-1, st->st_gid))
        mode &= ~(mode_t)070;
    if (fchmod(fd, mode)) {
        /* a file system without permissions */
    }
}

static int create(struct mr_new_file *f, const struct present *p)
{
    int r = -EEXIST;
    for (unsigned i = 0; r == -EEXIST && i < ATTEMPTS; i++) {
        r = draw_name(f->temporary);
        if (r)
            return r;
        f->fd = open_to_write(f->folder, f->temporary, O_CREAT | O_EXCL | O_NOFOLLOW);
        r = f->fd < 0 ? f->fd : 0;
        if (r == -EINTR) { /* a network file system may have made it */
            unlinkat(f->folder, f->temporary, 0);
            r = -EEXIST;
        }
    }
    if (!r && p->file)
        take_over(f->fd, &p->st);
    return r;
}

static void close_folder(struct mr_new_file *f)
{
    if (f->folder >= 0)
        close(f->folder);
    f->folder = -1;
}

/* The folder's descriptor in out, and what is at the name; a copy of a descriptor in out->fd when
 * it is one of ours. */
static int open_folder(const char *path, struct mr_new_file *out, struct present *p)
{
    char folder[PATH_MAX];
    const char *name;
    *out = (struct mr_new_file){.fd = as_descriptor(path), .folder = -1};
    if (out->fd >= 0)
        return 0;
    int r = split(path, folder, &name);
    if (r)
        return r;
    out->folder = mr_open_file(folder, O_PATH | O_DIRECTORY, 0);
    if (out->folder < 0)
        return out->folder;
    strcpy(out->name, name);
    r = look(out->folder, name, p);
    if (r)
        close_folder(out);
    return r;
}

int mr_new_file_begin(const char *path, struct mr_new_file *out)
{
    struct present p;
    int r = open_folder(path, out, &p);
    if (r || out->fd >= 0)
        return r;
    if (!p.special && !p.mounted) {
        r = create(out, &p);
    } else {
        out->fd = p.special ? open_special(out->folder, out->name)
                            : open_to_write(out->folder, out->name, O_NOFOLLOW | O_TRUNC);
        r = out->fd < 0 ? out->fd : 0;
    }
    if (r || p.special || p.mounted)
        close_folder(out);
    return r;
}

int mr_new_file_check(const char *path)
{
    struct mr_new_file f;
    struct present p;
    int r = open_folder(path, &f, &p);
    if (r)
        return r;
    if (f.fd < 0 && !p.special && !p.mounted)
        r = create(&f, &p);
    if (!r)
        mr_new_file_abort(&f);
    else
        close_folder(&f);
    return r;
}

static int close_file(struct mr_new_file *f)
{
    int r = f->fd >= 0 && close(f->fd) ? -errno : 0;
    f->fd = -1;
    return r == -EINTR ? 0 : r; /* it is closed all the same */
}

void mr_new_file_abort(struct mr_new_file *f)
{
    close_file(f);
    if (f->folder >= 0 && f->temporary[0])
        unlinkat(f->folder, f->temporary, 0);
    close_folder(f);
}

static int put_in_place(struct mr_new_file *f)
{
    int r, again = 0;
    while ((r = renameat(f->folder, f->temporary, f->folder, f->name) ? -errno : 0) == -EINTR)
        again = 1;
    return again && r == -ENOENT ? 0 : r; /* the call that was interrupted had done it */
}

int mr_new_file_commit(struct mr_new_file *f)
{
    if (f->folder < 0)
        return close_file(f);
    int r = mr_sync_file(f->fd);
    if (r == -EINVAL || r == -ENOTSUP) /* a file system that has nothing to sync */
        r = 0;
    int closed = close_file(f);
    if (!r)
        r = closed;
    if (!r)
        r = put_in_place(f);
    if (!r)
        f->temporary[0] = 0;
    mr_new_file_abort(f);
    return r;
}

int mr_new_file_put(const char *path, const void *bytes, size_t n)
{
    struct mr_new_file f;
    int r = mr_new_file_begin(path, &f);
    if (r)
        return r;
    r = mr_write_all(f.fd, bytes, n);
    if (!r)
        return mr_new_file_commit(&f);
    mr_new_file_abort(&f);
    return r;
}

int mr_new_file_stream(const char *path)
{
    struct mr_new_file f;
    int r = mr_new_file_begin(path, &f);
    if (!r && f.folder >= 0) {
        r = put_in_place(&f);
        if (r)
            mr_new_file_abort(&f);
    }
    close_folder(&f);
    return r ? r : f.fd;
}
