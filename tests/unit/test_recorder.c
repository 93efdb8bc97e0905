/* test_recorder.c - a trace holds what its threads did: recorded, written, read again. */
#include "unit.h"

#include "clock.h"
#include "trace_log.h"
#include "trace_pause.h"

#include <millrace/trace.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif

static char path[300];

static void start(struct tempdir *t, const char *name, struct mr_trace_opts o)
{
    struct mr_error err = {0};
    snprintf(path, sizeof path, "%s/%s", t->path, name);
    o.path = path;
    if (mr_trace_start(&o, &err))
        fail_msg("%s", err.text);
    assert_true(mr_trace_on());
}

static struct mr_trace_log *stop(struct mr_trace_stats *stats)
{
    struct mr_error err = {0};
    struct mr_trace_log *log = NULL;
    if (mr_trace_stop(stats, &err) || mr_trace_log_read(path, &log, &err))
        fail_msg("%s", err.text);
    assert_false(mr_trace_on());
    assert_false(log->cut);
    assert_int_equal(log->damaged_at, 0);
    assert_int_equal(log->n_bad + log->n_other + log->n_unfinished, 0);
    return log;
}

static const char *name(const struct mr_trace_log *log, size_t i)
{
    return mr_log_string(log, log->event[i].name);
}

static size_t count(const struct mr_trace_log *log, const char *what)
{
    size_t n = 0;
    for (size_t i = 0; i < log->n; i++)
        n += !strcmp(name(log, i), what);
    return n;
}

/* A span of one nanosecond, for tests that only count. */
static void tick(void)
{
    uint64_t now = mr_trace_now();
    mr_trace_span(MR_PHASE_TRAIN, now, now + 1, 0, MR_NONE);
}

static int file_of(void *ctx, uint32_t id, char *buf, size_t cap)
{
    return id == 13 ? -1 : snprintf(buf, cap, "%s/%u \"x\",\\y\x01.jpg", (const char *)ctx, id);
}

static void record_one_of_each(void)
{
    uint64_t t = mr_trace_now();
    assert_true(t > 0);
    mr_trace_context(2, 7);
    mr_trace_span(MR_PHASE_LOAD, t, t + 5000, 100, 42);
    mr_trace_span(MR_PHASE_READ, t, t + 1234, 100, 42);
    mr_trace_span(MR_PHASE_READ, t + 1234, t + 1234, 0, 13);
    mr_trace_span(mr_trace_phase("my own"), t + 2000, t + 3001, 0, MR_NONE);
    mr_trace_span((enum mr_phase)4000, t + 3001, t + 3002, 0, MR_NONE);
    mr_trace_counter("sda MB/s", 1.5, t);
    mr_trace_mark("end of run");
}

static void check_one_of_each(const struct mr_trace_log *log)
{
    const struct mr_log_event *e = log->event;
    assert_string_equal(name(log, 0), "Load");
    assert_int_equal(e[0].end_ns - e[0].begin_ns, 5000);
    assert_int_equal(e[0].bytes, 100);
    assert_int_equal(e[0].id, 42);
    assert_int_equal(e[0].epoch, 2);
    assert_int_equal(e[0].step, 7);
    assert_int_equal(e[0].file, MR_NO_STRING);
    assert_string_equal(name(log, 1), "Read");
    assert_int_equal(e[1].end_ns - e[1].begin_ns, 1234);
    assert_int_equal(e[1].begin_ns, e[0].begin_ns);
    assert_int_equal(e[2].file, MR_NO_STRING);
    assert_string_equal(name(log, 3), "my own");
    assert_int_equal(e[3].begin_ns - e[0].begin_ns, 2000);
    assert_int_equal(e[3].id, MR_NONE);
    assert_string_equal(name(log, 4), "other");
    assert_true(log->has_wall);
}

static void a_chrome_trace_holds_what_was_recorded(void **state)
{
    struct mr_trace_stats stats;
    start(*state, "a.json", (struct mr_trace_opts){.file_of = file_of, .file_ctx = "dir"});
    record_one_of_each();
    struct mr_trace_log *log = stop(&stats);
    assert_int_equal(stats.events, 7);
    assert_int_equal(stats.dropped + stats.lost, 0);
    assert_int_equal(log->n, 7);
    assert_string_equal(log->format, "Chrome");
    assert_memory_equal(log->writer, "millrace ", 9);
    check_one_of_each(log);
    assert_string_equal(mr_log_string(log, log->event[1].file), "dir/42 \"x\",\\y\x01.jpg");
    assert_int_equal(log->event[5].kind, MR_EVENT_COUNTER);
    assert_true(log->event[5].value == 1.5);
    assert_int_equal(log->event[6].kind, MR_EVENT_MARK);
    assert_string_equal(name(log, 6), "end of run");
    mr_trace_log_free(log);
}

static void a_timelogger_file_holds_what_was_recorded(void **state)
{
    struct mr_trace_stats stats;
    start(*state, "a.csv",
          (struct mr_trace_opts){.rank = 3, .file_of = file_of, .file_ctx = "dir"});
    record_one_of_each();
    struct mr_trace_log *log = stop(&stats);
    assert_int_equal(stats.events, 6); /* counters have no row */
    assert_int_equal(log->n, 6);
    assert_string_equal(log->format, "TimeLogger");
    check_one_of_each(log);
    assert_string_equal(mr_log_string(log, log->event[1].file), "dir/42 \"x\",\\y\x01.jpg");
    assert_int_equal(log->event[5].kind, MR_EVENT_MARK);
    assert_string_equal(name(log, 5), "end of run");
    mr_trace_log_free(log);
    char line[200];
    FILE *f = fopen(path, "r");
    assert_non_null(fgets(line, sizeof line, f));
    assert_string_equal(line, "Epoch,Rank,Action Name,Action Description,Start Time,End Time,"
                              "Time Taken,Process ID,Current Thread\n");
    assert_non_null(fgets(line, sizeof line, f));
    assert_memory_equal(line, "2,3,\"Load\",\"step=7 id=42 bytes=100\",", 36);
    fclose(f);
}

static void without_a_trace_nothing_happens(void **state)
{
    (void)state;
    struct mr_trace_stats stats = {1, 1, 1};
    assert_int_equal(mr_trace_now(), 0);
    mr_trace_span(MR_PHASE_READ, 1, 2, 3, 4);
    mr_trace_mark("nothing");
    mr_trace_counter("nothing", 1, 1);
    assert_int_equal(mr_trace_stop(&stats, NULL), 0);
    assert_int_equal(stats.events + stats.dropped + stats.lost, 0);
}

static void senseless_spans_are_left_out(void **state)
{
    start(*state, "a.json", (struct mr_trace_opts){0});
    uint64_t t = mr_trace_now();
    mr_trace_span(MR_PHASE_READ, 0, t, 0, MR_NONE);     /* began when no trace was on */
    mr_trace_span(MR_PHASE_READ, t, t - 1, 0, MR_NONE); /* backwards */
    mr_trace_span(MR_PHASE_READ, 5, 6, 0, MR_NONE);     /* before the trace */
    mr_trace_span(MR_PHASE_WAIT, 5, t, 0, MR_NONE);     /* from before the trace into it */
    struct mr_trace_log *log = stop(NULL);
    assert_int_equal(log->n, 1);
    assert_string_equal(name(log, 0), "Wait");
    assert_true(log->event[0].end_ns - log->event[0].begin_ns < (int64_t)t);
    mr_trace_log_free(log);
}

static void the_wall_clock_is_that_of_the_system(void **state)
{
    struct timespec before, after;
    clock_gettime(CLOCK_REALTIME, &before);
    start(*state, "a.json", (struct mr_trace_opts){0});
    tick();
    struct mr_trace_log *log = stop(NULL);
    clock_gettime(CLOCK_REALTIME, &after);
    int64_t at = log->event[0].begin_ns;
    assert_true(at >= before.tv_sec * 1000000000ll + before.tv_nsec);
    assert_true(at <= after.tv_sec * 1000000000ll + after.tv_nsec);
    mr_trace_log_free(log);
}

static void two_traces_at_once_are_refused(void **state)
{
    struct mr_error err = {0};
    start(*state, "a.json", (struct mr_trace_opts){0});
    assert_int_equal(mr_trace_start(&(struct mr_trace_opts){.path = "b.json"}, &err), -EBUSY);
    assert_non_null(strstr(err.text, path));
    mr_trace_log_free(stop(NULL));
}

static void a_path_that_cannot_be_made_is_an_error(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_trace_opts o = {.path = "/no/such/folder/a.json"};
    assert_int_equal(mr_trace_start(&o, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/no/such/folder/a.json: No such file"));
    assert_int_equal(mr_trace_start(NULL, NULL), -EINVAL);
    assert_int_equal(mr_trace_start(&(struct mr_trace_opts){.path = ""}, NULL), -EINVAL);
    o = (struct mr_trace_opts){.path = "a.json", .ring_spans = 1u << 30};
    assert_int_equal(mr_trace_start(&o, NULL), -EINVAL);
    assert_false(mr_trace_on());
}

#define N_THREADS 8
#define N_EACH    1000

static void *tick_many(void *arg)
{
    mr_trace_thread_name(arg);
    for (unsigned i = 0; i < N_EACH; i++)
        tick();
    return NULL;
}

static void in_threads(void *(*run)(void *), void *arg)
{
    pthread_t t[N_THREADS];
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, run, arg), 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(t[i], NULL);
}

static void threads_that_have_ended_lose_nothing(void **state)
{
    for (int round = 0; round < 3; round++) { /* rings are used again */
        struct mr_trace_stats stats;
        start(*state, round % 2 ? "a.csv" : "a.json", (struct mr_trace_opts){0});
        in_threads(tick_many, "short-lived");
        in_threads(tick_many, "short-lived");
        struct mr_trace_log *log = stop(&stats);
        assert_int_equal(stats.dropped + stats.lost, 0);
        assert_int_equal(count(log, "Train"), 2 * N_THREADS * N_EACH);
        mr_trace_log_free(log);
    }
}

/* The file is a pipe that nobody empties, so the recorder is stuck and the ring must fill up. */
static void a_full_ring_drops_and_says_so(void **state)
{
    struct tempdir *t = *state;
    struct mr_trace_stats stats;
    struct mr_trace_opts o = {.ring_spans = 64};
    char pipe_path[300];
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe.json", t->path);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    int fd = open(pipe_path, O_RDONLY | O_NONBLOCK);
    assert_true(fd >= 0);
    fcntl(fd, F_SETPIPE_SZ, 4096);
    o.path = pipe_path;
    assert_int_equal(mr_trace_start(&o, NULL), 0);
    pthread_t thread;
    for (int i = 0; i < 20;
         i++) { /* 20,000 spans into a pipe of 4 KiB, a buffer and a small ring */
        assert_int_equal(pthread_create(&thread, NULL, tick_many, "fast"), 0);
        pthread_join(thread, NULL);
    }
    /* Empty the pipe until the writer is through. */
    fcntl(fd, F_SETFL, 0);
    pid_t child = fork();
    if (child == 0) {
        static char all[16 << 20];
        size_t len = 0;
        ssize_t n;
        while ((n = read(fd, all + len, sizeof all - len)) > 0)
            len += (size_t)n;
        _exit(memmem(all, len, "dropped events", 14) ? 0 : 1);
    }
    int status;
    assert_int_equal(mr_trace_stop(&stats, NULL), 0);
    close(fd);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(stats.events + stats.dropped, 20 * N_EACH);
    assert_true(stats.dropped > 0);
    assert_int_equal(status, 0);
}

static void the_number_of_dropped_events_is_read_again(void **state)
{
    struct tempdir *t = *state;
    struct mr_trace_log *log;
    const char *text = "[{\"ph\":\"C\",\"pid\":1,\"ts\":1,\"name\":\"dropped events\","
                       "\"args\":{\"value\":17}}]";
    assert_int_equal(mr_trace_log_read(tempdir_text(t, "d.json", text), &log, NULL), 0);
    assert_int_equal(log->dropped, 17);
    assert_int_equal(log->n, 0);
    mr_trace_log_free(log);
    text = "Epoch,Rank,Action Name,Action Description,Start Time,End Time,Time Taken,Process ID,"
           "Current Thread\n0,0,\"dropped events\",\"n=18\",1.0,1.0,0.0,1,1\n";
    assert_int_equal(mr_trace_log_read(tempdir_text(t, "d.csv", text), &log, NULL), 0);
    assert_int_equal(log->dropped, 18);
    mr_trace_log_free(log);
}

static void a_full_disk_loses_the_trace_and_not_the_program(void **state)
{
    (void)state;
    struct mr_trace_stats stats;
    struct mr_error err = {0};
    if (access("/dev/full", W_OK))
        skip();
    assert_int_equal(mr_trace_start(&(struct mr_trace_opts){.path = "/dev/full"}, &err), 0);
    for (unsigned i = 0; i < 5000; i++)
        tick();
    assert_int_equal(mr_trace_stop(&stats, &err), -ENOSPC);
    assert_int_equal(stats.events, 0);
    assert_int_equal(stats.lost + stats.dropped, 5000);
    assert_non_null(strstr(err.text, "/dev/full: No space left on device"));
}

static void a_child_does_not_write_to_its_parents_trace(void **state)
{
    struct mr_trace_stats stats;
    start(*state, "a.json", (struct mr_trace_opts){0});
    tick();
    for (int i = 0; i < 5; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            int bad = mr_trace_on() || mr_trace_now();
            for (unsigned k = 0; k < 1000; k++)
                mr_trace_span(MR_PHASE_READ, 1000, 2000, 0, MR_NONE);
            bad |= mr_trace_stop(&stats, NULL) || stats.events;
            _exit(bad);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        tick();
    }
    struct mr_trace_log *log = stop(&stats);
    assert_int_equal(stats.events, 6);
    assert_int_equal(log->n, 6);
    mr_trace_log_free(log);
}

#ifndef UNDER_TSAN /* it does not allow threads in a child of a program with threads */
static void a_child_may_have_a_trace_of_its_own(void **state)
{
    struct tempdir *t = *state;
    struct mr_trace_log *log;
    start(t, "a.json", (struct mr_trace_opts){0});
    tick();
    pid_t child = fork();
    if (child == 0) {
        struct mr_trace_stats stats;
        int bad = mr_trace_start(&(struct mr_trace_opts){.path = tempdir_path(t, "b.csv")}, NULL);
        tick();
        tick();
        bad |= mr_trace_stop(&stats, NULL);
        _exit(bad || stats.events != 2);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    log = stop(NULL);
    assert_int_equal(log->n, 1);
    mr_trace_log_free(log);
    assert_int_equal(mr_trace_log_read(tempdir_path(t, "b.csv"), &log, NULL), 0);
    assert_int_equal(log->n, 2);
    assert_int_equal(log->thread[log->event[0].thread].pid, child);
    mr_trace_log_free(log);
}
#endif

static void lanes_have_lines_of_their_own(void **state)
{
    start(*state, "a.json", (struct mr_trace_opts){0});
    tick();
    mr_trace_lane(1);
    tick();
    mr_trace_lane(2);
    tick();
    mr_trace_lane(99999); /* there is none: the thread's own */
    tick();
    mr_trace_lane(0);
    struct mr_trace_log *log = stop(NULL);
    assert_int_equal(log->n, 4);
    assert_int_equal(log->n_threads, 3);
    assert_int_equal(log->event[0].thread, log->event[3].thread);
    assert_int_not_equal(log->event[1].thread, log->event[2].thread);
    mr_trace_log_free(log);
}

static void names_beyond_the_table_are_other(void **state)
{
    (void)state;
    char text[32];
    enum mr_phase first = mr_trace_phase("first name"), phase = MR_PHASE_READ;
    assert_int_equal(mr_trace_phase("first name"), first);
    assert_int_equal(mr_trace_phase("Read"), MR_PHASE_READ);
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "name %d", i);
        phase = mr_trace_phase(text);
    }
    assert_int_equal(phase, MR_N_PHASES);
    assert_int_equal(mr_trace_phase("first name"), first);
}

/* Names, epochs, steps and lines in an order that lets none of them be as it was before. */
static void each_span_has_its_own_name_step_and_line(void **state)
{
    struct mr_trace_stats stats;
    enum { N_NAMES = 70, N = 4000 };
    char text[N_NAMES][64];
    enum mr_phase phase[N_NAMES];
    for (unsigned i = 0; i < N_NAMES; i++) {
        int n = snprintf(text[i], sizeof text[i], "%u \"\\", i);
        if (i % 3 == 0)
            memset(text[i] + n, i % 2 ? '"' : 'x', sizeof text[i] - 1 - (size_t)n);
        text[i][i % 3 ? n : (int)sizeof text[i] - 1] = 0;
        phase[i] = mr_trace_phase(text[i]);
    }
    start(*state, "a.json", (struct mr_trace_opts){0});
    uint64_t t = mr_trace_now();
    for (unsigned i = 0; i < N; i++) {
        mr_trace_context(i / 7 % 5, i % 11 ? i / 13 : UINT32_MAX - 1);
        mr_trace_lane(i % 150);
        mr_trace_span(phase[i % N_NAMES], t + i, t + i + 1 + i % 3, i % 2 ? UINT64_MAX >> 1 : 0, i);
    }
    mr_trace_lane(0);
    struct mr_trace_log *log = stop(&stats);
    assert_int_equal(log->n, N);
    uint32_t thread[150];
    for (unsigned i = 0; i < N; i++) { /* the reader sorts by time */
        const struct mr_log_event *e = &log->event[i];
        assert_string_equal(name(log, i), text[i % N_NAMES]);
        assert_int_equal(e->id, i);
        assert_int_equal(e->epoch, i / 7 % 5);
        assert_int_equal(e->step, i % 11 ? i / 13 : UINT32_MAX - 1);
        assert_int_equal(e->end_ns - e->begin_ns, 1 + i % 3);
        assert_true(e->bytes == (i % 2 ? UINT64_MAX >> 1 : 0));
        if (i < 150)
            thread[i] = e->thread;
        assert_int_equal(e->thread, thread[i % 150]);
        assert_true(i % 150 == 0 || e->thread != thread[i % 150 - 1]);
    }
    mr_trace_log_free(log);
}

static atomic_int busy;

static void *tick_until_told(void *arg)
{
    (void)arg;
    while (atomic_load(&busy))
        tick();
    return NULL;
}

static void starting_and_stopping_under_load_is_safe(void **state)
{
    pthread_t t[2];
    atomic_store(&busy, 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&t[i], NULL, tick_until_told, NULL), 0);
    for (int i = 0; i < 20; i++) {
        struct mr_trace_stats stats;
        start(*state, "a.csv", (struct mr_trace_opts){.ring_spans = i % 2 ? 256 : 1024});
        tick();
        struct mr_trace_log *log = stop(&stats);
        assert_int_equal(log->n, stats.events);
        assert_true(stats.events > 0);
        mr_trace_log_free(log);
    }
    atomic_store(&busy, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
}

static void emulated_storage_is_said_in_both_forms(void **state)
{
    static const char *const file[] = {"s.json", "s.csv"};
    for (int i = 0; i < 2; i++) {
        struct mr_trace_stats stats;
        start(*state, file[i], (struct mr_trace_opts){.storage = "my \"fast\" disk, 2"});
        struct mr_trace_log *log = stop(&stats);
        assert_int_equal(log->emulated, 1);
        assert_string_equal(log->storage, "my \"fast\" disk, 2");
        mr_trace_log_free(log);
        start(*state, file[i], (struct mr_trace_opts){0});
        log = stop(&stats);
        assert_int_equal(log->emulated, i ? -1 : 0); /* the columns have no place for "none" */
        assert_string_equal(log->storage, "");
        mr_trace_log_free(log);
    }
}

static void a_trace_that_stands_still_has_a_gap(void **state)
{
    struct mr_trace_stats stats, inner_stats;
    char inner[300];
    struct mr_error err = {0};
    snprintf(inner, sizeof inner, "%s", tempdir_path(*state, "inner.json"));
    assert_false(mr_trace_pause());
    assert_int_equal(mr_trace_resume(), 0);
    start(*state, "outer.json", (struct mr_trace_opts){0});
    mr_trace_mark("before");
    assert_true(mr_trace_pause());
    assert_false(mr_trace_on());
    assert_false(mr_trace_pause()); /* one at a time */
    mr_trace_mark("nowhere");
    assert_int_equal(mr_trace_start(&(struct mr_trace_opts){.path = inner}, &err), 0);
    mr_trace_mark("within");
    assert_int_equal(mr_trace_resume(), -EBUSY);
    assert_int_equal(mr_trace_stop(&inner_stats, &err), 0);
    assert_int_equal(inner_stats.events, 1);
    assert_int_equal(mr_trace_resume(), 0);
    mr_trace_mark("after");
    struct mr_trace_log *log = stop(&stats);
    assert_int_equal(stats.events, 2);
    assert_int_equal(count(log, "before") + count(log, "after"), 2);
    mr_trace_log_free(log);
    assert_int_equal(mr_trace_log_read(inner, &log, &err), 0);
    assert_int_equal(count(log, "within"), 1);
    mr_trace_log_free(log);
}

static void a_trace_may_end_while_it_stands_still(void **state)
{
    struct mr_trace_stats stats;
    start(*state, "a.json", (struct mr_trace_opts){0});
    mr_trace_mark("before");
    assert_true(mr_trace_pause());
    struct mr_trace_log *log = stop(&stats);
    assert_int_equal(count(log, "before"), 1);
    mr_trace_log_free(log);
    assert_int_equal(mr_trace_resume(), 0);
    assert_false(mr_trace_on());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(a_chrome_trace_holds_what_was_recorded),
        WITH_TEMPDIR(a_timelogger_file_holds_what_was_recorded),
        cmocka_unit_test(without_a_trace_nothing_happens),
        WITH_TEMPDIR(emulated_storage_is_said_in_both_forms),
        WITH_TEMPDIR(a_trace_that_stands_still_has_a_gap),
        WITH_TEMPDIR(a_trace_may_end_while_it_stands_still),
        WITH_TEMPDIR(senseless_spans_are_left_out),
        WITH_TEMPDIR(the_wall_clock_is_that_of_the_system),
        WITH_TEMPDIR(two_traces_at_once_are_refused),
        cmocka_unit_test(a_path_that_cannot_be_made_is_an_error),
        WITH_TEMPDIR(threads_that_have_ended_lose_nothing),
        WITH_TEMPDIR(a_full_ring_drops_and_says_so),
        WITH_TEMPDIR(the_number_of_dropped_events_is_read_again),
        cmocka_unit_test(a_full_disk_loses_the_trace_and_not_the_program),
        WITH_TEMPDIR(a_child_does_not_write_to_its_parents_trace),
#ifndef UNDER_TSAN
        WITH_TEMPDIR(a_child_may_have_a_trace_of_its_own),
#endif
        WITH_TEMPDIR(lanes_have_lines_of_their_own),
        WITH_TEMPDIR(each_span_has_its_own_name_step_and_line),
        WITH_TEMPDIR(starting_and_stopping_under_load_is_safe),
        cmocka_unit_test(names_beyond_the_table_are_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
