/* cmd_bench.c - `millrace bench`: the micro-benchmark over a sweep of thread counts. */
#include "commands.h"

#include "errtext.h"
#include "microbench.h"
#include "output.h"
#include "terminal.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct sweep {
    const struct options *o;
    FILE *ledger;
    unsigned at, n; /* which thread count, of how many */
    unsigned threads;
    struct mr_decoder_opts decode;
};

static void on_progress(void *ctx, const struct mr_bench_progress *now)
{
    struct sweep *s = ctx;
    char what[64];
    snprintf(what, sizeof what, "%u thread%s, run %u/%u, %s", s->threads, s->threads > 1 ? "s" : "",
             now->run + 1, now->runs, now->what);
    progress_show(what, now->done, now->total);
}

static void csv_field(FILE *f, const char *s, char after)
{
    int quote = strpbrk(s, ",\"\r\n") != NULL;
    if (quote)
        fputc('"', f);
    for (; *s; s++) {
        if (*s == '"')
            fputc('"', f);
        fputc(*s, f);
    }
    if (quote)
        fputc('"', f);
    fputc(after, f);
}

static void on_bad_sample(void *ctx, const struct mr_bad_sample *bad)
{
    struct sweep *s = ctx;
    fprintf(s->ledger, "%llu,%llu,%u,%u,", (unsigned long long)bad->epoch,
            (unsigned long long)bad->batch, bad->slot, bad->attempt);
    csv_field(s->ledger, bad->path, ',');
    fprintf(s->ledger, "%s,%s,", bad->stage, bad->reason);
    csv_field(s->ledger, bad->detail, ',');
    csv_field(s->ledger, bad->substitute ? bad->substitute : "", '\n');
}

static int open_ledger(struct sweep *s)
{
    if (!s->o->ledger)
        return 0;
    s->ledger = fopen(s->o->ledger, "we");
    if (!s->ledger) {
        fprintf(stderr, "millrace: --ledger %s: %s\n", s->o->ledger, mr_errno_text(errno));
        return 1;
    }
    fprintf(s->ledger, "epoch,batch,slot,attempt,path,stage,reason,error,substitute\n");
    return 0;
}

static int close_ledger(struct sweep *s)
{
    if (!s->ledger)
        return 0;
    int bad = ferror(s->ledger);
    if (!fclose(s->ledger) && !bad)
        return 0;
    fprintf(stderr, "millrace: --ledger %s: could not be written completely\n", s->o->ledger);
    return 1;
}

/* The data set that --data or --list names. */
static int open_data(const struct options *o, struct mr_dataset **out, const char **path)
{
    struct mr_error err = {0};
    struct stat st;
    if (!o->data == !o->list) {
        fprintf(stderr, "millrace %s: name the data set by --data DIR or by --list FILE.csv%s\n",
                command_table[o->command].name, o->data ? ", not both" : "");
        return 2;
    }
    *path = o->data ? o->data : o->list;
    if (!stat(*path, &st) && S_ISDIR(st.st_mode) != (o->data != NULL)) {
        fprintf(stderr, "millrace: %s is %s: use --%s\n", *path, o->data ? "no folder" : "a folder",
                o->data ? "list" : "data");
        return 2;
    }
    if (mr_dataset_open(*path, out, &err)) {
        fprintf(stderr, "millrace: %s\n", err.text);
        return 1;
    }
    return 0;
}

static struct mr_decoder_opts decoder_options(const struct options *o)
{
    return (struct mr_decoder_opts){
        .width = o->image_size.width,
        .height = o->image_size.height,
        .resize = o->resize,
        .dtype = o->dtype,
        .layout = o->layout,
        .augment = o->augment,
        .max_pixels = o->max_pixels,
        .exact = o->exact,
        .accept_truncated = o->accept_truncated,
    };
}

static struct mr_pipeline_opts pipeline_options(const struct options *o, struct sweep *s)
{
    return (struct mr_pipeline_opts){
        .engine = o->engine,
        .threads = s->threads,
        .io_depth = o->io_depth,
        .direct = o->direct,
        .batch = o->batch,
        .prefetch = o->prefetch ? o->prefetch : MR_NONE,
        .shuffle = o->shuffle.kind,
        .window = o->shuffle.window,
        .seed = o->seed,
        .epochs = o->epochs,
        .batches = o->batches,
        .rank = o->shard.rank,
        .world = o->shard.world,
        .keep_last = o->keep_last,
        .max_file_bytes = o->max_file_bytes,
        .on_error_policy = o->on_error,
        .max_error_share = o->max_errors.share,
        .max_error_count = o->max_errors.count,
        .on_error = s->ledger && s->at == 0 ? on_bad_sample : NULL,
        .on_error_ctx = s,
        .should_stop = terminal_interrupted,
        .decode = o->map ? &s->decode : NULL,
    };
}

static void print_heading(const struct options *o, const char *path, const struct mr_dataset *d)
{
    printf("%s: %llu samples, %u class%s; %s engine", path, (unsigned long long)mr_dataset_size(d),
           mr_dataset_n_classes(d), mr_dataset_n_classes(d) == 1 ? "" : "es",
           o->engine ? "uring" : "threads");
    if (o->engine)
        printf(" (depth %u)", o->io_depth);
    printf(", batch %u, prefetch %u, %u run%s\n", o->batch, o->prefetch, o->runs,
           o->runs > 1 ? "s, first left out" : "");
    printf("%7s %10s %7s %8s %8s %9s  %26s %8s  %s\n", "threads", "images/s", "spread", "speed-up",
           "MB/s", "CPU us", "read us p50/p99/p99.9", "skipped", "cache before");
}

static void print_row(const struct mr_bench_result *r, double base)
{
    const struct mr_bench_run *m = &r->median;
    char latency[64], cache[64], bytes[32];
    if (!r->n_runs) {
        printf("%7u stopped before the first run was through\n", r->pipe.threads);
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
    printf("%7u %10.0f %6.1f%% %7.2fx %8.0f %9.2f  %26s %8llu  %s%s\n", r->pipe.threads, r->per_s,
           100 * r->spread, base > 0 ? r->per_s / base : 1.0,
           (double)m->delivered_bytes / m->seconds / 1e6, 1e6 * m->cpu_s / (double)m->samples,
           latency, (unsigned long long)m->skipped, cache, r->partial ? " (partial)" : "");
    if (r->has_hash)
        printf("        batch hash %016llx\n", (unsigned long long)r->hash);
    fflush(stdout);
}

static void print_errors(const struct mr_bench_result *r)
{
    for (unsigned i = 0; r->stats.errors[i].reason; i++)
        printf("%s%s: %llu%s", i ? ", " : "bad samples: ", r->stats.errors[i].reason,
               (unsigned long long)r->stats.errors[i].n, r->stats.errors[i + 1].reason ? "" : "\n");
}

/* Measure one thread count; adds to results.  Exit status. */
static int measure(struct sweep *s, struct mr_dataset *data, struct output *out, double *base,
                   struct mr_json *results)
{
    const struct options *o = s->o;
    struct mr_error err = {0};
    struct mr_bench_result result;
    struct mr_bench_opts opts = {
        .data = data,
        .pipe = pipeline_options(o, s),
        .runs = o->runs,
        .cold = o->cold || o->drop_caches,
        .warm = o->warm,
        .drop_caches = o->drop_caches,
        .hash = o->hash,
        .progress = on_progress,
        .progress_ctx = s,
    };
    int r = mr_microbench_run(&opts, &result, &err);
    progress_clear();
    if (!r || r == -ECANCELED) {
        if (s->at == 0)
            *base = result.per_s;
        mr_json_append(results, mr_bench_result_json(&result));
        if (!out->quiet) {
            print_row(&result, *base);
            if (s->at + 1 == s->n || r)
                print_errors(&result);
        }
        if (result.warning[0] && s->at == 0)
            fprintf(stderr, "warning: %s\n", result.warning);
    } else {
        fprintf(stderr, "millrace bench: %s\n", err.text);
    }
    mr_bench_result_fini(&result);
    return !r ? 0 : r == -ECANCELED ? 130 : 1;
}

int command_bench(const struct options *o)
{
    struct sweep s = {.o = o, .decode = decoder_options(o)};
    struct mr_dataset *data = NULL;
    const char *path = NULL;
    struct unsigned_list threads = o->threads;
    if ((o->cold || o->drop_caches) && o->warm) {
        fprintf(stderr, "millrace bench: --%s and --warm exclude each other\n",
                o->cold ? "cold" : "drop-caches");
        return 2;
    }
    if (o->runs > MR_BENCH_MAX_RUNS) {
        fprintf(stderr, "millrace bench: --runs: at most %d\n", MR_BENCH_MAX_RUNS);
        return 2;
    }
    if (!threads.n) {
        cpu_set_t set;
        threads.n = 1;
        threads.value[0] = sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
    }
    int status = open_data(o, &data, &path);
    if (status)
        return status;
    struct output out = {.fd = -1};
    struct mr_json *results = mr_json_array();
    double base = 0;
    status = output_open(o, &out) || open_ledger(&s);
    if (!status && !out.quiet)
        print_heading(o, path, data);
    s.n = threads.n;
    for (s.at = 0; !status && s.at < s.n; s.at++) {
        s.threads = threads.value[s.at];
        status = measure(&s, data, &out, &base, results);
    }
    int written = status == 0 || status == 130 ? output_json(&out, o, path, results)
                                               : (mr_json_free(results), 0);
    if (close_ledger(&s) || written)
        status = status ? status : 1;
    mr_dataset_unref(data);
    return status;
}
