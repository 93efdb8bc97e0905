/* advice.c - see advice.h.
 *
 * Differential runs take a step apart: one sample again and again without decoding is the
 * hand-over, with decoding also the CPU; the files cold and not decoded are fetching; all of it
 * cold is what the consumer gets.  From the same runs come the curve of reads under way against
 * files a second and the time that an image holds a core, and with these predict.c's simulation
 * plays every candidate.  More of something is recommended only when that predicts a gain, so of
 * equals the one that is nearest to the present wins.
 *
 * On an emulated storage every byte is charged, cached or not, so nothing is evicted there, and a
 * run may go through the data several times.  The real one is read cold, once, and no more of it is
 * evicted than a run can touch: the data set may have millions of files. */
#include "advice.h"

#include "cache_sweep.h"
#include "device.h"
#include "errtext.h"
#include "image_spread.h"
#include "microbench.h"
#include "repeat.h"
#include "trainer.h"
#include "wake_delay.h"

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
#define COLD_PER_S   8192 /* so many for each second: it may be a huge set, and all are evicted */
#define GAIN         1.03 /* below it a change is not worth its trouble */
#define FLAT         1.05 /* a curve that twice rises by less than that has ended */
#define MOST_THREADS 32
#define MOST_STEPS   400
#define RING_DEPTH   8 /* reads under way a core, and twice as many */
#define CROWD        2 /* workers a core, when they are to take turns */
#define SPIN_S       (MR_DEVICE_SPIN_NS / 1e9)

static void say(const struct mr_advice_opts *o, const char *what)
{
    if (o->say)
        o->say(o->ctx, what);
}

/* ---- runs ---- */

struct draw {
    struct mr_dataset *data;
    struct mr_setup setup;
    int decode;
    enum { FROM_CACHE, FROM_STORAGE } from;
    struct mr_device *storage; /* FROM_STORAGE; NULL = the real one */
};

/* Batches under way with room for twice as many samples as there are reads or workers. */
static unsigned enough_prefetch(unsigned batch, unsigned under_way)
{
    unsigned batches = (2 * under_way + batch - 1) / batch;
    return batches > 2 ? batches - 1 : 1;
}

static void fill_in(const struct mr_advice_opts *o, const struct mr_setup *s,
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

/* Draw batches as fast as they come. */
static int draw(const struct mr_advice_opts *o, const struct draw *d, struct mr_bench_result *keep,
                struct mr_error *err)
{
    struct mr_error own = {0};
    struct mr_bench_opts b = {.data = d->data, .runs = o->runs, .box_s = o->box_s};
    uint64_t n = mr_dataset_size(d->data);
    fill_in(o, &d->setup, &b.pipe);
    b.pipe.decode = d->decode ? o->decode : NULL;
    b.pipe.storage = d->from == FROM_STORAGE ? d->storage : NULL;
    b.cold = d->from == FROM_STORAGE && !d->storage;
    b.pipe.epochs = b.cold || o->box_s <= 0 ? 1 : (unsigned)(1000000 / n + 1);
    if (d->from == FROM_CACHE && n > WARM_SAMPLES)
        b.pipe.batches = WARM_SAMPLES / d->setup.batch + 1;
    else if (b.cold)
        b.pipe.batches = (uint64_t)(COLD_PER_S * o->box_s + COLD_SAMPLES) / d->setup.batch + 1;
    b.touched = b.pipe.batches * d->setup.batch;
    int r = mr_microbench_run(&b, keep, &own);
    if (r)
        mr_fail(err, r, "%s", own.text);
    mr_bench_result_fini(keep);
    keep->run = NULL;
    return r;
}

/* What so many steps can touch. */
static int evict(const struct mr_advice_opts *o, const struct mr_train_opts *t)
{
    struct mr_cache_sweep sweep = {0};
    uint64_t ahead = t->pipe.prefetch == MR_NONE ? 1 : t->pipe.prefetch + 1;
    return mr_cache_sweep_first(&sweep, o->data, &t->pipe, (t->steps + ahead) * t->pipe.batch, 1);
}

/* One run with somebody who trains; the first step, for which nothing could be fetched before, is
 * left out. */
static int train_once(const struct mr_advice_opts *o, const struct mr_train_opts *t, double *per_s,
                      struct mr_error *err)
{
    struct mr_train_result result;
    double seconds = 0;
    int r = t->pipe.storage ? 0 : evict(o, t);
    if (r)
        return r;
    r = mr_train_run(t, &result, err);
    for (uint64_t i = 1; !r && i < result.steps; i++)
        seconds += result.step[i].step_s;
    if (!r && result.steps < 2)
        r = mr_fail(err, -ENODATA, "the data set is too small to train on");
    if (!r)
        *per_s = (double)(result.steps - 1) * t->pipe.batch / seconds;
    mr_train_result_fini(&result);
    return r;
}

static int train(const struct mr_advice_opts *o, const struct mr_setup *s,
                 struct mr_device *storage, double expected_per_s, double *per_s,
                 struct mr_error *err)
{
    double n = o->runs * o->box_s * expected_per_s / s->batch, rates[3];
    struct mr_train_opts t = {.data = o->data,
                              .decode = *o->decode,
                              .device = {.kind = MR_EMULATED, .step_s = o->step_s, .n = 1},
                              .steps = 1 + (uint64_t)fmin(fmax(n / 3, 6), MOST_STEPS)};
    struct mr_summary sum;
    fill_in(o, s, &t.pipe);
    t.pipe.storage = storage;
    t.epochs = (unsigned)(t.steps * s->batch / mr_dataset_size(o->data) + 2);
    snprintf(t.device.name, sizeof t.device.name, "emulated:%g", o->step_s);
    for (unsigned i = 0; i < 3; i++) {
        int r = train_once(o, &t, &rates[i], err);
        if (r)
            return r;
    }
    int r = mr_summarize(rates, 3, &sum);
    if (!r)
        *per_s = sum.median;
    return r ? mr_fail(err, r, "no memory") : 0;
}

/* ---- taking apart ---- */

/* A data set that is one file, many times: it is cached after the first read. */
static int open_one_sample(const struct mr_advice_opts *o, struct mr_dataset **out,
                           struct mr_error *err)
{
    char list[PATH_MAX], path[PATH_MAX], absolute[PATH_MAX];
    int r = mr_dataset_path(o->data, mr_dataset_size(o->data) / 2, path, sizeof path);
    if (r < 0)
        return mr_fail(err, r, "the data set has no files");
    if (snprintf(list, sizeof list, "%s/one-sample.csv", o->scratch) >= (int)sizeof list)
        return mr_fail(err, -ENAMETOOLONG, "%s: the path is too long", o->scratch);
    if (!realpath(path, absolute))
        return mr_fail(err, -errno, "%s: %s", path, mr_errno_text(errno));
    FILE *f = fopen(list, "we");
    if (!f)
        return mr_fail(err, -errno, "%s: %s", list, mr_errno_text(errno));
    for (unsigned i = 0; i < NAMES; i++) {
        fputc('"', f);
        for (const char *s = absolute; *s; s++)
            fprintf(f, *s == '"' ? "\"\"" : "%c", *s);
        fprintf(f, "\",0\n");
    }
    r = fclose(f) ? mr_fail(err, -errno, "%s: %s", list, mr_errno_text(errno))
                  : mr_dataset_open(list, out, err);
    unlink(list);
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

static int measure_curve(const struct mr_advice_opts *o, struct mr_findings *f,
                         struct mr_error *err)
{
    unsigned n_flat = 0;
    for (unsigned depth = 1; depth <= MOST_THREADS && n_flat < 2; depth *= 2) {
        struct mr_setup s = {.threads = depth, .batch = o->now.batch};
        struct draw d = {o->data, s, 0, FROM_STORAGE, o->storage};
        struct mr_bench_result result;
        char what[64];
        d.setup.prefetch = enough_prefetch(s.batch, depth);
        snprintf(what, sizeof what, "fetching, %u reads at once", depth);
        say(o, what);
        int r = draw(o, &d, &result, err);
        if (r)
            return r;
        n_flat = f->curve.n && result.per_s < FLAT * f->fetched ? n_flat + 1 : 0;
        add_to_curve(&f->curve, depth, result.per_s);
        f->fetched = f->curve.per_s[f->curve.n - 1];
        f->proof = result.cold;
        if (depth == 1)
            f->read_cpu_s = cpu_each(&result);
    }
    return 0;
}

/* Everything from the cache and decoded.  Images keep every core busy then, so how long one holds a
 * core is what the rate says: CPU time, and the time that others on this machine, or its host, take
 * away. */
static int measure_warm(const struct mr_advice_opts *o, const struct mr_findings *f,
                        struct mr_setup s, double *per_s, double *cpu_s, struct mr_error *err)
{
    struct draw d = {o->data, s, 1, FROM_CACHE, NULL};
    struct mr_bench_result result;
    unsigned under_way = s.engine == MR_ENGINE_URING ? s.io_depth : s.threads;
    d.setup.batch = o->now.batch;
    d.setup.prefetch = enough_prefetch(o->now.batch, under_way);
    int r = draw(o, &d, &result, err);
    if (r)
        return r;
    *per_s = result.per_s;
    *cpu_s = fmax(cpu_each(&result), f->cores / result.per_s);
    return 0;
}

/* By io_uring, where there is one. */
static int measure_ring(const struct mr_advice_opts *o, struct mr_findings *f, struct mr_error *err)
{
    struct mr_setup s = {MR_ENGINE_URING, f->cores, RING_DEPTH * f->cores, 0, 0};
    struct mr_error own = {0};
    double per_s, cpu_s;
    say(o, "everything warm, io_uring");
    int r = measure_warm(o, f, s, &per_s, &cpu_s, &own);
    if (r)
        return r == -ENOTSUP ? 0 : mr_fail(err, r, "%s", own.text);
    f->ring_cpu_s = fmax(cpu_s - f->warm_cpu_s, 0);
    return 0;
}

/* With a worker for each core, by a ring, and with more workers than cores, as is good for slow
 * storage.  Workers that take turns cost something: caches, switching, and batches that wait for a
 * worker which lost its core in the middle of a sample. */
static int measure_cpu(const struct mr_advice_opts *o, struct mr_findings *f, struct mr_error *err)
{
    struct mr_setup one_each = {.threads = f->cores, .batch = o->now.batch};
    struct mr_setup crowd = {.threads = CROWD * f->cores};
    struct draw read = {o->data, one_each, 0, FROM_CACHE, NULL};
    struct mr_advice_opts once = *o;
    struct mr_bench_result result;
    struct mr_wake_delay *wake = NULL;
    double crowded;
    once.runs = 1;
    once.box_s = 0;
    read.setup.prefetch = enough_prefetch(one_each.batch, f->cores);
    say(o, "everything warm");
    int r = draw(&once, &read, &result, err); /* so that it is */
    if (!r && mr_image_spread(o->data, o->decode, o->box_s, &f->spread))
        r = mr_fail(err, -ENOMEM, "no memory");
    if (!r && mr_wake_delay_begin(&wake))
        r = mr_fail(err, -ENOMEM, "no memory for a thread");
    if (!r)
        r = measure_warm(o, f, one_each, &f->warm, &f->warm_cpu_s, err);
    f->wake_s = mr_wake_delay_end(wake);
    if (!r)
        r = measure_ring(o, f, err);
    say(o, "everything warm, more workers than cores");
    if (!r)
        r = measure_warm(o, f, crowd, &crowded, &f->crowded_cpu_s, err);
    /* Taking turns is never cheaper; a measurement of it may be lucky. */
    f->crowded_cpu_s = fmax(f->crowded_cpu_s, f->warm_cpu_s);
    return r;
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
    struct draw d = {one, s, 0, FROM_CACHE, NULL};
    d.setup.prefetch = enough_prefetch(s.batch, f->cores);
    say(o, "one sample, not decoded");
    r = draw(o, &d, &result, err);
    if (!r) {
        f->hand_over = result.per_s;
        *read_cpu_s = cpu_each(&result);
        d.decode = 1;
        say(o, "one sample, decoded");
        r = draw(o, &d, &result, err);
    }
    if (!r)
        f->one_decoded = result.per_s;
    mr_dataset_unref(one);
    return r;
}

int mr_findings_take(const struct mr_advice_opts *o, struct mr_findings *out, struct mr_error *err)
{
    struct mr_findings f = {0};
    struct mr_bench_result result;
    struct draw whole = {o->data, o->now, 1, FROM_STORAGE, o->storage};
    double warm_read_cpu = 0;
    cpu_set_t set;
    f.cores = sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
    int r = measure_one_sample(o, &f, &warm_read_cpu, err);
    if (!r)
        r = measure_curve(o, &f, err);
    say(o, "everything cold");
    if (!r)
        r = draw(o, &whole, &result, err);
    /* Last, as what others do on this machine changes: right before it is relied on. */
    if (!r)
        r = measure_cpu(o, &f, err);
    if (r)
        return r;
    /* Reading from the storage takes more CPU time than copying from the cache does. */
    f.image_cpu_s = f.warm_cpu_s + fmax(f.read_cpu_s - warm_read_cpu, 0);
    f.read_cpu_s = fmin(f.read_cpu_s, f.image_cpu_s);
    f.cold = result.per_s;
    f.stats = result.stats;
    f.cold_s = result.median.seconds;
    f.file_bytes = (double)result.stats.delivered_bytes /
                   (double)(result.stats.samples ? result.stats.samples : 1);
    *out = f;
    return 0;
}

/* ---- advice ---- */

struct search {
    const struct mr_advice_opts *o;
    const struct mr_findings *f;
    struct mr_device *tier; /* the storage instead of the present one */
    struct mr_setup best;
    double most;
    int error; /* the first */
};

/* A read from another storage takes what its profile says. */
static void on_tier(const struct search *s, struct mr_predict_input *in)
{
    mr_predict_curve(mr_device_profile_of(s->tier), s->f->file_bytes, &in->storage);
    in->read_cpu_s = fmin(1 / in->storage.per_s[0], SPIN_S);
    in->image_cpu_s = s->f->warm_cpu_s + in->read_cpu_s;
}

/* A worker that waits for an emulated storage spends the last moment of it on a core.  With a ring
 * it has other samples to map meanwhile, and need not. */
static void leave_spinning_out(struct mr_predict_input *in, double warm_cpu_s)
{
    double spun = fmin(fmin(in->read_cpu_s, SPIN_S), fmax(in->image_cpu_s - warm_cpu_s, 0));
    in->image_cpu_s -= spun;
    in->read_cpu_s -= spun;
}

static int predict(const struct search *s, const struct mr_setup *c, double *per_s)
{
    const struct mr_findings *f = s->f;
    struct mr_predict_input in = {.storage = f->curve,
                                  .spread = f->spread,
                                  .image_cpu_s = f->image_cpu_s,
                                  .read_cpu_s = f->read_cpu_s,
                                  .wake_s = f->wake_s,
                                  .cores = f->cores,
                                  .workers = c->threads,
                                  .io_depth = c->engine == MR_ENGINE_URING ? c->io_depth : 0,
                                  .batch = c->batch,
                                  .prefetch = c->prefetch,
                                  .step_s = s->o->step_s};
    if (s->tier)
        on_tier(s, &in);
    if (in.io_depth && (s->tier || s->o->storage))
        leave_spinning_out(&in, f->warm_cpu_s);
    if (in.io_depth)
        in.image_cpu_s += f->ring_cpu_s;
    if (c->threads > f->cores)
        in.image_cpu_s += f->crowded_cpu_s - f->warm_cpu_s;
    return mr_predict_rate(&in, per_s);
}

static void consider(struct search *s, struct mr_setup c)
{
    double rate;
    int r = s->error ? s->error : predict(s, &c, &rate);
    s->error = r;
    if (!r && rate > GAIN * s->most) {
        s->best = c;
        s->most = rate;
    }
}

static void consider_reads(struct search *s, struct mr_setup c)
{
    unsigned room = enough_prefetch(c.batch, c.engine == MR_ENGINE_URING ? c.io_depth : c.threads);
    if (c.prefetch < room)
        c.prefetch = room;
    consider(s, c);
}

/* Every candidate: the present one first, then more threads, then io_uring.  A batch is handed on
 * when its last sample is there, so with scarcely room for the reads under way places stay empty:
 * there is always plenty. */
static void search(struct search *s, int with_ring)
{
    const struct mr_setup *now = &s->o->now;
    unsigned cores = s->f->cores;
    s->best = *now;
    s->error = predict(s, now, &s->most);
    consider_reads(s, *now);
    for (unsigned n = cores; n <= MOST_THREADS && n <= 8 * cores; n *= 2)
        if (n > now->threads || now->engine != MR_ENGINE_THREADS)
            consider_reads(
                s, (struct mr_setup){.threads = n, .batch = now->batch, .prefetch = now->prefetch});
    for (unsigned depth = RING_DEPTH * cores; with_ring && depth <= 2 * RING_DEPTH * cores;
         depth *= 2)
        consider_reads(s, (struct mr_setup){.engine = MR_ENGINE_URING,
                                            .threads = cores,
                                            .io_depth = depth,
                                            .batch = now->batch,
                                            .prefetch = now->prefetch});
}

/* What to change; another storage only where no other change helps. */
static int choose(const struct mr_advice_opts *o, const struct mr_findings *f, int with_ring,
                  struct mr_advice *out)
{
    struct search s = {.o = o, .f = f};
    int r = predict(&s, &o->now, &out->now_per_s);
    if (!r)
        search(&s, with_ring);
    out->on_tier = 0;
    if (!r && !s.error && o->tier && s.most <= GAIN * out->now_per_s) {
        struct search t = {.o = o, .f = f, .tier = o->tier};
        search(&t, with_ring);
        if (t.error || t.most > GAIN * s.most) {
            s = t;
            out->on_tier = 1;
        }
    }
    out->best = s.best;
    out->predicted_per_s = s.most;
    return r ? r : s.error;
}

static int run_best(const struct mr_advice_opts *o, struct mr_advice *a, struct mr_error *err)
{
    struct mr_device *storage = a->on_tier ? o->tier : o->storage;
    struct draw d = {o->data, a->best, 1, FROM_STORAGE, storage};
    struct mr_bench_result result;
    if (o->step_s > 0)
        return train(o, &a->best, storage, a->predicted_per_s, &a->measured_per_s, err);
    int r = draw(o, &d, &result, err);
    if (!r)
        a->measured_per_s = result.per_s;
    return r;
}

int mr_advice_prove(const struct mr_advice_opts *o, const struct mr_findings *f,
                    struct mr_advice *out, struct mr_error *err)
{
    struct mr_advice a = {.measured_per_s = NAN};
    struct mr_error own = {0};
    if (choose(o, f, 1, &a))
        return mr_fail(err, -ENOMEM, "no memory");
    say(o, "the recommended configuration");
    int r = run_best(o, &a, &own);
    if (r == -ENOTSUP && a.best.engine == MR_ENGINE_URING) {
        a.without_ring = own;
        if (choose(o, f, 0, &a))
            return mr_fail(err, -ENOMEM, "no memory");
        r = run_best(o, &a, &own);
    }
    if (r)
        return mr_fail(err, r, "%s", own.text);
    *out = a;
    return 0;
}

void mr_advice_text(const struct mr_advice_opts *o, const struct mr_advice *a, char *text,
                    size_t cap)
{
    const struct mr_setup *b = &a->best;
    int n = b->engine == MR_ENGINE_URING
                ? snprintf(text, cap, "--engine uring --io-depth %u --threads %u", b->io_depth,
                           b->threads)
                : snprintf(text, cap, "--threads %u", b->threads);
    if (b->prefetch != o->now.prefetch && n >= 0 && (size_t)n < cap)
        n += snprintf(text + n, cap - (size_t)n, " --prefetch %u", b->prefetch);
    if (a->on_tier && n >= 0 && (size_t)n < cap)
        snprintf(text + n, cap - (size_t)n, " --storage %s", mr_device_name(o->tier));
}
