/* advice.c - see advice.h.
 *
 * With what the differential runs found, predict.c's simulation plays every candidate.  More of
 * something is recommended only when that predicts a gain, so of equals the one that is nearest to
 * the present wins. */
#include "advice.h"

#include "cache_sweep.h"
#include "device.h"
#include "differential.h"
#include "errtext.h"
#include "io_account.h"
#include "read_ahead.h"
#include "repeat.h"
#include "trainer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_STEPS 400
#define SPIN_S     (MR_DEVICE_SPIN_NS / 1e9)
/* Prefetch for an accelerator.  Now and then other programs delay input for longer than one
 * batch lasts, and an accelerator does not catch up. */
#define IN_RESERVE 3
#define AGREE      0.10 /* how far the model may be from what was measured */

/* ---- runs ---- */

struct run {
    double per_s;
    const char *cold;  /* as in struct mr_measured */
    double late_share; /* 0: none, or not emulated */
};

/* What these steps can touch: evict it or, for an emulated storage, have it in memory. */
static int make_ready(const struct mr_advice_opts *o, const struct mr_train_opts *t,
                      struct run *out, struct mr_error *err)
{
    struct mr_cache_sweep sweep = {0};
    uint64_t n = t->steps + (t->pipe.prefetch == MR_NONE ? 1 : t->pipe.prefetch + 1);
    struct mr_read_ahead_opts ahead = {.data = o->data, .pipe = &t->pipe, .n_batches = n};
    struct mr_read_ahead got;
    if (t->pipe.storage)
        return mr_read_ahead(&ahead, &got, err);
    int r = mr_cache_sweep_first(&sweep, o->data, &t->pipe, n * t->pipe.batch, 1);
    out->cold = sweep.n_unproven ? "unproven" : "data";
    return r ? mr_fail(err, r, "the data set cannot be evicted: %s", mr_errno_text(r)) : 0;
}

/* One run with an accelerator.  The first step is left out: nothing could be prefetched for it. */
static int train_once(const struct mr_advice_opts *o, const struct mr_train_opts *t,
                      struct run *out, struct mr_error *err)
{
    struct mr_train_result result;
    uint64_t before = 0, after = 0;
    double seconds = 0;
    int r = make_ready(o, t, out, err);
    if (r)
        return r;
    int known = !mr_io_read_bytes(&before);
    r = mr_train_run(t, &result, err);
    known = known && !mr_io_read_bytes(&after);
    for (uint64_t i = 1; !r && i < result.steps; i++)
        seconds += result.step[i].step_s;
    if (!r && result.steps < 2)
        r = mr_fail(err, -ENODATA, "the data set is too small to train on");
    if (!r)
        out->per_s = (double)(result.steps - 1) * t->pipe.batch / seconds;
    if (!r && t->pipe.storage)
        out->late_share = mr_late_share(&result.stats, known ? (int64_t)(after - before) : -1);
    if (result.stats.replaced && out->cold)
        out->cold = "unproven"; /* who replaced them was perhaps not evicted */
    mr_train_result_fini(&result);
    return r;
}

static int train(const struct mr_advice_opts *o, const struct mr_setup *s,
                 struct mr_device *storage, double expected_per_s, struct run *out,
                 struct mr_error *err)
{
    double samples = o->box_s * expected_per_s;
    double n = fmax(samples, fmin((double)o->least, MR_LONGER * samples)) / s->batch;
    struct mr_train_opts t = {.data = o->data,
                              .decode = *o->decode,
                              .device = {.kind = MR_EMULATED, .step_s = o->step_s, .n = 1},
                              .steps = 1 + (uint64_t)fmin(fmax(n, 6), MOST_STEPS)};
    mr_setup_fill(o, s, &t.pipe);
    t.pipe.storage = storage;
    t.epochs = (unsigned)(t.steps * s->batch / mr_dataset_size(o->data) + 2);
    snprintf(t.device.name, sizeof t.device.name, "emulated:%g", o->step_s);
    return train_once(o, &t, out, err);
}

static int run_once(const struct mr_advice_opts *o, const struct mr_advice *a,
                    double expected_per_s, struct run *out, struct mr_error *err)
{
    struct mr_device *storage = a->on_tier ? o->tier : o->storage;
    struct mr_draw_plan d = {o->data, a->best, 1, MR_FROM_STORAGE, storage, expected_per_s};
    struct mr_bench_result result;
    if (o->step_s > 0)
        return train(o, &a->best, storage, expected_per_s, out, err);
    int r = mr_draw_run(o, &d, &result, err);
    if (!r)
        *out = (struct run){result.per_s, result.cold,
                            storage ? mr_late_share(&result.stats, result.median.device_bytes) : 0};
    return r;
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

/* A worker that waits for an emulated storage spins at the end of the wait.  With a ring it maps
 * other samples instead. */
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
    if (!r && rate > MR_WORTH_IT * s->most) {
        s->best = c;
        s->most = rate;
    }
}

static void consider_reads(struct search *s, struct mr_setup c)
{
    unsigned room =
        mr_enough_prefetch(c.batch, c.engine == MR_ENGINE_URING ? c.io_depth : c.threads);
    if (s->o->step_s > 0 && room < IN_RESERVE)
        room = IN_RESERVE;
    if (c.prefetch < room)
        c.prefetch = room;
    consider(s, c);
}

/* Every candidate: the present one first, then more threads, then io_uring.  A batch is
 * delivered when its last sample is there, so slots stay empty where there is barely room for
 * the outstanding reads: candidates always have enough room. */
static void search(struct search *s, int with_ring)
{
    const struct mr_setup *now = &s->o->now;
    unsigned cores = s->f->cores;
    s->best = *now;
    s->error = predict(s, now, &s->most);
    consider_reads(s, *now);
    for (unsigned n = cores; n <= MR_MOST_THREADS && n <= 8 * cores; n *= 2)
        if (n > now->threads || now->engine != MR_ENGINE_THREADS)
            consider_reads(
                s, (struct mr_setup){.threads = n, .batch = now->batch, .prefetch = now->prefetch});
    for (unsigned depth = MR_RING_DEPTH * cores; with_ring && depth <= 2 * MR_RING_DEPTH * cores;
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
    if (!r && !s.error && o->tier && s.most <= MR_WORTH_IT * out->now_per_s) {
        struct search t = {.o = o, .f = f, .tier = o->tier};
        search(&t, with_ring);
        if (t.error || t.most > MR_WORTH_IT * s.most) {
            s = t;
            out->on_tier = 1;
        }
    }
    out->best = s.best;
    out->predicted_per_s = s.most;
    return r ? r : s.error;
}

int mr_advice_predict(const struct mr_advice_opts *o, const struct mr_findings *f,
                      const struct mr_advice *a, double *per_s)
{
    struct search s = {.o = o, .f = f, .tier = a->on_tier ? o->tier : NULL};
    return predict(&s, &a->best, per_s);
}

struct rounds {
    const struct mr_advice_opts *o; /* for one run each */
    const struct mr_findings *f;
    const struct mr_advice *a;
    double expected_per_s;
    int in_turns;
    double *per_s, *control, *error; /* [runs] */
    const char *cold;                /* of all runs */
    double late_share;
    struct mr_error *err;
};

/* Of what was to be expected on cores as fast as the control's. */
static int error_of(const struct rounds *r, double per_s, double control, double *error)
{
    struct mr_findings f = *r->f;
    double predicted;
    mr_findings_speed_up(&f, control);
    if (mr_advice_predict(r->o, &f, r->a, &predicted))
        return mr_fail(r->err, -ENOMEM, "no memory");
    *error = predicted / per_s - 1;
    return 0;
}

/* The recommended configuration. */
static int proof(struct rounds *r, unsigned i)
{
    struct run run = {0};
    int code = run_once(r->o, r->a, r->expected_per_s, &run, r->err);
    if (code)
        return code;
    r->per_s[i] = run.per_s;
    r->cold = mr_cold_of_both(r->cold, run.cold);
    r->late_share = fmax(r->late_share, run.late_share);
    return 0;
}

/* The control and the recommended configuration; every other round begins with the second.  A
 * run from a real storage first evicts the files that the control needs cached, so it has the
 * control once, after the rounds. */
static int one_round(void *ctx, unsigned i)
{
    struct rounds *r = ctx;
    struct mr_control control = {0};
    int code = i % 2 ? proof(r, i) : 0;
    if (!code && r->in_turns)
        code = mr_findings_control(r->o, r->f, &control, r->err);
    r->control[i] = control.times;
    if (!code && !(i % 2))
        code = proof(r, i);
    if (code || !r->in_turns)
        return code;
    return error_of(r, r->per_s[i], r->control[i], &r->error[i]);
}

int mr_advice_measure(const struct mr_advice_opts *o, const struct mr_findings *f,
                      const struct mr_advice *a, double expected_per_s, struct mr_measured *out,
                      struct mr_error *err)
{
    struct mr_advice_opts once = *o;
    struct mr_summary per_s, control, error;
    struct mr_control after;
    unsigned first = mr_repeat_first(o->runs), n = o->runs - first;
    double *values = calloc(3, o->runs * sizeof *values);
    struct rounds rounds = {.o = &once,
                            .f = f,
                            .a = a,
                            .expected_per_s = expected_per_s,
                            .in_turns = a->on_tier || o->storage,
                            .per_s = values,
                            .control = values + o->runs,
                            .error = values + 2 * o->runs,
                            .err = err};
    once.runs = 1;
    int r = values ? mr_repeat(o->runs, one_round, &rounds) : mr_fail(err, -ENOMEM, "no memory");
    if (!r && (mr_summarize(rounds.per_s + first, n, &per_s) ||
               mr_summarize(rounds.control + first, n, &control) ||
               mr_summarize(rounds.error + first, n, &error)))
        r = mr_fail(err, -ENOMEM, "no memory");
    if (!r && !rounds.in_turns)
        r = mr_findings_control(o, f, &after, err);
    if (!r && !rounds.in_turns) {
        control.median = after.times;
        r = error_of(&rounds, per_s.median, control.median, &error.median);
    }
    free(values);
    if (!r)
        *out = (struct mr_measured){per_s.median, control.median, error.median, rounds.cold,
                                    rounds.late_share};
    return r;
}

int mr_advice_prove(const struct mr_advice_opts *o, const struct mr_findings *f,
                    struct mr_advice *out, struct mr_error *err)
{
    struct mr_advice a = {.measured.per_s = NAN};
    struct mr_error own = {0};
    if (choose(o, f, 1, &a))
        return mr_fail(err, -ENOMEM, "no memory");
    mr_advice_say(o, "the recommended configuration");
    int r = mr_advice_measure(o, f, &a, a.predicted_per_s, &a.measured, &own);
    if (r == -ENOTSUP && a.best.engine == MR_ENGINE_URING) {
        a.without_ring = own;
        own = (struct mr_error){0}; /* which keeps the first text: what fails next has its own */
        if (choose(o, f, 0, &a))
            return mr_fail(err, -ENOMEM, "no memory");
        r = mr_advice_measure(o, f, &a, a.predicted_per_s, &a.measured, &own);
    }
    if (r)
        return mr_fail(err, r, "%s", own.text);
    mr_advice_settle(f, &a);
    *out = a;
    return 0;
}

/* If the cores became faster between the two measurements, all of that is subtracted from the
 * gain: nobody knows how much of it the change would have had anyway. */
double mr_advice_gain(const struct mr_findings *f, const struct mr_advice *a)
{
    return a->measured.per_s / f->cold / fmax(a->measured.control, 1) - 1;
}

void mr_advice_settle(const struct mr_findings *f, struct mr_advice *a)
{
    if (!(fabs(a->now_per_s / f->cold - 1) <= AGREE))
        a->standing = MR_ADVICE_NO_MODEL;
    else if (!(a->predicted_per_s > MR_WORTH_IT * a->now_per_s))
        a->standing = MR_ADVICE_KEEP;
    else if (!(mr_advice_gain(f, a) > MR_WORTH_IT - 1))
        a->standing = MR_ADVICE_WITHDRAWN;
    else
        a->standing = MR_ADVICE_CHANGE;
}

struct mr_advice mr_advice_in_use(const struct mr_advice_opts *o, const struct mr_findings *f,
                                  const struct mr_advice *a)
{
    struct mr_advice in_use = *a;
    if (a->standing == MR_ADVICE_CHANGE)
        return in_use;
    in_use.best = o->now;
    in_use.on_tier = 0;
    in_use.predicted_per_s = a->now_per_s;
    in_use.measured = (struct mr_measured){.per_s = f->cold, .control = 1, .cold = f->cold_proof};
    return in_use;
}
