/* compare_trace.c - what a trace costs: nanoseconds a span, and the share of a run.
 *
 *     compare_trace [DATA [ROUNDS]]
 *
 * A span: two looks at the clock and one call, with a trace on and without one, in bursts that fit
 * into the ring, with pauses in which it is emptied, so that no span is dropped.  And what a span
 * costs in all, as CPU time of the process: stored, turned into text by the recorder's thread and
 * written to the file, start and end of the trace included; spans as the pipeline stores them, from
 * times that it has taken anyway.
 *
 * A run: batches drawn from the folder DATA (warm), traced against untraced by paired alternation,
 * once by rate (first call to last batch) and once by CPU time, the recorder's thread and the end
 * of the trace included.  Runs differ by some percent from one another, so that this cannot decide
 * about one percent.  What can is the product: spans a sample (counted) times the CPU time of a
 * span in all, over the CPU time of an untraced sample.  A tenth more or less in any of the three
 * changes the share by a tenth of it. */
#include "alternate.h"
#include "clock.h"

#include <millrace/pipeline.h>
#include <millrace/trace.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BURST    8192u
#define BURSTS   8u
#define MAX_RUNS 99

static char trace_path[256];

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int start_trace(void)
{
    struct mr_error err = {0};
    struct mr_trace_opts o = {.path = trace_path};
    if (!mr_trace_start(&o, &err))
        return 0;
    fprintf(stderr, "%s\n", err.text);
    return -1;
}

/* Events in the file, or -1 when some are missing: then the figures are not those of a whole
 * trace. */
static int64_t stop_trace(void)
{
    struct mr_trace_stats stats;
    struct mr_error err = {0};
    if (mr_trace_stop(&stats, &err))
        fprintf(stderr, "%s\n", err.text);
    else if (stats.dropped)
        fprintf(stderr, "%llu spans were dropped\n", (unsigned long long)stats.dropped);
    else
        return (int64_t)stats.events;
    return -1;
}

enum loop { LOOP_CLOCK, LOOP_OFF, LOOP_ON };

static uint64_t one_burst(enum loop kind)
{
    uint64_t start = mr_clock_ns(), sum = 0;
    for (unsigned i = 0; i < BURST; i++) {
        if (kind == LOOP_CLOCK) {
            sum += mr_clock_ns();
            sum -= mr_clock_ns();
        } else {
            uint64_t t = mr_trace_now();
            mr_trace_span(MR_PHASE_TRAIN, t, mr_trace_now(), 0, i);
        }
    }
    return mr_clock_ns() - start + (sum & 1);
}

/* Nanoseconds a turn. */
static double one_loop(enum loop kind)
{
    uint64_t ns = 0;
    if (kind == LOOP_ON && start_trace())
        return -1;
    mr_trace_mark("the thread's ring is there from now on");
    for (unsigned i = 0; i < BURSTS; i++) {
        ns += one_burst(kind);
        if (kind == LOOP_ON)
            usleep(100000);
    }
    return kind == LOOP_ON && stop_trace() < 0 ? -1 : (double)ns / (BURST * BURSTS);
}

/* CPU nanoseconds of the process for BURSTS bursts of whole samples. */
static double samples_cpu(int traced)
{
    uint64_t cpu = mr_clock_process_cpu_ns(), t = mr_clock_ns();
    if (traced && start_trace())
        return -1;
    for (unsigned i = 0; i < BURSTS; i++) {
        for (uint32_t k = 0; k < BURST; k += 4, t += 1000) {
            mr_trace_context(0, k / 256);
            mr_trace_span(MR_PHASE_LOAD, t, t + 1900000, 114660, k);
            mr_trace_span(MR_PHASE_READ, t, t + 30000, 114660, k);
            mr_trace_span(MR_PHASE_DECODE, t + 30000, t + 1500000, 114660, k);
            mr_trace_span(MR_PHASE_RESIZE, t + 1500000, t + 1900000, 0, k);
        }
        usleep(100000);
    }
    if (traced && stop_trace() < 0)
        return -1;
    return (double)(mr_clock_process_cpu_ns() - cpu);
}

/* CPU nanoseconds of a span in all; not above 0: failed. */
static double whole_span(unsigned rounds)
{
    double v[MAX_RUNS];
    for (unsigned r = 0; r < rounds; r++) {
        double first = samples_cpu(r % 2), second = samples_cpu(!(r % 2));
        if (first < 0 || second < 0)
            return -1;
        v[r] = (r % 2 ? first - second : second - first) / (BURST * BURSTS);
    }
    qsort(v, rounds, sizeof *v, by_value);
    printf("%-34s %.1f ns (%.1f..%.1f) of CPU time, %u rounds\n", "a span in all, to the file",
           v[rounds / 2], v[rounds / 4], v[rounds - 1 - rounds / 4], rounds);
    fflush(stdout);
    return v[rounds / 2];
}

static int report_spans(unsigned rounds)
{
    static const char *const what[] = {"two looks at the clock, no call",
                                       "now, now, span: no trace on", "now, now, span: traced"};
    double v[3][MAX_RUNS];
    for (unsigned r = 0; r < rounds; r++)
        for (unsigned k = 0; k < 3; k++)
            if ((v[(k + r) % 3][r] = one_loop((k + r) % 3)) < 0)
                return -1;
    for (unsigned k = 0; k < 3; k++) {
        qsort(v[k], rounds, sizeof **v, by_value);
        printf("%-34s %.1f ns (%.1f..%.1f), %u rounds\n", what[k], v[k][rounds / 2],
               v[k][rounds / 4], v[k][rounds - 1 - rounds / 4], rounds);
    }
    fflush(stdout);
    return 0;
}

/* What does not depend on the number of spans: the file and the recorder's thread. */
static int report_start(unsigned rounds)
{
    double v[MAX_RUNS];
    for (unsigned r = 0; r < rounds; r++) {
        uint64_t cpu = mr_clock_process_cpu_ns();
        if (start_trace())
            return -1;
        mr_trace_mark("one");
        if (stop_trace() < 0)
            return -1;
        v[r] = (double)(mr_clock_process_cpu_ns() - cpu) / 1e6;
    }
    qsort(v, rounds, sizeof *v, by_value);
    printf("%-34s %.2f ms (%.2f..%.2f) of CPU time, %u rounds\n", "start and end of a trace",
           v[rounds / 2], v[rounds / 4], v[rounds - 1 - rounds / 4], rounds);
    fflush(stdout);
    return 0;
}

struct run {
    struct mr_dataset *data;
    enum mr_engine engine;
    int decode, traced, by_cpu;
    unsigned epochs;
    double spans; /* a sample, of the last traced run */
};

static double one_run(void *ctx)
{
    struct run *r = ctx;
    struct mr_decoder_opts decode = {.width = 224, .height = 224};
    struct mr_pipeline_opts o = {.engine = r->engine,
                                 .decode = r->decode ? &decode : NULL,
                                 .epochs = r->epochs,
                                 .start_on_next = 1};
    struct mr_pipeline *p;
    struct mr_batch *b;
    uint64_t n = 0, cpu = mr_clock_process_cpu_ns();
    int64_t events = 0;
    int more;
    if (r->traced && start_trace())
        return -1;
    if (mr_pipeline_open(r->data, &o, &p, NULL))
        return -1;
    uint64_t start = mr_clock_ns(), last = start, total = mr_pipeline_n_samples(p);
    while (n < total && (more = mr_pipeline_next(p, &b)) >= 0)
        if (more) {
            n += b->n;
            last = mr_clock_ns();
            mr_batch_unref(b);
        }
    mr_pipeline_close(p);
    if ((r->traced && (events = stop_trace()) < 0) || n < total)
        return -1;
    r->spans = (double)events / (double)n;
    double ns = (double)(r->by_cpu ? mr_clock_process_cpu_ns() - cpu : last - start);
    return (double)n / (ns / 1e9);
}

static void report_share(const char *what, double spans, double span_ns, double sample_ns)
{
    double share = spans * span_ns / sample_ns;
    printf("%-34s %.2f spans a sample x %.0f ns = %.2f us, %.3f%% of the %.1f us of CPU time that "
           "a sample takes; target 1%% %s\n",
           what, spans, span_ns, spans * span_ns / 1e3, 100 * share, sample_ns / 1e3,
           share < 0.01 ? "met" : "MISSED");
    fflush(stdout);
}

static int compare(struct mr_dataset *data, enum mr_engine engine, int decode, double span_ns,
                   unsigned rounds)
{
    char what[64];
    for (int by_cpu = 0; by_cpu < 2; by_cpu++) {
        struct run plain = {data, engine, decode, 0, by_cpu, decode ? 1 : 16, 0}, traced = plain;
        struct contender us = {"traced", one_run, &traced}, peer = {"untraced", one_run, &plain};
        struct comparison c;
        traced.traced = 1;
        if (alternate(&us, &peer, rounds, &c))
            return -1;
        snprintf(what, sizeof what, "%s, %s, by %s", decode ? "decode" : "read",
                 engine ? "uring" : "threads", by_cpu ? "CPU time" : "rate");
        alternate_print(what, &us, &peer, &c, 0.99);
        if (by_cpu) {
            snprintf(what, sizeof what, "%s, %s, by count", decode ? "decode" : "read",
                     engine ? "uring" : "threads");
            report_share(what, traced.spans, span_ns, 1e9 / c.peer);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 9;
    struct mr_error err = {0};
    struct mr_dataset *data = NULL;
    rounds = rounds < 9 ? 9 : rounds > MAX_RUNS ? MAX_RUNS : rounds;
    snprintf(trace_path, sizeof trace_path, "/tmp/compare_trace.%d.json", (int)getpid());
    double span_ns = 0;
    int failed =
        report_spans(rounds) || report_start(rounds) || (span_ns = whole_span(rounds)) <= 0;
    if (!failed && argc > 1) {
        failed = mr_dataset_open(argv[1], &data, &err);
        if (failed)
            fprintf(stderr, "%s\n", err.text);
        for (int decode = 1; !failed && decode >= 0; decode--)
            for (int engine = MR_ENGINE_THREADS; !failed && engine <= MR_ENGINE_URING; engine++)
                failed = compare(data, (enum mr_engine)engine, decode, span_ns, rounds);
    }
    mr_dataset_unref(data);
    unlink(trace_path);
    return failed ? 1 : 0;
}
