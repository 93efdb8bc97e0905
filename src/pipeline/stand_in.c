/* stand_in.c - see stand_in.h.
 *
 * Whose struct mr_worker it is: the thread's own, until it has set p->off to it; the consumer's
 * while p->standing_in; the thread's again when p->off is something else.  All three change with
 * the lock held. */
#include "stand_in.h"

#include "clock.h"

/* Batches that take less are worth it.  With io_uring each counts from when its first file was
 * asked for, when others before it were still on their way. */
#define QUICK_NS 4000000

#define FIRST_CALLS  16       /* at once, in a row, before a place is asked for; */
#define MOST_CALLS   4096     /* twice as many each time that it was no good, up to that */
#define PROMPT_SHARE 32       /* of the time that a batch takes: away for less is no time at all, */
#define PROMPT_NS    40000    /* if it is less than that; */
#define AT_ONCE_NS   5000     /* nor is that, whatever a batch takes */
#define FIRST_NS     1000000  /* then a worker looks whether the consumer still comes, */
#define LAST_NS      4000000  /* and later each time that it does, up to that */
#define LONGEST_NS   20000000 /* of standing in: others may ask the consumer to stop */

static void call_back(struct mr_pipeline *p)
{
    atomic_store(&p->asks, 0);
    if (!p->off)
        return;
    p->off = NULL;
    pthread_cond_signal(&p->on_again);
}

void mr_stand_in_arrive(struct mr_pipeline *p, uint64_t now_ns)
{
    uint64_t away = now_ns - p->left_ns;
    int prompt = p->fill_ns < (p->off ? 2 : 1) * QUICK_NS &&
                 (away < AT_ONCE_NS || (away < PROMPT_NS && away < p->fill_ns / PROMPT_SHARE));
    /* Who waits for an emulated device would keep the consumer. */
    if (p->o.storage)
        return;
    p->n_needed = p->n_needed ? p->n_needed : FIRST_CALLS;
    p->n_prompt = prompt ? p->n_prompt + 1 : 0;
    if (p->off && p->n_prompt >= 2 * p->n_needed) /* it went well for as long again */
        p->n_needed = FIRST_CALLS;
    if (!prompt)
        call_back(p);
    else if (p->n_prompt >= p->n_needed && !p->off)
        atomic_store(&p->asks, 1);
}

/* It was no good. */
static void give_up(struct mr_pipeline *p)
{
    p->n_prompt = 0;
    p->n_needed = 2 * p->n_needed < MOST_CALLS ? 2 * p->n_needed : MOST_CALLS;
}

void mr_stand_in_withdraw(struct mr_pipeline *p)
{
    if (atomic_exchange(&p->asks, 0))
        give_up(p);
}

/* Fill slots until something has changed: 0 = go no further. */
static int fill_some(struct mr_pipeline *p, struct mr_worker *w, unsigned seen, uint64_t until)
{
    struct mr_task t;
    do {
        if (mr_feed_claim(w, 0, &t) != 1)
            return 0;
        if (!p->engine->stand_in(w, &t) || mr_clock_coarse_ns() > until) {
            give_up(p); /* the worker is to go on */
            return 0;
        }
    } while (atomic_load(&p->changes) == seen);
    return 1;
}

void mr_stand_in_work(struct mr_pipeline *p)
{
    struct mr_worker *w = p->off;
    if (!w || mr_feed_can_deliver(p))
        return;
    uint64_t until = mr_clock_coarse_ns() + LONGEST_NS;
    int more = 1;
    p->standing_in = 1;
    while (more && !mr_feed_can_deliver(p)) {
        unsigned seen = atomic_load(&p->changes);
        pthread_mutex_unlock(&p->pool->mu);
        more = fill_some(p, w, seen, until);
        mr_batch_pool_lock(p->pool);
    }
    p->standing_in = 0;
    if (!p->n_prompt)
        call_back(p);
}

void mr_stand_in_make_room(struct mr_worker *w)
{
    struct mr_pipeline *p = w->p;
    uint64_t seen, pause = FIRST_NS;
    atomic_store(&p->asks, 0);
    p->off = w;
    pthread_cond_signal(&p->ready); /* it may wait for what would have been filled here */
    do {
        seen = p->next_out;
        struct timespec until = mr_clock_at(mr_clock_ns() + pause);
        pthread_cond_timedwait(&p->on_again, &p->pool->mu, &until);
        pause = 2 * pause < LAST_NS ? 2 * pause : LAST_NS;
    } while (p->off == w && !atomic_load(&p->stopping) && (p->standing_in || p->next_out != seen));
    if (p->off == w)
        p->off = NULL;
}
