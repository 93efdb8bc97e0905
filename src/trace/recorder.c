/* recorder.c - the trace of this process: who records, where to, from when on.
 *
 *   thread A  span -> ring A --.
 *   thread B  span -> ring B --+--> the recorder's thread (trace_output.c) --> file
 *   thread C  span -> ring C --'
 *
 * This is the one module with mutable global state, because a span must find its ring from anywhere
 * without being handed an object, and because two traces of one process make no sense.
 *
 * A thread's ring is found through a thread-local pointer.  The first span of a thread takes a ring
 * (attach), its end gives it back (leave); nothing else on the way of a span locks or allocates.
 * The list of rings only grows, so it is walked without a lock; a ring that was left is free once
 * its events are written, and the next new thread takes it.  While no trace is on, rings that
 * nobody owns have no memory; those of living threads keep theirs, for their owner may be in the
 * middle of a span that it began to store when the trace was on.  Such a late event shows up in the
 * next trace, which knows by its time that it is not its own.
 *
 * A paused trace (trace_pause.h) is an output without a recorder's thread.
 *
 * fork: the child has the forking thread only and no recorder's thread.  It forgets the trace: the
 * descriptor is closed, nothing is written, rings of threads that do not exist there are free.
 *
 * Locks: `control` is held over start and stop; `mu` guards the list's head, the name table and
 * `session`, and is never held across I/O.  Order: control, mu. */
#include "trace_output.h"

#include "clock.h"
#include "errtext.h"
#include "sized.h"
#include "trace_mark.h"
#include "trace_pause.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define RING_SPANS 65536
#define MAX_RING   (1u << 24)
#define ROUND_NS   200000000  /* the recorder's thread looks at least so often */
#define FIRST_LINE (1u << 22) /* above every thread id; lanes of each thread follow */
#define OTHER      "other"

static struct {
    atomic_int on; /* the one load of a span while no trace is on */
    atomic_int ending;
    pthread_mutex_t control, mu;
    pthread_t thread;
    sem_t wake;
    struct mr_trace_output output; /* the recorder's thread's, between start and stop */
    struct mr_trace_output paused; /* guarded by control */
    size_t paused_spans;

    _Atomic(struct mr_traced_thread *) rings; /* head: written under mu */
    atomic_uint_fast64_t no_ring;             /* events of threads that found no memory */
    uint64_t no_ring_seen;                    /* the recorder's thread's */

    /* Guarded by mu */
    int session; /* a trace is on: rings may be taken */
    size_t ring_spans;
    unsigned n_rings;
    struct mr_name_table names;
} registry = {.control = PTHREAD_MUTEX_INITIALIZER, .mu = PTHREAD_MUTEX_INITIALIZER};

static __thread struct {
    struct mr_traced_thread *ring;
    uint32_t epoch, step;
    uint16_t lane;
    char name[MR_THREAD_NAME_BYTES];
} self;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_thread_end;

/* ---- threads come and go ---- */

/* With mu held: a ring that nobody owns gives its memory back. */
static void release(struct mr_traced_thread *t)
{
    mr_span_ring_fini(&t->ring);
    t->wanted = 0;
}

/* A thread that owns a ring ends. */
static void leave(void *arg)
{
    struct mr_traced_thread *t = arg;
    pthread_mutex_lock(&registry.mu);
    if (registry.session) {
        atomic_store_explicit(&t->state, MR_RING_LEFT, memory_order_release);
    } else {
        release(t);
        atomic_store_explicit(&t->state, MR_RING_FREE, memory_order_release);
    }
    pthread_mutex_unlock(&registry.mu);
    self.ring = NULL;
}

/* With mu held: a free ring with memory for this trace, or one that gets some; NULL: none. */
static struct mr_traced_thread *take_ring(void)
{
    struct mr_traced_thread *empty = NULL;
    for (struct mr_traced_thread *t = atomic_load(&registry.rings); t; t = t->next) {
        if (atomic_load_explicit(&t->state, memory_order_acquire) != MR_RING_FREE)
            continue;
        if (t->wanted == registry.ring_spans)
            return t;
        empty = t;
    }
    struct mr_traced_thread *t = empty;
    if (!t) {
        t = aligned_alloc(64, (sizeof *t + 63) / 64 * 64);
        if (!t)
            return NULL;
        memset(t, 0, sizeof *t);
        t->first_line = FIRST_LINE + registry.n_rings * (MR_MAX_LANE + 1);
    }
    release(t);
    if (mr_span_ring_init(&t->ring, registry.ring_spans)) {
        if (!empty)
            free(t);
        return NULL;
    }
    t->wanted = registry.ring_spans;
    t->dropped_seen = 0;
    if (!empty) {
        t->next = atomic_load(&registry.rings);
        registry.n_rings++;
        atomic_store(&registry.rings, t);
    }
    return t;
}

static struct mr_traced_thread *attach(void)
{
    pthread_mutex_lock(&registry.mu);
    struct mr_traced_thread *t = registry.session ? take_ring() : NULL;
    if (t) {
        t->tid = (unsigned)gettid();
        t->announced = 0;
        if (!self.name[0] && prctl(PR_GET_NAME, self.name))
            snprintf(self.name, sizeof self.name, "thread %u", t->tid);
        memcpy(t->name, self.name, sizeof t->name);
        if (pthread_setspecific(at_thread_end, t)) {
            t = NULL; /* its end would go unnoticed */
        } else {
            self.ring = t;
            atomic_store_explicit(&t->state, MR_RING_OWNED, memory_order_release);
        }
    }
    if (!t && registry.session)
        atomic_fetch_add(&registry.no_ring, 1);
    pthread_mutex_unlock(&registry.mu);
    return t;
}

void mr_trace_thread_name(const char *name)
{
    snprintf(self.name, sizeof self.name, "%s", name);
    if (mr_trace_on() && !self.ring)
        attach();
}

/* ---- fork ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&registry.control);
    pthread_mutex_lock(&registry.mu);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&registry.mu);
    pthread_mutex_unlock(&registry.control);
}

static void forget(struct mr_trace_output *t)
{
    if (!t->open)
        return;
    close(t->sink.fd);
    free(t->sink.buf); /* of the heap, which fork keeps usable */
    t->open = 0;
}

static void after_fork_in_child(void)
{
    atomic_store(&registry.on, 0);
    registry.session = 0;
    forget(&registry.output);
    forget(&registry.paused);
    for (struct mr_traced_thread *t = atomic_load(&registry.rings); t; t = t->next) {
        if (t->wanted)
            mr_span_ring_clear(&t->ring);
        if (t != self.ring) {
            release(t);
            atomic_store(&t->state, MR_RING_FREE);
        }
    }
    if (self.ring)
        self.ring->tid = (unsigned)gettid();
    sem_init(&registry.wake, 0, 0);
    pthread_mutex_init(&registry.mu, NULL);
    pthread_mutex_init(&registry.control, NULL);
}

static void set_up(void)
{
    static const char *const names[MR_N_PHASES] = {
        [MR_PHASE_READ] = "Read",
        [MR_PHASE_LOAD] = "Load",
        [MR_PHASE_QUEUE_WAIT] = "Queue wait",
        [MR_PHASE_DECODE] = "Decode",
        [MR_PHASE_RESIZE] = "Resize",
        [MR_PHASE_MAP] = "Map",
        [MR_PHASE_IDLE] = "Idle",
        [MR_PHASE_WAIT] = "Wait",
        [MR_PHASE_TRAIN] = "Train",
        [MR_PHASE_FORWARD] = "Forward",
        [MR_PHASE_BACKWARD] = "Backward",
        [MR_PHASE_UPDATE] = "Update",
        [MR_PHASE_CHECKPOINT] = "Checkpoint",
        [MR_PHASE_SNAPSHOT] = "Snapshot",
        [MR_PHASE_WRITE] = "Write",
        [MR_PHASE_SYNC] = "Sync",
        [MR_PHASE_DRAIN] = "Drain",
    };
    for (unsigned i = 0; i < MR_N_PHASES; i++)
        mr_name_add(&registry.names, names[i], 0);
    mr_name_add(&registry.names, OTHER, 0); /* MR_N_PHASES */
    sem_init(&registry.wake, 0, 0);         /* for good: a late span may post after a trace's end */
    pthread_key_create(&at_thread_end, leave);
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* ---- start and stop ---- */

static void *record(void *unused)
{
    (void)unused;
    struct timespec until;
    prctl(PR_SET_NAME, "trace");
    int ending;
    do {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += ROUND_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        while (sem_clockwait(&registry.wake, CLOCK_MONOTONIC, &until) && errno == EINTR)
            ;
        ending = atomic_load(&registry.ending);
        uint64_t no_ring = atomic_load(&registry.no_ring);
        mr_trace_output_drain(&registry.output, atomic_load(&registry.rings),
                              no_ring - registry.no_ring_seen);
        registry.no_ring_seen = no_ring;
    } while (!ending);
    return NULL;
}

/* Signals are for the program's own threads. */
static int start_thread(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = -pthread_create(&registry.thread, NULL, record, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

/* With mu held, when no trace is on: rings that threads left behind, and what is in the others. */
static void tidy(void)
{
    for (struct mr_traced_thread *t = atomic_load(&registry.rings); t; t = t->next) {
        if (atomic_load(&t->state) == MR_RING_OWNED)
            continue;
        release(t);
        atomic_store(&t->state, MR_RING_FREE);
    }
}

static void set_session(int session, size_t ring_spans)
{
    pthread_mutex_lock(&registry.mu);
    registry.session = session;
    registry.ring_spans = ring_spans;
    if (!session)
        tidy();
    for (struct mr_traced_thread *t = atomic_load(&registry.rings); session && t; t = t->next) {
        t->announced = 0;
        mr_span_ring_clear(&t->ring);
        t->dropped_seen = atomic_load(&t->ring.dropped);
    }
    pthread_mutex_unlock(&registry.mu);
}

/* With control held and an output open: from now on the rings are emptied into it. */
static int begin_recording(size_t spans)
{
    atomic_store(&registry.ending, 0);
    registry.no_ring_seen = atomic_load(&registry.no_ring);
    set_session(1, spans);
    int r = start_thread();
    if (r)
        set_session(0, 0);
    else
        atomic_store(&registry.on, 1);
    return r;
}

static void end_recording(void)
{
    atomic_store(&registry.on, 0);
    atomic_store(&registry.ending, 1);
    sem_post(&registry.wake);
    pthread_join(registry.thread, NULL);
    set_session(0, 0);
}

int mr_trace_start_sized(const struct mr_trace_opts *opts, size_t size, struct mr_error *err)
{
    struct mr_trace_opts o;
    int r = mr_take_sized(&o, sizeof o, opts, size, "mr_trace_opts", err);
    if (r)
        return r;
    pthread_once(&once, set_up);
    pthread_mutex_lock(&registry.control);
    size_t spans = o.ring_spans ? o.ring_spans : RING_SPANS;
    if (registry.output.open)
        r = mr_fail(err, -EBUSY, "a trace is on already (%s)", registry.output.o.path);
    else if (spans > MAX_RING)
        r = mr_fail(err, -EINVAL, "a ring of %zu spans: at most %u", spans, MAX_RING);
    else
        r = mr_trace_output_open(&registry.output, &o, &registry.names, err);
    if (!r) {
        r = begin_recording(spans);
        if (r) {
            mr_fail(err, r, "cannot start the trace's thread: %s", mr_errno_text(r));
            mr_trace_output_close(&registry.output, NULL, NULL);
        }
    }
    pthread_mutex_unlock(&registry.control);
    return r;
}

int mr_trace_stop_sized(struct mr_trace_stats *out, size_t size, struct mr_error *err)
{
    struct mr_trace_stats stats = {0};
    int r = 0;
    pthread_mutex_lock(&registry.control);
    if (registry.output.open) {
        end_recording();
        r = mr_trace_output_close(&registry.output, &stats, err);
    } else if (registry.paused.open) { /* and could not go on */
        r = mr_trace_output_close(&registry.paused, &stats, err);
    }
    pthread_mutex_unlock(&registry.control);
    mr_give_sized(out, size, &stats, sizeof stats);
    return r;
}

int mr_trace_pause(void)
{
    pthread_mutex_lock(&registry.control);
    int possible = registry.output.open && !registry.paused.open;
    if (possible) {
        registry.paused_spans = registry.ring_spans;
        end_recording();
        registry.paused = registry.output;
        registry.output.open = 0;
    }
    pthread_mutex_unlock(&registry.control);
    return possible;
}

int mr_trace_resume(void)
{
    int r = 0;
    pthread_mutex_lock(&registry.control);
    if (registry.paused.open && registry.output.open) {
        r = -EBUSY;
    } else if (registry.paused.open) {
        registry.output = registry.paused;
        r = begin_recording(registry.paused_spans);
        registry.paused.open = r != 0;
        registry.output.open = !r;
    }
    pthread_mutex_unlock(&registry.control);
    return r;
}

/* ---- events ---- */

int mr_trace_on(void)
{
    return atomic_load_explicit(&registry.on, memory_order_relaxed);
}

uint64_t mr_trace_now(void)
{
    return mr_trace_on() ? mr_clock_ns() : 0;
}

void mr_trace_context(uint32_t epoch, uint32_t step)
{
    self.epoch = epoch;
    self.step = step;
}

void mr_trace_lane(unsigned lane)
{
    self.lane = (uint16_t)(lane > MR_MAX_LANE ? 0 : lane);
}

/* Where this thread's next event goes, or NULL; then `stored`. */
static inline struct mr_event *place(void)
{
    struct mr_traced_thread *t = self.ring ? self.ring : attach();
    return t ? mr_span_ring_next(&t->ring) : NULL;
}

static inline void stored(void)
{
    if (mr_span_ring_put(&self.ring->ring))
        sem_post(&registry.wake);
}

void mr_trace_span(enum mr_phase phase, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes,
                   uint32_t id)
{
    if (!mr_trace_on() || !begin_ns || end_ns < begin_ns)
        return;
    struct mr_event *e = place();
    unsigned name = (unsigned)phase;
    if (!e)
        return;
    if (name > MR_N_PHASES && name >= atomic_load_explicit(&registry.names.n, memory_order_relaxed))
        name = MR_N_PHASES; /* not one that mr_trace_phase gave */
    *e = (struct mr_event){.begin_ns = begin_ns,
                           .end_ns = end_ns,
                           .bytes = bytes,
                           .id = id,
                           .epoch = self.epoch,
                           .step = self.step,
                           .name = (uint16_t)name,
                           .kind = MR_EVENT_SPAN,
                           .lane = self.lane};
    stored();
}

enum mr_phase mr_trace_phase(const char *name)
{
    pthread_once(&once, set_up);
    pthread_mutex_lock(&registry.mu);
    unsigned number = mr_name_add(&registry.names, name, MR_N_PHASES);
    pthread_mutex_unlock(&registry.mu);
    return (enum mr_phase)number;
}

/* A mark or a counter: rare, so it may look its name up. */
static void point(struct mr_event what, const char *name)
{
    what.name = (uint16_t)mr_trace_phase(name);
    what.id = MR_NONE;
    what.epoch = self.epoch;
    what.step = self.step;
    struct mr_event *e = place();
    if (!e)
        return;
    *e = what;
    stored();
}

void mr_trace_mark_at(const char *name, uint64_t t_ns)
{
    if (mr_trace_on())
        point((struct mr_event){.begin_ns = t_ns, .kind = MR_EVENT_MARK}, name);
}

void mr_trace_mark(const char *name)
{
    mr_trace_mark_at(name, mr_clock_ns());
}

void mr_trace_counter(const char *name, double value, uint64_t t_ns)
{
    if (mr_trace_on() && t_ns)
        point((struct mr_event){.begin_ns = t_ns, .value = value, .kind = MR_EVENT_COUNTER}, name);
}
