/* exp_verdict.c - what limits, what should change, what it would gain, and how many accelerators
 * this machine feeds.
 *
 * Differential runs on the real storage take a step apart: one sample again and again without
 * decoding is the hand-over, with decoding also the CPU; the files cold and not decoded are
 * fetching; all of it cold is what the accelerator gets.  From the same runs comes the curve of
 * reads under way against files a second, and with it a prediction for every configuration; the
 * best one is then run. */
#include "lab.h"

#include "errtext.h"
#include "microbench.h"
#include "predict.h"
#include "verdict.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ACCELERATOR "emulated:resnet50-h100"
#define NAMES       64 /* lines of the list of one sample */
#define FEW_BATCHES 24

static const char *const accelerators[] = {"resnet50-v100", "resnet50-a100", "resnet50-h100"};

struct findings {
    struct mr_accelerator_spec device;
    unsigned batch, cores;
    double need;                                        /* images/s of one accelerator */
    double hand_over, one_decoded, warm, fetched, cold; /* images/s */
    double image_cpu_s;
    struct mr_read_curve curve;
    struct mr_pipeline_stats stats; /* of the cold run */
    double cold_s;
};

struct config {
    enum mr_engine engine;
    unsigned threads, io_depth;
};

static struct mr_decoder_opts decoder = {.width = 224, .height = 224};

/* One run of a few batches; the rate in images/s, with its CPU time and stats if wanted. */
static int rate(struct mr_lab *lab, struct mr_dataset *data, const struct config *c, int decode,
                int cold, double *per_s, struct mr_bench_result *keep)
{
    struct mr_bench_result result;
    struct mr_error err = {0};
    uint64_t n = mr_dataset_size(data);
    unsigned batch = n < 64 ? (unsigned)n : 64;
    struct mr_bench_opts b = {
        .data = data,
        .pipe = {.engine = c->engine,
                 .threads = c->threads,
                 .io_depth = c->io_depth,
                 .batch = batch,
                 .prefetch = 1,
                 .epochs = n / batch < FEW_BATCHES ? (unsigned)(FEW_BATCHES * batch / n + 1) : 1,
                 .seed = lab->o->seed,
                 .batches = lab->o->full ? 0 : FEW_BATCHES,
                 .decode = decode ? &decoder : NULL,
                 .should_stop = lab->o->should_stop,
                 .should_stop_ctx = lab->o->ctx},
        .runs = lab->o->runs,
        .cold = cold,
    };
    int r = mr_microbench_run(&b, &result, &err);
    if (!r)
        *per_s = result.per_s;
    else
        mr_fail(lab->err, r, "%s", err.text);
    if (keep && !r) {
        *keep = result;
        keep->run = NULL;
    }
    mr_bench_result_fini(&result);
    return r;
}

/* A data set that is one file, many times: it is cached after the first read. */
static int open_one_sample(struct mr_lab *lab, struct mr_dataset **out)
{
    char dir[PATH_MAX], list[PATH_MAX + 16], path[PATH_MAX];
    int r = mr_dataset_path(lab->o->data, mr_dataset_size(lab->o->data) / 2, path, sizeof path);
    if (r < 0)
        return mr_fail(lab->err, r, "the data set has no files");
    r = mr_lab_make_dir(lab, "one", dir, sizeof dir);
    if (r)
        return r;
    char *absolute = realpath(path, NULL);
    snprintf(list, sizeof list, "%s/list.csv", dir);
    FILE *f = absolute ? fopen(list, "we") : NULL;
    if (!f) {
        r = mr_fail(lab->err, -errno, "%s: %s", list, mr_errno_text(errno));
    } else {
        for (unsigned i = 0; i < NAMES; i++) {
            fputc('"', f);
            for (const char *s = absolute; *s; s++)
                fprintf(f, *s == '"' ? "\"\"" : "%c", *s);
            fprintf(f, "\",0\n");
        }
        r = fclose(f) ? mr_fail(lab->err, -errno, "%s: %s", list, mr_errno_text(errno))
                      : mr_dataset_open(list, out, lab->err);
    }
    free(absolute);
    mr_lab_remove_dir(dir);
    return r;
}

static int measure_curve(struct mr_lab *lab, struct findings *f)
{
    static const unsigned depths[] = {1, 2, 4, 8};
    for (unsigned i = 0; i < 4; i++) {
        struct config c = {MR_ENGINE_THREADS, depths[i], 0};
        double per_s = NAN;
        mr_lab_say(lab, "fetching, %u reads at once", depths[i]);
        int r = rate(lab, lab->o->data, &c, 0, 1, &per_s, NULL);
        if (r)
            return r;
        unsigned n = f->curve.n;
        if (n && per_s <= f->curve.per_s[n - 1])
            per_s = f->curve.per_s[n - 1] * 1.0001; /* more reads at once do no harm */
        f->curve.depth[n] = depths[i];
        f->curve.per_s[n] = per_s;
        f->curve.n++;
    }
    f->fetched = f->curve.per_s[f->curve.n - 1];
    return 0;
}

/* How long an image holds a core.  Cached and decoded, images keep every core busy, so it is what
 * the rate says: CPU time, and the time that others on this machine, or its host, take away. */
static double core_time(const struct findings *f, const struct mr_bench_run *warm)
{
    return fmax(warm->cpu_s / (double)warm->samples, f->cores / f->warm);
}

static int take_apart(struct mr_lab *lab, struct findings *f)
{
    struct mr_dataset *one = NULL;
    struct mr_bench_result result;
    struct config c = {MR_ENGINE_THREADS, f->cores, 0};
    int r = open_one_sample(lab, &one);
    if (!r) {
        mr_lab_say(lab, "one sample, not decoded");
        r = rate(lab, one, &c, 0, 0, &f->hand_over, NULL);
    }
    if (!r) {
        mr_lab_say(lab, "one sample, decoded");
        r = rate(lab, one, &c, 1, 0, &f->one_decoded, NULL);
    }
    if (!r) {
        mr_lab_say(lab, "everything warm");
        r = rate(lab, lab->o->data, &c, 1, 0, &f->warm, &result);
        if (!r)
            f->image_cpu_s = core_time(f, &result.median);
    }
    if (!r)
        r = measure_curve(lab, f);
    if (!r) {
        mr_lab_say(lab, "everything cold");
        r = rate(lab, lab->o->data, &c, 1, 1, &f->cold, &result);
        if (!r) {
            f->stats = result.stats;
            f->cold_s = result.median.seconds;
        }
    }
    mr_dataset_unref(one);
    return r;
}

static double predict(const struct findings *f, const struct config *c)
{
    struct mr_predict_input in = {.storage = f->curve,
                                  .image_cpu_s = f->image_cpu_s,
                                  .cores = f->cores,
                                  .workers = c->threads,
                                  .io_depth = c->engine == MR_ENGINE_URING ? c->io_depth : 0,
                                  .batch = f->batch,
                                  .prefetch = 1};
    return mr_predict_input_rate(&in);
}

/* The configuration with the highest prediction; the simplest of equals. */
static struct config best_config(const struct findings *f, int with_ring)
{
    struct config best = {MR_ENGINE_THREADS, f->cores, 0};
    double most = predict(f, &best);
    for (unsigned k = 1; k <= 4; k *= 2) {
        struct config c = {MR_ENGINE_THREADS, k * f->cores, 0};
        if (predict(f, &c) > 1.03 * most) {
            most = predict(f, &c);
            best = c;
        }
    }
    struct config ring = {MR_ENGINE_URING, f->cores, 8 * f->cores};
    return with_ring && predict(f, &ring) > 1.03 * most ? ring : best;
}

static void judge(struct mr_lab *lab, const struct findings *f, struct mr_verdict *v)
{
    double step = f->batch / f->need, input = f->batch / f->cold;
    double wait = input > step ? input - step : 0;
    uint64_t n = f->stats.samples ? f->stats.samples : 1;
    double per_image = f->cold_s / (double)n;
    struct mr_verdict_input in = {
        .seconds = step + wait,
        .input_wait_s = wait,
        .steps = 1,
        .samples = f->batch,
        .bytes = (uint64_t)((double)f->stats.delivered_bytes / (double)n * f->batch),
        .workers = f->cores,
        .cores = f->cores,
        .prefetch = 1,
        .depth = f->cores,
        /* What the workers do during a step that waits for input is what they did in the cold run.
         */
        .read_s = f->stats.read_s / (double)n * f->batch * (step + wait) / (per_image * f->batch),
        .map_s = (f->stats.decode_s + f->stats.resize_s) / (double)n * f->batch * (step + wait) /
                 (per_image * f->batch),
        .ceiling_bytes_per_s = lab->random_mb_per_s * 1e6,
        .reads_hold_workers = 1,
    };
    if (!isfinite(in.ceiling_bytes_per_s))
        in.ceiling_bytes_per_s = 0;
    mr_verdict_judge(&in, v);
}

static struct mr_json *sizing(const struct findings *f)
{
    struct mr_json *list = mr_json_array();
    for (unsigned i = 0; i < 3; i++) {
        struct mr_accelerator_spec a;
        char name[64];
        snprintf(name, sizeof name, "emulated:%s", accelerators[i]);
        if (mr_accelerator_spec_parse(name, &a, NULL))
            continue;
        double need = a.own_batch / mr_accelerator_spec_seconds(&a, a.own_batch);
        double by_storage = f->fetched / need, by_cores = f->cores / f->image_cpu_s / need;
        struct mr_json *o = mr_json_object();
        mr_json_set(o, "accelerator", mr_json_string(accelerators[i]));
        mr_json_set(o, "images_per_s_each", mr_json_real(need));
        mr_json_set(o, "by_storage", mr_json_real(by_storage));
        mr_json_set(o, "by_cores", mr_json_real(by_cores));
        mr_json_set(o, "feeds", mr_json_real(floor(fmin(by_storage, by_cores))));
        mr_json_append(list, o);
    }
    return list;
}

/* How many accelerators `x` of something would feed, for x up to twice what is here. */
static struct mr_json *curves(const struct findings *f, double image_bytes, int over_cores)
{
    struct mr_json *list = mr_json_array();
    for (unsigned i = 0; i < 3; i++) {
        struct mr_accelerator_spec a;
        char name[64];
        snprintf(name, sizeof name, "emulated:%s", accelerators[i]);
        if (mr_accelerator_spec_parse(name, &a, NULL))
            continue;
        double need = a.own_batch / mr_accelerator_spec_seconds(&a, a.own_batch);
        double by_cores = f->cores / f->image_cpu_s;
        struct mr_json *o = mr_json_object(), *curve = mr_json_array();
        for (unsigned k = 0; k <= 16; k++) {
            double x = over_cores ? 4.0 * k : 2 * by_cores * image_bytes / 1e6 * k / 16;
            double images = over_cores ? fmin(x / f->image_cpu_s, f->fetched)
                                       : fmin(x * 1e6 / image_bytes, by_cores);
            struct mr_json *p = mr_json_array();
            mr_json_append(p, mr_json_real(x));
            mr_json_append(p, mr_json_real(images / need));
            mr_json_append(curve, p);
        }
        mr_json_set(o, "accelerator", mr_json_string(accelerators[i]));
        mr_json_set(o, "curve", curve);
        mr_json_append(list, o);
    }
    return list;
}

/* Run the recommended configuration, and set prediction and measurement side by side. */
static int recommend(struct mr_lab *lab, const struct findings *f, struct mr_json *to)
{
    struct config c = best_config(f, 1), now = {MR_ENGINE_THREADS, f->cores, 0};
    double predicted = predict(f, &c), measured = NAN;
    char text[300], change[96];
    mr_lab_say(lab, "the recommended configuration");
    int r = rate(lab, lab->o->data, &c, 1, 1, &measured, NULL);
    if (r == -ENOTSUP && c.engine == MR_ENGINE_URING) {
        mr_lab_warn(lab, "The io_uring engine is not available here: %s", lab->err->text);
        *lab->err = (struct mr_error){0};
        c = best_config(f, 0);
        predicted = predict(f, &c);
        r = rate(lab, lab->o->data, &c, 1, 1, &measured, NULL);
    }
    if (r)
        return r;
    if (c.engine == MR_ENGINE_URING)
        snprintf(change, sizeof change, "--engine uring --io-depth %u --threads %u", c.io_depth,
                 c.threads);
    else
        snprintf(change, sizeof change, "--threads %u", c.threads);
    double gain = predicted / predict(f, &now) - 1;
    if (gain < 0.03)
        snprintf(
            text, sizeof text,
            "One worker per core (%s) is as good as any configuration here; what would help is "
            "%s.",
            change,
            f->fetched < f->cores / f->image_cpu_s ? "faster storage"
                                                   : "more cores, or smaller stored images");
    else
        snprintf(text, sizeof text, "Use %s: %.0f%% more images/s are predicted.", change,
                 100 * gain);
    mr_json_set(to, "text", mr_json_string(text));
    mr_json_set(to, "change", mr_json_string(change));
    mr_json_set(to, "predicted_images_per_s", mr_json_real(predicted));
    mr_json_set(to, "measured_images_per_s", mr_json_real(measured));
    mr_json_set(to, "error", mr_json_real(fabs(predicted / measured - 1)));
    return 0;
}

/* The differential runs, images/s. */
static struct mr_json *rates_json(const struct findings *f)
{
    struct mr_json *o = mr_json_object();
    mr_json_set(o, "one_sample_read", mr_json_real(f->hand_over));
    mr_json_set(o, "one_sample_decoded", mr_json_real(f->one_decoded));
    mr_json_set(o, "warm", mr_json_real(f->warm));
    mr_json_set(o, "cold_read", mr_json_real(f->fetched));
    mr_json_set(o, "cold", mr_json_real(f->cold));
    return o;
}

int mr_exp_verdict(struct mr_lab *lab)
{
    static const char *const ratings[] = {"fine", "moderate", "high"};
    struct findings f = {.cold = NAN};
    struct mr_verdict v;
    cpu_set_t set;
    f.cores = sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
    int r = mr_accelerator_spec_parse(ACCELERATOR, &f.device, lab->err);
    if (r)
        return r;
    f.batch = f.device.own_batch;
    f.need = f.batch / mr_accelerator_spec_seconds(&f.device, f.batch);
    mr_lab_command(lab, "millrace train --data %s --device %s --cold", lab->o->data_path,
                   ACCELERATOR);
    struct mr_json *p = mr_json_object(), *advice = mr_json_object();
    r = take_apart(lab, &f);
    if (!r)
        r = recommend(lab, &f, advice);
    if (r) {
        mr_json_free(p);
        mr_json_free(advice);
        return r;
    }
    judge(lab, &f, &v);
    char text[600];
    snprintf(text, sizeof text,
             "This machine delivers %.0f images/s; one accelerator (%s) takes %.0f. %s", f.cold,
             accelerators[2], f.need, v.text);
    double per_batch = f.batch;
    mr_json_set(p, "device", mr_json_string(ACCELERATOR));
    mr_json_set(p, "limit", mr_json_string(mr_limit_name(v.limit)));
    mr_json_set(p, "rating", mr_json_string(ratings[v.rating]));
    mr_json_set(p, "text", mr_json_string(text));
    mr_json_set(p, "step_s", mr_json_real(per_batch / f.cold));
    mr_json_set(p, "fetch_s", mr_json_real(per_batch / f.fetched));
    mr_json_set(p, "decode_s", mr_json_real(fmax(per_batch / f.warm - per_batch / f.hand_over, 0)));
    mr_json_set(p, "hand_over_s", mr_json_real(per_batch / f.hand_over));
    mr_json_set(p, "compute_s", mr_json_real(per_batch / f.need));
    mr_json_set(p, "image_cpu_s", mr_json_real(f.image_cpu_s));
    mr_json_set(p, "rates", rates_json(&f));
    mr_json_set(p, "recommendation", advice);
    mr_json_set(p, "sizing", sizing(&f));
    mr_json_set(p, "by_bandwidth", curves(&f, lab->image_bytes, 0));
    mr_json_set(p, "by_cores", curves(&f, lab->image_bytes, 1));
    mr_lab_point(lab, p);
    return 0;
}
