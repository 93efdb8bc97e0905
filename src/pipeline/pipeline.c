/* pipeline.c - struct mr_pipeline: opening, delivering batches in order, closing.
 *
 * See pipeline_state.h for the flow; slot_queue.c is the workers' side of it.  The consumer waits
 * for the batch that is next in order, settles its bad samples (ledger.c) and takes it.
 *
 * Lock: pool->mu; never held across a callback. */
#include "pipeline_state.h"

#include "clock.h"
#include "errtext.h"
#include "ledger.h"
#include "pipeline_sized.h"
#include "sample_set.h"
#include "sample_trace.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define POLL_NS 50000000 /* how often should_stop is asked */

/* A condition variable on the clock that does not jump. */
static void init_cond(pthread_cond_t *c)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(c, &attr);
    pthread_condattr_destroy(&attr);
}

static int open_poll_fd(struct mr_pipeline *p, struct mr_error *err)
{
    p->poll_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return p->poll_fd >= 0 ? 0
                           : mr_fail(err, -errno, "a descriptor to poll: %s", mr_errno_text(errno));
}

int mr_pipeline_make(struct mr_dataset *data, const struct mr_pipeline_opts *opts,
                     struct mr_pipeline **out, struct mr_error *err)
{
    struct mr_pipeline *p = calloc(1, sizeof *p);
    if (!p)
        return mr_fail(err, -ENOMEM, "no memory");
    init_cond(&p->ready);
    p->pid = getpid();
    p->poll_fd = -1;
    p->data = mr_dataset_ref(data);
    if (opts)
        p->o = *opts;
    mr_pipeline_opts_complete(&p->o);
    if (p->o.map_without_bytes)
        p->o.engine = MR_ENGINE_THREADS; /* nothing is read */
    int r = mr_pipeline_opts_check(&p->o, err);
    if (!r)
        r = mr_pipeline_init_order(p, err);
    if (!r) {
        p->ask_ns = mr_clock_ns() + POLL_NS;
        p->window = p->o.prefetch == MR_NONE ? 1 : p->o.prefetch + 1;
        p->in_work = calloc(p->window, sizeof *p->in_work);
        r = p->in_work ? 0 : mr_fail(err, -ENOMEM, "no memory");
    }
    if (!r && p->o.pollable)
        r = open_poll_fd(p, err);
    if (!r && p->o.decode)
        r = mr_decode_map_new(p->o.decode, p->o.threads, &p->decode, err);
    if (!r)
        r = mr_batch_pool_new((unsigned)p->window + p->o.hold, &p->o, &p->pool, err);
    p->o.decode = NULL; /* the caller's, as the fields are */
    p->o.fields = NULL;
    if (!r) {
        p->begun = !p->o.start_on_next;
        mr_poll_fd_update(p); /* where there is nothing to do, a call never waits */
        r = mr_workers_start(p, err);
    }
    if (r)
        mr_pipeline_close(p);
    else
        *out = p;
    return r;
}

void mr_pipeline_close(struct mr_pipeline *p)
{
    if (!p || p->pid != getpid())
        return; /* a child's copy: its workers are the parent's */
    mr_workers_stop(p);
    if (p->poll_fd >= 0)
        close(p->poll_fd);
    free(p->in_work);
    mr_batch_pool_unref(p->pool);
    mr_decode_map_free(p->decode);
    mr_order_fini(&p->order);
    mr_dataset_unref(p->data);
    pthread_cond_destroy(&p->ready);
    free(p);
}

void mr_poll_fd_update(struct mr_pipeline *p)
{
    if (p->poll_fd < 0)
        return;
    int readable = p->has_failed || p->broken || p->at_epoch_end || p->next_out == p->n_seq ||
                   mr_slot_is_ready(p);
    if (readable == p->is_readable)
        return;
    p->is_readable = readable;
    /* It never blocks: the counter is 0 or 1. */
    eventfd_t count;
    if (readable)
        eventfd_write(p->poll_fd, 1);
    else
        eventfd_read(p->poll_fd, &count);
}

/* With the lock held: sleep until a batch may be ready, `until_ns` comes, or should_stop is to be
 * asked. */
static void wait_until_ready(struct mr_pipeline *p, uint64_t until_ns)
{
    int asks = p->o.should_stop != NULL;
    uint64_t wake_ns = asks && p->ask_ns < until_ns ? p->ask_ns : until_ns;
    struct timespec wake = mr_clock_at(wake_ns);
    if (wake_ns == UINT64_MAX)
        pthread_cond_wait(&p->ready, &p->pool->mu);
    else if (mr_clock_ns() < wake_ns)
        pthread_cond_timedwait(&p->ready, &p->pool->mu, &wake);
    /* From one call of ours to the next, too: no wait may be as long as that. */
    if (!asks || mr_clock_ns() < p->ask_ns)
        return;
    pthread_mutex_unlock(&p->pool->mu); /* no lock is held across a callback */
    int stop = p->o.should_stop(p->o.should_stop_ctx);
    p->ask_ns = mr_clock_ns() + POLL_NS;
    pthread_mutex_lock(&p->pool->mu);
    if (stop)
        mr_fail(&p->error, -ECANCELED, "interrupted");
}

/* With the lock held: take the batch that is next in order out of the window. */
static struct mr_work_batch *take_out(struct mr_pipeline *p)
{
    struct mr_work_batch **place = &p->in_work[p->next_out % p->window], *b = *place;
    *place = NULL;
    p->next_out++;
    p->pool->n_out++;
    p->pool->refs++;
    return b;
}

/* With the lock held: 0 when the next batch is ready, else why there is none. */
static int wait_for_batch(struct mr_pipeline *p, uint64_t until_ns)
{
    while (!p->error.code && !p->broken && !mr_slot_is_ready(p)) {
        if (until_ns != UINT64_MAX && mr_clock_ns() >= until_ns)
            return -ETIMEDOUT;
        wait_until_ready(p, until_ns);
    }
    if (!p->error.code && !mr_slot_is_ready(p))
        mr_fail(&p->error, p->broken, "reading failed: %s", mr_errno_text(p->broken));
    return p->error.code;
}

/* Wait for the next batch in order and take it. */
static int take_ready(struct mr_pipeline *p, uint64_t until_ns, struct mr_work_batch **out)
{
    struct mr_batch_pool *pool = p->pool;
    mr_batch_pool_lock(pool);
    if (pool->n_out >= p->o.hold) {
        pthread_mutex_unlock(&pool->mu);
        return -EBUSY;
    }
    p->begun = p->wanted = 1;
    if (mr_slot_must_call(p))
        pthread_cond_signal(&pool->work);
    int r = wait_for_batch(p, until_ns), call = 0;
    if (r != -ETIMEDOUT)
        p->wanted = 0;
    if (!r) {
        *out = take_out(p);
        call = mr_slot_must_call(p);
    }
    p->has_failed = p->error.code != 0;
    mr_poll_fd_update(p);
    pthread_mutex_unlock(&pool->mu); /* before the call: who is called needs it at once */
    if (call)
        pthread_cond_signal(&pool->work);
    return r;
}

static void count_batch(struct mr_pipeline *p, const struct mr_work_batch *b, uint64_t waited_ns)
{
    struct mr_pipeline_stats *s = &p->stats;
    s->batches++;
    s->samples += b->pub.n;
    for (unsigned i = 0; i < b->pub.n && !p->o.map_without_bytes; i++) {
        const struct mr_slot_cost *cost = &b->cost[i];
        s->delivered_bytes += cost->file_bytes;
        s->overdue += p->o.storage && cost->overdue;
        s->read_s += (double)cost->read_ns / 1e9;
        s->decode_s += (double)cost->decode_ns / 1e9;
        s->resize_s += (double)cost->resize_ns / 1e9;
        s->decoded_by[cost->path] += p->decode != NULL;
        mr_histogram_add(&p->read_ns, cost->read_ns);
    }
    mr_histogram_add(&p->batch_ns, waited_ns);
}

/* The batch after this one is what the next call is for: whether that has to wait. */
static void set_epoch_end(struct mr_pipeline *p, int at_end)
{
    pthread_mutex_lock(&p->pool->mu);
    p->at_epoch_end = at_end;
    mr_poll_fd_update(p);
    pthread_mutex_unlock(&p->pool->mu);
}

/* A batch cannot be delivered: the position stays there. */
static void give_back(struct mr_pipeline *p, struct mr_work_batch *b)
{
    mr_batch_unref(&b->pub);
    pthread_mutex_lock(&p->pool->mu);
    p->next_out--;
    p->has_failed = 1;
    mr_poll_fd_update(p);
    pthread_mutex_unlock(&p->pool->mu);
}

static int next_until(struct mr_pipeline *p, uint64_t start, uint64_t until_ns,
                      struct mr_batch **out)
{
    if (p->pid != getpid())
        return -ECHILD;
    if (p->error.code)
        return p->error.code;
    if (p->at_epoch_end) {
        set_epoch_end(p, 0);
        return 0;
    }
    if (p->next_out == p->n_seq)
        return 0;
    struct mr_work_batch *b = NULL;
    int r = take_ready(p, until_ns, &b);
    if (r)
        return r;
    r = mr_ledger_settle(p, b);
    if (r) {
        give_back(p, b);
        return r;
    }
    uint64_t end = mr_clock_ns();
    count_batch(p, b, end - start);
    mr_wait_trace(p, &b->pub, start, end);
    set_epoch_end(p, b->pub.number + 1 == mr_order_cut(&p->order, b->pub.epoch)->n_batches &&
                         p->next_out < p->n_seq);
    *out = &b->pub;
    return 1;
}

int mr_pipeline_next(struct mr_pipeline *p, struct mr_batch **out)
{
    return next_until(p, mr_clock_ns(), UINT64_MAX, out);
}

int mr_pipeline_next_within(struct mr_pipeline *p, uint64_t wait_ns, struct mr_batch **out)
{
    uint64_t now = mr_clock_ns();
    int r = next_until(p, now, wait_ns < UINT64_MAX - now ? now + wait_ns : UINT64_MAX, out);
    return r == -ETIMEDOUT && !wait_ns ? -EAGAIN : r;
}

int mr_pipeline_fd(const struct mr_pipeline *p)
{
    return p->poll_fd < 0 ? -ENOTSUP : p->poll_fd;
}

void mr_pipeline_position(const struct mr_pipeline *p, struct mr_position *out)
{
    uint64_t number;
    mr_pipeline_place_of(p, p->next_out, &out->epoch, &number);
    out->samples = mr_order_samples(&p->order, out->epoch, number);
}

uint64_t mr_pipeline_n_batches(const struct mr_pipeline *p)
{
    return p->order.cut.n_batches;
}

uint64_t mr_pipeline_n_left(const struct mr_pipeline *p)
{
    return p->n_seq - p->next_out;
}

/* Samples that the last batch of an epoch has less than the others. */
static uint64_t missing(const struct mr_cut *c, unsigned batch)
{
    return c->n_batches > c->n_full ? c->n_batches * batch - c->n_shard : 0;
}

uint64_t mr_pipeline_n_samples(const struct mr_pipeline *p)
{
    const struct mr_order *q = &p->order;
    uint64_t n = p->n_seq * p->o.batch;
    if (p->n_start && p->n_seq >= p->n_start)
        n -= missing(&q->start, p->o.batch);
    if (p->n_seq > p->n_start)
        n -= (p->n_seq - p->n_start) / q->cut.n_batches * missing(&q->cut, p->o.batch);
    return n;
}

static struct mr_latency latency(const struct mr_histogram *h)
{
    return (struct mr_latency){(double)mr_histogram_at(h, 0.50) / 1e3,
                               (double)mr_histogram_at(h, 0.99) / 1e3,
                               (double)mr_histogram_at(h, 0.999) / 1e3, (double)h->max / 1e3};
}

void mr_pipeline_all_stats(struct mr_pipeline *p, struct mr_pipeline_stats *out)
{
    struct mr_pipeline_stats s = p->stats;
    s.read = latency(&p->read_ns);
    s.batch = latency(&p->batch_ns);
    s.memory_bytes = atomic_load(&p->pool->memory);
    s.memory_peak_bytes = atomic_load(&p->pool->memory_peak);
    s.pool_bytes = mr_batch_pool_bytes(p->pool);
    *out = s;
}

const char *mr_pipeline_error(const struct mr_pipeline *p)
{
    return p->error.code ? p->error.text : "";
}
