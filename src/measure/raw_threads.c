/* raw_threads.c - the operations of raw_io.h, with a thread for each outstanding one.
 *
 * Each thread takes the next number, does the operation, waits for the emulated device if there is
 * one, and counts in its own result; the caller reports progress and adds up at the end.  All
 * threads exist before the first operation begins.
 *
 * Lock: c->mu guards go, n_running, code and err.  It is not held during an operation or a
 * callback.  The next number, the count for reports and the wish to stop are atomic. */
#include "raw_slot.h"

#include "clock.h"
#include "device.h"
#include "errtext.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define PROGRESS_NS 100000000
#define STACK_BYTES (128 << 10)

struct team {
    const struct mr_raw_job *job;
    atomic_uint_fast64_t next, n_done;
    atomic_int stop, cut;

    pthread_mutex_t mu;
    pthread_cond_t event; /* go was set, or a thread ended */
    int go;
    uint64_t end_ns; /* written before go is set */
    unsigned n_running;
    int code;
    struct mr_error err;
};

struct worker {
    struct team *team;
    struct mr_raw_slot *slot;
    pthread_t thread;
    struct mr_raw_result result;
};

/* The whole operation, however many calls it takes. */
static void transfer(struct mr_raw_op *op)
{
    op->result = 0;
    for (op->have = 0; !op->result && op->have < op->len;) {
        uint8_t *at = op->buf + op->have;
        off_t where = (off_t)(op->offset + op->have);
        ssize_t n = op->write ? pwrite(op->fd, at, op->len - op->have, where)
                              : pread(op->fd, at, op->len - op->have, where);
        if (n > 0)
            op->have += (uint32_t)n;
        else if (n == 0)
            op->result = op->write ? -EIO : -ENODATA;
        else if (errno != EINTR)
            op->result = -errno;
    }
    op->done_ns = mr_clock_ns();
}

/* A number to work on, or 0 when there is none or no time. */
static int take(struct team *c, uint64_t *i)
{
    if (atomic_load(&c->stop))
        return 0;
    if (c->end_ns && mr_clock_ns() >= c->end_ns) {
        if (atomic_load(&c->next) < c->job->n_ops)
            atomic_store(&c->cut, 1);
        return 0;
    }
    *i = atomic_fetch_add(&c->next, 1);
    return *i < c->job->n_ops;
}

static void note_failure(struct team *c, const struct mr_raw_slot *s)
{
    atomic_store(&c->stop, 1);
    pthread_mutex_lock(&c->mu);
    if (!c->code)
        c->code = mr_raw_slot_fail(s, c->job, &c->err);
    pthread_mutex_unlock(&c->mu);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct team *c = w->team;
    uint64_t i;
    pthread_mutex_lock(&c->mu);
    while (!c->go)
        pthread_cond_wait(&c->event, &c->mu);
    pthread_mutex_unlock(&c->mu);
    while (take(c, &i)) {
        mr_raw_slot_begin(w->slot, c->job, i);
        transfer(&w->slot->op);
        if (w->slot->op.result) {
            note_failure(c, w->slot);
            break;
        }
        if (w->slot->due_ns > w->slot->op.done_ns)
            mr_device_wait_until(w->slot->due_ns);
        mr_raw_slot_count(w->slot, &w->result);
        atomic_fetch_add(&c->n_done, 1);
    }
    pthread_mutex_lock(&c->mu);
    c->n_running--;
    pthread_cond_broadcast(&c->event);
    pthread_mutex_unlock(&c->mu);
    return NULL;
}

/* Report until the workers are gone. */
static void watch(struct team *c)
{
    const struct mr_raw_job *job = c->job;
    pthread_mutex_lock(&c->mu);
    while (c->n_running) {
        pthread_mutex_unlock(&c->mu);
        if (job->progress && !atomic_load(&c->stop) &&
            job->progress(job->progress_ctx, atomic_load(&c->n_done), job->n_ops)) {
            atomic_store(&c->stop, 1);
            pthread_mutex_lock(&c->mu);
            c->code = c->code ? c->code : -ECANCELED;
            pthread_mutex_unlock(&c->mu);
        }
        pthread_mutex_lock(&c->mu);
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += PROGRESS_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        int timed_out = 0;
        while (c->n_running && !timed_out)
            timed_out = pthread_cond_timedwait(&c->event, &c->mu, &until) != 0;
    }
    pthread_mutex_unlock(&c->mu);
}

/* Start them all, or none that would do anything. */
static unsigned start(struct team *c, struct worker *workers, struct mr_raw_slot *slots)
{
    pthread_attr_t attr;
    unsigned n = 0;
    int r = -pthread_attr_init(&attr);
    if (!r) {
        pthread_attr_setstacksize(&attr, STACK_BYTES);
        for (; !r && n < c->job->depth; n += !r) {
            workers[n].team = c;
            workers[n].slot = &slots[n];
            r = -pthread_create(&workers[n].thread, &attr, work, &workers[n]);
        }
        pthread_attr_destroy(&attr);
    }
    if (r) {
        atomic_store(&c->stop, 1);
        c->code =
            mr_fail(&c->err, r, "thread %u of %u: %s", n + 1, c->job->depth, mr_errno_text(r));
    }
    return n;
}

int mr_raw_threads_run(struct mr_raw_slot *slots, const struct mr_raw_job *job,
                       struct mr_raw_result *out, struct mr_error *err)
{
    struct team c = {.job = job};
    pthread_condattr_t monotonic;
    struct worker *workers = calloc(job->depth, sizeof *workers);
    if (!workers)
        return mr_fail(err, -ENOMEM, "no memory for %u threads", job->depth);
    pthread_mutex_init(&c.mu, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&c.event, &monotonic);
    pthread_condattr_destroy(&monotonic);

    pthread_mutex_lock(&c.mu); /* nobody goes before everybody is there */
    unsigned n = start(&c, workers, slots);
    c.n_running = n;
    c.end_ns = job->box_ns ? mr_clock_ns() + job->box_ns : 0;
    c.go = 1;
    pthread_cond_broadcast(&c.event);
    pthread_mutex_unlock(&c.mu);
    watch(&c);
    for (unsigned i = 0; i < n; i++) {
        pthread_join(workers[i].thread, NULL);
        out->n_ops += workers[i].result.n_ops;
        out->bytes += workers[i].result.bytes;
        out->n_late += workers[i].result.n_late;
        mr_histogram_merge(&out->latency, &workers[i].result.latency);
    }
    out->cut = atomic_load(&c.cut);
    int r = c.code;
    if (r && r != -ECANCELED)
        mr_fail(err, r, "%s", c.err.text);
    pthread_cond_destroy(&c.event);
    pthread_mutex_destroy(&c.mu);
    free(workers);
    return r;
}
