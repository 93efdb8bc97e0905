/* threads_engine.c - the reference engine: each worker takes a slot, opens, reads and closes its
 * file, maps it, and takes the next.  What the original study measured, and the fallback where
 * io_uring is unavailable.
 *
 * A worker has descriptors of its own.  In a table that threads share, each takes the table's lock
 * to open and to close, and counts a reference to the file for each call in between; with many
 * workers on small files that is what they queue for.  It leaves signals to others, as handlers may
 * know descriptors by their numbers, and opens files from the folder that all have in common. Where
 * a user's map is to run in the worker, none of that: it has what its process has.
 *
 * A worker has one file open at a time.  When descriptors or memory run out, that says nothing
 * about the sample; others will give theirs back, so the worker waits a moment and tries again, and
 * the run fails only if that goes on for about a second. */
#include "pipeline_state.h"

#include "clock.h"
#include "device.h"
#include "errtext.h"
#include "ledger.h"
#include "sample_set.h"
#include "sanitizers.h"
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LONGEST_WAIT_NS 512000000 /* doubled from 1 ms: a second in all */
#define UNSHARE         2u        /* of close_range */

static const char map_stage[] = "map";

/* From where names are looked up. */
struct folder {
    int fd;        /* what all files have in common, or the data set's folder */
    size_t common; /* bytes of a path that name it; 0: the data set's */
};

struct reader {
    uint8_t *room;                   /* for the bytes that a map is given, */
    struct mr_buffer file;           /* and for those of larger files */
    uint64_t late_ns;                /* of the last wait for the emulated device */
    int own_table;                   /* of descriptors */
    struct folder from;              /* where names are looked up */
    char path[PATH_MAX];
};

static int init(struct mr_worker *w, struct mr_error *err)
{
    struct mr_pipeline *p = w->p;
    struct reader *r = w->engine = calloc(1, sizeof *r);
    if (!r)
        return mr_fail(err, -ENOMEM, "no memory for a worker");
    r->from.fd = mr_dataset_folder(p->data);
    r->room = mr_worker_take_room(p);
    return 0;
}

static void leave(const struct mr_worker *w, struct folder *f)
{
    if (f->common)
        close(f->fd);
    f->fd = mr_dataset_folder(w->p->data);
    f->common = 0;
}

static void fini(struct mr_worker *w)
{
    struct reader *r = w->engine;
    if (r)
        mr_buffer_fini(&r->file);
    free(r);
    w->engine = NULL;
}

/* Where `size` bytes of the sample go: its slot, or this worker's buffer when there is a map. */
static uint8_t *room(struct mr_worker *w, struct mr_task *t, size_t size)
{
    struct mr_pipeline *p = w->p;
    struct reader *r = w->engine;
    size_t cap, before = r->file.cap;
    if (p->pool->whole_files)
        return mr_slot_room(t->batch, t->slot, size, NULL, 0, &cap);
    if (r->room && size <= MR_FIRST_ROOM)
        return r->room;
    if (mr_buffer_reserve(&r->file, mr_worker_room_bytes(p, size)))
        return NULL;
    mr_batch_pool_count(p->pool, before, r->file.cap);
    return r->file.data;
}

/* Read a file as above and return no sooner than the emulated device would.  *start_ns is when the
 * file was asked for, and becomes when that would have been had the last wait not been late. */
static int fill_charged(struct mr_worker *w, int fd, uint8_t *data, size_t len, uint64_t *start_ns,
                        int *overdue)
{
    struct mr_pipeline *p = w->p;
    struct reader *r = w->engine;
    struct mr_device_place place;
    uint64_t before = r->late_ns;
    *start_ns -= before;
    mr_device_place_fd(p->o.storage, fd, 0, &place);
    uint64_t due = mr_device_reserve_file(p->o.storage, *start_ns, &place, len);
    int code = mr_whole_file_fill(fd, p->o.direct, data, len);
    r->late_ns = 0;
    if (!code) {
        uint64_t ready = mr_clock_ns();
        *overdue = ready > due + before;
        mr_device_wait_unless(due, &p->stopping); /* if it stops, nobody will look at the sample */
        r->late_ns = mr_device_late_ns(due, ready, mr_clock_ns(), before, mr_worker_most_late(p));
    }
    return code;
}

/* What the present folder calls the file. */
static const char *name_from(const struct reader *r, const struct folder *from)
{
    const char *name = r->path + from->common;
    while (from->common && *name == '/')
        name++; /* "folder//file": with a '/' it would begin at the root */
    return name;
}

/* From the common folder; but if that is no longer what its name says, or the folder takes the last
 * descriptor, by the whole path. */
static int open_file(struct mr_worker *w, size_t *len)
{
    const struct mr_pipeline_opts *o = &w->p->o;
    struct reader *r = w->engine;
    struct folder *from = &r->from;
    int fd = mr_whole_file_open(from->fd, name_from(r, from), o->direct, o->max_file_bytes, len);
    if (!from->common || (fd != -ENOENT && fd != -ENOTDIR && fd != -ESTALE && fd != -EMFILE))
        return fd;
    int folder = mr_dataset_folder(w->p->data);
    if (fd == -EMFILE)
        leave(w, from);
    fd = mr_whole_file_open(folder, r->path, o->direct, o->max_file_bytes, len);
    if (fd >= 0)
        leave(w, from);
    return fd;
}

/* Read a file that was read before, if it still has the size that it had. */
static int read_again(struct mr_worker *w, struct mr_task *t, uint8_t **data, size_t *len)
{
    struct reader *r = w->engine;
    size_t known = mr_worker_known_bytes(w->p, t->index);
    *data = known ? room(w, t, known + 1) : NULL;
    if (!*data || !mr_whole_file_again(r->from.fd, name_from(r, &r->from), *data, known))
        return 0;
    *len = known;
    return 1;
}

/* Open, ask for the size, read.  *start_ns as in fill_charged. */
static int read_anew(struct mr_worker *w, struct mr_task *t, uint8_t **data, size_t *len,
                     uint64_t *start_ns, const char **stage)
{
    struct mr_pipeline *p = w->p;
    int fd = open_file(w, len);
    if (fd < 0)
        return fd;
    *data = room(w, t, p->o.direct ? mr_direct_round(*len) : *len);
    if (!*data) {
        close(fd);
        return -ENOMEM;
    }
    *stage = "read";
    int code = p->o.storage
                   ? fill_charged(w, fd, *data, *len, start_ns, &t->batch->cost[t->slot].overdue)
                   : mr_whole_file_fill(fd, p->o.direct, *data, *len);
    if (!code)
        mr_dataset_know_bytes(p->data, t->index, *len);
    return code;
}

static int read_file(struct mr_worker *w, struct mr_task *t, uint8_t **data, size_t *len,
                     const char **stage)
{
    struct reader *r = w->engine;
    struct mr_slot_cost *cost = &t->batch->cost[t->slot];
    *stage = "open";
    int code = mr_dataset_path(w->p->data, t->index, r->path, sizeof r->path);
    if (code < 0)
        return code;
    uint64_t start = cost->read_at = mr_clock_ns();
    code = read_again(w, t, data, len) ? 0 : read_anew(w, t, data, len, &start, stage);
    if (code)
        return code;
    cost->read_end = mr_clock_ns();
    cost->read_ns = cost->read_end - r->late_ns - start;
    cost->file_bytes = *len;
    return 0;
}

/* Read and map one sample; 0 with the slot's contents in *data and *len. */
static int fill(struct mr_worker *w, struct mr_task *t, uint8_t **data, size_t *len,
                const char **stage)
{
    struct mr_pipeline *p = w->p;
    *data = NULL;
    *len = 0;
    int code = p->o.map_without_bytes ? 0 : read_file(w, t, data, len, stage);
    if (code || p->pool->whole_files)
        return code;
    *stage = map_stage;
    code = mr_worker_map(w, t, *data, *len);
    *data = t->batch->slab.data + t->slot * p->pool->slot_bytes;
    *len = p->pool->slot_bytes;
    return code;
}

/* Sleep, longer each time; 0 when it has been long enough. */
static int wait_a_moment(struct mr_pipeline *p, uint64_t *pause_ns)
{
    if (*pause_ns > LONGEST_WAIT_NS || atomic_load(&p->stopping))
        return 0;
    struct timespec pause = {.tv_nsec = (long)*pause_ns};
    nanosleep(&pause, NULL);
    *pause_ns *= 2;
    return 1;
}

/* Fill the slot, whatever it takes. */
static void work_on(struct mr_worker *w, struct mr_task *t)
{
    uint64_t pause_ns = 1000000;
    uint8_t *data;
    size_t len;
    const char *stage = map_stage;
    for (;;) {
        int code = fill(w, t, &data, &len, &stage);
        if (!code)
            break;
        data = NULL;
        if (stage == map_stage || !mr_ledger_is_ours(code)) {
            if (mr_ledger_note(w->p, t, stage, code,
                               stage == map_stage ? mr_worker_map_error(w) : ""))
                break;
        } else if (!wait_a_moment(w->p, &pause_ns)) {
            mr_ledger_give_up(w->p, t, stage, code);
            break;
        }
    }
    mr_slot_finish(w, t, data, len);
}

/* Names are looked up from the folder that all files have in common: short ways are quicker. */
static void open_common(struct mr_worker *w, struct folder *f)
{
    struct mr_pipeline *p = w->p;
    struct reader *r = w->engine;
    size_t common = mr_dataset_common(p->data);
    if (!common || mr_dataset_path(p->data, 0, r->path, sizeof r->path) < 0)
        return;
    r->path[common] = 0;
    int fd = openat(f->fd, r->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return; /* each file will say why */
    f->fd = fd;
    f->common = common;
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

#ifdef SYS_close_range
/* Leave the process's table of descriptors for one that holds the first three and `kept`; nonzero
 * when the kernel cannot do it (before 5.9). */
static long take_own_table(int kept)
{
    unsigned first = STDERR_FILENO + 1, behind = kept < (int)first ? first : (unsigned)kept + 1;
    if (syscall(SYS_close_range, behind, ~0U, UNSHARE))
        return -1;
    if (behind > first + 1)
        syscall(SYS_close_range, first, behind - 2, 0);
    return 0;
}
#endif

/* Have descriptors of its own: the first three and the data set's folder.  Not where a user's
 * function is to run, which may know others by their numbers, and not where the kernel cannot. */
static int begin(struct mr_worker *w, struct mr_error *err)
{
    struct reader *r = w->engine;
    (void)err;
    if (w->p->o.map)
        return 0;
    leave_signals_to_others();
#ifdef SYS_close_range
    /* ThreadSanitizer takes equal numbers for equal files. */
    r->own_table = !MR_TSAN && !take_own_table(mr_dataset_folder(w->p->data));
#endif
    return 0;
}

static void run(struct mr_worker *w)
{
    struct mr_task t;
    struct reader *r = w->engine;
    int more = mr_slot_claim(w, 1, &t) == 1;
    if (more && r->own_table)
        open_common(w, &r->from); /* with the first file: before, the caches may still be emptied */
    for (; more; more = mr_slot_claim(w, 1, &t) == 1)
        work_on(w, &t);
    leave(w, &r->from);
}

const struct mr_engine_ops mr_threads_engine = {init, begin, run, fini};
