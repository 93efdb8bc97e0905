/* scratch_dir.c - see scratch_dir.h.
 *
 * The process that uses a folder holds an exclusive flock on it, which ends with the process in any
 * case.  So a folder with our name and without a lock is nobody's: whoever finds it takes the lock,
 * removes it, and lets go.  A folder that was just made and not locked yet looks the same; its
 * maker therefore looks, once it has the lock, whether the folder still exists, and makes another
 * if not.
 *
 * Only plain files of our own user are removed: a folder that holds anything else stays. */
#include "scratch_dir.h"

#include "errtext.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PREFIX       ".millrace-scratch-"
#define MAX_ATTEMPTS 16

struct mr_scratch {
    char path[PATH_MAX];
    int fd; /* of the folder; holds the lock */
    unsigned n_stale;
};

static int is_dots(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Remove the files in an open folder; the first error.  Takes a copy of the descriptor. */
static int clear(int fd)
{
    int r = 0, copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    struct dirent *e;
    if (!d) {
        r = -errno;
        if (copy >= 0)
            close(copy);
        return r;
    }
    while ((errno = 0, e = readdir(d)))
        if (!is_dots(e->d_name) && unlinkat(fd, e->d_name, 0) && !r)
            r = -errno;
    if (!r && errno)
        r = -errno;
    closedir(d);
    return r;
}

/* Remove what a process that is no more has left, if that is what it is: 1, or 0. */
static int remove_stale(int parent, const char *name)
{
    struct stat st;
    int removed = 0;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (!fstat(fd, &st) && st.st_uid == geteuid() && !flock(fd, LOCK_EX | LOCK_NB) && !clear(fd))
        removed = !unlinkat(parent, name, AT_REMOVEDIR);
    close(fd);
    return removed;
}

static unsigned remove_leftovers(const char *dir)
{
    unsigned n = 0;
    DIR *d = opendir(dir);
    struct dirent *e;
    while (d && (e = readdir(d)))
        if (!strncmp(e->d_name, PREFIX, sizeof PREFIX - 1))
            n += (unsigned)remove_stale(dirfd(d), e->d_name);
    if (d)
        closedir(d);
    return n;
}

/* Make a folder and lock it.  1: somebody took it for a leftover in between. */
static int make(const char *dir, struct mr_scratch *s)
{
    struct stat st;
    snprintf(s->path, sizeof s->path, "%s/" PREFIX "XXXXXX", dir);
    if (!mkdtemp(s->path))
        return -errno;
    s->fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = s->fd < 0 ? -errno : 0;
    /* Without locks nobody will take it for a leftover either: remove_stale wants one. */
    if (!r && (flock(s->fd, LOCK_EX), stat(s->path, &st)))
        r = -errno;
    if (!r)
        return 0;
    if (s->fd >= 0)
        close(s->fd);
    rmdir(s->path);
    return r == -ENOENT ? 1 : r;
}

/* What is wrong with the folder, in words that say the way out. */
static int refuse(const char *dir, int code, struct mr_error *err)
{
    const char *hint = code == -EROFS    ? "; it must be writable, because files are made in it"
                       : code == -EACCES ? "; name a folder in which you may make files"
                       : code == -ENOSPC ? "; no file can be made there"
                                         : "";
    return mr_fail(err, code, "%s: %s%s", dir, mr_errno_text(code), hint);
}

int mr_scratch_open(const char *dir, struct mr_scratch **out, struct mr_error *err)
{
    struct stat st;
    if (stat(dir, &st))
        return refuse(dir, -errno, err);
    if (!S_ISDIR(st.st_mode))
        return mr_fail(err, -ENOTDIR, "%s: not a folder; name one on the storage to be measured",
                       dir);
    if (strlen(dir) + sizeof PREFIX + 32 > PATH_MAX)
        return refuse(dir, -ENAMETOOLONG, err);
    struct mr_scratch *s = malloc(sizeof *s);
    if (!s)
        return mr_fail(err, -ENOMEM, "no memory");
    s->fd = -1;
    s->n_stale = remove_leftovers(dir);
    int r = 1;
    for (unsigned i = 0; r == 1 && i < MAX_ATTEMPTS; i++)
        r = make(dir, s);
    if (r) {
        free(s);
        return refuse(dir, r == 1 ? -EBUSY : r, err);
    }
    *out = s;
    return 0;
}

const char *mr_scratch_path(const struct mr_scratch *s)
{
    return s->path;
}

int mr_scratch_fd(const struct mr_scratch *s)
{
    return s->fd;
}

unsigned mr_scratch_n_stale(const struct mr_scratch *s)
{
    return s->n_stale;
}

int mr_scratch_unnamed(struct mr_scratch *s, struct mr_error *err)
{
    int fd = openat(s->fd, "unnamed", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : 0;
    if (!r && unlinkat(s->fd, "unnamed", 0)) {
        r = -errno;
        close(fd);
    }
    return r ? mr_fail(err, r, "%s: cannot make a file: %s", s->path, mr_errno_text(r)) : fd;
}

int mr_scratch_clear(struct mr_scratch *s)
{
    return clear(s->fd);
}

void mr_scratch_close(struct mr_scratch *s)
{
    if (!s)
        return;
    if (clear(s->fd))
        clear(s->fd); /* a network file system that failed once may have come back */
    rmdir(s->path);
    close(s->fd);
    free(s);
}

uint64_t mr_free_bytes(int fd)
{
    struct statvfs v;
    if (fstatvfs(fd, &v) || !v.f_blocks)
        return UINT64_MAX;
    uint64_t blocks = geteuid() ? v.f_bavail : v.f_bfree, bytes;
    return __builtin_mul_overflow(blocks, (uint64_t)v.f_frsize, &bytes) ? UINT64_MAX : bytes;
}
