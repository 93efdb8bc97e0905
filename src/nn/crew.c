/* crew.c - see crew.h.
 *
 * A run is a new generation: the caller stores the work, raises `generation` and wakes everyone;
 * each worker does its rank's part once per generation and lowers `n_busy`.  Workers sleep between
 * runs and never spin: the pipeline needs the cores.
 *
 * Lock: c->mu guards all fields below it; it is not held while work is done. */
#include "crew.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct worker {
    struct mr_crew *crew;
    unsigned rank;
    pthread_t thread;
};

struct mr_crew {
    unsigned n;
    struct worker *workers; /* ranks 1 .. n_started */
    unsigned n_started;

    pthread_mutex_t mu;
    pthread_cond_t work, done;
    uint64_t generation;
    unsigned n_busy;
    int stop;
    mr_crew_fn *fn;
    void *arg;
};

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct mr_crew *c = w->crew;
    uint64_t seen = 0;
    pthread_mutex_lock(&c->mu);
    for (;;) {
        while (!c->stop && c->generation == seen)
            pthread_cond_wait(&c->work, &c->mu);
        if (c->stop)
            break;
        seen = c->generation;
        mr_crew_fn *fn = c->fn;
        void *fn_arg = c->arg;
        pthread_mutex_unlock(&c->mu);
        fn(fn_arg, w->rank, c->n);
        pthread_mutex_lock(&c->mu);
        if (--c->n_busy == 0)
            pthread_cond_signal(&c->done);
    }
    pthread_mutex_unlock(&c->mu);
    return NULL;
}

int mr_crew_open(unsigned n, struct mr_crew **out)
{
    struct mr_crew *c = calloc(1, sizeof *c);
    int r = 0;
    if (!c)
        return -ENOMEM;
    pthread_mutex_init(&c->mu, NULL);
    pthread_cond_init(&c->work, NULL);
    pthread_cond_init(&c->done, NULL);
    c->n = n ? n : 1;
    c->workers = calloc(c->n, sizeof *c->workers);
    if (!c->workers)
        r = -ENOMEM;
    for (unsigned i = 0; !r && i + 1 < c->n; i++) {
        c->workers[i] = (struct worker){.crew = c, .rank = i + 1};
        r = -pthread_create(&c->workers[i].thread, NULL, worker_main, &c->workers[i]);
        if (!r)
            c->n_started++;
    }
    if (r)
        mr_crew_close(c);
    else
        *out = c;
    return r;
}

void mr_crew_run(struct mr_crew *c, mr_crew_fn *fn, void *arg)
{
    if (!c || c->n == 1) {
        fn(arg, 0, 1);
        return;
    }
    pthread_mutex_lock(&c->mu);
    c->fn = fn;
    c->arg = arg;
    c->n_busy = c->n - 1;
    c->generation++;
    pthread_cond_broadcast(&c->work);
    pthread_mutex_unlock(&c->mu);
    fn(arg, 0, c->n);
    pthread_mutex_lock(&c->mu);
    while (c->n_busy)
        pthread_cond_wait(&c->done, &c->mu);
    pthread_mutex_unlock(&c->mu);
}

void mr_crew_close(struct mr_crew *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->mu);
    c->stop = 1;
    pthread_cond_broadcast(&c->work);
    pthread_mutex_unlock(&c->mu);
    for (unsigned i = 0; i < c->n_started; i++)
        pthread_join(c->workers[i].thread, NULL);
    pthread_cond_destroy(&c->done);
    pthread_cond_destroy(&c->work);
    pthread_mutex_destroy(&c->mu);
    free(c->workers);
    free(c);
}
