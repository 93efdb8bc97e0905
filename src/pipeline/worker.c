/* worker.c - the pipeline's threads: starting them, what each does with a file's bytes, ending them.
 *
 * Shutdown: stopping is set, everybody is woken, workers leave after the sample they work on, and
 * whatever they did not claim is dropped with the pool. */
#include "pipeline_state.h"

#include "clock.h"
#include "errtext.h"
#include "sample_set.h"

#include <millrace/trace.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int mr_worker_map(struct mr_worker *w, const struct mr_task *t, const uint8_t *bytes, size_t len)
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

size_t mr_worker_known_bytes(const struct mr_pipeline *p, uint64_t index)
{
    size_t known = p->o.storage || p->o.direct ? 0 : mr_dataset_known_bytes(p->data, index);
    return known <= p->o.max_file_bytes ? known : 0;
}

void mr_worker_break(struct mr_pipeline *p, int code)
{
    pthread_mutex_lock(&p->pool->mu);
    p->broken = code;
    pthread_cond_signal(&p->ready);
    pthread_mutex_unlock(&p->pool->mu);
}

const char *mr_worker_map_error(const struct mr_worker *w)
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

/* Rooms for all requests. */
static int make_rooms(struct mr_pipeline *p, struct mr_error *err)
{
    size_t n = p->o.threads;
    if (p->pool->whole_files || p->o.map_without_bytes)
        return 0;
    if (p->engine == &mr_uring_engine && p->o.io_depth > n)
        n = p->o.io_depth;
    if (mr_buffer_reserve(&p->rooms, mr_worker_room_bytes(p, n * MR_FIRST_ROOM)))
        return mr_fail(err, -ENOMEM, "no memory for %zu file buffers", n);
    mr_buffer_prefault(&p->rooms);
    mr_batch_pool_count(p->pool, 0, p->rooms.cap);
    return 0;
}

uint8_t *mr_worker_take_room(struct mr_pipeline *p)
{
    return p->rooms.cap ? p->rooms.data + p->n_rooms_taken++ * MR_FIRST_ROOM : NULL;
}

int mr_workers_start(struct mr_pipeline *p, struct mr_error *err)
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


void mr_workers_stop(struct mr_pipeline *p)
{
    if (p->pool) {
        pthread_mutex_lock(&p->pool->mu);
        atomic_store(&p->stopping, 1);
        pthread_cond_broadcast(&p->pool->work);
        pthread_mutex_unlock(&p->pool->mu);
    }
    for (unsigned i = 0; i < p->n_workers; i++) {
        pthread_join(p->worker[i].thread, NULL);
        p->engine->fini(&p->worker[i]);
    }
    mr_buffer_fini(&p->rooms);
    free(p->worker);
}
