/* small_files.c - what the file system and its metadata cost: many small files, and syncs.
 *
 * Small files: made one after the other (create, write 4 KiB, close), written back and evicted
 * outside the time, then opened, read and closed in a shuffled order, one at a time.  Making them
 * is timed without a sync: it says how fast the file system takes files, and the fsync pattern says
 * what it costs to have one on the device.
 *
 * Syncs: 4 KiB written through the page cache to the next block of the large file, then fsync;
 * what is timed is the fsync.
 *
 * With an emulated device, creating is a metadata operation that is waited for and a write that is
 * not, as a page cache would have it; all writes are through before the reading begins.  Reading is
 * one metadata operation and one read. */
#include "baseline_run.h"

#include "clock.h"
#include "device.h"
#include "errtext.h"
#include "permutation.h"
#include "whole_file.h"
#include "write_all.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A measured loop: its time, and its reports. */
struct lap {
    struct mr_baseline_state *b;
    uint64_t start_ns, end_ns, told_ns;
    uint64_t total;
};

#define TELL_NS 100000000

static int lap_begin(struct lap *l, struct mr_baseline_state *b, enum mr_pattern p, uint64_t total,
                     const char *doing)
{
    uint64_t now = mr_clock_ns();
    *l = (struct lap){b, now, now + mr_baseline_box_ns(b, p), now, total};
    b->now.doing = doing;
    int r = mr_baseline_tell(b, 0, total);
    l->start_ns = mr_clock_ns();
    return r;
}

/* 0: go on; 1: the time is over; -ECANCELED. */
static int lap_check(struct lap *l, uint64_t now, uint64_t done)
{
    if (now - l->told_ns >= TELL_NS) {
        l->told_ns = now;
        if (mr_baseline_tell(l->b, done, l->total))
            return -ECANCELED;
    }
    return now >= l->end_ns;
}

static double lap_seconds(const struct lap *l)
{
    return (double)(mr_clock_ns() - l->start_ns) / 1e9;
}

static void file_name(uint64_t i, char *buf, size_t cap)
{
    snprintf(buf, cap, "%08llu", (unsigned long long)i);
}

static int fail_at(struct mr_baseline_state *b, const char *what, int code)
{
    return mr_fail(b->err, code, "%s: small files: %s: %s", b->o.dir, what, mr_errno_text(code));
}

/* Create, write, close.  When the emulated device would have written it goes to *written_ns. */
static int create_one(struct mr_baseline_state *b, const char *name, uint64_t *written_ns)
{
    struct mr_device *d = b->o.device;
    int fd = openat(mr_scratch_fd(b->scratch), name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail_at(b, "create", -errno);
    if (d)
        mr_device_wait_until(mr_device_reserve(d, MR_DEV_META, NULL, 0));
    ssize_t n = write(fd, mr_raw_io_buffer(b->io), MR_SMALL_BYTES);
    int r = n < 0 ? -errno : n != MR_SMALL_BYTES ? -ENOSPC : 0;
    if (d && !r) {
        struct mr_device_place where;
        mr_device_place_fd(d, fd, 0, &where);
        *written_ns = mr_device_reserve(d, MR_DEV_WRITE, &where, MR_SMALL_BYTES);
    }
    if (close(fd) && !r)
        r = -errno;
    return r ? fail_at(b, "write", r) : 0;
}

/* Open, read, close.  The end of it by the emulated device goes to *due_ns. */
static int read_one(struct mr_baseline_state *b, const char *name, uint64_t start_ns,
                    uint64_t *due_ns)
{
    struct mr_device *d = b->o.device;
    int fd = openat(mr_scratch_fd(b->scratch), name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_at(b, "open", -errno);
    if (d) {
        struct mr_device_place where;
        mr_device_place_fd(d, fd, 0, &where);
        *due_ns = mr_device_reserve_file(d, start_ns, &where, MR_SMALL_BYTES);
    }
    int r = mr_whole_file_fill(fd, 0, mr_raw_io_buffer(b->io), MR_SMALL_BYTES); /* closes it */
    return r ? fail_at(b, "read", r) : 0;
}

/* Make up to `n` files; *made of them. */
static int create_all(struct mr_baseline_state *b, uint64_t n, uint64_t *made,
                      struct mr_baseline_sample *out)
{
    struct lap l;
    char name[32];
    uint64_t i = 0, written_ns = 0;
    int r = lap_begin(&l, b, MR_PATTERN_SMALL_FILES, n, "create");
    while (!r && i < n) {
        file_name(i, name, sizeof name);
        r = create_one(b, name, &written_ns);
        i += !r;
        if (!r && i < n)
            r = lap_check(&l, mr_clock_ns(), i);
    }
    out->write_cut = r == 1;
    out->write_seconds = lap_seconds(&l);
    out->write_ops = *made = i;
    out->write_bytes = i * MR_SMALL_BYTES;
    mr_device_wait_until(written_ns);
    return r < 0 ? r : 0;
}

/* Nothing of the files may be in the page cache any more. */
static enum mr_coldness evict_all(struct mr_baseline_state *b, uint64_t n)
{
    char path[PATH_MAX + 32], name[32];
    int cold = !b->o.device;
    if (cold)
        syncfs(mr_scratch_fd(b->scratch)); /* at once is quicker than file by file */
    for (uint64_t i = 0; cold && i < n; i++) {
        file_name(i, name, sizeof name);
        snprintf(path, sizeof path, "%s/%s", mr_scratch_path(b->scratch), name);
        cold = mr_cache_evict(path, NULL, NULL, NULL) == MR_COLD_DATA;
    }
    return mr_baseline_drop(b, cold ? MR_IS_COLD_DATA : MR_IS_UNPROVEN);
}

static int read_all(struct mr_baseline_state *b, uint64_t n, unsigned run,
                    struct mr_baseline_sample *sample)
{
    struct mr_raw_result *out = &sample->read;
    struct lap l;
    struct mr_permutation order;
    char name[32];
    mr_permutation_init(&order, n, run + 1);
    int r = lap_begin(&l, b, MR_PATTERN_SMALL_FILES, n, "read");
    for (uint64_t i = 0; !r && i < n; i++) {
        uint64_t start = mr_clock_ns(), due = 0;
        file_name(mr_permutation_at(&order, i), name, sizeof name);
        r = read_one(b, name, start, &due);
        uint64_t end = mr_clock_ns();
        if (r)
            break;
        sample->n_late += due && end > due;
        if (due > end)
            mr_device_wait_until(due);
        mr_histogram_add(&out->latency, (due > end ? due : end) - start);
        out->n_ops++;
        out->bytes += MR_SMALL_BYTES;
        if (i + 1 < n)
            r = lap_check(&l, due > end ? due : end, i);
    }
    out->cut = r == 1;
    out->seconds = lap_seconds(&l);
    return r < 0 ? r : 0;
}

int mr_small_files_run(struct mr_baseline_state *b, unsigned run, struct mr_baseline_sample *out)
{
    uint64_t n;
    int r = create_all(b, mr_baseline_small_count(b), &n, out);
    if (!r) {
        out->cold = evict_all(b, n);
        r = read_all(b, n, run, out);
    }
    int cleared = mr_scratch_clear(b->scratch);
    return r ? r : cleared ? fail_at(b, "remove", cleared) : 0;
}

/* One write and one sync; the latency of the sync is counted. */
static int sync_one(struct mr_baseline_state *b, uint64_t i, struct mr_raw_result *out)
{
    struct mr_device *d = b->o.device;
    uint64_t offset = i * MR_SMALL_BYTES % b->file_bytes, due = 0;
    uint8_t *buf = mr_raw_io_buffer(b->io);
    memcpy(buf, &i, sizeof i);
    ssize_t n = pwrite(b->fd, buf, MR_SMALL_BYTES, (off_t)offset);
    if (n != MR_SMALL_BYTES)
        return fail_at(b, "write", n < 0 ? -errno : -ENOSPC);
    uint64_t start = mr_clock_ns();
    if (d) {
        struct mr_device_place where = {.file = b->inode, .offset = offset};
        mr_device_reserve_at(d, start, MR_DEV_WRITE, &where, MR_SMALL_BYTES);
        due = mr_device_reserve_at(d, start, MR_DEV_SYNC, &where, 0);
        mr_device_wait_until(due);
    } else {
        int r = mr_sync_file(b->fd);
        if (r)
            return fail_at(b, "fsync", r);
    }
    mr_histogram_add(&out->latency, mr_clock_ns() - start);
    out->n_ops++;
    return 0;
}

int mr_fsync_run(struct mr_baseline_state *b, struct mr_baseline_sample *out)
{
    struct lap l;
    uint64_t n = mr_baseline_small_count(b);
    if (b->direct)
        mr_set_direct(b->fd, 0);
    int r = lap_begin(&l, b, MR_PATTERN_FSYNC, n, "sync");
    for (uint64_t i = 0; !r && i < n; i++) {
        r = sync_one(b, i, &out->read);
        if (!r && i + 1 < n)
            r = lap_check(&l, mr_clock_ns(), i);
    }
    out->read.cut = r == 1;
    out->read.seconds = lap_seconds(&l);
    out->cold = MR_IS_COLD_UNASKED;
    if (b->direct)
        mr_set_direct(b->fd, 1);
    return r < 0 ? r : 0;
}
