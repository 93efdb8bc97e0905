/* feed.c - struct mr_pipeline: opening, handing slots to workers, delivering batches in order.
 *
 * See feed.h for the flow.  A batch is opened under the lock: its samples' indices are computed
 * there, once for all slots, so the order may keep a state (a shuffle window).  Workers then claim
 * slots with one atomic increment each (or a few at once, when batches take microseconds and the
 * counters themselves would be the bottleneck).  A worker that still holds a pointer to a batch
 * which meanwhile was finished, delivered and opened again simply claims a slot of the new
 * contents: all other fields are written before `claim` is set anew with release order, and the
 * number of slots is part of that word, so that count and limit always belong together.
 *
 * Shutdown: stopping is set, everybody is woken, workers leave after the sample they work on, and
 * whatever they did not claim is dropped with the pool. */
#include "feed.h"

#include "clock.h"
#include "errtext.h"
#include "ledger.h"
#include "pipeline_sized.h"
#include "sample_set.h"
#include "sample_trace.h"
#include "stand_in.h"

#include <millrace/trace.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POLL_NS      50000000 /* how often should_stop is asked */
#define ALONE_NS     20000 /* batches filled faster than that have one worker, and are watched: */
#define WATCH_NS     60000 /* for as long as a thread that sleeps takes to wake up */
#define MOST_IN_VAIN 255
#define AHEAD        3 /* slots: a sample's entry is fetched twice as far ahead, its name so far */

/* ---- workers' side ---- */

static void place_of(const struct mr_pipeline *p, uint64_t seq, uint64_t *epoch, uint64_t *number)
{
    const struct mr_order *q = &p->order;
    if (seq < p->n_start) {
        *epoch = q->o.start_epoch;
        *number = q->o.start_samples / q->round + seq;
    } else {
        *epoch = q->o.start_epoch + 1 + (seq - p->n_start) / q->cut.n_batches;
        *number = (seq - p->n_start) % q->cut.n_batches;
    }
}

static int may_open(const struct mr_pipeline *p)
{
    if (!p->begun || p->next_open == p->n_seq)
        return 0;
    if (p->o.prefetch == MR_NONE)
        return p->wanted && p->next_open == p->next_out;
    return p->next_open < p->next_out + p->window;
}

/* With the lock held: there is work; 1 when a worker that sleeps is to be called.  Each is called
 * once: until it runs, the next call goes to another.  While batches are so quick that a second
 * worker would come too late, one that is awake is enough: it looks for work before it sleeps. */
static int one_to_call(struct mr_pipeline *p)
{
    if (!p->n_idle || (p->fill_ns < ALONE_NS && p->n_idle < p->n_workers))
        return 0;
    p->n_idle--;
    p->n_called++;
    return 1;
}

/* Give the lock back, then call: who is called while it is held would sleep again, for the lock. */
static void unlock_and_call(struct mr_pipeline *p, int call, pthread_cond_t *who)
{
    pthread_mutex_unlock(&p->pool->mu);
    if (call)
        pthread_cond_signal(who);
}

static int all_claimed(struct mr_work_batch *b)
{
    uint64_t claim = atomic_load(&b->claim);
    return (uint32_t)claim >= claim >> 32;
}

static int is_ready(const struct mr_pipeline *p)
{
    return p->next_out < p->next_open && p->in_work[p->next_out % p->window]->ready;
}

/* With the lock held: while batches are quick, look again and again whether `there` is what is
 * waited for, for as long as a thread takes to wake up.  Waking one whose core is idle takes longer
 * than filling such a batch does, and one sleeper makes another: worker and consumer would take
 * turns in waking each other.  Where somebody else has the other's core this is waste: after it was
 * in vain it is not tried for some times, for twice as many each time. */
static void watch(struct mr_pipeline *p, struct mr_watch *w,
                  int (*there)(const struct mr_pipeline *))
{
    if (p->fill_ns >= ALONE_NS || p->n_cpus < 2 || there(p))
        return;
    if (w->skip) {
        w->skip--;
        return;
    }
    uint64_t until = mr_clock_ns() + WATCH_NS;
    do {
        unsigned seen = atomic_load(&p->changes);
        pthread_mutex_unlock(&p->pool->mu);
        while (atomic_load(&p->changes) == seen && mr_clock_ns() < until)
            mr_clock_pause();
        mr_batch_pool_lock(p->pool);
        if (there(p)) {
            w->in_vain /= 2;
            return;
        }
    } while (mr_clock_ns() < until);
    w->in_vain = w->in_vain < MOST_IN_VAIN ? 2 * w->in_vain + 1 : MOST_IN_VAIN;
    w->skip = w->in_vain;
}

static int has_work(const struct mr_pipeline *p)
{
    return atomic_load(&p->stopping) || (p->open && !all_claimed(p->open)) ||
           (may_open(p) && p->pool->free);
}

/* With the lock held: sleep until there may be work. */
static void wait_for_work(struct mr_pipeline *p)
{
    p->n_idle++;
    pthread_cond_wait(&p->pool->work, &p->pool->mu);
    if (p->n_called)
        p->n_called--;
    else
        p->n_idle--; /* nobody called: it is time to stop, or a spurious wake-up */
}

/* With the lock held: begin the next batch, if it is time. */
static struct mr_work_batch *open_next(struct mr_pipeline *p)
{
    struct mr_work_batch *b = may_open(p) ? mr_batch_pool_take(p->pool) : NULL;
    if (!b)
        return NULL;
    place_of(p, p->next_open, &b->pub.epoch, &b->pub.number);
    b->pub.n = mr_order_batch(&p->order, b->pub.epoch, b->pub.number, b->index);
    b->open_ns = mr_clock_ns();
    atomic_store(&b->refs, 1);
    atomic_store(&b->finished, 0);
    atomic_store_explicit(&b->claim, (uint64_t)b->pub.n << 32, memory_order_release);
    p->in_work[p->next_open % p->window] = b;
    p->next_open++;
    p->open = b;
    return b;
}

/* Count what this worker has filled; the batch is ready when all its slots are counted. */
static void count_filled(struct mr_worker *w)
{
    struct mr_pipeline *p = w->p;
    struct mr_work_batch *b = w->filled;
    unsigned n = w->n_filled;
    if (!n)
        return;
    w->n_filled = 0;
    unsigned n_slots = b->pub.n;
    if (atomic_fetch_add_explicit(&b->finished, n, memory_order_acq_rel) + n != n_slots)
        return;
    mr_batch_pool_lock(p->pool);
    b->ready = 1;
    atomic_fetch_add(&p->changes, 1);
    p->fill_ns = (mr_clock_ns() - b->open_ns) * p->o.batch / n_slots; /* as if it were full */
    unlock_and_call(p, p->asleep && p->in_work[p->next_out % p->window] == b, &p->ready);
}

void mr_feed_finish(struct mr_worker *w, const struct mr_task *t, uint8_t *data, size_t len)
{
    struct mr_work_batch *b = t->batch;
    if (data && mr_trace_on())
        mr_sample_trace(w->p, t);
    b->pub.samples[t->slot] = (struct mr_sample){.data = data,
                                                 .len = len,
                                                 .index = t->index,
                                                 .label = mr_dataset_label(w->p->data, t->index)};
    if (w->filled != b)
        count_filled(w);
    w->filled = b;
    w->n_filled++;
    if (w->next == w->end || w->batch != b)
        count_filled(w);
}

/* Take the next slot of the chunk, or claim a new chunk of the batch. */
int mr_feed_claim_another(struct mr_worker *w, struct mr_task *t)
{
    struct mr_work_batch *b = w->batch;
    if (!b || atomic_load_explicit(&w->p->stopping, memory_order_relaxed))
        return 0;
    if (w->has_left) {
        w->has_left = 0;
        *t = w->left;
        return 1;
    }
    if (w->next == w->end) {
        if (atomic_load_explicit(&w->p->asks, memory_order_relaxed))
            return 0;
        uint64_t claim = atomic_fetch_add_explicit(&b->claim, w->chunk, memory_order_acq_rel);
        unsigned first = (uint32_t)claim, n = (unsigned)(claim >> 32);
        if (first >= n)
            return 0;
        w->next = first;
        w->end = n - first < w->chunk ? n : first + w->chunk;
    }
    unsigned slot = w->next++;
    if (slot + 2 * AHEAD < b->pub.n)
        mr_dataset_prefetch(w->p->data, b->index[slot + AHEAD], b->index[slot + 2 * AHEAD]);
    *t = (struct mr_task){.batch = b, .slot = slot, .index = b->index[slot]};
    return 1;
}

int mr_feed_claim(struct mr_worker *w, int block, struct mr_task *t)
{
    struct mr_pipeline *p = w->p;
    struct mr_batch_pool *pool = p->pool;
    while (!mr_feed_claim_another(w, t)) {
        int result = 1, call = 0;
        uint64_t idle_from = 0, idle_to = 0;
        count_filled(w);
        mr_batch_pool_lock(pool);
        if (atomic_load(&p->asks)) {
            if (!block) { /* first what is under way */
                pthread_mutex_unlock(&pool->mu);
                return 0;
            }
            idle_from = mr_trace_now();
            mr_stand_in_make_room(w);
            pthread_mutex_unlock(&pool->mu);
            mr_idle_trace(w->p, idle_from, mr_trace_now());
            continue; /* with what the consumer has left, if anything */
        }
        for (;;) {
            if (atomic_load(&p->stopping)) {
                result = -1;
                break;
            }
            if (!p->open || all_claimed(p->open))
                p->open = open_next(p);
            if (p->open) {
                /* There is more than one slot to fill: pass the word on. */
                call = one_to_call(p);
                break;
            }
            if (!block) {
                result = 0;
                break;
            }
            idle_from = idle_from ? idle_from : mr_trace_now();
            watch(p, &w->watch, has_work);
            if (!has_work(p))
                wait_for_work(p);
            idle_to = mr_trace_now();
        }
        w->batch = p->open;
        w->chunk = p->fill_ns < MR_QUICK_NS && p->off != w ? p->quick_chunk : 1;
        unlock_and_call(p, call, &pool->work);
        mr_idle_trace(w->p, idle_from, idle_to);
        if (result != 1)
            return result;
    }
    return 1;
}

int mr_feed_map(struct mr_worker *w, const struct mr_task *t, const uint8_t *bytes, size_t len)
{
    struct mr_pipeline *p = w->p;
    struct mr_work_batch *b = t->batch;
    uint8_t *slot = b->slab.data + t->slot * p->pool->slot_bytes;
    uint64_t key = mr_order_key(&p->order, b->pub.epoch, b->pub.number, t->slot);
    if (p->decode)
        return mr_decode_map_run(p->decode, w->number, bytes, len, key, slot, &b->cost[t->slot]);
    struct mr_map_input in = {
        .bytes = bytes,
        .len = len,
        .index = t->index,
        .key = key,
        .label = mr_dataset_label(p->data, t->index),
        .worker = w->number,
    };
    struct mr_slot_cost *cost = &b->cost[t->slot];
    cost->map_at = mr_trace_now();
    int r = p->o.map(p->o.map_ctx, &in, slot);
    if (cost->map_at)
        cost->map_ns = mr_clock_ns() - cost->map_at;
    return r < 0 ? r : 0;
}

size_t mr_feed_known_bytes(const struct mr_pipeline *p, uint64_t index)
{
    size_t known = p->o.storage || p->o.direct ? 0 : mr_dataset_known_bytes(p->data, index);
    return known <= p->o.max_file_bytes ? known : 0;
}

void mr_feed_break(struct mr_pipeline *p, int code)
{
    pthread_mutex_lock(&p->pool->mu);
    p->broken = code;
    atomic_fetch_add(&p->changes, 1);
    pthread_cond_signal(&p->ready);
    pthread_mutex_unlock(&p->pool->mu);
}

const char *mr_feed_map_error(const struct mr_worker *w)
{
    return w->p->decode ? mr_decode_map_error(w->p->decode, w->number) : "";
}

static void *worker_main(void *arg)
{
    struct mr_worker *w = arg;
    struct mr_pipeline *p = w->p;
    struct mr_error err = {0};
    char name[32];
    snprintf(name, sizeof name, "worker %u", w->number);
    mr_trace_thread_name(name);
    int r = p->engine->begin(w, &err);
    pthread_mutex_lock(&p->pool->mu);
    p->n_started++;
    if (r && !p->start_error.code)
        p->start_error = err;
    pthread_cond_signal(&p->ready);
    pthread_mutex_unlock(&p->pool->mu);
    if (!r)
        p->engine->run(w);
    return NULL;
}

/* ---- consumer's side ---- */

static unsigned online_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

static void fill_in_defaults(struct mr_pipeline_opts *o)
{
    o->threads = o->threads ? o->threads : online_cpus();
    o->io_depth = o->io_depth ? o->io_depth : 32;
    o->batch = o->batch ? o->batch : 64;
    o->prefetch = o->prefetch ? o->prefetch : 1;
    o->hold = o->hold ? o->hold : 1;
    o->window = o->window ? o->window : 1024;
    o->epochs = o->epochs ? o->epochs : 1;
    o->world = o->world ? o->world : 1;
    o->max_file_bytes = o->max_file_bytes ? o->max_file_bytes : (uint64_t)64 << 20;
    o->max_error_share = o->max_error_share == 0 ? 0.10 : o->max_error_share;
}

static int check_sizes(const struct mr_pipeline_opts *o, struct mr_error *err)
{
    const struct {
        const char *name;
        unsigned value, most;
    } sizes[] = {
        {"threads", o->threads, 4096},
        {"io_depth", o->io_depth, 4096},
        {"batch", o->batch, 1u << 24},
        {"prefetch", o->prefetch == MR_NONE ? 0 : o->prefetch, 65536},
        {"hold", o->hold, 65536},
    };
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value > sizes[i].most)
            return mr_fail(err, -EINVAL, "%s: %u is not from 1 to %u", sizes[i].name,
                           sizes[i].value, sizes[i].most);
    return 0;
}

static int check(const struct mr_pipeline_opts *o, struct mr_error *err)
{
    if (o->rank >= o->world)
        return mr_fail(err, -EINVAL, "shard %u/%u: ranks count from 0 to %u", o->rank, o->world,
                       o->world - 1);
    if (o->map && o->decode)
        return mr_fail(err, -EINVAL, "either decode or map, not both");
    if (o->decode && !mr_decoder_bytes(o->decode))
        return mr_fail(err, -EINVAL, "decode: the image's size or another option is out of range");
    if (o->map && !o->map_bytes)
        return mr_fail(err, -EINVAL, "map_bytes must say how large a mapped sample is");
    if (o->map_without_bytes && !o->map)
        return mr_fail(err, -EINVAL, "map_without_bytes needs a map");
    return check_sizes(o, err);
}

/* Only where rounds are cut as they were can a run go on.  In a window shuffle that is a multiple
 * of a round; in the others any position is. */
static int check_start(const struct mr_pipeline_opts *o, uint64_t n_samples, struct mr_error *err)
{
    uint64_t round = (uint64_t)o->batch * o->world;
    if (o->start.samples > n_samples)
        return mr_fail(err, -EINVAL, "position: an epoch has %llu samples, not %llu",
                       (unsigned long long)n_samples, (unsigned long long)o->start.samples);
    if (o->shuffle == MR_SHUFFLE_WINDOW && o->start.samples % round)
        return mr_fail(err, -EINVAL,
                       "position: %llu samples are not whole batches of %u in each of %u shards; a "
                       "window shuffle goes on only with the batch, world and window it began with",
                       (unsigned long long)o->start.samples, o->batch, o->world);
    return 0;
}

/* How many sequences there are from the start on. */
static int count_sequences(struct mr_pipeline *p, struct mr_error *err)
{
    const struct mr_pipeline_opts *o = &p->o;
    uint64_t begun = o->start.samples / p->order.round, rest;
    p->n_start = p->order.start.n_batches - begun;
    if (o->start.epoch >= o->epochs)
        p->n_seq = 0;
    else if (__builtin_mul_overflow(p->order.cut.n_batches, o->epochs - o->start.epoch - 1,
                                    &rest) ||
             __builtin_add_overflow(p->n_start, rest, &p->n_seq))
        return mr_fail(err, -EOVERFLOW, "too many batches");
    if (o->batches && o->batches < p->n_seq)
        p->n_seq = o->batches;
    return 0;
}

static int init_order(struct mr_pipeline *p, struct mr_error *err)
{
    const struct mr_pipeline_opts *o = &p->o;
    struct mr_order_opts order = {
        .n_samples = mr_dataset_size(p->data),
        .shuffle = o->shuffle,
        .window = o->window,
        .seed = o->seed,
        .batch = o->batch,
        .rank = o->rank,
        .world = o->world,
        .keep_last = o->keep_last,
        .start_epoch = o->start.epoch,
        .start_samples = o->start.samples,
    };
    if (!order.n_samples)
        return mr_fail(err, -ENODATA, "the data set is empty");
    int r = check_start(o, order.n_samples, err);
    if (r)
        return r;
    if (mr_order_init(&p->order, &order))
        return mr_fail(err, -ENOMEM, "no memory for a shuffle window of %u", o->window);
    if (!p->order.cut.n_batches)
        return mr_fail(err, -EINVAL,
                       "%llu samples do not fill one batch of %u for each of %u shards: take a "
                       "smaller batch or keep the last one",
                       (unsigned long long)order.n_samples, o->batch, o->world);
    return count_sequences(p, err);
}

/* Rooms for all files that may be under way. */
static int make_rooms(struct mr_pipeline *p, struct mr_error *err)
{
    size_t n = p->o.threads;
    if (p->pool->whole_files || p->o.map_without_bytes)
        return 0;
    if (p->engine == &mr_uring_engine && p->o.io_depth > n)
        n = p->o.io_depth;
    if (mr_buffer_reserve(&p->rooms, mr_feed_room_bytes(p, n * MR_FIRST_ROOM)))
        return mr_fail(err, -ENOMEM, "no memory for %zu file buffers", n);
    mr_buffer_prefault(&p->rooms);
    mr_batch_pool_count(p->pool, 0, p->rooms.cap);
    return 0;
}

uint8_t *mr_feed_take_room(struct mr_pipeline *p)
{
    return p->rooms.cap ? p->rooms.data + p->n_rooms_taken++ * MR_FIRST_ROOM : NULL;
}

static int start_workers(struct mr_pipeline *p, struct mr_error *err)
{
    unsigned n = p->o.threads;
    int r = make_rooms(p, err);
    if (r)
        return r;
    p->worker = aligned_alloc(MR_CACHE_LINES, n * sizeof *p->worker);
    if (!p->worker)
        return mr_fail(err, -ENOMEM, "no memory for %u workers", n);
    memset(p->worker, 0, n * sizeof *p->worker);
    p->n_workers = n;
    for (unsigned i = 0; !r && i < n; i++) {
        p->worker[i] = (struct mr_worker){.p = p, .number = i};
        r = p->engine->init(&p->worker[i], err);
    }
    unsigned n_created = 0;
    for (; !r && n_created < n; n_created++) {
        r = -pthread_create(&p->worker[n_created].thread, NULL, worker_main, &p->worker[n_created]);
        if (r) {
            mr_fail(err, r, "cannot start worker %u: %s", n_created, mr_errno_text(r));
            break;
        }
    }
    pthread_mutex_lock(&p->pool->mu);
    while (p->n_started < n_created)
        pthread_cond_wait(&p->ready, &p->pool->mu);
    pthread_mutex_unlock(&p->pool->mu);
    for (unsigned i = n_created; i < n; i++)
        p->engine->fini(&p->worker[i]);
    p->n_workers = n_created;
    if (!r && p->start_error.code)
        r = mr_fail(err, p->start_error.code, "%s", p->start_error.text);
    return r;
}

/* A condition variable on the clock that does not jump. */
static void init_cond(pthread_cond_t *c)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(c, &attr);
    pthread_condattr_destroy(&attr);
}

/* 0: slots hold whole files. */
static size_t slot_bytes(const struct mr_pipeline_opts *o)
{
    return o->decode ? mr_decoder_bytes(o->decode) : o->map ? o->map_bytes : 0;
}

int mr_pipeline_make(struct mr_dataset *data, const struct mr_pipeline_opts *opts,
                     struct mr_pipeline **out, struct mr_error *err)
{
    struct mr_pipeline *p = calloc(1, sizeof *p);
    if (!p)
        return mr_fail(err, -ENOMEM, "no memory");
    init_cond(&p->ready);
    init_cond(&p->on_again);
    p->data = mr_dataset_ref(data);
    if (opts)
        p->o = *opts;
    fill_in_defaults(&p->o);
    p->engine = p->o.engine == MR_ENGINE_URING && !p->o.map_without_bytes ? &mr_uring_engine
                                                                          : &mr_threads_engine;
    int r = check(&p->o, err);
    if (!r)
        r = init_order(p, err);
    if (!r) {
        unsigned chunk = p->o.batch / (4 * p->o.threads);
        p->quick_chunk = chunk ? chunk : 1;
        p->n_cpus = online_cpus();
        p->fill_ns = MR_QUICK_NS;
        p->ask_ns = mr_clock_ns() + POLL_NS;
        p->window = p->o.prefetch == MR_NONE ? 1 : p->o.prefetch + 1;
        p->in_work = calloc(p->window, sizeof *p->in_work);
        r = p->in_work ? 0 : mr_fail(err, -ENOMEM, "no memory");
    }
    if (!r && p->o.decode)
        r = mr_decode_map_new(p->o.decode, p->o.threads, &p->decode, err);
    if (!r)
        r = mr_batch_pool_new((unsigned)p->window + p->o.hold, p->o.batch, slot_bytes(&p->o),
                              p->o.direct, &p->pool, err);
    p->o.decode = NULL; /* the caller's */
    if (!r) {
        p->begun = !p->o.start_on_next;
        r = start_workers(p, err);
    }
    if (r)
        mr_pipeline_close(p);
    else
        *out = p;
    return r;
}

void mr_pipeline_close(struct mr_pipeline *p)
{
    if (!p)
        return;
    if (p->pool) {
        pthread_mutex_lock(&p->pool->mu);
        atomic_store(&p->stopping, 1);
        atomic_fetch_add(&p->changes, 1);
        pthread_cond_broadcast(&p->pool->work);
        pthread_cond_signal(&p->on_again);
        pthread_mutex_unlock(&p->pool->mu);
    }
    for (unsigned i = 0; i < p->n_workers; i++) {
        pthread_join(p->worker[i].thread, NULL);
        p->engine->fini(&p->worker[i]);
    }
    mr_buffer_fini(&p->rooms);
    free(p->worker);
    free(p->in_work);
    mr_batch_pool_unref(p->pool);
    mr_decode_map_free(p->decode);
    mr_order_fini(&p->order);
    mr_dataset_unref(p->data);
    pthread_cond_destroy(&p->ready);
    pthread_cond_destroy(&p->on_again);
    free(p);
}

int mr_feed_asked_to_stop(struct mr_pipeline *p)
{
    if (!p->o.should_stop || mr_clock_ns() < p->ask_ns)
        return 0;
    int stop = p->o.should_stop(p->o.should_stop_ctx);
    p->ask_ns = mr_clock_ns() + POLL_NS;
    if (stop)
        mr_fail(&p->error, -ECANCELED, "interrupted");
    return stop;
}

static void wait_until_ready(struct mr_pipeline *p)
{
    int asks = atomic_load(&p->asks);
    if (!p->o.should_stop && !asks) {
        pthread_cond_wait(&p->ready, &p->pool->mu);
        return;
    }
    /* From one call of ours to the next, too: no wait may be as long as that. */
    uint64_t now = mr_clock_ns(), until_ns = p->o.should_stop ? p->ask_ns : UINT64_MAX;
    if (asks && until_ns > now + MR_STAND_IN_ASKS_NS)
        until_ns = now + MR_STAND_IN_ASKS_NS;
    struct timespec until = mr_clock_at(until_ns);
    if (now < until_ns && pthread_cond_timedwait(&p->ready, &p->pool->mu, &until) != ETIMEDOUT)
        return;
    if (asks)
        mr_stand_in_withdraw(p);
    /* No lock is held across a callback. */
    pthread_mutex_unlock(&p->pool->mu);
    mr_feed_asked_to_stop(p);
    pthread_mutex_lock(&p->pool->mu);
}

int mr_feed_can_deliver(const struct mr_pipeline *p)
{
    return p->error.code || p->broken || is_ready(p);
}

/* With the lock held: where the consumer has a core to itself, sleep for as long as a quick batch
 * is expected to take, so that whoever finishes it need not wake anybody.  On a virtual machine,
 * calling a core that sleeps takes as long as reading a file; a timer is free. */
static void doze(struct mr_pipeline *p)
{
    if (mr_feed_can_deliver(p) || p->n_workers >= p->n_cpus || p->o.prefetch == MR_NONE ||
        p->fill_ns < ALONE_NS || p->fill_ns >= MR_QUICK_NS || p->next_out == p->next_open)
        return;
    const struct mr_work_batch *b = p->in_work[p->next_out % p->window];
    struct timespec until = mr_clock_at(b->open_ns + p->fill_ns);
    pthread_mutex_unlock(&p->pool->mu);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    mr_batch_pool_lock(p->pool);
}

/* Wait for the next batch in order and take it out of the window. */
static int take_ready(struct mr_pipeline *p, uint64_t now_ns, struct mr_work_batch **out)
{
    struct mr_batch_pool *pool = p->pool;
    mr_batch_pool_lock(pool);
    if (pool->n_out >= p->o.hold) {
        pthread_mutex_unlock(&pool->mu);
        return -EBUSY;
    }
    p->begun = p->wanted = 1;
    if (may_open(p) && one_to_call(p))
        pthread_cond_signal(&pool->work);
    mr_stand_in_arrive(p, now_ns);
    if (!p->off) {
        watch(p, &p->consumer_watch, mr_feed_can_deliver);
        doze(p);
    }
    p->asleep = 1;
    while (mr_stand_in_work(p), !mr_feed_can_deliver(p))
        wait_until_ready(p);
    if (!p->error.code && !is_ready(p))
        mr_fail(&p->error, p->broken, "io_uring failed: %s", mr_errno_text(p->broken));
    p->asleep = p->wanted = 0;
    struct mr_work_batch **place = &p->in_work[p->next_out % p->window];
    int r = p->error.code, call = 0;
    if (!r) {
        *out = *place;
        *place = NULL;
        p->next_out++;
        atomic_fetch_add(&p->changes, 1);
        pool->n_out++;
        pool->refs++;
        call = may_open(p) && one_to_call(p);
    }
    unlock_and_call(p, call, &pool->work);
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

int mr_pipeline_next(struct mr_pipeline *p, struct mr_batch **out)
{
    if (p->error.code)
        return p->error.code;
    if (p->at_epoch_end) {
        p->at_epoch_end = 0;
        return 0;
    }
    if (p->next_out == p->n_seq)
        return 0;
    uint64_t start = mr_clock_ns();
    struct mr_work_batch *b = NULL;
    int r = take_ready(p, start, &b);
    if (r)
        return r;
    r = mr_ledger_settle(p, b);
    if (r) {
        mr_batch_unref(&b->pub);
        pthread_mutex_lock(&p->pool->mu);
        p->next_out--; /* the position stays at the batch that failed */
        pthread_mutex_unlock(&p->pool->mu);
        return r;
    }
    uint64_t end = p->left_ns = mr_clock_ns();
    count_batch(p, b, end - start);
    mr_wait_trace(p, &b->pub, start, end);
    p->at_epoch_end = b->pub.number + 1 == mr_order_cut(&p->order, b->pub.epoch)->n_batches &&
                      p->next_out < p->n_seq;
    *out = &b->pub;
    return 1;
}

void mr_pipeline_position(const struct mr_pipeline *p, struct mr_position *out)
{
    uint64_t number;
    place_of(p, p->next_out, &out->epoch, &number);
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
