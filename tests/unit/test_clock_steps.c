/* test_clock_steps.c - somebody sets the system's time, hours forwards and backwards, while traces
 * are recorded and the system is sampled: nothing takes longer, shorter, or another order.
 *
 * The time of the machine that runs the test is left alone.  Calls of ours that read a clock or
 * wait for one land here instead (--wrap in tests/meson.build): the wall clock is what the test
 * says, reads of it are counted, and a wait that would end by the wall clock is a mistake. */
#include "unit.h"

#include "sampler.h"
#include "trace_summary.h"

#include <millrace/trace.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#define SECOND ((int64_t)1000000000)
#define HOUR   (3600 * SECOND)

static _Atomic int64_t step_ns;      /* the wall clock is wrong by so much */
static atomic_uint n_asked, n_waits; /* the wall clock was asked; something waited for it */

int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    int r = __real_clock_gettime(clock, t);
    if (r || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return r;
    int64_t ns = t->tv_sec * SECOND + t->tv_nsec + atomic_load(&step_ns);
    t->tv_sec = ns / SECOND;
    t->tv_nsec = ns % SECOND;
    atomic_fetch_add(&n_asked, 1);
    return 0;
}

time_t __wrap_time(time_t *out);
time_t __wrap_time(time_t *out)
{
    struct timespec t;
    __wrap_clock_gettime(CLOCK_REALTIME, &t);
    if (out)
        *out = t.tv_sec;
    return t.tv_sec;
}

int __wrap_gettimeofday(struct timeval *tv, void *zone);
int __wrap_gettimeofday(struct timeval *tv, void *zone)
{
    struct timespec t;
    (void)zone;
    __wrap_clock_gettime(CLOCK_REALTIME, &t);
    *tv = (struct timeval){.tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000};
    return 0;
}

/* Which clock a condition's deadlines are on is settled when it is made.  Without attributes it is
 * the wall clock's, which only matters to those who give a deadline: they look wrong below. */
int __real_pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *attr);
int __wrap_pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *attr);
int __wrap_pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *attr)
{
    clockid_t clock;
    if (attr && !pthread_condattr_getclock(attr, &clock) && clock != CLOCK_MONOTONIC)
        atomic_fetch_add(&n_waits, 1);
    return __real_pthread_cond_init(c, attr);
}

int __real_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *mu, const struct timespec *t);
int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *mu, const struct timespec *t);
int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *mu, const struct timespec *t)
{
    struct timespec now;
    __real_clock_gettime(CLOCK_MONOTONIC, &now);
    if (t->tv_sec > now.tv_sec + 3600) /* decades: seconds since 1970 */
        atomic_fetch_add(&n_waits, 1);
    return __real_pthread_cond_timedwait(c, mu, t);
}

int __real_sem_clockwait(sem_t *s, clockid_t clock, const struct timespec *t);
int __wrap_sem_clockwait(sem_t *s, clockid_t clock, const struct timespec *t);
int __wrap_sem_clockwait(sem_t *s, clockid_t clock, const struct timespec *t)
{
    if (clock != CLOCK_MONOTONIC)
        atomic_fetch_add(&n_waits, 1);
    return __real_sem_clockwait(s, clock, t);
}

int __real_sem_timedwait(sem_t *s, const struct timespec *t);
int __wrap_sem_timedwait(sem_t *s, const struct timespec *t);
int __wrap_sem_timedwait(sem_t *s, const struct timespec *t)
{
    atomic_fetch_add(&n_waits, 1); /* it knows no other clock */
    return __real_sem_timedwait(s, t);
}

static const int64_t steps[] = {HOUR, -HOUR, 0, -24 * HOUR, 5, 365 * 24 * HOUR};

static void fresh(void)
{
    atomic_store(&step_ns, 0);
    atomic_store(&n_asked, 0);
    atomic_store(&n_waits, 0);
}

/* ---- traces ---- */

static struct mr_trace_log *read_back(const char *path)
{
    struct mr_trace_log *log = NULL;
    struct mr_error err = {0};
    if (mr_trace_stop(NULL, &err) || mr_trace_log_read(path, &log, &err))
        fail_msg("%s", err.text);
    assert_int_equal(log->n_bad + log->dropped, 0);
    return log;
}

static void start(const char *path)
{
    struct mr_error err = {0};
    if (mr_trace_start(&(struct mr_trace_opts){.path = path}, &err))
        fail_msg("%s", err.text);
}

static void record_with_steps(const char *path)
{
    uint64_t first = 0;
    fresh();
    start(path);
    unsigned asked = atomic_load(&n_asked);
    assert_true(asked > 0); /* the anchor; and the test's own clock is in place */
    for (unsigned i = 0; i < ARRAY_LEN(steps); i++) {
        uint64_t t = mr_trace_now();
        first = first ? first : t;
        atomic_store(&step_ns, steps[i]);
        mr_trace_span(MR_PHASE_READ, first + 1000 * i, first + 1000 * i + 700, 0, i);
        mr_trace_mark("stepped");
    }
    struct mr_trace_log *log = read_back(path);
    assert_int_equal(atomic_load(&n_asked), asked);
    assert_int_equal(atomic_load(&n_waits), 0);
    assert_int_equal(log->n, 2 * ARRAY_LEN(steps));
    int64_t last = 0;
    for (size_t i = 0; i < log->n; i++) {
        const struct mr_log_event *e = &log->event[i];
        if (e->kind == MR_EVENT_SPAN) {
            assert_int_equal(e->end_ns - e->begin_ns, 700);
            assert_int_equal(e->begin_ns - log->event[0].begin_ns, 1000 * e->id);
        } else {
            assert_true(e->begin_ns >= last && e->begin_ns < log->event[0].begin_ns + HOUR);
            last = e->begin_ns;
        }
    }
    mr_trace_log_free(log);
}

static void a_trace_asks_the_wall_clock_when_it_starts_and_never_again(void **state)
{
    record_with_steps(tempdir_path(*state, "a.json"));
    record_with_steps(tempdir_path(*state, "a.csv"));
}

/* A trace with one read; its time on the clock that nobody can set. */
static uint64_t one_read(const char *path, struct mr_trace_log **log)
{
    start(path);
    uint64_t t = mr_trace_now();
    mr_trace_span(MR_PHASE_READ, t, t + 1, 0, MR_NONE);
    *log = read_back(path);
    return t;
}

static void traces_from_before_and_after_a_step_are_joined_as_they_were(void **state)
{
    struct tempdir *t = *state;
    for (unsigned i = 0; i < ARRAY_LEN(steps); i++) {
        struct mr_trace_log *log[2];
        struct mr_trace_summary *s;
        fresh();
        uint64_t before = one_read(tempdir_path(t, "a.json"), &log[0]);
        if (!log[0]->clock[0])
            skip(); /* the system does not tell which boot this is */
        atomic_store(&step_ns, steps[i]);
        uint64_t after = one_read(tempdir_path(t, "b.json"), &log[1]);
        const struct mr_trace_log *both[] = {log[0], log[1]};
        assert_int_equal(mr_trace_summarize(both, 2, &s), 0);
        assert_string_equal(s->clock, "monotonic clock");
        assert_true(s->end_ns - s->begin_ns == (int64_t)(after + 1 - before));
        /* What was set, but for what the machine's own clock drifted and the two looks missed. */
        assert_true(s->step_ns - steps[i] < SECOND && steps[i] - s->step_ns < SECOND);
        mr_trace_summary_free(s);
        mr_trace_log_free(log[0]);
        mr_trace_log_free(log[1]);
    }
}

/* ---- samples ---- */

struct seen {
    pthread_mutex_t mu;
    pthread_cond_t more;
    unsigned n, n_bad;
    uint64_t at_ns, since_ns;
};

/* Each sample comes after a step. */
static void on_sample(void *ctx, const struct mr_system_sample *m)
{
    struct seen *seen = ctx;
    pthread_mutex_lock(&seen->mu);
    int bad = m->at_ns <= seen->at_ns || m->interval_ns > (uint64_t)HOUR || m->interval_ns == 0 ||
              m->since_open_ns != seen->since_ns + m->interval_ns;
    seen->n_bad += (unsigned)bad;
    seen->at_ns = m->at_ns;
    seen->since_ns = m->since_open_ns;
    atomic_store(&step_ns, steps[seen->n++ % ARRAY_LEN(steps)]);
    pthread_cond_signal(&seen->more);
    pthread_mutex_unlock(&seen->mu);
}

static void samples_come_at_their_time_whatever_the_wall_clock_says(void **state)
{
    struct seen seen = {.mu = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};
    struct mr_sampler_opts o = {
        .interval_ns = MR_SAMPLER_MIN_NS, .on_sample = on_sample, .ctx = &seen};
    struct mr_sampler *s = NULL;
    struct mr_error err = {0};
    (void)state;
    fresh();
    if (mr_sampler_open(&o, &s, &err))
        fail_msg("%s", err.text);
    pthread_mutex_lock(&seen.mu);
    while (seen.n < 2 * ARRAY_LEN(steps))
        pthread_cond_wait(&seen.more, &seen.mu);
    pthread_mutex_unlock(&seen.mu);
    mr_sampler_close(s);
    assert_int_equal(seen.n_bad, 0);
    assert_int_equal(atomic_load(&n_asked), 0);
    assert_int_equal(atomic_load(&n_waits), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(a_trace_asks_the_wall_clock_when_it_starts_and_never_again),
        WITH_TEMPDIR(traces_from_before_and_after_a_step_are_joined_as_they_were),
        cmocka_unit_test(samples_come_at_their_time_whatever_the_wall_clock_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
