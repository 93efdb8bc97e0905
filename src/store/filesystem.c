/* filesystem.c - tell block-backed file systems from those where caches and counters mean something
 * else.  A device number that /sys/dev/block knows is a block device; btrfs hides its devices
 * behind anonymous numbers and is recognised by its magic. */
#include "filesystem.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#define BTRFS_MAGIC 0x9123683eu
#define LOOP_MAJOR  7

/* A loop device reads its backing file through the page cache unless direct I/O is switched on:
 * then what we evict above is still cached below. */
static int loop_is_cached(unsigned minor)
{
    char path[64];
    snprintf(path, sizeof path, "/sys/dev/block/%d:%u/loop/dio", LOOP_MAJOR, minor);
    FILE *f = fopen(path, "re");
    if (!f)
        return 1;
    int c = fgetc(f);
    fclose(f);
    return c != '1';
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
    } else if (r.magic == BTRFS_MAGIC || is_block_device(major(st.st_dev), minor(st.st_dev))) {
        r.kind = MR_FS_BLOCK;
        r.dev_major = major(st.st_dev);
        r.dev_minor = minor(st.st_dev);
        r.lower_cache = r.dev_major == LOOP_MAJOR && loop_is_cached(r.dev_minor);
    }
    *out = r;
    return 0;
}
