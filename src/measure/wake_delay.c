/* wake_delay.c - see wake_delay.h.  The first sleep is left out: the thread has just been made. */
#include "wake_delay.h"

#include "clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define SLEEP_NS 1000000

struct mr_wake_delay {
    pthread_t thread;
    atomic_int stop;
    uint64_t n, sum_ns; /* the thread's until it has ended */
};

static void *sleeper(void *arg)
{
    struct mr_wake_delay *w = arg;
    for (uint64_t i = 0; !atomic_load(&w->stop); i++) {
        uint64_t due = mr_clock_ns() + SLEEP_NS;
        struct timespec at = {.tv_sec = (time_t)(due / 1000000000),
                              .tv_nsec = (long)(due % 1000000000)};
        if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) || !i)
            continue;
        w->sum_ns += mr_clock_ns() - due;
        w->n++;
    }
    return NULL;
}

int mr_wake_delay_begin(struct mr_wake_delay **out)
{
    struct mr_wake_delay *w = calloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    int r = -pthread_create(&w->thread, NULL, sleeper, w);
    if (r)
        free(w);
    else
        *out = w;
    return r;
}

double mr_wake_delay_end(struct mr_wake_delay *w)
{
    if (!w)
        return 0;
    atomic_store(&w->stop, 1);
    pthread_join(w->thread, NULL);
    double mean = w->n ? (double)w->sum_ns / (double)w->n / 1e9 : 0;
    free(w);
    return mean;
}
