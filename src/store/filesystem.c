/* filesystem.c - tell block-backed file systems from those where caches and counters mean something
 * else.  A device number that /sys/dev/block knows is a block device; btrfs hides its devices
 * behind anonymous numbers and is recognised by its magic. */
#include "filesystem.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#define BTRFS_MAGIC 0x9123683eu
#define LOOP_MAJOR  7
#define MAX_STACK   8 /* devices on top of each other */

static int is_cached_below(const char *sys, unsigned depth);

/* The same of a device's parts, for the one at this place. */
static int are_parts_cached(const char *sys, unsigned depth)
{
    char path[PATH_MAX];
    struct dirent *d;
    snprintf(path, sizeof path, "%s/slaves", sys);
    DIR *parts = opendir(path);
    int cached = !parts && errno != ENOENT;
    while (parts && !cached) {
        errno = 0;
        d = readdir(parts);
        cached = !d && errno;
        if (!d)
            break;
        if (d->d_name[0] == '.')
            continue;
        cached = snprintf(path, sizeof path, "%s/slaves/%s", sys, d->d_name) >= PATH_MAX ||
                 is_cached_below(path, depth + 1);
    }
    if (parts)
        closedir(parts);
    return cached;
}

/* Whether the device at this place in /sys has another cache below.  A loop device reads its
 * backing file through the page cache unless direct I/O is switched on: then what we evict above is
 * still cached below.  A partition asks its disk, a mapped or striped device its parts.  What
 * cannot be found out counts as cached: "cold" needs a proof. */
static int is_cached_below(const char *sys, unsigned depth)
{
    char path[PATH_MAX];
    struct stat st;
    if (depth > MAX_STACK)
        return 1;
    snprintf(path, sizeof path, "%s/loop/dio", sys);
    FILE *f = fopen(path, "re");
    if (!f && errno != ENOENT)
        return 1;
    if (f) {
        int c = fgetc(f);
        fclose(f);
        return c != '1';
    }
    snprintf(path, sizeof path, "%s/partition", sys);
    if (!stat(path, &st)) {
        snprintf(path, sizeof path, "%s/..", sys);
        return is_cached_below(path, depth + 1);
    }
    return errno != ENOENT || are_parts_cached(sys, depth);
}

static int loop_is_cached(unsigned maj, unsigned min)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/loop/dio", maj, min);
    if (maj == LOOP_MAJOR && stat(path, &st))
        return 1;
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u", maj, min);
    return is_cached_below(path, 0);
}

/* Overlay hands this request to the file below, and only file systems that lay files out on a
 * device answer it: memory, FUSE, network and squashfs do not. */
static int has_extents(int fd)
{
    struct fiemap ask = {.fm_length = 1};
    return ioctl(fd, FS_IOC_FIEMAP, &ask) == 0;
}

static int is_block_device(unsigned maj, unsigned min)
{
    char path[64];
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u", maj, min);
    return access(path, F_OK) == 0;
}

int mr_filesystem_of(int fd, struct mr_filesystem *out)
{
    struct statfs fs;
    struct stat st;
    if (fstatfs(fd, &fs) || fstat(fd, &st))
        return -errno;
    struct mr_filesystem r = {.kind = MR_FS_OTHER, .magic = (uint32_t)fs.f_type};
    if (r.magic == TMPFS_MAGIC || r.magic == RAMFS_MAGIC) {
        r.kind = MR_FS_MEMORY;
    } else if (r.magic == FUSE_SUPER_MAGIC) {
        r.kind = MR_FS_FUSE;
    } else if (r.magic == OVERLAYFS_SUPER_MAGIC) {
        r.kind = MR_FS_OVERLAY;
        r.lower_cache = !has_extents(fd);
    } else if (r.magic == BTRFS_MAGIC || is_block_device(major(st.st_dev), minor(st.st_dev))) {
        r.kind = MR_FS_BLOCK;
        r.dev_major = major(st.st_dev);
        r.dev_minor = minor(st.st_dev);
        r.lower_cache = loop_is_cached(r.dev_major, r.dev_minor);
    }
    *out = r;
    return 0;
}
