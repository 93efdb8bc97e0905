/* exp_verdict.c - what limits, what should change, what it would gain, and how many accelerators
 * this machine feeds.
 *
 * The differential runs, the prediction and its proof are advice.c's, here for the real storage and
 * one worker per core, smaller_advice.c's for images stored smaller, and sizing.c scales them to
 * published accelerators; this file runs them and puts the verdict into words. */
#include "lab.h"

#include "advice_words.h"
#include "differential.h"
#include "image_spread.h"
#include "sizing.h"
#include "smaller_advice.h"
#include "verdict.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>

#define H100            "resnet50-h100"
#define ACCELERATOR     "emulated:" H100
#define QUICK_BOX_S     0.7
#define FULL_BOX_S      10.0
#define SYNTHETIC_STEPS 4
#define DISTURBED       0.10 /* by how much the control may stray */
#define TIER            3    /* among the lab's storages: */
#define TIER_NAME       "optane"
#define SMALLER_BOX     0.6 /* of these, for runs with smaller images */

struct need { /* one accelerator's */
    unsigned batch;
    double per_s;           /* images, as published, */
    double synthetic_per_s; /* and as the emulated one does */
};

static void judge(const struct mr_findings *f, const struct need *need, struct mr_verdict *v)
{
    struct mr_read_ceiling most = mr_findings_ceiling(f);
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
        .ceiling_bytes_per_s = most.bytes_per_s,
        .ceiling_reads = most.reads,
        .ceiling_open = most.open,
        .reads_hold_workers = 1,
        .computed = 1,
    };
    mr_verdict_judge(&in, v);
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

/* The same with images stored smaller, in the configuration to continue with.  It is not an
 * error when that could not be tried.  The load of a shared machine changes from minute to
 * minute, so the comparison needs a measurement right before: the present configuration, which
 * was measured first of all, is run again. */
static int try_smaller(struct mr_lab *lab, const struct mr_advice_opts *o,
                       const struct mr_findings *f, const struct mr_advice *a, struct mr_json **out)
{
    struct mr_advice_opts with = *o;
    struct mr_advice in_use = mr_advice_in_use(o, f, a);
    struct mr_smaller_advice s;
    struct mr_error err = {0};
    with.box_s *= SMALLER_BOX;
    if (a->standing != MR_ADVICE_CHANGE) {
        mr_advice_say(o, "the present configuration again");
        int again = mr_advice_measure(o, f, &in_use, f->cold, &in_use.measured, lab->err);
        if (again)
            return again;
    }
    int r = mr_smaller_prove(&with, f, &in_use, &s, &err);
    if (r == -ECANCELED)
        return r;
    if (!r) {
        mr_lab_check_cold(lab, s.proof);
        mr_lab_check_late(lab, TIER_NAME, s.measured.late_share);
    }
    *out = mr_smaller_json(r ? NULL : &s, &in_use, err.text);
    return 0;
}

/* The differential runs, images/s. */
static struct mr_json *rates_json(const struct mr_findings *f, const struct need *need)
{
    struct mr_step_rates rates = {.synthetic = need->synthetic_per_s,
                                  .one_sample_read = f->hand_over,
                                  .one_sample_decoded = f->one_decoded,
                                  .warm = f->warm,
                                  .cold_read = f->fetched,
                                  .cold = f->cold};
    return mr_step_rates_json(&rates);
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

/* The headline: what is delivered, what is wanted, what limits, and the advice, if any. */
static void headline(const struct mr_findings *f, const struct need *need,
                     const struct mr_verdict *v, const char *advice, char *text, size_t cap)
{
    int fine = v->limit == MR_LIMIT_NONE;
    snprintf(
        text, cap, "This machine delivers %.0f images/s; one accelerator (%s) takes %.0f. %s%s%s",
        f->cold, H100, need->per_s, v->finding, fine ? "" : " ", fine || !advice ? "" : advice);
}

static struct mr_json *point(struct mr_lab *lab, const struct proof *proof, const struct need *need,
                             struct mr_json *advice)
{
    const struct mr_findings *f = &proof->f;
    const struct mr_advice *a = &proof->a;
    static const char *const ratings[] = {"fine", "moderate", "high"};
    struct mr_verdict v;
    char text[800];
    double per_batch = need->batch;
    struct mr_sizing size;
    mr_sizing_take(f, a, lab->image_bytes, &lab->known, &size);
    judge(f, need, &v);
    headline(f, need, &v, mr_recommendation_of(advice).text, text, sizeof text);
    struct mr_verdict_point p = {
        .device = ACCELERATOR,
        .limit = mr_limit_name(v.limit),
        .rating = ratings[v.rating],
        .text = text,
        .step_s = per_batch / f->cold,
        .fetch_s = per_batch / fetched_now(f),
        .decode_s = fmax(per_batch / f->warm - per_batch / f->hand_over, 0),
        .hand_over_s = per_batch / f->hand_over,
        .compute_s = per_batch / need->synthetic_per_s,
        .image_cpu_s = f->image_cpu_s,
        .image_cpu_deviation = mr_spread_deviation(&f->spread),
        .turns_cpu_s = f->crowded_cpu_s - f->warm_cpu_s,
        .ring_cpu_s = f->ring_cpu_s,
        .wake_s = f->wake_s,
        .rates = rates_json(f, need),
        .cold = f->cold_proof,
        .cold_read = f->proof,
        .control = a->measured.control,
        .recommendation = advice,
        .smaller_images = proof->smaller,
        .sizing = mr_sizing_json(&size),
        .cores = f->cores,
        .cores_images_per_s = size.cores_per_s,
        .storage_files_per_s = size.storage_per_s,
        .storage_mb_per_s = size.storage_per_s * size.image_bytes / 1e6,
        .storage_from = mr_experiment_name(MR_EXPERIMENT_read),
        .by_bandwidth = mr_sizing_by_bandwidth(&size),
        .by_cores = mr_sizing_by_cores(&size),
    };
    return mr_verdict_point_json(&p);
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

/* Much the same by hand: without input, without decoding, cold as it is, and as tried. */
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

static int run(struct mr_lab *lab)
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
    mr_lab_point(lab, point(lab, &p, &need, mr_advice_json(&o, &p.f, &p.a)));
    return 0;
}

const struct mr_experiment mr_experiment_verdict = {
    .quick_s = 39, .full_s = 760, .full_image_s = 0.003, .run = run};
