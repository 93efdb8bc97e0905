/* file_patterns.c - the large file of a baseline: written and read in order, read at random.
 *
 * The file has no name, so nothing of it survives the process.  Space for it is taken from the file
 * system at once, so a full disk is known before anything is measured.  Space that was taken but
 * not written is not on the device: reading it would measure nothing.  When the first run of writes
 * is cut by its time, everything that follows keeps to the part that was written.
 */
#include "baseline_run.h"

#include "errtext.h"
#include "filesystem.h"
#include "places.h"
#include "whole_file.h"

#include <millrace/store.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MB              1e6
#define ORDINARY_BOX_NS 5000000000u /* a rate to compare with needs no longer look */

/* Refuse a size that cannot work, in words that say what would. */
static int check_room(struct mr_baseline_state *b)
{
    struct rlimit most;
    uint64_t have = mr_free_bytes(mr_scratch_fd(b->scratch));
    uint64_t need = b->asked_bytes + mr_baseline_small_count(b) * 2 * MR_SMALL_BYTES;
    if (need > have)
        return mr_fail(b->err, -ENOSPC,
                       "%s: %.0f MB are needed and %.0f MB are free; choose a smaller size (--size)"
                       " or another folder",
                       b->o.dir, (double)need / MB, (double)have / MB);
    if (!getrlimit(RLIMIT_FSIZE, &most) && most.rlim_cur != RLIM_INFINITY &&
        most.rlim_cur < b->asked_bytes)
        return mr_fail(b->err, -EFBIG,
                       "%s: files may not exceed %.0f MB here (ulimit -f); choose a smaller size "
                       "(--size)",
                       b->o.dir, (double)most.rlim_cur / MB);
    return 0;
}

static int take_space(struct mr_baseline_state *b)
{
    int r;
    do
        r = fallocate(b->fd, 0, 0, (off_t)b->asked_bytes) ? -errno : 0;
    while (r == -EINTR);
    if (!r || r == -EOPNOTSUPP || r == -ENOSYS || r == -EINVAL)
        return 0; /* a file system that cannot is found full when it is */
    return mr_fail(b->err, r, "%s: no room for %.0f MB: %s; choose a smaller size (--size)",
                   b->o.dir, (double)b->asked_bytes / MB, mr_errno_text(r));
}

/* One try tells more than any flag: some file systems take the flag and refuse the reads. */
static int try_direct(struct mr_baseline_state *b)
{
    uint8_t *buf = mr_raw_io_buffer(b->io);
    ssize_t n = -1;
    if (!mr_set_direct(b->fd, 1))
        n = pwrite(b->fd, buf, MR_DIRECT_ALIGN, 0);
    if (n < 0 && errno != EINVAL)
        return mr_fail(b->err, -errno, "%s: cannot write: %s", b->o.dir, mr_errno_text(-errno));
    b->direct = n > 0;
    if (!b->direct)
        mr_set_direct(b->fd, 0);
    else if (pread(b->fd, buf, 2048, 2048) == 2048)
        b->align = 2048;
    return 0;
}

/* Around the page cache where there is a device to be measured and the file system can. */
static int choose_path(struct mr_baseline_state *b)
{
    struct mr_filesystem fs;
    struct stat st;
    int r = mr_filesystem_of(b->fd, &fs);
    if (!r && fstat(b->fd, &st))
        r = -errno;
    if (r)
        return mr_fail(b->err, r, "%s: %s", b->o.dir, mr_errno_text(r));
    b->inode = st.st_ino;
    b->align = (uint32_t)MR_DIRECT_ALIGN;
    if (b->o.device)
        return 0; /* the bytes come from wherever they are; what counts is charged */
    if (fs.kind == MR_FS_MEMORY) {
        mr_baseline_warn(b, "%s is in memory: these are limits of memory, not of a device",
                         b->o.dir);
        return 0;
    }
    r = try_direct(b);
    if (!r && !b->direct)
        mr_baseline_warn(
            b, "%s does not take direct I/O (O_DIRECT): measured through the page cache", b->o.dir);
    return r;
}

int mr_file_patterns_open(struct mr_baseline_state *b)
{
    int r = check_room(b);
    if (r)
        return r;
    b->fd = mr_scratch_unnamed(b->scratch, b->err);
    if (b->fd < 0)
        return b->fd;
    snprintf(b->fd_path, sizeof b->fd_path, "/proc/self/fd/%d", b->fd);
    r = take_space(b);
    return r ? r : choose_path(b);
}

void mr_file_patterns_close(struct mr_baseline_state *b)
{
    if (b->fd >= 0)
        close(b->fd);
    b->fd = -1;
}

enum mr_coldness mr_baseline_drop(struct mr_baseline_state *b, enum mr_coldness files)
{
    if (b->o.device)
        return MR_IS_COLD_UNASKED;
    if (!b->o.drop_caches)
        return files;
    int r = mr_cache_drop_all(NULL);
    if (r) {
        mr_baseline_warn(b, "the system's caches could not be dropped: %s (that needs root)",
                         mr_errno_text(r));
        return MR_IS_UNPROVEN;
    }
    return files == MR_IS_COLD_DATA ? MR_IS_COLD_ALL : MR_IS_UNPROVEN;
}

static enum mr_coldness drop_file(struct mr_baseline_state *b)
{
    int r = b->o.device ? MR_COLD_UNPROVEN : mr_cache_evict(b->fd_path, NULL, NULL, NULL);
    return mr_baseline_drop(b, r == MR_COLD_DATA ? MR_IS_COLD_DATA : MR_IS_UNPROVEN);
}

/* A job over the sizes of a pattern; `where` is filled in and borrowed. */
static int job_over(struct mr_baseline_state *b, enum mr_pattern p, unsigned run,
                    struct mr_places *where, struct mr_raw_job *job)
{
    static const struct {
        const char *split;
        unsigned depth;
    } shape[MR_N_PATTERNS] = {
        [MR_PATTERN_SEQ] = {"1M/100", MR_SEQ_DEPTH},
        [MR_PATTERN_RANDOM_IMAGENET] = {MR_SPLIT_IMAGENET, MR_DEEP},
        [MR_PATTERN_RANDOM_16K] = {"16K/100", MR_DEEP},
        [MR_PATTERN_RANDOM_4K] = {"4K/100", 1},
    };
    *where = (struct mr_places){
        .file_bytes = b->file_bytes ? b->file_bytes : b->asked_bytes,
        .align = b->direct ? b->align : 512, /* through the page cache any place will do */
        .run = run,
    };
    *job = (struct mr_raw_job){
        .name = b->o.dir,
        .fd = b->fd,
        .depth = shape[p].depth,
        .place = p == MR_PATTERN_SEQ ? mr_place_in_order : mr_place_at_random,
        .place_ctx = where,
        .box_ns = mr_baseline_box_ns(b, p),
        .device = b->o.device,
        .inode = b->inode,
        .progress = mr_baseline_tell,
        .progress_ctx = b,
    };
    int r = mr_size_split_parse(shape[p].split, &where->split, b->err);
    if (r)
        return r;
    job->max_len = (uint32_t)mr_direct_round(mr_size_split_max(&where->split));
    job->n_ops = (uint64_t)((double)where->file_bytes / mr_size_split_mean(&where->split));
    return 0;
}

/* The first run decides how much of the file there is. */
static int note_written(struct mr_baseline_state *b, const struct mr_raw_result *w)
{
    if (!b->file_bytes)
        b->file_bytes = w->bytes;
    if (b->file_bytes >= MR_BASELINE_MIN_SIZE)
        return 0;
    return mr_fail(b->err, -ETIMEDOUT, "%s: not even %.0f MB could be written in time", b->o.dir,
                   (double)MR_BASELINE_MIN_SIZE / MB);
}

static int write_in_order(struct mr_baseline_state *b, struct mr_baseline_sample *out)
{
    struct mr_places where;
    struct mr_raw_job job;
    struct mr_raw_result w;
    int r = job_over(b, MR_PATTERN_SEQ, 0, &where, &job);
    if (r)
        return r;
    job.write = job.sync = 1;
    b->now.doing = "write";
    r = mr_raw_io_run(b->io, &job, &w, b->err);
    if (!r)
        r = note_written(b, &w);
    out->write_ops = w.n_ops;
    out->write_bytes = w.bytes;
    out->write_seconds = w.seconds;
    out->write_cut = w.cut;
    out->n_late = w.n_late;
    return r;
}

/* The same reads with buffers in ordinary pages: a request needs one segment for each.  Where
 * bytes are copied, or a request is one page, that makes no difference. */
static int read_to_ordinary(struct mr_baseline_state *b, struct mr_raw_job *job,
                            struct mr_baseline_sample *out)
{
    if (!b->o.both_pages || !b->direct || job->max_len <= (uint32_t)sysconf(_SC_PAGESIZE))
        return 0;
    b->now.doing = "read to ordinary pages";
    enum mr_coldness cold = drop_file(b);
    out->cold = cold < out->cold ? cold : out->cold;
    job->ordinary = 1;
    job->box_ns = job->box_ns < ORDINARY_BOX_NS ? job->box_ns : ORDINARY_BOX_NS;
    return mr_raw_io_run(b->io, job, &out->ordinary, b->err);
}

int mr_file_patterns_run(struct mr_baseline_state *b, enum mr_pattern p, unsigned run,
                         struct mr_baseline_sample *out)
{
    struct mr_places where;
    struct mr_raw_job job;
    int r = p == MR_PATTERN_SEQ ? write_in_order(b, out) : 0;
    if (!r)
        r = job_over(b, p, run, &where, &job);
    if (r)
        return r;
    b->now.doing = "read";
    out->cold = drop_file(b);
    r = mr_raw_io_run(b->io, &job, &out->read, b->err);
    out->n_late += out->read.n_late;
    return r ? r : read_to_ordinary(b, &job, out);
}
