/* test_trace_faults.c - every fallible call of a trace fails once: the program goes on, nothing
 * leaks, and the file that is there can be read. */
#include "unit.h"

#include "faults.h"
#include "trace_pause.h"
#include "trace_summary.h"

#include <millrace/trace.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static char path[300];

static void *spans(void *arg)
{
    for (unsigned i = 0; i < 50; i++) {
        uint64_t t = mr_trace_now();
        mr_trace_span(MR_PHASE_READ, t, t + 10, 5, i);
    }
    mr_trace_mark(arg);
    return NULL;
}

static int read_again(void)
{
    struct mr_trace_log *log = NULL;
    struct mr_trace_summary *s = NULL;
    struct mr_error err = {0};
    int r = mr_trace_log_read(path, &log, &err);
    assert_true(r == err.code);
    if (!r) {
        const struct mr_trace_log *one = log;
        r = mr_trace_summarize(&one, 1, &s);
    }
    mr_trace_summary_free(s);
    mr_trace_log_free(log);
    return r;
}

static int whole_trace(void)
{
    struct mr_error err = {0};
    struct mr_trace_stats stats;
    pthread_t thread;
    int r = mr_trace_start(&(struct mr_trace_opts){.path = path, .ring_spans = 64}, &err);
    assert_true(r == err.code);
    if (r) {
        assert_false(mr_trace_on());
        return r;
    }
    int missing = pthread_create(&thread, NULL, spans, "thread's end");
    if (!missing)
        pthread_join(thread, NULL);
    assert_true(mr_trace_pause());
    int still = mr_trace_resume(); /* it may be unable to go on, and ends as usual all the same */
    spans("end");
    r = mr_trace_stop(&stats, &err);
    assert_true(r == err.code);
    assert_int_equal(stats.events + stats.dropped + stats.lost, (!missing + !still) * 51);
    return r ? r : stats.dropped || still ? -ENOMEM : read_again();
}

static void loop(enum fault_kind kind, int may_fail)
{
    /* Rings stay for the next thread.  Twice: in the first trace this thread may still take over
     * the other one's, and then the second trace makes one more. */
    assert_int_equal(whole_trace(), 0);
    assert_int_equal(whole_trace(), 0);
    for (uint64_t at = 1;; at++) {
        int64_t before = faults_live();
        faults_begin(kind, at);
        int r = whole_trace();
        int hit = faults_end();
        if (r && (!hit || !may_fail))
            fail_msg("call %llu: %d", (unsigned long long)at, r);
        if (faults_live() != before)
            fail_msg("call %llu leaves %lld things behind", (unsigned long long)at,
                     (long long)(faults_live() - before));
        if (!hit)
            return;
        assert_in_range(at, 1, 100000);
    }
}

static void every_call_may_fail_once(void **state)
{
    snprintf(path, sizeof path, "%s", tempdir_path(*state, "a.json"));
    loop(FAULT_FAIL, 1);
    snprintf(path, sizeof path, "%s", tempdir_path(*state, "a.csv"));
    loop(FAULT_FAIL, 1);
}

static void interrupted_and_short_calls_go_on(void **state)
{
    snprintf(path, sizeof path, "%s", tempdir_path(*state, "a.json"));
    loop(FAULT_SHORT, 0);
    loop(FAULT_EINTR, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(every_call_may_fail_once),
        WITH_TEMPDIR(interrupted_and_short_calls_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
