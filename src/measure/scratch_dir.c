/* scratch_dir.c - see scratch_dir.h.
 *
 * The process that uses a folder holds an exclusive flock on it, which ends with the process in any
 * case.  So a folder with our name and without a lock is a killed run's: whoever finds it takes the
 * lock and removes it.  A folder is made under another name, locked, and only then gets ours:
 *
 *     .millrace-newborn-HOST-BOOT-XXXXXX      made, perhaps not locked yet
 *     .millrace-scratch-HOST-BOOT-XXXXXX      locked, or left by a killed run
 *
 * A newborn that is found without a lock is removed as well, since its maker may have been killed;
 * a maker that is alive finds that out when it renames, and makes another.  That is no killed
 * run's.
 *
 * On a network file system a lock may be seen on one machine only.  So the name says whose it is
 * (BOOT: first 8 digits of the kernel's boot id), and a folder of another host that was booted at
 * another time stays, locked or not.
 *
 * Only folders of our own user are removed, and with them all that is below them in the same file
 * system.  Links are not followed. */
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
#include <sys/utsname.h>
#include <unistd.h>

#define PREFIX       ".millrace-scratch-"
#define NEWBORN      ".millrace-newborn-"
#define MAX_ATTEMPTS 16
#define HOST_CHARS   32
#define BOOT_CHARS   8
#define DRAWN        "XXXXXX"
#define NO_BOOT      "unknown_" /* as long as any other, and like none */

_Static_assert(sizeof NEWBORN == sizeof PREFIX, "one name becomes the other in place");

struct owner {
    char host[HOST_CHARS + 1], boot[BOOT_CHARS + 1];
};

struct mr_scratch {
    char path[PATH_MAX];
    int fd; /* of the folder; holds the lock */
    unsigned n_stale;
};

static int is_dots(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

static void find_owner(struct owner *o)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._";
    struct utsname uts;
    snprintf(o->host, sizeof o->host, "%.*s", HOST_CHARS, uname(&uts) ? "unknown" : uts.nodename);
    for (char *c = o->host; *c; c++)
        if (!strchr(plain, *c))
            *c = '_';
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!f || !fgets(o->boot, sizeof o->boot, f) || strlen(o->boot) != BOOT_CHARS ||
        strspn(o->boot, plain) != BOOT_CHARS)
        memcpy(o->boot, NO_BOOT, sizeof o->boot);
    if (f)
        fclose(f);
}

/* May a lock on a folder of this name be trusted: is it of this host, or of this kernel? */
static int is_ours(const struct owner *o, const char *name, const char *kind)
{
    const size_t prefix = sizeof PREFIX - 1, tail = 1 + BOOT_CHARS + 1 + sizeof DRAWN - 1;
    size_t n = strlen(name);
    if (strncmp(name, kind, prefix) || n <= prefix + tail)
        return 0;
    const char *host = name + prefix, *boot = name + n - tail + 1;
    size_t host_len = n - prefix - tail;
    if (boot[-1] != '-' || boot[BOOT_CHARS] != '-')
        return 0;
    return (host_len == strlen(o->host) && !memcmp(host, o->host, host_len)) ||
           (strcmp(o->boot, NO_BOOT) && !memcmp(boot, o->boot, BOOT_CHARS));
}

static int remove_folder(int parent, const char *name);

/* Remove what is in an open folder; the first error.  Takes a copy of the descriptor. */
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
    while ((errno = 0, e = readdir(d))) {
        if (is_dots(e->d_name) || !unlinkat(fd, e->d_name, 0))
            continue;
        int failed = errno == EISDIR ? remove_folder(fd, e->d_name) : -errno;
        if (!r)
            r = failed;
    }
    if (!r && errno)
        r = -errno;
    closedir(d);
    return r;
}

static int remove_folder(int parent, const char *name)
{
    struct stat above, st;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = fd < 0 || fstat(fd, &st) || fstat(parent, &above) ? -errno : 0;
    if (!r)
        r = st.st_dev != above.st_dev ? -EXDEV : clear(fd);
    if (!r && unlinkat(parent, name, AT_REMOVEDIR))
        r = -errno;
    if (fd >= 0)
        close(fd);
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
    if (!fstat(fd, &st) && st.st_uid == geteuid() && !flock(fd, LOCK_EX | LOCK_NB))
        removed = !remove_folder(parent, name);
    close(fd);
    return removed;
}

static unsigned remove_leftovers(const char *dir, const struct owner *o)
{
    unsigned n = 0;
    DIR *d = opendir(dir);
    struct dirent *e;
    while (d && (e = readdir(d)))
        if (is_ours(o, e->d_name, PREFIX))
            n += (unsigned)remove_stale(dirfd(d), e->d_name);
        else if (is_ours(o, e->d_name, NEWBORN))
            remove_stale(dirfd(d), e->d_name);
    if (d)
        closedir(d);
    return n;
}

/* Make a folder, lock it, give it its name.  1: somebody removed it before it was locked. */
static int make(const char *dir, const struct owner *o, struct mr_scratch *s)
{
    char newborn[PATH_MAX];
    snprintf(newborn, sizeof newborn, "%s/" NEWBORN "%s-%s-" DRAWN, dir, o->host, o->boot);
    if (!mkdtemp(newborn))
        return -errno;
    snprintf(s->path, sizeof s->path, "%s", newborn);
    memcpy(s->path + strlen(dir) + 1, PREFIX, sizeof PREFIX - 1);
    s->fd = open(newborn, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = s->fd < 0 ? -errno : 0;
    /* Without locks nobody will take it for a leftover either: remove_stale wants one. */
    if (!r && (flock(s->fd, LOCK_EX), rename(newborn, s->path)))
        r = -errno;
    if (!r)
        return 0;
    if (s->fd >= 0)
        close(s->fd);
    rmdir(newborn);
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
    if (strlen(dir) + sizeof PREFIX + sizeof(struct owner) + 32 > PATH_MAX)
        return refuse(dir, -ENAMETOOLONG, err);
    struct mr_scratch *s = malloc(sizeof *s);
    if (!s)
        return mr_fail(err, -ENOMEM, "no memory");
    struct owner owner;
    find_owner(&owner);
    s->fd = -1;
    s->n_stale = remove_leftovers(dir, &owner);
    int r = 1;
    for (unsigned i = 0; r == 1 && i < MAX_ATTEMPTS; i++)
        r = make(dir, &owner, s);
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
