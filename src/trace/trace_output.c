/* trace_output.c - see trace_output.h.
 *
 * Each round takes what the rings hold, writes it, and flushes, so that a program that is killed
 * leaves all but the last moment on disk.  Events are in the order in which they were stored within
 * a thread, not over threads: readers sort.
 *
 * A read's file is worth its bytes only when somebody will ask for it, which is when it was slow.
 * The first NAME_ALL reads carry the name, then those that are slower than 99 in 100 so far.
 *
 * No lock is needed: one thread calls this, and rings hand over by their counters and state. */
#include "trace_output.h"

#include "clock.h"
#include "errtext.h"
#include "new_file.h"
#include "open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define NAME_ALL   1000
#define NAME_SHARE 0.99
#define BOOT_ID    36 /* characters */

/* Identifies CLOCK_MONOTONIC: two traces with the same text here have the same one.  It restarts
 * with each boot and is shifted in a time namespace.  "" when it cannot be known. */
static void name_clock(char name[MR_CLOCK_NAME])
{
    char boot[48], space[32];
    int fd = mr_open_file("/proc/sys/kernel/random/boot_id", O_RDONLY, 0);
    ssize_t n;
    do
        n = fd < 0 ? -1 : read(fd, boot, sizeof boot);
    while (fd >= 0 && n < 0 && errno == EINTR);
    ssize_t m = readlink("/proc/self/ns/time", space, sizeof space - 1);
    if (fd >= 0)
        close(fd);
    space[m > 0 ? m : 0] = 0;
    name[0] = 0;
    if (n >= BOOT_ID) /* a part of it could be another boot's as well */
        snprintf(name, MR_CLOCK_NAME, "boot %.*s %s", BOOT_ID, boot, space);
}

static void fill_head(struct mr_trace_head *h, const struct mr_trace_opts *o)
{
    struct timespec wall;
    /* The two clocks are asked one after the other; what lies between is far below a microsecond
     * unless the thread is interrupted just there, hence the best of a few. */
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        uint64_t before = mr_clock_ns();
        clock_gettime(CLOCK_REALTIME, &wall);
        uint64_t after = mr_clock_ns();
        if (after - before >= best)
            continue;
        best = after - before;
        h->start_ns = before;
        h->wall_ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
    }
    name_clock(h->clock);
    h->pid = (unsigned)getpid();
    h->rank = o->rank;
    snprintf(h->storage, sizeof h->storage, "%s", o->storage ? o->storage : "");
    snprintf(h->program, sizeof h->program, "%s", program_invocation_short_name);
}

static int ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

int mr_trace_output_open(struct mr_trace_output *t, const struct mr_trace_opts *o,
                         const struct mr_name_table *names, struct mr_error *err)
{
    if (!o || !o->path || !*o->path)
        return mr_fail(err, -EINVAL, "a trace needs the path of its file");
    int fd = mr_new_file_stream(o->path);
    if (fd < 0)
        return mr_fail(err, fd, "%s: %s", o->path, mr_errno_text(fd));
    *t = (struct mr_trace_output){.o = *o, .names = names};
    int r = mr_text_sink_init(&t->sink, fd);
    if (r) {
        close(fd);
        return mr_fail(err, r, "%s: no memory", o->path);
    }
    fill_head(&t->head, o);
    t->writer = ends_in(o->path, ".csv") ? &mr_timelogger_writer : &mr_chrome_writer;
    t->writer->begin(&t->sink, &t->head);
    mr_text_sink_flush(&t->sink);
    t->open = 1;
    return 0;
}

/* Tell the picture what a line is called, when it is seen for the first time. */
static void name_lines(struct mr_trace_output *t, struct mr_traced_thread *from, unsigned lane)
{
    char name[MR_THREAD_NAME_BYTES + 24];
    if (!from->announced) {
        from->announced = 1;
        memset(from->lane_named, 0, sizeof from->lane_named);
        t->writer->line_name(&t->sink, &t->head, from->tid, from->name);
    }
    if (!lane || from->lane_named[lane / 8] & 1u << lane % 8)
        return;
    from->lane_named[lane / 8] |= (uint8_t)(1u << lane % 8);
    snprintf(name, sizeof name, "%s, lane %u", from->name, lane);
    t->writer->line_name(&t->sink, &t->head, from->first_line + lane, name);
}

/* The file of a read that is worth naming, or NULL. */
static const char *file_of(struct mr_trace_output *t, const struct mr_event *e, char *buf,
                           size_t cap)
{
    if (e->kind != MR_EVENT_SPAN || e->name != MR_PHASE_READ || e->id == MR_NONE || !t->o.file_of)
        return NULL;
    uint64_t took = e->end_ns - e->begin_ns;
    mr_histogram_add(&t->read_ns, took);
    if (t->read_ns.n > NAME_ALL && took < t->slow_ns)
        return NULL;
    return t->o.file_of(t->o.file_ctx, e->id, buf, cap) < 0 ? NULL : buf;
}

static void write_event(struct mr_trace_output *t, struct mr_traced_thread *from,
                        const struct mr_event *e)
{
    char path[PATH_MAX];
    uint64_t until = e->kind == MR_EVENT_SPAN ? e->end_ns : e->begin_ns;
    if (until < t->head.start_ns) /* from between two traces */
        return;
    name_lines(t, from, e->lane);
    struct mr_trace_thread thread = {from->tid, e->lane ? from->first_line + e->lane : from->tid};
    t->writer->event(&t->sink, &t->head, &t->memory, &thread, e, t->names->name[e->name],
                     file_of(t, e, path, sizeof path));
}

static void drain_one(struct mr_trace_output *t, struct mr_traced_thread *from)
{
    const struct mr_event *e;
    size_t n;
    while ((n = mr_span_ring_peek(&from->ring, SIZE_MAX, &e))) {
        for (size_t i = 0; i < n; i++)
            write_event(t, from, &e[i]);
        mr_span_ring_took(&from->ring, n);
    }
    uint64_t dropped = atomic_load_explicit(&from->ring.dropped, memory_order_relaxed);
    t->dropped += dropped - from->dropped_seen;
    from->dropped_seen = dropped;
}

void mr_trace_output_drain(struct mr_trace_output *t, struct mr_traced_thread *list,
                           uint64_t also_dropped)
{
    uint64_t dropped = t->dropped;
    t->dropped += also_dropped;
    for (struct mr_traced_thread *at = list; at; at = at->next) {
        /* Asked before its events are taken: then none can come after them. */
        int state = atomic_load_explicit(&at->state, memory_order_acquire);
        if (state == MR_RING_FREE)
            continue;
        drain_one(t, at);
        if (state == MR_RING_LEFT)
            atomic_store_explicit(&at->state, MR_RING_FREE, memory_order_release);
    }
    if (t->dropped != dropped)
        t->writer->dropped(&t->sink, &t->head, mr_clock_ns(), t->dropped);
    t->slow_ns = mr_histogram_at(&t->read_ns, NAME_SHARE);
    mr_text_sink_flush(&t->sink);
}

int mr_trace_output_close(struct mr_trace_output *t, struct mr_trace_stats *out,
                          struct mr_error *err)
{
    t->writer->end(&t->sink);
    int r = mr_text_sink_close(&t->sink);
    t->open = 0;
    if (out)
        *out = (struct mr_trace_stats){t->sink.n_written, t->dropped, t->sink.n_lost};
    if (r)
        mr_fail(err, r, "%s: %s: the trace ends early, %llu events are lost", t->o.path,
                mr_errno_text(r), (unsigned long long)t->sink.n_lost);
    return r;
}
