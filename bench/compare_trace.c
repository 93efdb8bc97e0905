/* compare_trace.c - what a trace costs: nanoseconds a span, and the share of a run.
 *
 *     compare_trace [DATA [ROUNDS [read|decode]]]
 *
 * The parts, in CPU time of the process:
 * - a span: two looks at the clock and one call, with a trace on and without one, in bursts that
 *   fit into the ring, with pauses in which it is emptied, so that no span is dropped;
 * - a span in all: stored, turned into text by the recorder's thread and written to the file; spans
 *   as the pipeline stores them, from times that it has taken anyway;
 * - start and end of a trace with its curves;
 * - a trace in which nothing is recorded but the curves, by the second.
 *
 * A run: batches drawn from the folder DATA (warm).  One pipeline runs all the time, and the trace
 * is switched on and off between stretches of at least a second of CPU time each: traced against
 * untraced by paired alternation, start, curves and end of the trace included.
 *
 * Beside it the sum of the parts: spans a sample (counted) times the CPU time of a span in all,
 * plus start and end, plus the seconds that a stretch took times what a trace costs by the second,
 * over the CPU time of an untraced stretch.  A tenth more or less in any of them changes the share
 * by no more than a tenth of it, which no alternation of whole runs can promise. */
#include "alternate.h"
#include "clock.h"
#include "trace_curves.h"

#include <millrace/pipeline.h>
#include <millrace/trace.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BURST    8192u
#define BURSTS   8u
#define MAX_RUNS 99
#define QUIET_S  3
#define CPU_S    1.0 /* a stretch takes at least */

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

/* What does not depend on the number of spans: the file, the recorder's thread, the curves.
 * Milliseconds; below 0: failed. */
static double report_start(unsigned rounds)
{
    double v[MAX_RUNS];
    for (unsigned r = 0; r < rounds; r++) {
        uint64_t cpu = mr_clock_process_cpu_ns();
        if (start_trace())
            return -1;
        struct mr_sampler *curves = mr_trace_curves_open();
        mr_trace_mark("one");
        mr_trace_curves_close(curves);
        if (stop_trace() < 0)
            return -1;
        v[r] = (double)(mr_clock_process_cpu_ns() - cpu) / 1e6;
    }
    qsort(v, rounds, sizeof *v, by_value);
    printf("%-34s %.2f ms (%.2f..%.2f) of CPU time, %u rounds\n", "start and end of a trace",
           v[rounds / 2], v[rounds / 4], v[rounds - 1 - rounds / 4], rounds);
    fflush(stdout);
    return v[rounds / 2];
}

/* Milliseconds of CPU time by the second of a trace in which only curves are drawn. */
static double report_quiet(double start_ms)
{
    uint64_t cpu = mr_clock_process_cpu_ns(), start = mr_clock_ns();
    if (start_trace())
        return -1;
    struct mr_sampler *curves = mr_trace_curves_open();
    sleep(QUIET_S);
    mr_trace_curves_close(curves);
    if (stop_trace() < 0)
        return -1;
    double seconds = (double)(mr_clock_ns() - start) / 1e9;
    double ms = (double)(mr_clock_process_cpu_ns() - cpu) / 1e6 - start_ms;
    ms = ms > 0 ? ms / seconds : 0;
    printf("%-34s %.2f ms of CPU time a second, %.3f%% of a core, with curves 10 times a second\n",
           "a trace of nothing", ms, ms / 10);
    fflush(stdout);
    return ms;
}

struct parts {
    double span_ns, start_ms, quiet_ms;
};

/* A pipeline that runs all the time, and a stretch of it. */
struct run {
    struct mr_pipeline *p;
    int traced;
    uint64_t n_batches;
    /* Of the last stretch */
    double samples, spans, seconds, cpu_s;
};

/* Samples a second of CPU time. */
static double one_stretch(void *ctx)
{
    struct run *r = ctx;
    struct mr_sampler *curves = NULL;
    struct mr_batch *b;
    uint64_t n = 0, cpu = mr_clock_process_cpu_ns(), start = mr_clock_ns();
    int64_t events = 0;
    int more = 0;
    if (r->traced && start_trace())
        return -1;
    if (r->traced)
        curves = mr_trace_curves_open();
    for (uint64_t i = 0; i < r->n_batches; i += (uint64_t)more) {
        more = mr_pipeline_next(r->p, &b);
        if (more < 0)
            break;
        if (more) {
            n += b->n;
            mr_batch_unref(b);
        }
    }
    mr_trace_curves_close(curves);
    if ((r->traced && (events = stop_trace()) < 0) || more < 0)
        return -1;
    r->samples = (double)n;
    r->spans = (double)events / (double)n;
    r->seconds = (double)(mr_clock_ns() - start) / 1e9;
    r->cpu_s = (double)(mr_clock_process_cpu_ns() - cpu) / 1e9;
    return r->samples / r->cpu_s;
}

static void report_share(const char *what, const struct run *traced, const struct run *plain,
                         const struct parts *c)
{
    double spans_s = traced->spans * traced->samples * c->span_ns / 1e9;
    double start_s = c->start_ms / 1e3, quiet_s = plain->seconds * c->quiet_ms / 1e3;
    double share = (spans_s + start_s + quiet_s) / plain->cpu_s;
    printf("%-34s %.0f samples x %.2f spans x %.0f ns = %.2f ms, start and end %.2f ms, %.2f s of "
           "curves %.2f ms: %.3f%% of the %.2f s of CPU time; target 1%% %s\n",
           what, traced->samples, traced->spans, c->span_ns, 1e3 * spans_s, c->start_ms,
           plain->seconds, 1e3 * quiet_s, 100 * share, plain->cpu_s,
           share < 0.01 ? "met" : "MISSED");
    fflush(stdout);
}

/* How many batches take CPU_S, as stretches are to be as long as that. */
static int find_length(struct run *r)
{
    for (r->n_batches = 8;; r->n_batches *= 2) {
        if (one_stretch(r) < 0)
            return -1;
        if (r->cpu_s >= CPU_S / 4)
            break;
    }
    r->n_batches = (uint64_t)((double)r->n_batches * 1.1 * CPU_S / r->cpu_s) + 1;
    return 0;
}

static int compare(struct mr_dataset *data, enum mr_engine engine, int decode,
                   const struct parts *parts, unsigned rounds)
{
    char what[64];
    struct mr_decoder_opts how = {.width = 224, .height = 224};
    struct mr_pipeline_opts o = {
        .engine = engine, .decode = decode ? &how : NULL, .epochs = 1000000, .start_on_next = 1};
    struct run plain = {0}, traced;
    struct contender us = {"traced", one_stretch, &traced},
                     peer = {"untraced", one_stretch, &plain};
    struct comparison c;
    struct mr_error err = {0};
    if (mr_pipeline_open(data, &o, &plain.p, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    int r = find_length(&plain);
    traced = plain;
    traced.traced = 1;
    if (!r)
        r = alternate(&us, &peer, rounds, &c);
    mr_pipeline_close(plain.p);
    if (r)
        return r;
    const char *kind = decode ? "decode" : "read", *name = engine ? "uring" : "threads";
    snprintf(what, sizeof what, "%s, %s, by CPU time", kind, name);
    alternate_print(what, &us, &peer, &c, 0.99);
    snprintf(what, sizeof what, "%s, %s, by its parts", kind, name);
    report_share(what, &traced, &plain, parts);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 15;
    struct mr_error err = {0};
    struct mr_dataset *data = NULL;
    struct parts parts = {0};
    rounds = rounds < 9 ? 9 : rounds > MAX_RUNS ? MAX_RUNS : rounds;
    snprintf(trace_path, sizeof trace_path, "/tmp/compare_trace.%d.json", (int)getpid());
    int failed = report_spans(rounds) || (parts.start_ms = report_start(rounds)) < 0 ||
                 (parts.quiet_ms = report_quiet(parts.start_ms)) < 0 ||
                 (parts.span_ns = whole_span(rounds)) <= 0;
    if (!failed && argc > 1) {
        failed = mr_dataset_open(argv[1], &data, &err);
        if (failed)
            fprintf(stderr, "%s\n", err.text);
        for (int decode = 1; !failed && decode >= 0; decode--)
            for (int engine = MR_ENGINE_THREADS; !failed && engine <= MR_ENGINE_URING; engine++)
                if (argc < 4 || !strcmp(argv[3], decode ? "decode" : "read"))
                    failed = compare(data, (enum mr_engine)engine, decode, &parts, rounds);
    }
    mr_dataset_unref(data);
    unlink(trace_path);
    return failed ? 1 : 0;
}
