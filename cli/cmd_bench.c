/* cmd_bench.c - `millrace bench`: the micro-benchmark over a sweep of thread counts. */
#include "commands.h"

#include "input.h"
#include "microbench.h"
#include "output.h"
#include "say.h"
#include "terminal.h"
#include "tracing.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sweep {
    const struct options *o;
    struct ledger_file ledger;
    unsigned at, n; /* which thread count, of how many */
    unsigned threads;
    struct mr_decoder_opts decode;
    struct mr_device *storage;
    struct mr_json *row[MAX_THREAD_SWEEP]; /* the results so far; borrowed */
    unsigned n_rows;
    struct mr_dataset *data;
    const char *path;
    double base;      /* images/s with one thread; 0: not measured yet */
    char warned[256]; /* what was warned of last */
};

static void on_progress(void *ctx, const struct mr_bench_progress *now)
{
    struct sweep *s = ctx;
    char what[64];
    snprintf(what, sizeof what, "%u thread%s, run %u/%u, %s", s->threads, s->threads > 1 ? "s" : "",
             now->run + 1, now->runs, now->what);
    progress_show(what, now->done, now->total);
}

/* With the first row: what cannot be run has no table. */
static void print_heading(const struct sweep *s)
{
    const struct options *o = s->o;
    const struct mr_dataset *d = s->data;
    input_print_storage("", s->storage);
    say("%s: %llu sample%s, %u class%s; %s engine", s->path, (unsigned long long)mr_dataset_size(d),
        plural(mr_dataset_size(d)), mr_dataset_n_classes(d),
        mr_dataset_n_classes(d) == 1 ? "" : "es", o->engine ? "uring" : "threads");
    if (o->engine)
        say(" (depth %u)", o->io_depth);
    say(", batch %u, prefetch %u, %u run%s\n", o->batch, o->prefetch, o->runs,
        o->runs > 1 ? "s, first left out" : "");
    say("%7s %10s %7s %8s %8s %9s  %26s %8s  %s\n", "threads", "images/s", "spread", "speed-up",
        "MB/s", "CPU us", "read us p50/p99/p99.9", "skipped", "cache before");
}

static void print_row(const struct mr_bench_result *r, double base)
{
    const struct mr_bench_run *m = &r->median;
    char latency[64], cache[64], bytes[32], speed_up[32] = "-", spread[32] = "-";
    if (!r->n_runs) {
        say("%7u stopped before the first run was through\n", r->pipe.threads);
        return;
    }
    snprintf(latency, sizeof latency, "%.0f/%.0f/%.0f", m->read.p50, m->read.p99, m->read.p999);
    if (r->cold)
        snprintf(cache, sizeof cache, "cold: %s", r->cold);
    else if (m->cache_bytes < 0)
        snprintf(cache, sizeof cache, "unknown");
    else
        snprintf(cache, sizeof cache, "%s",
                 human_bytes((double)m->cache_bytes, bytes, sizeof bytes));
    if (r->n_runs > 1)
        snprintf(spread, sizeof spread, "%.1f%%", 100 * r->spread);
    if (base > 0)
        snprintf(speed_up, sizeof speed_up, "%.2fx", r->per_s / base);
    say("%7u %10.0f %7s %8s %8.0f %9.2f  %26s %8llu  %s%s\n", r->pipe.threads, r->per_s, spread,
        speed_up, mr_bench_mb_per_s(r), 1e6 * m->cpu_s / (double)m->samples, latency,
        (unsigned long long)m->skipped, cache, r->partial ? " (partial)" : "");
    if (r->has_hash)
        say("        batch hash %016llx\n", (unsigned long long)r->hash);
    fflush(stdout);
}

static void print_errors(const struct mr_bench_result *r)
{
    for (unsigned i = 0; r->stats.errors[i].reason; i++)
        say("%s%s: %llu", i ? ", " : "bad samples: ", r->stats.errors[i].reason,
            (unsigned long long)r->stats.errors[i].n);
    if (r->stats.errors[0].reason)
        say("\n");
}

static void print_decoders(const struct mr_bench_result *r)
{
    const uint64_t *n = r->stats.decoded_by;
    if (r->pipe.decode && r->n_runs)
        say("decoded by: own %llu, libjpeg-turbo %llu, PNG %llu\n",
            (unsigned long long)n[MR_PATH_OWN], (unsigned long long)n[MR_PATH_TURBO],
            (unsigned long long)n[MR_PATH_PNG]);
}

/* The row of a thread count, and what belongs around it. */
static void show(struct sweep *s, const struct mr_bench_result *r)
{
    if (s->n_rows == 1)
        print_heading(s);
    print_row(r, s->base);
    if (s->at + 1 == s->n || r->partial) {
        print_decoders(r);
        print_errors(r);
    }
}

/* Measure one thread count; adds to results.  Exit status. */
static int measure(struct sweep *s, struct output *out, struct mr_json *results)
{
    const struct options *o = s->o;
    struct mr_error err = {0};
    struct mr_bench_result result;
    struct mr_bench_opts opts = {
        .data = s->data,
        .pipe = input_pipeline(o, s->threads),
        .runs = o->runs,
        .cold = o->cold || o->drop_caches,
        .warm = o->warm,
        .drop_caches = o->drop_caches,
        .hash = o->hash,
        .progress = on_progress,
        .progress_ctx = s,
    };
    opts.pipe.storage = s->storage;
    if (s->at == 0)
        ledger_attach(&s->ledger, &opts.pipe);
    if (o->map)
        opts.pipe.decode = &s->decode;
    int r = mr_microbench_run(&opts, &result, &err);
    progress_clear();
    if (!r || r == -ECANCELED) {
        if (s->threads == 1)
            s->base = result.per_s;
        s->row[s->n_rows] = mr_bench_result_json(&result);
        mr_json_append(results, s->row[s->n_rows++]);
        if (!out->quiet)
            show(s, &result);
        if (result.warning[0] && strcmp(result.warning, s->warned))
            say_to(stderr, "warning: %s\n", result.warning);
        snprintf(s->warned, sizeof s->warned, "%s", result.warning);
    } else {
        input_say_error("bench", &err);
    }
    mr_bench_result_fini(&result);
    return !r ? 0 : r == -ECANCELED ? 130 : 1;
}

/* End the trace and say in every result what became of it; exit status. */
static int end_trace(struct sweep *s, int tracing)
{
    struct mr_trace_stats stats;
    int status = tracing ? tracing_stop(&stats) : 0;
    for (unsigned i = 0; i < s->n_rows; i++)
        mr_json_set(s->row[i], "trace",
                    tracing ? tracing_json(s->o->trace, &stats) : mr_json_null());
    return status;
}

int command_bench(const struct options *o)
{
    struct sweep s = {.o = o, .decode = input_decoder(o)};
    struct unsigned_list threads = o->threads;
    if (!threads.n) {
        cpu_set_t set;
        threads.n = 1;
        threads.value[0] = sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
    }
    int status = input_open_storage(o, &s.storage);
    if (!status)
        status = input_open_data(o, &s.data, &s.path);
    if (status) {
        mr_device_close(s.storage);
        return status;
    }
    struct output out = {0};
    struct mr_json *results = mr_json_array();
    int trace_failed = 0;
    status = output_open(o, &out) || ledger_open(&s.ledger, o->ledger) ||
             tracing_start(o, s.data, s.storage ? mr_device_name(s.storage) : NULL);
    int tracing = !status && o->trace;
    s.n = threads.n;
    for (s.at = 0; !status && s.at < s.n; s.at++) {
        s.threads = threads.value[s.at];
        status = measure(&s, &out, results);
    }
    if (end_trace(&s, tracing) && !status)
        trace_failed = 1;
    int written = status == 0 || status == 130 ? output_json(&out, o, s.path, results)
                                               : (mr_json_free(results), 0);
    if (ledger_close(&s.ledger) || written || trace_failed)
        status = status ? status : 1;
    mr_dataset_unref(s.data);
    mr_device_close(s.storage);
    return status;
}
