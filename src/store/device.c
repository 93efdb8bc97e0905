/* device.c - the model of a storage device: one clock a target, moved on by every operation.
 *
 *   arrival          start                        end                 deadline
 *      |-- waits for --|-- seek -|-- bytes / rate --|-- latency ... ------|
 *          its target  `------- the target is busy -'   others may proceed
 *
 * A target serves one operation after the other, in the order of their reservations.  What keeps it
 * busy is the seek and the transfer; the latency comes on top and overlaps with other operations,
 * so more of them outstanding hide it, as on a real device.  A target's rate is the device's
 * divided by the number of targets, reads and writes share the target's time, and a target is never
 * ahead of arrival + bytes / rate.  That is the proof that no number of outstanding operations
 * exceeds the bandwidth; and as it is busy whenever something waits, they reach it.
 *
 * Locality: an operation that begins no more than 1 MiB behind the end of the one before it on its
 * target pays no seek.  "Behind" is by physical address where FIEMAP tells it; else within a file
 * by offset, and from file to file by inode number, which is the order in which file systems place
 * files that were written in a row.  What continues (by no more than 128 KiB, or the next inode) an
 * operation that is still waiting pays none either: the device sorts its queue, and readers that
 * share a sequential stream reach it slightly out of order.  Other seeks shrink with the number of
 * operations that the target has not finished when one arrives, itself included: a longer queue has
 * nearer neighbours.
 *
 * Striping: stripe s of a file lies on target (hash of the inode + s) mod n, and there stripe by
 * stripe in a row.
 *
 * Metadata operations have a server of their own that takes metadata_parallel of them at once: it
 * can begin one every metadata / parallel.  In the open-read-close of a whole file the metadata's
 * delay is put behind the read instead of before it: the sum is the same, and an operation need not
 * reserve a target for a time in the future, which would leave the target idle until then.
 *
 * Everything is whole nanoseconds, rounded up, and depends on the reservations and their order
 * only.  Times saturate far in the future instead of wrapping.
 *
 * Lock: d->mu guards what follows it in the struct. */
#include "device.h"

#include "clock.h"
#include "draw.h"
#include "errtext.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NEAR_BYTES  ((uint64_t)1 << 20)
#define NEXT_BYTES  ((uint64_t)128 << 10) /* or one inode */
#define NEAR_INODES 8                     /* as many files of about 112 KB are 1 MiB */
#define HUGE_BYTES  ((uint64_t)1 << 60)
#define FOREVER     INT64_MAX /* ns: later than anything */

/* Where an operation ended on its target. */
struct spot {
    int known; /* 0 nowhere, 1 by file and offset, 2 physically */
    uint64_t file, end;
};

struct target {
    uint64_t busy_until, written_until;
    struct spot last; /* of the operation before */
    /* The latest operations, a ring: when each ends, and where.  The times never decrease, so those
     * still to come are the newest ones, and as many as a seek's table has entries are enough. */
    uint64_t ends[MR_PROFILE_MAX_QUEUE];
    struct spot spots[MR_PROFILE_MAX_QUEUE];
    unsigned oldest, n_ends;
};

struct mr_device {
    struct mr_device_profile p;
    uint64_t seek_ns[MR_PROFILE_MAX_QUEUE + 1]; /* by operations outstanding, from 1 */

    pthread_mutex_t mu;
    uint64_t metadata_busy_until;
    uint64_t n_placeless; /* operations without a place take the targets in turn */
    struct target target[];
};

int mr_device_new(const struct mr_device_profile *profile, struct mr_device **out,
                  struct mr_error *err)
{
    char text[MR_PROFILE_MAX_BYTES];
    int code = mr_device_profile_format(profile, text, sizeof text, err); /* checks the ranges */
    if (code < 0)
        return code;
    struct mr_device *d = calloc(1, sizeof *d + profile->targets * sizeof *d->target);
    if (!d)
        return mr_fail(err, -ENOMEM, "no memory for an emulated device");
    d->p = *profile;
    double shrink = (double)profile->seek_shrink / 1000;
    for (unsigned q = 1; q <= MR_PROFILE_MAX_QUEUE; q++) {
        double depth = q < profile->queue_depth ? q : (double)profile->queue_depth;
        d->seek_ns[q] = (uint64_t)((double)profile->seek_ns / pow(depth, shrink));
    }
    pthread_mutex_init(&d->mu, NULL); /* cannot fail without attributes */
    *out = d;
    return 0;
}

int mr_device_open(const char *profile, struct mr_device **out, struct mr_error *err)
{
    struct mr_device_profile p;
    int code = mr_device_profile_load(profile, &p, err);
    return code ? code : mr_device_new(&p, out, err);
}

void mr_device_close(struct mr_device *d)
{
    if (!d)
        return;
    pthread_mutex_destroy(&d->mu);
    free(d);
}

const char *mr_device_name(const struct mr_device *d)
{
    return d->p.name;
}

const char *mr_device_calibrated(const struct mr_device *d)
{
    return d->p.calibrated;
}

const struct mr_device_profile *mr_device_profile_of(const struct mr_device *d)
{
    return &d->p;
}

/* ---- the model ---- */

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t plus(uint64_t at, uint64_t ns)
{
    return at < FOREVER && ns < FOREVER - at ? at + ns : FOREVER;
}

/* What `bytes` take on one target. */
static uint64_t transfer_ns(const struct mr_device *d, enum mr_device_op op, uint64_t bytes)
{
    uint64_t rate = op == MR_DEV_WRITE ? d->p.write_bytes_per_s : d->p.read_bytes_per_s;
    unsigned __int128 ns =
        ((unsigned __int128)bytes * 1000000000u * d->p.targets + rate - 1) / rate;
    return ns < FOREVER ? (uint64_t)ns : FOREVER;
}

/* Operations that the target has before it at `now`, the new one included. */
static unsigned outstanding(struct target *t, uint64_t now)
{
    while (t->n_ends && t->ends[t->oldest] <= now) {
        t->oldest = (t->oldest + 1) % MR_PROFILE_MAX_QUEUE;
        t->n_ends--;
    }
    return t->n_ends < MR_PROFILE_MAX_QUEUE ? t->n_ends + 1 : MR_PROFILE_MAX_QUEUE;
}

/* Keep the target busy for `ns` and leave its head at `last`; when it is done. */
static uint64_t occupy(struct target *t, uint64_t from, uint64_t ns, struct spot last)
{
    uint64_t end = t->busy_until = plus(later(from, t->busy_until), ns);
    if (t->n_ends == MR_PROFILE_MAX_QUEUE) {
        t->oldest = (t->oldest + 1) % MR_PROFILE_MAX_QUEUE;
        t->n_ends--;
    }
    unsigned newest = (t->oldest + t->n_ends++) % MR_PROFILE_MAX_QUEUE;
    t->ends[newest] = end;
    t->spots[newest] = t->last = last;
    return end;
}

/* A part of an operation: a run of bytes on one target. */
struct run {
    struct target *on;
    int known; /* as in struct spot */
    uint64_t file, start, bytes;
};

static int follows(const struct run *r, const struct spot *s, uint64_t gap)
{
    if (!r->known || r->known != s->known)
        return 0;
    if (r->known == 2 || r->file == s->file)
        return r->start - s->end <= gap; /* what lies before wraps to a huge distance */
    return !r->start && r->file - s->file <= gap * NEAR_INODES / NEAR_BYTES;
}

/* The head need not move far for an operation behind the last one.  What waits is sorted by the
 * device, so one that continues any of those still to come is served together with it. */
static int is_near(const struct run *r)
{
    const struct target *t = r->on;
    if (follows(r, &t->last, NEAR_BYTES))
        return 1;
    for (unsigned i = 0; i < t->n_ends; i++)
        if (follows(r, &t->spots[(t->oldest + i) % MR_PROFILE_MAX_QUEUE], NEXT_BYTES))
            return 1;
    return 0;
}

static uint64_t serve(struct mr_device *d, uint64_t now, enum mr_device_op op, const struct run *r)
{
    unsigned n = outstanding(r->on, now);
    uint64_t ns = transfer_ns(d, op, r->bytes);
    if (d->p.seek_ns && !is_near(r))
        ns = plus(ns, d->seek_ns[n]);
    struct spot last = {r->known, r->file, r->start + r->bytes};
    uint64_t end = occupy(r->on, now, ns, last);
    if (op == MR_DEV_WRITE)
        r->on->written_until = end;
    return end;
}

/* The target of a file's first byte. */
static uint64_t first_target(struct mr_device *d, const struct mr_device_place *where)
{
    return where->file ? mr_mix(where->file) : d->n_placeless++;
}

/* Divide a read or write over the targets; when the last of its parts is done. */
static uint64_t serve_all(struct mr_device *d, uint64_t now, enum mr_device_op op,
                          const struct mr_device_place *where, uint64_t bytes)
{
    uint64_t n = d->p.targets, stripe = d->p.stripe_bytes, at = where->offset;
    uint64_t base = where->has_physical ? where->physical - at : 0; /* of the file */
    uint64_t first = first_target(d, where) % n, latest = now;
    if (at > HUGE_BYTES || bytes > HUGE_BYTES) { /* lies; nothing below may wrap */
        at = 0;
        bytes = bytes < HUGE_BYTES ? bytes : HUGE_BYTES;
    }
    uint64_t begin = at / stripe, n_stripes = bytes ? (at + bytes - 1) / stripe - begin + 1 : 1;
    for (uint64_t i = 0; i < n && i < n_stripes; i++) {
        uint64_t s = begin + i;
        uint64_t start = s / n * stripe + (i ? 0 : at % stripe); /* on this target */
        uint64_t len = ((n_stripes - 1 - i) / n + 1) * stripe - (i ? 0 : at % stripe);
        if ((n_stripes - 1 - i) % n == 0) /* the last stripe is here, perhaps in part */
            len -= (begin + n_stripes) * stripe - (at + bytes);
        struct run r = {
            .on = &d->target[(first + s % n) % n],
            .known = where->has_physical ? 2 : where->file != 0,
            .file = where->file,
            .start = base + start,
            .bytes = len,
        };
        latest = later(latest, serve(d, now, op, &r));
    }
    return latest;
}

static uint64_t serve_metadata(struct mr_device *d, uint64_t now)
{
    uint64_t start = now, parallel = d->p.metadata_parallel;
    if (parallel) {
        start = later(now, d->metadata_busy_until);
        d->metadata_busy_until = plus(start, (d->p.metadata_ns + parallel - 1) / parallel);
    }
    return plus(start, d->p.metadata_ns);
}

/* Wait for what was written on any target; then one of them is busy with the flush, which leaves
 * its head elsewhere. */
static uint64_t serve_sync(struct mr_device *d, uint64_t now, const struct mr_device_place *where)
{
    uint64_t from = now;
    for (uint64_t i = 0; i < d->p.targets; i++)
        from = later(from, d->target[i].written_until);
    struct target *t = &d->target[first_target(d, where) % d->p.targets];
    outstanding(t, now);
    return occupy(t, from, d->p.sync_ns, (struct spot){0});
}

static uint64_t serve_any(struct mr_device *d, uint64_t now, enum mr_device_op op,
                          const struct mr_device_place *where, uint64_t bytes)
{
    switch (op) {
    case MR_DEV_READ:
        return plus(serve_all(d, now, op, where, bytes), d->p.read_latency_ns);
    case MR_DEV_WRITE:
        return plus(serve_all(d, now, op, where, bytes), d->p.write_latency_ns);
    case MR_DEV_META:
        return serve_metadata(d, now);
    case MR_DEV_SYNC:
        return serve_sync(d, now, where);
    }
    return now;
}

static const struct mr_device_place nowhere;

uint64_t mr_device_reserve_at(struct mr_device *d, uint64_t now_ns, enum mr_device_op op,
                              const struct mr_device_place *where, uint64_t bytes)
{
    pthread_mutex_lock(&d->mu);
    uint64_t deadline = serve_any(d, now_ns, op, where ? where : &nowhere, bytes);
    pthread_mutex_unlock(&d->mu);
    return deadline;
}

uint64_t mr_device_reserve(struct mr_device *d, enum mr_device_op op,
                           const struct mr_device_place *where, uint64_t bytes)
{
    return mr_device_reserve_at(d, mr_clock_ns(), op, where, bytes);
}

uint64_t mr_device_reserve_file(struct mr_device *d, uint64_t now_ns,
                                const struct mr_device_place *where, uint64_t bytes)
{
    pthread_mutex_lock(&d->mu);
    uint64_t metadata_ns = serve_metadata(d, now_ns) - now_ns;
    uint64_t read = serve_any(d, now_ns, MR_DEV_READ, where ? where : &nowhere, bytes);
    pthread_mutex_unlock(&d->mu);
    return plus(read, metadata_ns);
}

/* ---- where files lie ---- */

static void ask_extent(int fd, uint64_t offset, struct mr_device_place *out)
{
    union { /* a struct fiemap with room for one extent behind it */
        struct fiemap head;
        char room[sizeof(struct fiemap) + sizeof(struct fiemap_extent)];
    } map = {.room = {0}};
    map.head.fm_start = offset;
    map.head.fm_length = 1;
    map.head.fm_extent_count = 1;
    /* Not yet allocated, packed into the inode, or encoded: there is no address. */
    const unsigned useless = FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC |
                             FIEMAP_EXTENT_ENCODED | FIEMAP_EXTENT_NOT_ALIGNED;
    if (ioctl(fd, FS_IOC_FIEMAP, &map.head) || !map.head.fm_mapped_extents)
        return;
    const struct fiemap_extent *extent = map.head.fm_extents;
    if (extent->fe_flags & useless || extent->fe_logical > offset)
        return;
    out->physical = extent->fe_physical + (offset - extent->fe_logical);
    out->has_physical = 1;
}

void mr_device_place_fd(const struct mr_device *d, int fd, uint64_t offset,
                        struct mr_device_place *out)
{
    struct stat st;
    *out = (struct mr_device_place){.offset = offset};
    if (d->p.targets == 1 && !d->p.seek_ns)
        return; /* it makes no difference */
    if (!fstat(fd, &st))
        out->file = st.st_ino;
    if (d->p.seek_ns)
        ask_extent(fd, offset, out);
}

void mr_device_place_path(const struct mr_device *d, int dir, const char *path, uint64_t file,
                          uint64_t offset, struct mr_device_place *out)
{
    *out = (struct mr_device_place){.file = file, .offset = offset};
    if (!d->p.seek_ns && (file || d->p.targets == 1))
        return; /* it makes no difference */
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return;
    mr_device_place_fd(d, fd, offset, out);
    close(fd);
}

/* ---- waiting ---- */

static void sleep_until(uint64_t ns)
{
    struct timespec at = {.tv_sec = (time_t)(ns / 1000000000u),
                          .tv_nsec = (long)(ns % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL); /* a signal: the caller looks */
}

int mr_device_wait_unless(uint64_t deadline_ns, const atomic_int *stop)
{
    uint64_t now;
    while ((now = mr_clock_ns()) < deadline_ns) {
        uint64_t left = deadline_ns - now;
        if (left <= MR_DEVICE_SPIN_NS) {
            mr_clock_pause();
            continue;
        }
        if (stop && atomic_load_explicit(stop, memory_order_relaxed))
            return -ECANCELED;
        sleep_until(stop && left > MR_DEVICE_SLICE_NS ? now + MR_DEVICE_SLICE_NS
                                                      : deadline_ns - MR_DEVICE_SPIN_NS);
    }
    return 0;
}

void mr_device_wait_until(uint64_t deadline_ns)
{
    mr_device_wait_unless(deadline_ns, NULL);
}

uint64_t mr_device_late_ns(uint64_t deadline_ns, uint64_t ready_ns, uint64_t now_ns,
                           uint64_t before_ns, uint64_t most_ns)
{
    uint64_t late = now_ns > deadline_ns ? now_ns - deadline_ns : 0;
    uint64_t most = ready_ns < deadline_ns || before_ns > most_ns ? most_ns : before_ns;
    return late < most ? late : most;
}
