/* posix_source.c - one read at a time: open, fstat, read, close.  What the original study measured,
 * and the fallback where io_uring is unavailable.
 *
 * Its thread may have descriptors of its own.  In a table that threads share, each takes the
 * table's lock to open and to close, and counts a reference to the file for each call in between;
 * with many workers on small files that is what they queue for.  Such a thread leaves signals to
 * others, as handlers may know descriptors by their numbers, and opens files from the folder that
 * all blobs have in common.  Where a user's function runs in the thread, none of that: it has what
 * its process has.
 *
 * A whole blob whose size is known from an earlier read is read without asking (whole_file.c).  Of
 * a blob that is read in parts the descriptor stays open (open_blobs.h).
 *
 * `path` holds the name of the read that was prepared last: there is one at a time. */
#include "source.h"

#include "clock.h"
#include "errtext.h"
#include "open_blobs.h"
#include "posix_store.h"
#include "sanitizers.h"
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UNSHARE 2u /* of close_range */

struct posix_source {
    struct mr_source base;
    int own_table; /* of descriptors */
    int tried_common;
    int folder; /* from where names are looked up: what all blobs have in common, or the store's */
    size_t common; /* bytes of a name that name it; 0: the store's */
    struct mr_open_blobs open;
    struct mr_open_blob *part; /* of the read, when it is of a part */
    struct mr_read *started;
    char path[PATH_MAX];
};

static void leave_common(struct posix_source *s)
{
    if (s->common)
        close(s->folder);
    s->folder = mr_posix_store_folder(s->base.store);
    s->common = 0;
}

/* Names are looked up from the folder that all files have in common: short ways are quicker.  With
 * the first file: before, the caches may still be emptied. */
static void open_common(struct posix_source *s)
{
    struct mr_blob_table *blobs = s->base.o.blobs;
    s->tried_common = 1;
    s->folder = mr_posix_store_folder(s->base.store);
    size_t common = s->own_table ? mr_blob_table_common(blobs) : 0;
    if (!common || mr_blob_table_name(blobs, 0, s->path, sizeof s->path) < 0)
        return;
    s->path[common] = 0;
    int fd = openat(s->folder, s->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return; /* each file will say why */
    s->folder = fd;
    s->common = common;
}

/* What the present folder calls the file. */
static const char *name_from(const struct posix_source *s)
{
    const char *name = s->path + s->common;
    while (s->common && *name == '/')
        name++; /* "folder//file": with a '/' it would begin at the root */
    return name;
}

/* From the common folder; but if that is no longer what its name says, or the folder takes the last
 * descriptor, by the whole path. */
static int open_blob(struct posix_source *s, size_t *size)
{
    const struct mr_source_opts *o = &s->base.o;
    int fd = mr_whole_file_open(s->folder, name_from(s), o->direct, o->max_bytes, size);
    if (!s->common || (fd != -ENOENT && fd != -ENOTDIR && fd != -ESTALE && fd != -EMFILE))
        return fd;
    if (fd == -EMFILE)
        leave_common(s);
    fd = mr_whole_file_open(mr_posix_store_folder(s->base.store), s->path, o->direct, o->max_bytes,
                            size);
    if (fd >= 0)
        leave_common(s);
    return fd;
}

static int open_whole(struct posix_source *s, struct mr_read *r)
{
    int fd = open_blob(s, &r->size);
    if (fd < 0)
        return fd;
    r->fd = fd;
    r->room = s->base.o.direct ? mr_direct_round(r->size) : r->size;
    return 0;
}

static int prepare_part(struct posix_source *s, struct mr_read *r)
{
    const struct mr_source_opts *o = &s->base.o;
    const struct mr_extent *e = &r->extent;
    if (e->length > o->max_bytes)
        return -EFBIG;
    int code = mr_open_blobs_take(&s->open, e->blob, mr_posix_store_folder(s->base.store), s->path,
                                  o->direct, &s->part);
    if (code)
        return code;
    r->inode = s->part->inode;
    r->size = (size_t)e->length;
    r->room = o->direct ? mr_direct_span(e->offset, r->size) : r->size;
    return 0;
}

static int prepare(struct mr_source *base, struct mr_read *r)
{
    struct posix_source *s = (struct posix_source *)base;
    const struct mr_source_opts *o = &base->o;
    r->stage = MR_STAGE_OPEN;
    r->fd = -1;
    r->have = 0;
    r->inode = 0;
    r->is_known = 0;
    if (!s->tried_common)
        open_common(s);
    int code = mr_blob_table_name(o->blobs, r->extent.blob, s->path, sizeof s->path);
    if (code < 0)
        return code;
    if (r->extent.length)
        return prepare_part(s, r);
    size_t known = o->ask_sizes || o->direct ? 0 : mr_blob_table_known(o->blobs, r->extent.blob);
    if (!known || known > o->max_bytes)
        return open_whole(s, r);
    r->is_known = 1;
    r->size = known;
    r->room = known + 1;
    return 0;
}

static void drop(struct mr_source *base, struct mr_read *r)
{
    struct posix_source *s = (struct posix_source *)base;
    if (s->part)
        s->part->n_users--;
    s->part = NULL;
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
}

static void start(struct mr_source *base, struct mr_read *r)
{
    ((struct posix_source *)base)->started = r;
}

static int read_part(struct posix_source *s, struct mr_read *r)
{
    int direct = s->base.o.direct;
    size_t skip = direct ? r->extent.offset % MR_DIRECT_ALIGN : 0;
    r->stage = MR_STAGE_READ;
    int code =
        r->extent.offset > s->part->bytes || r->size > s->part->bytes - r->extent.offset
            ? -ENODATA
            : mr_part_fill(s->part->fd, direct, r->buf, r->extent.offset - skip, skip + r->size);
    r->data = r->buf + skip;
    s->part->n_users--;
    s->part = NULL;
    return code;
}

/* 0, MR_READ_ROOM or -errno. */
static int read_whole(struct posix_source *s, struct mr_read *r)
{
    r->data = r->buf;
    if (r->is_known) {
        r->is_known = 0;
        if (mr_whole_file_again(s->folder, name_from(s), r->buf, r->size))
            return 0;
        int code = open_whole(s, r);
        if (code)
            return code;
    }
    r->stage = MR_STAGE_READ;
    if (r->room > r->cap)
        return MR_READ_ROOM;
    int code = mr_whole_file_fill(r->fd, s->base.o.direct, r->buf, r->size); /* closes it */
    r->fd = -1;
    if (!code)
        mr_blob_table_know(s->base.o.blobs, r->extent.blob, r->size);
    return code;
}

static int wait(struct mr_source *base, uint64_t until_ns, struct mr_read **done, unsigned max)
{
    struct posix_source *s = (struct posix_source *)base;
    struct mr_read *r = s->started;
    (void)until_ns; /* a read that has begun is not left */
    if (!r || !max)
        return 0;
    s->started = NULL;
    r->result = s->part ? read_part(s, r) : read_whole(s, r);
    r->len = r->size;
    r->end_ns = mr_clock_ns();
    r->took_ns = r->end_ns - r->asked_ns;
    r->overdue = 0;
    done[0] = r;
    return 1;
}

static void close_source(struct mr_source *base)
{
    struct posix_source *s = (struct posix_source *)base;
    if (s->common)
        close(s->folder);
    mr_open_blobs_fini(&s->open);
    free(s);
}

/* The application's signals are not for this thread: their handlers may use descriptors. */
static void leave_signals_to_others(void)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF};
    sigset_t set;
    sigfillset(&set);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&set, own[i]);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* Leave the process's table of descriptors for one that holds the first three and those to keep,
 * in ascending order or -1; nonzero when the kernel cannot (before 5.9). */
static int take_own_table(const int *keep, unsigned n)
{
#ifdef SYS_close_range
    unsigned from = STDERR_FILENO + 1, last = from - 1;
    for (unsigned i = 0; i < n; i++)
        if (keep[i] > (int)last)
            last = (unsigned)keep[i];
    /* ThreadSanitizer takes equal numbers for equal files. */
    if (MR_TSAN || syscall(SYS_close_range, last + 1, ~0U, UNSHARE))
        return -1;
    for (unsigned i = 0; i < n; i++) {
        if (keep[i] < (int)from)
            continue;
        if (keep[i] > (int)from)
            syscall(SYS_close_range, from, (unsigned)keep[i] - 1, 0);
        from = (unsigned)keep[i] + 1;
    }
    return 0;
#else
    (void)keep;
    (void)n;
    return -1;
#endif
}

int mr_posix_source_open(struct mr_store *store, const struct mr_source_opts *o,
                         struct mr_source **out, struct mr_error *err)
{
    static const struct mr_source_ops ops = {prepare, drop, start, NULL, wait, close_source};
    struct posix_source *s = calloc(1, sizeof *s);
    if (!s || mr_open_blobs_init(&s->open, 1)) {
        free(s);
        return mr_fail(err, -ENOMEM, "no memory for a worker");
    }
    s->base.ops = &ops;
    s->folder = mr_posix_store_folder(store);
    if (o->own_descriptors) {
        int a = s->folder, b = o->keep_fd, keep[2] = {a < b ? a : b, a < b ? b : a};
        leave_signals_to_others();
        s->own_table = !take_own_table(keep, 2);
    }
    *out = &s->base;
    return 0;
}
