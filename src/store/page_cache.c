/* page_cache.c - how much of a file, or of part of it, is cached, and taking it out of the cache.
 *
 * Two system calls tell residency.  cachestat (Linux 6.5) counts pages of an open file without
 * mapping it, but asks the inode it is given: on overlay that is the overlay's own, empty one, and
 * it answers 0.  mincore looks through a mapping and so sees the real inode.  Both refuse or
 * mislead a caller who neither owns the file nor may write it (so that cached pages are no side
 * channel): mincore then calls every page resident, cachestat fails.  Hence "unknown" for them.
 *
 * Eviction is fdatasync (dirty pages cannot be dropped; it works on a read-only descriptor) and
 * posix_fadvise(DONTNEED).  Pages that someone has mapped or is reading stay, so the proof is to
 * ask again afterwards.
 *
 * A part is widened to whole pages: that is what the kernel counts and drops. */
#include "page_cache.h"

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

/* Part of an open file, in whole pages but for the end of the file. */
struct part {
    int fd;
    uint64_t from, size; /* size: its own */
};

static int64_t resident_by_cachestat(const struct part *p)
{
    struct cachestat_range range = {p->from, p->size};
    struct cachestat_counts counts;
    if (syscall(__NR_cachestat, p->fd, &range, &counts, 0))
        return -1;
    return (int64_t)counts.cached * sysconf(_SC_PAGESIZE);
}

static int64_t resident_by_mincore(const struct part *p)
{
    enum { CHUNK_PAGES = 16384 };
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), n_resident = 0;
    unsigned char state[CHUNK_PAGES];
    for (uint64_t off = 0; off < p->size; off += CHUNK_PAGES * page) {
        uint64_t len = p->size - off < CHUNK_PAGES * page ? p->size - off : CHUNK_PAGES * page;
        void *map = mmap(NULL, len, PROT_READ, MAP_SHARED, p->fd, (off_t)(p->from + off));
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

static int64_t resident_bytes(const struct part *p, const struct mr_filesystem *fs)
{
    if (!may_know(p->fd))
        return -1;
    if (!p->size)
        return 0;
    int64_t n = fs->kind == MR_FS_OVERLAY ? -1 : resident_by_cachestat(p);
    if (n < 0)
        n = resident_by_mincore(p);
    /* The last page counts whole; a file is never more resident than it is long. */
    return n > (int64_t)p->size ? (int64_t)p->size : n;
}

static int open_regular(int dir, const char *path, struct stat *st)
{
    int fd = mr_open_for_reading(dir, path, st);
    if (fd < 0 || S_ISREG(st->st_mode))
        return fd;
    close(fd);
    return S_ISDIR(st->st_mode) ? -EISDIR : -EINVAL;
}

static struct mr_cache_state query(const struct part *p, const struct mr_filesystem *fs)
{
    return (struct mr_cache_state){p->size, resident_bytes(p, fs)};
}

/* posix_fadvise takes no part of the last page unless it is asked for everything behind, too. */
static int drop_pages(const struct part *p, const struct stat *st)
{
    int to_end = p->from + p->size == (uint64_t)st->st_size;
    return -posix_fadvise(p->fd, (off_t)p->from, to_end ? 0 : (off_t)p->size, POSIX_FADV_DONTNEED);
}

/* Drop the pages; write them back first only if some would not go, because fdatasync makes the
 * device flush its cache even for a clean file. */
static int drop(const struct part *p, const struct stat *st, const struct mr_filesystem *fs,
                struct mr_cache_state *is)
{
    int r = drop_pages(p, st);
    if (r)
        return r;
    *is = query(p, fs);
    /* To mincore a page with blocks that were never read or written is not there at all: where a
     * page has several blocks, its "nothing" may still be dirty. */
    int sure = st->st_blksize >= sysconf(_SC_PAGESIZE);
    if ((is->cached_bytes == 0 && sure) || fs->kind == MR_FS_MEMORY)
        return 0;
    /* A file system without fdatasync has nothing to write back. */
    if (fdatasync(p->fd) && errno == EIO)
        return -EIO;
    r = drop_pages(p, st);
    if (!r)
        *is = query(p, fs);
    return r;
}

/* The part in whole pages, as far as the file goes. */
static struct part part_of(int fd, const struct stat *st, uint64_t offset, uint64_t length)
{
    uint64_t size = (uint64_t)st->st_size, page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t from = offset < size ? offset / page * page : size;
    uint64_t end = length && length < size - from && offset + length < size
                       ? (offset + length + page - 1) / page * page
                       : size;
    return (struct part){fd, from, (end < size ? end : size) - from};
}

int mr_cache_range(int dir, const char *path, uint64_t offset, uint64_t length, int evict,
                   struct mr_cache_state *before, struct mr_cache_state *after)
{
    struct stat st;
    struct mr_filesystem fs;
    struct mr_cache_state was, is;
    int fd = open_regular(dir, path, &st);
    if (fd < 0)
        return fd;
    int r = mr_filesystem_of(fd, &fs);
    if (r)
        goto done;
    struct part part = part_of(fd, &st, offset, length);
    was = is = query(&part, &fs);
    if (evict)
        r = drop(&part, &st, &fs, &is);
    if (r)
        goto done;
    if (before)
        *before = was;
    if (after)
        *after = is;
    int reaches_device = fs.kind == MR_FS_BLOCK || fs.kind == MR_FS_OVERLAY;
    if (evict)
        r = is.cached_bytes == 0 && reaches_device && !fs.lower_cache ? MR_COLD_DATA
                                                                      : MR_COLD_UNPROVEN;
done:
    close(fd);
    return r;
}

/* `r` as it is, with words for it if it is an error. */
static int failed(const char *path, int r, struct mr_error *err)
{
    return r < 0 ? mr_fail(err, r, "%s: %s", path, mr_errno_text(r)) : r;
}

int mr_cache_query(const char *path, struct mr_cache_state *out, struct mr_error *err)
{
    return failed(path, mr_cache_range(AT_FDCWD, path, 0, 0, 0, out, NULL), err);
}

int mr_cache_evict(const char *path, struct mr_cache_state *before, struct mr_cache_state *after,
                   struct mr_error *err)
{
    return failed(path, mr_cache_range(AT_FDCWD, path, 0, 0, 1, before, after), err);
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
