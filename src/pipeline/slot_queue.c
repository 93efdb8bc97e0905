/* slot_queue.c - workers claim the slots of open batches and finish them.
 *
 * A batch is opened under the lock: its samples' indices are computed there, once for all slots, so
 * the order may keep a state (a shuffle window).  Workers then claim slots with one atomic
 * increment each.  A worker that still holds a pointer to a batch which meanwhile was finished,
 * delivered and opened again simply claims a slot of the new contents: all other fields are written
 * before `claim` is set anew with release order, and the number of slots is part of that word, so
 * that count and limit always belong together.
 *
 * A worker that sleeps is called once: until it runs, the next call goes to another.  A worker that
 * wakes up passes the word on while there are slots left.
 *
 * Lock: pool->mu guards which batch is open and who sleeps. */
#include "pipeline_state.h"

#include "sample_set.h"
#include "sample_trace.h"

#include <millrace/trace.h>

#define AHEAD 3 /* slots: a sample's entry is fetched twice as far ahead, its name so far */

static int may_open(const struct mr_pipeline *p)
{
    if (!p->begun || p->next_open == p->n_seq)
        return 0;
    if (p->o.prefetch == MR_NONE)
        return p->wanted && p->next_open == p->next_out;
    return p->next_open < p->next_out + p->window;
}

/* With the lock held: there is work; 1 when a worker that sleeps is to be called. */
static int one_to_call(struct mr_pipeline *p)
{
    if (!p->n_idle)
        return 0;
    p->n_idle--;
    p->n_called++;
    return 1;
}

int mr_slot_must_call(struct mr_pipeline *p)
{
    return may_open(p) && one_to_call(p);
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

int mr_slot_is_ready(const struct mr_pipeline *p)
{
    return p->next_out < p->next_open && p->in_work[p->next_out % p->window]->ready;
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
    mr_pipeline_place_of(p, p->next_open, &b->pub.epoch, &b->pub.number);
    b->pub.n = mr_order_batch(&p->order, b->pub.epoch, b->pub.number, b->index);
    atomic_store(&b->refs, 1);
    atomic_store(&b->finished, 0);
    atomic_store_explicit(&b->claim, (uint64_t)b->pub.n << 32, memory_order_release);
    p->in_work[p->next_open % p->window] = b;
    p->next_open++;
    p->open = b;
    return b;
}

void mr_slot_finish(struct mr_worker *w, const struct mr_task *t, uint8_t *data, size_t len)
{
    struct mr_pipeline *p = w->p;
    struct mr_work_batch *b = t->batch;
    unsigned n_slots = b->pub.n;
    if (data && mr_trace_on())
        mr_sample_trace(p, t);
    b->pub.samples[t->slot] =
        (struct mr_sample){.data = data, .len = len, .index = t->index, .label = t->label};
    b->label[t->slot] = t->label;
    if (atomic_fetch_add_explicit(&b->finished, 1, memory_order_acq_rel) + 1 != n_slots)
        return;
    mr_batch_pool_lock(p->pool);
    b->ready = 1;
    mr_poll_fd_update(p);
    unlock_and_call(p, p->wanted && mr_slot_is_ready(p), &p->ready);
}

/* Another slot of the batch from which this worker claimed last; 0 = there is none. */
static int claim_another(struct mr_worker *w, struct mr_task *t)
{
    struct mr_work_batch *b = w->batch;
    if (!b || atomic_load_explicit(&w->p->stopping, memory_order_relaxed))
        return 0;
    uint64_t claim = atomic_fetch_add_explicit(&b->claim, 1, memory_order_acq_rel);
    unsigned slot = (uint32_t)claim, n = (unsigned)(claim >> 32);
    if (slot >= n)
        return 0;
    if (slot + 2 * AHEAD < b->pub.n)
        mr_dataset_prefetch(w->p->data, b->index[slot + AHEAD], b->index[slot + 2 * AHEAD]);
    *t = (struct mr_task){.batch = b, .slot = slot, .index = b->index[slot]};
    return 1;
}

/* With the lock held: 1 = p->open has slots, 0 = none now (only when !block), -1 = stop. */
static int find_open(struct mr_pipeline *p, int block, uint64_t *idle_from, uint64_t *idle_to)
{
    for (;;) {
        if (atomic_load(&p->stopping))
            return -1;
        if (!p->open || all_claimed(p->open))
            p->open = open_next(p);
        if (p->open)
            return 1;
        if (!block)
            return 0;
        *idle_from = *idle_from ? *idle_from : mr_trace_now();
        wait_for_work(p);
        *idle_to = mr_trace_now();
    }
}

int mr_slot_claim(struct mr_worker *w, int block, struct mr_task *t)
{
    struct mr_pipeline *p = w->p;
    while (!claim_another(w, t)) {
        uint64_t idle_from = 0, idle_to = 0;
        mr_batch_pool_lock(p->pool);
        int found = find_open(p, block, &idle_from, &idle_to);
        w->batch = p->open;
        /* There is more than one slot to fill: pass the word on. */
        unlock_and_call(p, found == 1 && one_to_call(p), &p->pool->work);
        mr_idle_trace(p, idle_from, idle_to);
        if (found != 1)
            return found;
    }
    return 1;
}
