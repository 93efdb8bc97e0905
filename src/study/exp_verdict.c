/* exp_verdict.c - what limits, what should change, what it would gain, and how many accelerators
 * this machine feeds.
 *
 * The differential runs, the prediction and its proof are advice.c's, here for the real storage and
 * one worker per core, and smaller_advice.c's for images stored smaller; this file puts them into
 * words, and scales them to published accelerators. */
#include "lab.h"

#include "differential.h"
#include "image_spread.h"
#include "smaller_advice.h"
#include "studied_disk.h"
#include "verdict.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>

#define ACCELERATOR     "emulated:resnet50-h100"
#define QUICK_BOX_S     0.7
#define FULL_BOX_S      10.0
#define MOST_CORES      64.0 /* of the curve, unless there are more here */
#define SYNTHETIC_STEPS 4
#define DISTURBED       0.10 /* by how much the control may stray */
#define TIER            3    /* among the lab's storages: */
#define TIER_NAME       "optane"
#define SMALLER_BOX     0.6 /* of these, for runs with smaller images */

static const char *const accelerators[] = {"resnet50-v100", "resnet50-a100", "resnet50-h100"};

struct need { /* one accelerator's */
    unsigned batch;
    double per_s;           /* images, as published, */
    double synthetic_per_s; /* and as the emulated one does */
};

static void judge(struct mr_lab *lab, const struct mr_findings *f, const struct need *need,
                  struct mr_verdict *v)
{
    double step = need->batch / need->per_s, input = need->batch / f->cold;
    double wait = input > step ? input - step : 0;
    uint64_t n = f->stats.samples ? f->stats.samples : 1;
    double per_image = f->cold_s / (double)n;
    struct mr_verdict_input in = {
        .seconds = step + wait,
        .input_wait_s = wait,
        .steps = 1,
        .samples = need->batch,
        .bytes = (uint64_t)((double)f->stats.delivered_bytes / (double)n * need->batch),
        .workers = f->cores,
        .cores = f->cores,
        .prefetch = 1,
        .depth = f->cores,
        /* What the workers do during a step that waits for input is what they did in the cold run.
         */
        .read_s =
            f->stats.read_s / (double)n * need->batch * (step + wait) / (per_image * need->batch),
        .map_s = (f->stats.decode_s + f->stats.resize_s) / (double)n * need->batch * (step + wait) /
                 (per_image * need->batch),
        .ceiling_bytes_per_s = lab->random_mb_per_s * 1e6,
        .reads_hold_workers = 1,
        .computed = 1,
    };
    if (!isfinite(in.ceiling_bytes_per_s))
        in.ceiling_bytes_per_s = 0;
    mr_verdict_judge(&in, v);
}

/* Images a second that one accelerator takes; 0 when it is not known. */
static double taken_by(const char *accelerator)
{
    struct mr_accelerator_spec a;
    char name[64];
    snprintf(name, sizeof name, "emulated:%s", accelerator);
    if (mr_accelerator_spec_parse(name, &a, NULL))
        return 0;
    return a.own_batch / mr_accelerator_spec_seconds(&a, a.own_batch);
}

/* What the storage alone would deliver. */
struct storage_limit {
    double per_s;     /* images */
    const char *from; /* "baseline" or "read" */
};

/* Reading files takes CPU time, so with few cores it says less about the storage than its raw limit
 * at random does, where that was measured; but what was read, it can deliver. */
static struct storage_limit storage_limit(const struct mr_lab *lab, const struct mr_findings *f)
{
    double raw = lab->random_mb_per_s * 1e6 / lab->image_bytes;
    if (isfinite(raw) && raw > f->fetched && mr_is_on_storage(lab->o->data, lab->o->scratch))
        return (struct storage_limit){raw, "baseline"};
    return (struct storage_limit){f->fetched, "read"};
}

/* Storage and cores each for themselves, and together as the pipeline really was: `best` images a
 * second. */
static struct mr_json *sizing(const struct mr_findings *f, double storage_per_s, double best)
{
    struct mr_json *list = mr_json_array();
    for (unsigned i = 0; i < 3; i++) {
        double need = taken_by(accelerators[i]);
        if (need <= 0)
            continue;
        double by_storage = storage_per_s / need, by_cores = f->cores / f->image_cpu_s / need;
        struct mr_json *o = mr_json_object();
        mr_json_set(o, "accelerator", mr_json_string(accelerators[i]));
        mr_json_set(o, "images_per_s_each", mr_json_real(need));
        mr_json_set(o, "by_storage", mr_json_real(by_storage));
        mr_json_set(o, "by_cores", mr_json_real(by_cores));
        mr_json_set(o, "by_measured", mr_json_real(best / need));
        mr_json_set(o, "feeds", mr_json_real(floor(fmin(fmin(by_storage, by_cores), best / need))));
        mr_json_append(list, o);
    }
    return list;
}

/* How many accelerators `x` of something would feed, well beyond what is here. */
static struct mr_json *curves(const struct mr_findings *f, double storage_per_s, double image_bytes,
                              int over_cores)
{
    struct mr_json *list = mr_json_array();
    double by_cores = f->cores / f->image_cpu_s;
    double most = over_cores ? fmax(MOST_CORES, 2.0 * f->cores)
                             : fmax(2 * by_cores, 1.25 * storage_per_s) * image_bytes / 1e6;
    for (unsigned i = 0; i < 3; i++) {
        double need = taken_by(accelerators[i]);
        if (need <= 0)
            continue;
        struct mr_json *o = mr_json_object(), *curve = mr_json_array();
        for (unsigned k = 0; k <= 16; k++) {
            double x = most * k / 16;
            double images = over_cores ? fmin(x / f->image_cpu_s, storage_per_s)
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

/* Prediction and measurement side by side. */
static struct mr_json *recommendation(const struct mr_advice_opts *o, const struct mr_findings *f,
                                      const struct mr_advice *a)
{
    struct mr_json *to = mr_json_object();
    char text[400], change[96];
    mr_advice_text(o, a, change, sizeof change);
    mr_advice_explain(o, f, a, text, sizeof text);
    mr_json_set(to, "text", mr_json_string(text));
    mr_json_set(to, "change", mr_json_string(change));
    mr_json_set(to, "now_images_per_s", mr_json_real(f->cold));
    mr_json_set(to, "now_predicted_images_per_s", mr_json_real(a->now_per_s));
    mr_json_set(to, "predicted_images_per_s", mr_json_real(a->predicted_per_s));
    mr_json_set(to, "measured_images_per_s", mr_json_real(a->measured.per_s));
    mr_json_set(to, "error", mr_json_real(fabs(a->predicted_per_s / a->measured.per_s - 1)));
    mr_json_set(to, "emulated", mr_json_bool(a->on_tier));
    mr_json_set(to, "cold", mr_json_string(a->measured.cold));
    mr_json_set(to, "late_share",
                a->on_tier ? mr_json_real(a->measured.late_share) : mr_json_null());
    return to;
}

/* Images a second that the accelerator trains on when it need not wait for input. */
static int run_synthetic(struct mr_lab *lab, const struct mr_accelerator_spec *device,
                         double *per_s)
{
    struct mr_train_opts t;
    struct mr_train_result r;
    double seconds = 0;
    mr_lab_training(lab, 0, NULL, &t);
    t.device = *device;
    t.data = NULL;
    t.synthetic = 1;
    t.steps = SYNTHETIC_STEPS;
    mr_lab_say(lab, "training without input");
    int code = mr_train_run(&t, &r, lab->err);
    for (uint64_t i = 1; i < r.steps; i++)
        seconds += r.step[i].step_s;
    if (!code)
        *per_s = (double)(r.steps - 1) * t.pipe.batch / seconds;
    mr_train_result_fini(&r);
    return code;
}

/* The same with images stored smaller.  That it could not be tried is no reason to fail. */
static int try_smaller(struct mr_lab *lab, const struct mr_advice_opts *o,
                       const struct mr_findings *f, const struct mr_advice *a, struct mr_json **out)
{
    struct mr_advice_opts with = *o;
    struct mr_smaller_advice s;
    struct mr_error err = {0};
    with.box_s *= SMALLER_BOX;
    int r = mr_smaller_prove(&with, f, a, &s, &err);
    if (r == -ECANCELED)
        return r;
    if (!r) {
        mr_lab_check_cold(lab, s.proof);
        mr_lab_check_late(lab, TIER_NAME, s.measured.late_share);
    }
    *out = mr_smaller_json(r ? NULL : &s, a, err.text);
    return 0;
}

/* The differential runs, images/s. */
static struct mr_json *rates_json(const struct mr_findings *f, const struct need *need)
{
    struct mr_json *o = mr_json_object();
    mr_json_set(o, "synthetic", mr_json_real(need->synthetic_per_s));
    mr_json_set(o, "one_sample_read", mr_json_real(f->hand_over));
    mr_json_set(o, "one_sample_decoded", mr_json_real(f->one_decoded));
    mr_json_set(o, "warm", mr_json_real(f->warm));
    mr_json_set(o, "cold_read", mr_json_real(f->fetched));
    mr_json_set(o, "cold", mr_json_real(f->cold));
    return o;
}

static void on_say(void *ctx, const char *what)
{
    mr_lab_say(ctx, "%s", what);
}

/* Files a second with as many reads at once as the pipeline has now: one for each worker. */
static double fetched_now(const struct mr_findings *f)
{
    const struct mr_read_curve *c = &f->curve;
    unsigned i = 0;
    while (i + 1 < c->n && c->depth[i + 1] <= f->cores)
        i++;
    return c->per_s[i];
}

/* What was measured and predicted, all of it. */
struct proof {
    struct mr_findings f;
    struct mr_advice a;
    struct mr_json *smaller;
};

static struct mr_json *point(struct mr_lab *lab, const struct proof *proof, const struct need *need,
                             struct mr_json *advice)
{
    const struct mr_findings *f = &proof->f;
    const struct mr_advice *a = &proof->a;
    static const char *const ratings[] = {"fine", "moderate", "high"};
    struct mr_json *p = mr_json_object();
    struct mr_verdict v;
    char text[800];
    double per_batch = need->batch;
    struct storage_limit storage = storage_limit(lab, f);
    double best = a->on_tier ? f->cold : fmax(f->cold, a->measured.per_s);
    judge(lab, f, need, &v);
    const char *words = mr_json_text(mr_json_at(advice, "text"));
    int fine = v.limit == MR_LIMIT_NONE;
    snprintf(text, sizeof text,
             "This machine delivers %.0f images/s; one accelerator (%s) takes %.0f. %s%s%s",
             f->cold, accelerators[2], need->per_s, v.finding, fine ? "" : " ",
             fine || !words ? "" : words);
    mr_json_set(p, "device", mr_json_string(ACCELERATOR));
    mr_json_set(p, "limit", mr_json_string(mr_limit_name(v.limit)));
    mr_json_set(p, "rating", mr_json_string(ratings[v.rating]));
    mr_json_set(p, "text", mr_json_string(text));
    mr_json_set(p, "step_s", mr_json_real(per_batch / f->cold));
    mr_json_set(p, "fetch_s", mr_json_real(per_batch / fetched_now(f)));
    mr_json_set(p, "decode_s",
                mr_json_real(fmax(per_batch / f->warm - per_batch / f->hand_over, 0)));
    mr_json_set(p, "hand_over_s", mr_json_real(per_batch / f->hand_over));
    mr_json_set(p, "compute_s", mr_json_real(per_batch / need->synthetic_per_s));
    mr_json_set(p, "image_cpu_s", mr_json_real(f->image_cpu_s));
    mr_json_set(p, "image_cpu_deviation", mr_json_real(mr_spread_deviation(&f->spread)));
    mr_json_set(p, "turns_cpu_s", mr_json_real(f->crowded_cpu_s - f->warm_cpu_s));
    mr_json_set(p, "ring_cpu_s", mr_json_real(f->ring_cpu_s));
    mr_json_set(p, "wake_s", mr_json_real(f->wake_s));
    mr_json_set(p, "rates", rates_json(f, need));
    mr_json_set(p, "cold", mr_json_string(f->cold_proof));
    mr_json_set(p, "cold_read", mr_json_string(f->proof));
    mr_json_set(p, "control", mr_json_real(a->measured.control));
    mr_json_set(p, "recommendation", advice);
    mr_json_set(p, "smaller_images", proof->smaller);
    mr_json_set(p, "sizing", sizing(f, storage.per_s, best));
    mr_json_set(p, "cores", mr_json_int(f->cores));
    mr_json_set(p, "storage_mb_per_s", mr_json_real(storage.per_s * lab->image_bytes / 1e6));
    mr_json_set(p, "storage_from", mr_json_string(storage.from));
    mr_json_set(p, "by_bandwidth", curves(f, storage.per_s, lab->image_bytes, 0));
    mr_json_set(p, "by_cores", curves(f, storage.per_s, lab->image_bytes, 1));
    return p;
}

/* The runs, in the order in which one rests on another. */
static int measure(struct mr_lab *lab, const struct mr_advice_opts *o,
                   const struct mr_accelerator_spec *device, struct need *need, struct proof *p)
{
    int r = run_synthetic(lab, device, &need->synthetic_per_s);
    if (!r)
        r = mr_findings_take(o, &p->f, lab->err);
    if (!r)
        r = mr_advice_prove(o, &p->f, &p->a, lab->err);
    if (!r)
        r = try_smaller(lab, o, &p->f, &p->a, &p->smaller);
    return r;
}

/* Much the same by hand: without input, without decoding, cold as it is, and as recommended. */
static void add_commands(struct mr_lab *lab, const struct mr_advice_opts *o,
                         const struct mr_advice *a)
{
    char change[96];
    mr_advice_text(o, a, change, sizeof change);
    mr_lab_command(lab, "millrace train --synthetic --device %s --steps %u", ACCELERATOR,
                   SYNTHETIC_STEPS);
    mr_lab_command(lab, "millrace bench %s --map read --threads 1,2,4,8,16,32 --runs %u --cold",
                   lab->input, o->runs);
    mr_lab_command(lab, "millrace bench %s --map decode --threads %u --runs %u --cold", lab->input,
                   o->now.threads, o->runs);
    mr_lab_command(lab, "millrace bench %s --map decode %s --runs %u%s", lab->input, change,
                   o->runs, a->on_tier ? "" : " --cold");
}

static void add_warnings(struct mr_lab *lab, const struct proof *p)
{
    if (p->a.without_ring.text[0])
        mr_lab_warn(lab, "The io_uring engine is not available here: %s", p->a.without_ring.text);
    if (fabs(p->a.measured.control - 1) > DISTURBED)
        mr_lab_warn(lab,
                    "Cached images were decoded %.2f times as fast with the proof as before it: "
                    "other programs took changing shares of the cores, and predictions may be "
                    "off by as much.",
                    p->a.measured.control);
    mr_lab_check_cold(lab, p->f.proof);
    mr_lab_check_cold(lab, p->f.cold_proof);
    mr_lab_check_cold(lab, p->a.measured.cold);
    mr_lab_check_late(lab, TIER_NAME, p->a.measured.late_share);
}

int mr_exp_verdict(struct mr_lab *lab)
{
    static const struct mr_decoder_opts decoder = {.width = 224, .height = 224};
    struct mr_accelerator_spec device;
    struct proof p = {0};
    cpu_set_t set;
    uint64_t n = mr_dataset_size(lab->o->data);
    struct mr_advice_opts o = {
        .data = lab->o->data,
        .decode = &decoder,
        .now = {.threads = sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set),
                .batch = n < 64 ? (unsigned)n : 64,
                .prefetch = 1},
        .tier = lab->storage[TIER].device,
        .scratch = lab->o->scratch,
        .runs = lab->o->runs,
        .box_s = lab->o->full ? FULL_BOX_S : QUICK_BOX_S,
        .seed = lab->o->seed,
        .say = on_say,
        .should_stop = mr_lab_should_stop,
        .ctx = lab,
    };
    int r = mr_accelerator_spec_parse(ACCELERATOR, &device, lab->err);
    if (r)
        return r;
    struct need need = {.batch = device.own_batch};
    need.per_s = need.batch / mr_accelerator_spec_seconds(&device, need.batch);
    r = measure(lab, &o, &device, &need, &p);
    if (r) {
        mr_json_free(p.smaller);
        return r;
    }
    add_commands(lab, &o, &p.a);
    add_warnings(lab, &p);
    mr_lab_point(lab, point(lab, &p, &need, recommendation(&o, &p.f, &p.a)));
    return 0;
}
