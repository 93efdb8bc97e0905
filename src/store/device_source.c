/* device_source.c - a source that delivers what another one reads when a device would.
 *
 * The real read goes on meanwhile.  What is there too early is held: in a heap, the one that is due
 * first on top.  A wait is for the inner source or for that moment, whichever comes first, so that
 * reads go on being submitted and taken in.  Reads that are held count towards the depth, as they
 * are what the device is busy with.
 *
 * The inner source asks for sizes (ask_sizes): those that it knows before it reads are right.
 *
 * A read is charged by its extent, from the moment when it was asked for: a whole blob is one
 * metadata operation and one read, part of one is a read.  When the host was late with the read
 * before in this slot, this one is charged from that much earlier (mr_device_late_ns). */
#include "source.h"

#include "clock.h"
#include "device.h"
#include "errtext.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

struct device_source {
    struct mr_source base;
    struct mr_source *inner;
    struct mr_device *device;
    uint64_t most_late_ns;
    unsigned n_inner; /* reads that the inner source has */
    unsigned n_held;
    struct mr_read **held; /* [depth] a heap by due_ns; the first n_held */
    char name[PATH_MAX];
};

static int prepare(struct mr_source *base, struct mr_read *r)
{
    r->start_ns = r->asked_ns - r->late_ns;
    r->late_ns = 0;
    r->is_charged = 0;
    return mr_source_prepare(((struct device_source *)base)->inner, r);
}

static void drop(struct mr_source *base, struct mr_read *r)
{
    mr_source_drop(((struct device_source *)base)->inner, r);
}

static void submit(struct mr_source *base)
{
    mr_source_submit(((struct device_source *)base)->inner);
}

/* `bytes` are to be read: when would the device be done? */
static uint64_t charge(struct device_source *s, const struct mr_read *r, uint64_t bytes)
{
    struct mr_store *store = s->base.store;
    struct mr_device_place place = {.offset = r->extent.offset};
    if (store->ops->place &&
        mr_blob_table_name(s->base.o.blobs, r->extent.blob, s->name, sizeof s->name) >= 0)
        store->ops->place(store, s->name, r->fd, s->device, r->inode, r->extent.offset, &place);
    return r->extent.length
               ? mr_device_reserve_at(s->device, r->start_ns, MR_DEV_READ, &place, bytes)
               : mr_device_reserve_file(s->device, r->start_ns, &place, bytes);
}

/* Where the size is known, the device is charged before the bytes are read: its queue then has
 * reads in the order in which they were asked for. */
static void start(struct mr_source *base, struct mr_read *r)
{
    struct device_source *s = (struct device_source *)base;
    if (r->room && !r->is_charged) {
        r->due_ns = charge(s, r, r->size);
        r->is_charged = 1;
    }
    s->n_inner++;
    mr_source_start(s->inner, r);
}

static void hold(struct device_source *s, struct mr_read *r)
{
    if (!r->is_charged)
        r->due_ns = charge(s, r, r->len);
    r->overdue = r->end_ns > r->due_ns + (r->asked_ns - r->start_ns);
    unsigned at = s->n_held++;
    for (unsigned up; at && s->held[up = (at - 1) / 2]->due_ns > r->due_ns; at = up)
        s->held[at] = s->held[up];
    s->held[at] = r;
}

/* The one that is due first, out of the heap. */
static struct mr_read *take_due(struct device_source *s)
{
    struct mr_read *first = s->held[0], *last = s->held[--s->n_held];
    unsigned at = 0, down;
    while ((down = 2 * at + 1) < s->n_held) {
        if (down + 1 < s->n_held && s->held[down + 1]->due_ns < s->held[down]->due_ns)
            down++;
        if (s->held[down]->due_ns >= last->due_ns)
            break;
        s->held[at] = s->held[down];
        at = down;
    }
    s->held[at] = last;
    uint64_t now = mr_clock_ns(), really = first->end_ns;
    first->late_ns = mr_device_late_ns(first->due_ns, really, now,
                                       first->asked_ns - first->start_ns, s->most_late_ns);
    first->end_ns = now;
    first->took_ns = now - first->late_ns - first->start_ns;
    return first;
}

static int must_stop(const struct device_source *s)
{
    const atomic_int *stop = s->base.o.stop;
    return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

/* Take in what the inner source has by then; what failed needs no device.  The number of those, or
 * -errno. */
static int take_in(struct device_source *s, uint64_t until_ns, struct mr_read **done, unsigned max)
{
    int n = mr_source_wait(s->inner, until_ns, done, max), n_done = 0;
    for (int i = 0; i < n; i++) {
        s->n_inner--;
        if (done[i]->result)
            done[n_done++] = done[i];
        else
            hold(s, done[i]);
    }
    return n < 0 ? n : n_done;
}

/* When the first that is held is due, or `until_ns`, or it is time to look whether to stop. */
static uint64_t next_moment(const struct device_source *s, uint64_t until_ns)
{
    uint64_t slice = s->base.o.stop && s->n_held ? mr_clock_ns() + MR_DEVICE_SLICE_NS : UINT64_MAX;
    uint64_t at = s->n_held && s->held[0]->due_ns < until_ns ? s->held[0]->due_ns : until_ns;
    return at < slice ? at : slice;
}

static int wait(struct mr_source *base, uint64_t until_ns, struct mr_read **done, unsigned max)
{
    struct device_source *s = (struct device_source *)base;
    int n = 0;
    for (;;) {
        while ((unsigned)n < max && s->n_held && s->held[0]->due_ns <= mr_clock_ns())
            done[n++] = take_due(s);
        if (n || mr_clock_ns() >= until_ns)
            return n;
        if (!s->n_inner && !s->n_held)
            return 0;
        if (s->n_held && must_stop(s))
            return -ECANCELED;
        uint64_t at = next_moment(s, until_ns);
        if (s->n_inner && at > mr_clock_ns() + MR_DEVICE_SPIN_NS) {
            n = take_in(s, at == UINT64_MAX ? at : at - MR_DEVICE_SPIN_NS, done, max);
            if (n)
                return n;
        } else {
            mr_device_wait_until(at);
        }
    }
}

static void close_source(struct mr_source *base)
{
    struct device_source *s = (struct device_source *)base;
    mr_source_close(s->inner);
    free(s->held);
    free(s);
}

int mr_device_source_open(struct mr_source *inner, struct mr_device *d, uint64_t most_late_ns,
                          struct mr_source **out, struct mr_error *err)
{
    static const struct mr_source_ops ops = {prepare, drop, start, submit, wait, close_source};
    struct device_source *s = calloc(1, sizeof *s);
    struct mr_read **held = calloc(inner->o.depth, sizeof *held);
    if (!s || !held) {
        free(s);
        free(held);
        mr_source_close(inner);
        return mr_fail(err, -ENOMEM, "no memory for an emulated device");
    }
    s->base = (struct mr_source){&ops, mr_store_ref(inner->store), inner->o};
    s->inner = inner;
    s->device = d;
    s->most_late_ns = most_late_ns;
    s->held = held;
    *out = &s->base;
    return 0;
}
