/* differential.c - see differential.h.
 *
 * Differential runs take a step apart: one sample again and again without decoding is the
 * hand-over, with decoding also the CPU; the files cold and not decoded are fetching; all of it
 * cold is what the consumer gets.  From the same runs come the curve of reads under way against
 * files a second and the time that an image holds a core.
 *
 * On an emulated storage every byte is charged, cached or not, so nothing is evicted there, and a
 * run may go through the data several times.  The real one is read cold, once, and no more of it is
 * evicted than a run can touch: the data set may have millions of files. */
#include "differential.h"

#include "sample_set.h"
#include "errtext.h"
#include "image_spread.h"
#include "new_file.h"
#include "repeat.h"
#include "wake_delay.h"
#include "write_all.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMES        64   /* lines of the list of one sample */
#define WARM_SAMPLES 1536 /* as many of a larger set are read before, so that they are cached */
#define COLD_SAMPLES 2048 /* a cold run has no more than that and */
#define COLD_PER_S   4096 /* samples for each second: the set may be huge, and all are evicted */
#define MARGIN       1.5  /* times as many as are expected */
#define FLAT         1.05 /* a curve that twice rises by less than that has ended */
#define CROWD        2    /* workers a core, when they are to take turns */
#define BUSY         0.80 /* of the cores' time: reads that take more are limited by them */

void mr_advice_say(const struct mr_advice_opts *o, const char *what)
{
    if (o->say)
        o->say(o->ctx, what);
}

/* ---- runs ---- */

unsigned mr_enough_prefetch(unsigned batch, unsigned under_way)
{
    unsigned batches = (2 * under_way + batch - 1) / batch;
    return batches > 2 ? batches - 1 : 1;
}

void mr_setup_fill(const struct mr_advice_opts *o, const struct mr_setup *s,
                   struct mr_pipeline_opts *p)
{
    *p = (struct mr_pipeline_opts){.engine = s->engine,
                                   .threads = s->threads,
                                   .io_depth = s->io_depth,
                                   .batch = s->batch,
                                   .prefetch = s->prefetch ? s->prefetch : MR_NONE,
                                   .seed = o->seed,
                                   .should_stop = o->should_stop,
                                   .should_stop_ctx = o->ctx};
}

/* Batches of a cold run: all that it may draw is evicted before. */
static uint64_t n_cold(const struct mr_advice_opts *o, const struct mr_draw_plan *d)
{
    double batch = d->setup.batch, most = COLD_PER_S * o->box_s + COLD_SAMPLES;
    if (d->expected_per_s > 0)
        most = fmin(most, MARGIN * d->expected_per_s * o->box_s + batch * (d->setup.prefetch + 4));
    return (uint64_t)(most / batch) + 1;
}

int mr_draw_run(const struct mr_advice_opts *o, const struct mr_draw_plan *d,
                struct mr_bench_result *keep, struct mr_error *err)
{
    struct mr_error own = {0};
    struct mr_bench_opts b = {.data = d->data, .runs = o->runs, .box_s = o->box_s};
    uint64_t n = mr_dataset_size(d->data);
    mr_setup_fill(o, &d->setup, &b.pipe);
    b.pipe.decode = d->decode ? o->decode : NULL;
    b.pipe.storage = d->from == MR_FROM_STORAGE ? d->storage : NULL;
    b.cold = d->from == MR_FROM_STORAGE && !d->storage;
    b.ahead = d->from == MR_FROM_STORAGE;
    b.least = d->from == MR_FROM_STORAGE && !b.cold ? o->least : 0;
    b.pipe.epochs = b.cold || o->box_s <= 0 ? 1 : (unsigned)(1000000 / n + 1);
    if (d->from == MR_FROM_CACHE && n > WARM_SAMPLES)
        b.pipe.batches = WARM_SAMPLES / d->setup.batch + 1;
    else if (b.cold)
        b.pipe.batches = n_cold(o, d);
    b.touched = b.pipe.batches * d->setup.batch;
    int r = mr_microbench_run(&b, keep, &own);
    if (r)
        mr_fail(err, r, "%s", own.text);
    mr_bench_result_fini(keep);
    keep->run = NULL;
    return r;
}

/* ---- taking apart ---- */

/* NAMES times the same line, "path",0. */
static int write_list(const char *list, const char *path)
{
    char line[2 * PATH_MAX + 8];
    size_t n = 0;
    line[n++] = '"';
    for (const char *s = path; *s; s++) {
        if (*s == '"')
            line[n++] = '"';
        line[n++] = *s;
    }
    memcpy(line + n, "\",0\n", 4);
    n += 4;
    int fd = mr_new_file_stream(list), r = fd < 0 ? fd : 0;
    for (unsigned i = 0; !r && i < NAMES; i++)
        r = mr_write_all(fd, line, n);
    if (fd >= 0 && close(fd) && !r)
        r = -errno;
    return r;
}

/* A data set that is one file, many times: it is cached after the first read. */
static int open_one_sample(const struct mr_advice_opts *o, struct mr_dataset **out,
                           struct mr_error *err)
{
    char list[PATH_MAX], path[PATH_MAX], absolute[PATH_MAX];
    int r = mr_dataset_blob_name(o->data, mr_dataset_size(o->data) / 2, path, sizeof path);
    if (r < 0)
        return mr_fail(err, r, "the data set has no files");
    if (snprintf(list, sizeof list, "%s/one-sample.csv", o->scratch) >= (int)sizeof list)
        return mr_fail(err, -ENAMETOOLONG, "%s: the path is too long", o->scratch);
    if (!realpath(path, absolute))
        return mr_fail(err, -errno, "%s: %s", path, mr_errno_text(errno));
    r = write_list(list, absolute);
    r = r ? mr_fail(err, r, "%s: %s", list, mr_errno_text(r)) : mr_dataset_open(list, out, err);
    if (unlink(list))
        unlink(list); /* a network file system that failed once may have come back */
    return r;
}

static double cpu_each(const struct mr_bench_result *r)
{
    return r->median.samples ? r->median.cpu_s / (double)r->median.samples : 0;
}

/* More reads at once never hurt, but a measurement of them may be unlucky. */
static void add_to_curve(struct mr_read_curve *c, double depth, double per_s)
{
    if (c->n && per_s <= c->per_s[c->n - 1])
        per_s = c->per_s[c->n - 1] * 1.0001;
    c->depth[c->n] = depth;
    c->per_s[c->n++] = per_s;
}

/* With up to `most` reads at once. */
static int measure_curve(const struct mr_advice_opts *o, unsigned most, struct mr_findings *f,
                         struct mr_error *err)
{
    unsigned n_flat = 0;
    for (unsigned depth = 1; depth <= MR_MOST_THREADS && depth < 2 * most && n_flat < 2;
         depth *= 2) {
        struct mr_setup s = {.threads = depth, .batch = o->now.batch};
        struct mr_draw_plan d = {o->data, s, 0, MR_FROM_STORAGE, o->storage, 0};
        struct mr_bench_result result;
        char what[64];
        d.setup.prefetch = mr_enough_prefetch(s.batch, depth);
        snprintf(what, sizeof what, "fetching, %u reads at once", depth);
        mr_advice_say(o, what);
        int r = mr_draw_run(o, &d, &result, err);
        if (r)
            return r;
        n_flat = f->curve.n && result.per_s < FLAT * f->fetched ? n_flat + 1 : 0;
        add_to_curve(&f->curve, depth, result.per_s);
        f->fetched = f->curve.per_s[f->curve.n - 1];
        f->proof = mr_cold_of_both(f->proof, result.cold);
        if (depth == 1)
            f->read_cpu_s = cpu_each(&result);
    }
    return 0;
}

struct warm_run {
    double per_s, cpu_s;  /* images; of one */
    int64_t device_bytes; /* -1: cannot be known */
};

/* Everything from the cache and decoded.  Every core is busy then, so the rate gives how long an
 * image holds a core: its CPU time, and the time that other programs or the host take. */
static int measure_warm(const struct mr_advice_opts *o, const struct mr_findings *f,
                        struct mr_setup s, struct warm_run *out, struct mr_error *err)
{
    struct mr_draw_plan d = {o->data, s, 1, MR_FROM_CACHE, NULL, 0};
    struct mr_bench_result result;
    unsigned under_way = s.engine == MR_ENGINE_URING ? s.io_depth : s.threads;
    d.setup.batch = o->now.batch;
    d.setup.prefetch = mr_enough_prefetch(o->now.batch, under_way);
    int r = mr_draw_run(o, &d, &result, err);
    if (r)
        return r;
    *out = (struct warm_run){result.per_s, fmax(cpu_each(&result), f->cores / result.per_s),
                             result.median.device_bytes};
    return 0;
}

/* So that everything is cached, or as much as a warm run draws; what reading it takes then. */
static int read_all(const struct mr_advice_opts *o, const struct mr_findings *f, double *read_cpu_s,
                    struct mr_error *err)
{
    struct mr_setup s = {.threads = f->cores, .batch = o->now.batch};
    struct mr_draw_plan read = {o->data, s, 0, MR_FROM_CACHE, NULL, 0};
    struct mr_advice_opts once = *o;
    struct mr_bench_result result;
    once.runs = 1;
    once.box_s = 0;
    read.setup.prefetch = mr_enough_prefetch(s.batch, f->cores);
    int r = mr_draw_run(&once, &read, &result, err);
    if (!r)
        *read_cpu_s = cpu_each(&result);
    return r;
}

/* The same, and how unlike the images are. */
static int warm_up(const struct mr_advice_opts *o, struct mr_findings *f, double *read_cpu_s,
                   struct mr_error *err)
{
    mr_advice_say(o, "everything warm");
    int r = read_all(o, f, read_cpu_s, err);
    if (r)
        return r;
    r = mr_image_spread(o->data, o->decode, o->box_s, &f->spread);
    return r ? mr_fail(err, -ENOMEM, "no memory") : 0;
}

struct cpu_rounds {
    const struct mr_advice_opts *o; /* for one run each */
    const struct mr_findings *f;
    int no_ring;
    double *per_s, *cpu_s, *ring, *crowd, *wake; /* [rounds]; two are ratios to cpu_s */
    struct mr_error *err;
};

/* With a worker for each core, and how late somebody else wakes up meanwhile. */
static int one_each(struct cpu_rounds *c, unsigned i)
{
    struct mr_setup s = {.threads = c->f->cores};
    struct mr_wake_delay *wake = NULL;
    if (mr_wake_delay_begin(&wake))
        return mr_fail(c->err, -ENOMEM, "no memory for a thread");
    struct warm_run run = {0};
    int r = measure_warm(c->o, c->f, s, &run, c->err);
    c->wake[i] = mr_wake_delay_end(wake);
    c->per_s[i] = run.per_s;
    c->cpu_s[i] = run.cpu_s;
    return r;
}

/* In another way, of what it was so. */
static int otherwise(struct cpu_rounds *c, unsigned i, struct mr_setup s, double *times,
                     struct mr_error *err)
{
    struct warm_run run;
    int r = measure_warm(c->o, c->f, s, &run, err);
    if (!r)
        *times = run.cpu_s / c->cpu_s[i];
    return r;
}

/* With a worker for each core, with a ring where there is one, and with more workers than cores,
 * which helps with slow storage.  Workers that take turns have a cost: caches, context switches,
 * and batches that wait for a worker which lost its core in the middle of a sample. */
static int one_round(void *ctx, unsigned i)
{
    struct cpu_rounds *c = ctx;
    unsigned cores = c->f->cores;
    struct mr_setup ring = {MR_ENGINE_URING, cores, MR_RING_DEPTH * cores, 0, 0},
                    crowd = {.threads = CROWD * cores};
    struct mr_error own = {0};
    c->ring[i] = 1;
    int r = one_each(c, i);
    if (!r && !c->no_ring) {
        r = otherwise(c, i, ring, &c->ring[i], &own);
        c->no_ring = r == -ENOTSUP;
        r = !r || c->no_ring ? 0 : mr_fail(c->err, r, "%s", own.text);
    }
    return r ? r : otherwise(c, i, crowd, &c->crowd[i], c->err);
}

/* The three ways take turns: they differ by less than the machine does from one second to the
 * next. */
static int measure_cpu(const struct mr_advice_opts *o, struct mr_findings *f, struct mr_error *err)
{
    struct mr_advice_opts once = *o;
    unsigned n = o->cpu_rounds ? o->cpu_rounds : 2 * o->runs, first = mr_repeat_first(n);
    double *values = calloc(5, n * sizeof *values);
    struct cpu_rounds c = {
        &once, f, 0, values, values + n, values + 2 * n, values + 3 * n, values + 4 * n, err};
    struct mr_summary sum[5];
    double read_cpu_s;
    once.runs = 1;
    int r = values ? warm_up(o, f, &read_cpu_s, err) : mr_fail(err, -ENOMEM, "no memory");
    mr_advice_say(o, "everything warm, in three ways");
    if (!r)
        r = mr_repeat(n, one_round, &c);
    for (unsigned i = 0; !r && i < 5; i++)
        if (mr_summarize(values + i * n + first, n - first, &sum[i]))
            r = mr_fail(err, -ENOMEM, "no memory");
    free(values);
    if (r)
        return r;
    f->warm = sum[0].median;
    f->warm_cpu_s = sum[1].median;
    /* Neither is ever cheaper; a measurement of it may be lucky. */
    f->ring_cpu_s = f->warm_cpu_s * fmax(sum[2].median - 1, 0);
    f->crowded_cpu_s = f->warm_cpu_s * fmax(sum[3].median, 1);
    f->wake_s = sum[4].median;
    return 0;
}

static int measure_one_sample(const struct mr_advice_opts *o, struct mr_findings *f,
                              double *read_cpu_s, struct mr_error *err)
{
    struct mr_dataset *one = NULL;
    struct mr_bench_result result;
    int r = open_one_sample(o, &one, err);
    if (r)
        return r;
    struct mr_setup s = {.threads = f->cores, .batch = o->now.batch < NAMES ? o->now.batch : NAMES};
    struct mr_draw_plan d = {one, s, 0, MR_FROM_CACHE, NULL, 0};
    d.setup.prefetch = mr_enough_prefetch(s.batch, f->cores);
    mr_advice_say(o, "one sample, not decoded");
    r = mr_draw_run(o, &d, &result, err);
    if (!r) {
        f->hand_over = result.per_s;
        *read_cpu_s = cpu_each(&result);
        d.decode = 1;
        mr_advice_say(o, "one sample, decoded");
        r = mr_draw_run(o, &d, &result, err);
    }
    if (!r)
        f->one_decoded = result.per_s;
    mr_dataset_unref(one);
    return r;
}

/* Reading from the storage takes more CPU time than copying from the cache does. */
static void add_reading(struct mr_findings *f, double warm_read_cpu)
{
    f->image_cpu_s = f->warm_cpu_s + fmax(f->read_cpu_s - warm_read_cpu, 0);
    f->read_cpu_s = fmin(f->read_cpu_s, f->image_cpu_s);
}

int mr_findings_take(const struct mr_advice_opts *o, struct mr_findings *out, struct mr_error *err)
{
    struct mr_findings f = {0};
    struct mr_bench_result result;
    struct mr_draw_plan whole = {o->data, o->now, 1, MR_FROM_STORAGE, o->storage, 0};
    double warm_read_cpu = 0;
    cpu_set_t set;
    f.cores = sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
    int r = measure_one_sample(o, &f, &warm_read_cpu, err);
    if (!r)
        r = measure_curve(o, MR_MOST_THREADS, &f, err);
    mr_advice_say(o, "everything cold");
    whole.expected_per_s = 2 * f.one_decoded; /* it may have been a large one */
    if (!r)
        r = mr_draw_run(o, &whole, &result, err);
    /* Last, as what others do on this machine changes: right before it is relied on. */
    if (!r)
        r = measure_cpu(o, &f, err);
    if (r)
        return r;
    add_reading(&f, warm_read_cpu);
    f.cold = result.per_s;
    f.cold_proof = result.cold;
    f.stats = result.stats;
    f.cold_s = result.median.seconds;
    f.file_bytes = (double)result.stats.delivered_bytes /
                   (double)(result.stats.samples ? result.stats.samples : 1);
    *out = f;
    return 0;
}

int mr_findings_control(const struct mr_advice_opts *o, const struct mr_findings *f,
                        struct mr_control *out, struct mr_error *err)
{
    struct mr_setup one_each = {.threads = f->cores};
    struct warm_run run;
    double read_cpu_s;
    int r = read_all(o, f, &read_cpu_s, err);
    if (!r)
        r = measure_warm(o, f, one_each, &run, err);
    if (!r)
        *out = (struct mr_control){run.per_s / f->warm, run.device_bytes};
    return r;
}

/* The curve ends where twice as many reads yield no more, or at the largest number tried.  Reads
 * that use up the cores say nothing about the storage. */
struct mr_read_ceiling mr_findings_ceiling(const struct mr_findings *f)
{
    const struct mr_read_curve *c = &f->curve;
    unsigned n = c->n;
    struct mr_read_ceiling most = {.bytes_per_s = fmax(f->fetched, f->cold) * f->file_bytes};
    if (!n)
        return (struct mr_read_ceiling){.open = 1};
    most.reads = (unsigned)c->depth[n - 1];
    most.open = n < 2 || c->per_s[n - 1] >= FLAT * c->per_s[n - 2] ||
                f->fetched * f->read_cpu_s > BUSY * f->cores;
    return most;
}

/* Waiting for a storage takes as long as before, also the part that is spent on a core. */
void mr_findings_speed_up(struct mr_findings *f, double times)
{
    double less = 1 - 1 / times;
    f->image_cpu_s -= f->warm_cpu_s * less;
    f->warm_cpu_s -= f->warm_cpu_s * less;
    f->crowded_cpu_s -= f->crowded_cpu_s * less;
    f->ring_cpu_s -= f->ring_cpu_s * less;
    f->read_cpu_s = fmin(f->read_cpu_s, f->image_cpu_s);
    f->warm *= times;
}

int mr_findings_retake(const struct mr_advice_opts *o, double file_bytes, unsigned most_reads,
                       const struct mr_findings *before, struct mr_findings *out,
                       struct mr_error *err)
{
    struct mr_findings f = *before;
    struct mr_setup one_each = {.threads = f.cores};
    struct warm_run run;
    double warm_read_cpu = 0;
    f.curve.n = 0;
    f.proof = NULL;
    f.file_bytes = file_bytes;
    int r = measure_curve(o, most_reads, &f, err);
    if (!r)
        r = warm_up(o, &f, &warm_read_cpu, err);
    if (!r)
        r = measure_warm(o, &f, one_each, &run, err);
    if (r)
        return r;
    f.warm = run.per_s;
    f.warm_cpu_s = run.cpu_s;
    /* A worker that loses its core in the middle of an image loses less of a short one. */
    double times = before->warm_cpu_s > 0 ? before->crowded_cpu_s / before->warm_cpu_s : 1;
    f.crowded_cpu_s = times * f.warm_cpu_s;
    add_reading(&f, warm_read_cpu);
    *out = f;
    return 0;
}
