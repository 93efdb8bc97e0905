/* thread_team.c - see thread_team.h.
 *
 * Each run has a number.  Members wait for a number that they have not seen, call the function once
 * and count themselves off.  They never spin: other threads need the cores.
 *
 * Lock: t->mu guards everything that changes; it is not held while the function runs. */
#include "thread_team.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct member {
    struct mr_team *team;
    pthread_t thread;
    unsigned rank;
};

struct mr_team {
    pthread_mutex_t mu;
    pthread_cond_t begun, ended;
    uint64_t n_runs;
    unsigned n_busy;
    int stop;
    mr_team_fn *fn;
    void *ctx;

    unsigned n, n_threads; /* set at opening */
    struct member members[];
};

static void *member_main(void *arg)
{
    struct member *m = arg;
    struct mr_team *t = m->team;
    uint64_t seen = 0;
    pthread_mutex_lock(&t->mu);
    for (;;) {
        while (!t->stop && t->n_runs == seen)
            pthread_cond_wait(&t->begun, &t->mu);
        if (t->stop)
            break;
        seen = t->n_runs;
        pthread_mutex_unlock(&t->mu);
        t->fn(t->ctx, m->rank, t->n);
        pthread_mutex_lock(&t->mu);
        if (--t->n_busy == 0)
            pthread_cond_signal(&t->ended);
    }
    pthread_mutex_unlock(&t->mu);
    return NULL;
}

int mr_team_open(unsigned n, struct mr_team **out)
{
    n = n ? n : 1;
    struct mr_team *t = calloc(1, sizeof *t + n * sizeof *t->members);
    if (!t)
        return -ENOMEM;
    pthread_mutex_init(&t->mu, NULL);
    pthread_cond_init(&t->begun, NULL);
    pthread_cond_init(&t->ended, NULL);
    t->n = n;
    for (unsigned i = 1; i < n; i++) {
        struct member *m = &t->members[t->n_threads];
        m->team = t;
        m->rank = i;
        int r = pthread_create(&m->thread, NULL, member_main, m);
        if (r) {
            mr_team_close(t);
            return -r;
        }
        t->n_threads++;
    }
    *out = t;
    return 0;
}

void mr_team_run(struct mr_team *t, mr_team_fn *fn, void *ctx)
{
    if (!t || t->n == 1) {
        fn(ctx, 0, 1);
        return;
    }
    pthread_mutex_lock(&t->mu);
    t->fn = fn;
    t->ctx = ctx;
    t->n_busy = t->n_threads;
    t->n_runs++;
    pthread_cond_broadcast(&t->begun);
    pthread_mutex_unlock(&t->mu);
    fn(ctx, 0, t->n);
    pthread_mutex_lock(&t->mu);
    while (t->n_busy)
        pthread_cond_wait(&t->ended, &t->mu);
    pthread_mutex_unlock(&t->mu);
}

void mr_team_close(struct mr_team *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->mu);
    t->stop = 1;
    pthread_cond_broadcast(&t->begun);
    pthread_mutex_unlock(&t->mu);
    for (unsigned i = 0; i < t->n_threads; i++)
        pthread_join(t->members[i].thread, NULL);
    pthread_cond_destroy(&t->ended);
    pthread_cond_destroy(&t->begun);
    pthread_mutex_destroy(&t->mu);
    free(t);
}
