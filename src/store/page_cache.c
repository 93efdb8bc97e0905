/* page_cache.c - how much of a file is cached, and taking it out of the cache.
 *
 * Two system calls tell residency.  cachestat (Linux 6.5) counts pages of an open file without
 * mapping it, but asks the inode it is given: on overlay that is the overlay's own, empty one, and
 * it answers 0.  mincore looks through a mapping and so sees the real inode.  Both refuse or
 * mislead a caller who neither owns the file nor may write it (so that cached pages are no side
 * channel): mincore then calls every page resident, cachestat fails.  Hence "unknown" for them.
 *
 * Eviction is fdatasync (dirty pages cannot be dropped; it works on a read-only descriptor) and
 * posix_fadvise(DONTNEED).  Pages that someone has mapped or is reading stay, so the proof is to
 * ask again afterwards. */
#include <millrace/store.h>

#include "errtext.h"
#include "filesystem.h"
#include "whole_file.h"
#include "write_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux 6.5; the number is the same on every architecture. */
#ifndef __NR_cachestat
#define __NR_cachestat 451
#endif

struct cachestat_range {
    uint64_t off, len;
};
struct cachestat_counts {
    uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

static int64_t resident_by_cachestat(int fd, uint64_t size)
{
    struct cachestat_range range = {0, size};
    struct cachestat_counts counts;
    if (syscall(__NR_cachestat, fd, &range, &counts, 0))
        return -1;
    return (int64_t)counts.cached * sysconf(_SC_PAGESIZE);
}

static int64_t resident_by_mincore(int fd, uint64_t size)
{
    enum { CHUNK_PAGES = 16384 };
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), n_resident = 0;
    unsigned char state[CHUNK_PAGES];
    for (uint64_t off = 0; off < size; off += CHUNK_PAGES * page) {
        uint64_t len = size - off < CHUNK_PAGES * page ? size - off : CHUNK_PAGES * page;
        void *map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, (off_t)off);
        if (map == MAP_FAILED)
            return -1;
        int r = mincore(map, len, state);
        munmap(map, len);
        if (r)
            return -1;
        for (uint64_t i = 0; i < (len + page - 1) / page; i++)
            n_resident += state[i] & 1;
    }
    return (int64_t)(n_resident * page);
}

/* The kernel's own rule: owner of the inode (or with the power of one), or allowed to write it.
 * O_NOATIME is granted by the first half of that rule, also on a read-only mount. */
static int may_know(int fd)
{
    char path[32];
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && !fcntl(fd, F_SETFL, flags | O_NOATIME))
        return 1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

static int64_t resident_bytes(int fd, const struct stat *st, const struct mr_filesystem *fs)
{
    uint64_t size = (uint64_t)st->st_size;
    if (!may_know(fd))
        return -1;
    if (!size)
        return 0;
    int64_t n = fs->kind == MR_FS_OVERLAY ? -1 : resident_by_cachestat(fd, size);
    if (n < 0)
        n = resident_by_mincore(fd, size);
    /* The last page counts whole; a file is never more resident than it is long. */
    return n > (int64_t)size ? (int64_t)size : n;
}

static int open_regular(const char *path, struct stat *st)
{
    int fd = mr_open_for_reading(AT_FDCWD, path, st);
    if (fd < 0 || S_ISREG(st->st_mode))
        return fd;
    close(fd);
    return S_ISDIR(st->st_mode) ? -EISDIR : -EINVAL;
}

static struct mr_cache_state query(int fd, const struct stat *st, const struct mr_filesystem *fs)
{
    return (struct mr_cache_state){(uint64_t)st->st_size, resident_bytes(fd, st, fs)};
}

/* `r` as it is, with words for it if it is an error. */
static int failed(const char *path, int r, struct mr_error *err)
{
    return r < 0 ? mr_fail(err, r, "%s: %s", path, mr_errno_text(r)) : r;
}

int mr_cache_query(const char *path, struct mr_cache_state *out, struct mr_error *err)
{
    struct stat st;
    struct mr_filesystem fs;
    int fd = open_regular(path, &st);
    if (fd < 0)
        return failed(path, fd, err);
    int r = mr_filesystem_of(fd, &fs);
    if (!r)
        *out = query(fd, &st, &fs);
    close(fd);
    return failed(path, r, err);
}

/* Drop the pages; write them back first only if some would not go, because fdatasync makes the
 * device flush its cache even for a clean file. */
static int drop(int fd, const struct stat *st, const struct mr_filesystem *fs,
                struct mr_cache_state *is)
{
    int r = -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (r)
        return r;
    *is = query(fd, st, fs);
    /* To mincore a page with blocks that were never read or written is not there at all: where a
     * page has several blocks, its "nothing" may still be dirty. */
    int sure = st->st_blksize >= sysconf(_SC_PAGESIZE);
    if ((is->cached_bytes == 0 && sure) || fs->kind == MR_FS_MEMORY)
        return 0;
    /* A file system without fdatasync has nothing to write back. */
    if (fdatasync(fd) && errno == EIO)
        return -EIO;
    r = -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (!r)
        *is = query(fd, st, fs);
    return r;
}

int mr_cache_evict(const char *path, struct mr_cache_state *before, struct mr_cache_state *after,
                   struct mr_error *err)
{
    struct stat st;
    struct mr_filesystem fs;
    struct mr_cache_state was, is;
    int fd = open_regular(path, &st);
    if (fd < 0)
        return failed(path, fd, err);
    int r = mr_filesystem_of(fd, &fs);
    if (r)
        goto done;
    was = query(fd, &st, &fs);
    r = drop(fd, &st, &fs, &is);
    if (r)
        goto done;
    if (before)
        *before = was;
    if (after)
        *after = is;
    int reaches_device = fs.kind == MR_FS_BLOCK || fs.kind == MR_FS_OVERLAY;
    r = is.cached_bytes == 0 && reaches_device && !fs.lower_cache ? MR_COLD_DATA : MR_COLD_UNPROVEN;
done:
    close(fd);
    return failed(path, r, err);
}

int mr_cache_drop_all(struct mr_error *err)
{
    static const char path[] = "/proc/sys/vm/drop_caches";
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return failed(path, -errno, err);
    sync();
    int r = mr_write_all(fd, "3\n", 2);
    close(fd);
    return failed(path, r, err);
}
