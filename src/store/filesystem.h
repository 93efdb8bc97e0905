/* filesystem.h - what lies under a path, as far as measuring it goes. */
#ifndef MR_FILESYSTEM_H
#define MR_FILESYSTEM_H

#include <stdint.h>

enum mr_fs_kind {
    MR_FS_BLOCK,   /* on a block device: reads are accounted, eviction reaches the device */
    MR_FS_MEMORY,  /* tmpfs, ramfs: the page cache is the storage, nothing can be evicted */
    MR_FS_FUSE,    /* a user-space server that may hold its own cache */
    MR_FS_OVERLAY, /* cachestat answers 0 here; mincore sees the real pages */
    MR_FS_OTHER,   /* network and other file systems: nothing is promised */
};

struct mr_filesystem {
    enum mr_fs_kind kind;
    uint64_t magic;
    unsigned dev_major, dev_minor; /* of the block device, when kind is MR_FS_BLOCK */
    int lower_cache; /* something below may hold a cache of its own: a loop device without direct
                      * I/O, or whatever an overlay stands on when that is no disk */
};

int mr_filesystem_of(int fd, struct mr_filesystem *out);

#endif
