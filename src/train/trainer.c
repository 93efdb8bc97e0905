/* trainer.c - see trainer.h.
 *
 *                  |<--------------------------- step ---------------------------->|
 *     | first fill | wait for the batch | forward backward update | checkpoint call |
 *                                         `-- may wait for a snapshot --'
 *
 * Nothing could be fetched before the run began, so the wait for the very first batch is no part of
 * a step.
 *
 * All times are taken here, once, at the seams; the sums over the steps are the result.  The loop
 * is the same on the CPU and on an emulated accelerator, with input and without. */
#include "trainer.h"

#include "clock.h"
#include "draw.h"
#include "errtext.h"
#include "grow.h"
#include "trace_mark.h"

#include <millrace/trace.h>

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HARNESS_STEPS 21
#define HARNESS_S     0.002

struct trainer {
    const struct mr_train_opts *o;
    struct mr_train_result *out;
    struct mr_error *err;
    struct mr_accelerator *accelerator;
    struct mr_run_saver *saver; /* NULL: no checkpoints */
    struct mr_pipeline *pipe;
    struct mr_batch **batch; /* [n_batches] of a step */
    unsigned n_batches;
    unsigned n_held;               /* of them, those that are held now */
    struct mr_batch synthetic;     /* when there is no data set */
    uint64_t total;                /* steps */
    uint64_t epoch;                /* of the next batch */
    size_t cap;                    /* room in out->step */
    uint64_t first;                /* steps done before this run */
    uint64_t last;                 /* the step that the state is of; 0: none of this run */
    struct mr_position next;       /* what comes after it */
    int spoiled;                   /* the state is not that of a whole step any more */
    atomic_uint_fast64_t stall_ns; /* of the step that is under way; threads of the optimizer add */
    uint64_t epoch_images, epoch_correct;
    double started_s;
};

static double now_s(void)
{
    return (double)mr_clock_ns() / 1e9;
}

static int stop_wanted(void *ctx)
{
    const struct trainer *t = ctx;
    return t->o->pipe.should_stop && t->o->pipe.should_stop(t->o->pipe.should_stop_ctx);
}

static int saves_none(const struct trainer *t)
{
    return t->saver && !t->o->final_checkpoint &&
           !mr_run_saver_is_due(t->saver, t->first, t->total);
}

static void tell(struct trainer *t, const char *what, double loss, double accuracy)
{
    struct mr_train_progress now = {
        t->first + t->out->steps,    t->total,     loss, accuracy, t->out->accuracy, what,
        mr_train_wait_share(t->out), saves_none(t)};
    if (t->o->progress)
        t->o->progress(t->o->progress_ctx, &now);
}

/* ---- before the first step ---- */

static int check(const struct mr_train_opts *o, unsigned n_classes, struct mr_error *err)
{
    if (!o->data)
        return 0;
    uint64_t n = mr_dataset_size(o->data);
    unsigned world = o->pipe.world ? o->pipe.world : 1;
    uint64_t wanted = (uint64_t)o->pipe.batch * world;
    if (n < wanted && !o->pipe.keep_last)
        return mr_fail(err, -EINVAL,
                       "%llu images do not fill one batch of %llu: take a smaller --batch",
                       (unsigned long long)n, (unsigned long long)wanted);
    if (o->device.kind == MR_ON_CPU && mr_dataset_n_classes(o->data) < 2)
        return mr_fail(err, -EINVAL,
                       "all images are of one class: there is nothing to learn (a folder needs a "
                       "sub-folder per class, a list different labels)");
    for (uint64_t i = 0; o->held && i < mr_dataset_size(o->held); i++)
        if (mr_dataset_label(o->held, i) >= n_classes)
            return mr_fail(err, -EINVAL,
                           "evaluation: label %u of sample %llu is beyond the %u classes that are "
                           "trained",
                           mr_dataset_label(o->held, i), (unsigned long long)i, n_classes);
    return 0;
}

/* One batch of random pixels. */
static int make_synthetic(struct trainer *t, unsigned n_classes)
{
    struct mr_batch *b = &t->synthetic;
    b->n = t->o->pipe.batch;
    b->sample_bytes = mr_decoder_bytes(&t->o->decode);
    size_t bytes;
    if (__builtin_mul_overflow(b->sample_bytes, b->n, &bytes))
        return mr_fail(t->err, -ENOMEM, "a batch of %u images does not fit into memory", b->n);
    b->data = aligned_alloc(64, (bytes + 63) / 64 * 64);
    b->samples = calloc(b->n, sizeof *b->samples);
    if (!b->data || !b->samples)
        return mr_fail(t->err, -ENOMEM, "no memory for a batch of %zu bytes", bytes);
    float *pixel = (float *)b->data;
    for (size_t i = 0; i < bytes / sizeof *pixel; i++)
        pixel[i] = (float)(mr_draw(t->o->pipe.seed, MR_DRAW_SYNTHETIC, i, 0, 0) >> 40) / 16777216.f;
    for (unsigned i = 0; i < b->n; i++)
        b->samples[i] =
            (struct mr_sample){b->data + i * b->sample_bytes, b->sample_bytes, i, i % n_classes};
    return 0;
}

/* All epochs together have fewer batches than a step: as many epochs as one step takes. */
static int reopen_for_one_step(struct trainer *t, struct mr_pipeline_opts *p)
{
    uint64_t per_epoch = mr_pipeline_n_batches(t->pipe);
    mr_pipeline_close(t->pipe);
    t->pipe = NULL;
    p->epochs = (unsigned)((t->n_batches + per_epoch - 1) / per_epoch);
    return mr_pipeline_open(t->o->data, p, &t->pipe, t->err);
}

static int open_pipeline(struct trainer *t)
{
    struct mr_pipeline_opts p = t->o->pipe;
    p.decode = &t->o->decode;
    p.threads = t->out->cores.map_workers;
    p.hold = t->n_batches;
    p.epochs = t->o->epochs ? t->o->epochs : 1;
    p.start_on_next = 1;
    if (!t->o->synthetic) /* which draws its first step's batches, and no more */
        p.start = t->out->from.position;
    if (t->o->steps) /* as many epochs as that takes */
        p.epochs = 1u << 30;
    int r = mr_pipeline_open(t->o->data, &p, &t->pipe, t->err);
    if (!r && !t->out->from.resumed && mr_pipeline_n_left(t->pipe) < t->n_batches)
        r = reopen_for_one_step(t, &p);
    if (r)
        return r;
    struct mr_position at;
    mr_pipeline_position(t->pipe, &at);
    t->epoch = at.epoch;
    uint64_t before = t->o->synthetic ? 0 : t->first;
    t->total = t->o->steps ? t->o->steps : before + mr_pipeline_n_left(t->pipe) / t->n_batches;
    if (t->first >= t->total)
        return mr_fail(t->err, -EINVAL,
                       "%s has step %llu already: nothing is left of %llu steps; ask for more",
                       t->out->from.path, (unsigned long long)t->first,
                       (unsigned long long)t->total);
    return 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What a step of the loop costs beyond the accelerator's time: short steps without any input. */
static double harness_cost(const struct trainer *t)
{
    struct mr_accelerator_opts o = {.spec = t->o->device, .batch = 1};
    struct mr_accelerator *a;
    struct mr_batch none = {0}, *batches[1] = {&none};
    double excess[HARNESS_STEPS];
    struct mr_step_hooks hooks = {0};
    if (t->o->device.kind != MR_EMULATED)
        return 0;
    o.spec = (struct mr_accelerator_spec){.kind = MR_EMULATED, .step_s = HARNESS_S, .n = 1};
    if (mr_accelerator_open(&o, &a, NULL))
        return 0;
    for (unsigned i = 0; i < HARNESS_STEPS; i++) {
        struct mr_step_outcome outcome;
        double start = now_s();
        mr_accelerator_step(a, batches, 1, i + 1, &hooks, &outcome, NULL);
        excess[i] = now_s() - start - HARNESS_S;
    }
    mr_accelerator_close(a);
    qsort(excess, HARNESS_STEPS, sizeof *excess, by_value);
    return excess[HARNESS_STEPS / 2];
}

static struct mr_run_order run_order(const struct mr_train_opts *o)
{
    const struct mr_pipeline_opts *p = &o->pipe;
    struct mr_run_order order = {.seed = p->seed,
                                 .shuffle = p->shuffle,
                                 .batch = p->batch,
                                 .world = p->world ? p->world : 1,
                                 .n_samples = o->data ? mr_dataset_size(o->data) : 0};
    if (p->shuffle == MR_SHUFFLE_WINDOW)
        order.window = p->window;
    return order;
}

/* Checkpoints, and where an earlier run had come to. */
static int open_saver(struct trainer *t)
{
    const struct mr_train_opts *o = t->o;
    struct mr_run_saver_opts s = {.how = o->checkpoint,
                                  .every = o->checkpoint_every,
                                  .resume = o->resume,
                                  .order = run_order(o),
                                  .passed_over = o->passed_over,
                                  .ctx = o->progress_ctx};
    unsigned n;
    const struct mr_state_tensor *state = mr_accelerator_state(t->accelerator, &n);
    for (unsigned i = 0; i < n; i++)
        t->out->state_bytes += state[i].bytes;
    int r = mr_run_saver_open(t->accelerator, &s, &t->saver, &t->out->from, t->err);
    t->first = t->out->from.step;
    return r == -EINTR && stop_wanted(t) ? -ECANCELED : r; /* while it waited for the folder */
}

static int set_up(struct trainer *t)
{
    const struct mr_train_opts *o = t->o;
    unsigned n_classes = o->n_classes ? o->n_classes
                         : o->data    ? mr_dataset_n_classes(o->data)
                                      : 102;
    struct mr_accelerator_opts a = {
        .spec = o->device,
        .batch = o->pipe.batch,
        .image_size = o->decode.width,
        .n_classes = n_classes,
        .seed = o->pipe.seed,
        .learning_rate = o->learning_rate,
    };
    mr_cores_divide(&o->device, o->pipe.threads, o->compute_threads, &t->out->cores);
    a.compute_threads = t->out->cores.compute_threads;
    int r = check(o, n_classes, t->err);
    if (r)
        return r;
    t->n_batches = o->device.n;
    t->batch = calloc(t->n_batches, sizeof *t->batch);
    if (!t->batch)
        return mr_fail(t->err, -ENOMEM, "no memory");
    t->total = o->steps ? o->steps : 100;
    a.with_state = o->checkpoint != NULL;
    r = mr_accelerator_open(&a, &t->accelerator, t->err);
    if (!r && o->checkpoint)
        r = open_saver(t);
    if (!r)
        r = o->data ? open_pipeline(t) : make_synthetic(t, n_classes);
    t->out->harness_s = harness_cost(t);
    return r;
}

/* ---- steps ---- */

/* Draw the batches of a step; 1, 0 when there are no more, -errno. */
static int draw(struct trainer *t)
{
    /* A step may span epochs.  Two ends in a row mean that the first was the last one's. */
    int ends = 0;
    while (t->n_held < t->n_batches && ends < 2) {
        int r = mr_pipeline_next(t->pipe, &t->batch[t->n_held]);
        if (r < 0)
            return mr_fail(t->err, r, "%s", mr_pipeline_error(t->pipe));
        ends = r ? 0 : ends + 1;
        t->n_held += r == 1;
    }
    return t->n_held == t->n_batches;
}

static void release(struct trainer *t)
{
    while (t->n_held)
        mr_batch_unref(t->batch[--t->n_held]);
}

static int input(struct trainer *t)
{
    if (t->o->data && (!t->o->synthetic || !t->n_held))
        return draw(t);
    for (unsigned i = 0; !t->o->data && i < t->n_batches; i++)
        t->batch[i] = &t->synthetic;
    return 1;
}

static int record(struct trainer *t, struct mr_step_record *s)
{
    struct mr_train_result *out = t->out;
    if (!out->steps) {
        out->first_fill_s = s->wait_s;
        s->step_s -= s->wait_s;
        s->wait_s = 0;
    }
    struct mr_step_record *steps = mr_grown(out->step, out->steps, &t->cap, sizeof *steps);
    if (!steps)
        return mr_fail(t->err, -ENOMEM, "no memory for the record of step %llu",
                       (unsigned long long)out->steps);
    out->step = steps;
    steps[out->steps++] = *s;
    out->seconds += s->step_s;
    out->input_wait_s += s->wait_s;
    out->compute_s += s->compute_s;
    out->checkpoint_stall_s += s->stall_s;
    return 0;
}

/* A tensor is about to change; a snapshot may still need it. */
static void before_write(void *ctx, unsigned tensor)
{
    struct trainer *t = ctx;
    uint64_t start = mr_clock_ns();
    mr_run_saver_before_write(t->saver, tensor);
    atomic_fetch_add(&t->stall_ns, mr_clock_ns() - start);
}

/* The call that began a checkpoint.  A lazy one returns before a byte is written, so it has no
 * rate; Write spans have it. */
static void trace_checkpoint(const struct trainer *t, uint64_t begin)
{
    int lazy = t->o->checkpoint->mode == MR_CHECKPOINT_LAZY;
    mr_trace_span(MR_PHASE_CHECKPOINT, begin, mr_trace_now(), lazy ? 0 : t->out->state_bytes,
                  MR_NONE);
}

/* Begin a checkpoint if one is due; what the call takes is part of the step. */
static int save(struct trainer *t, struct mr_step_record *s)
{
    double begin = now_s();
    uint64_t traced = mr_trace_now();
    if (t->pipe)
        mr_pipeline_position(t->pipe, &t->next);
    t->last = t->first + t->out->steps + 1;
    int r = mr_run_saver_after_step(t->saver, t->last, &t->next, t->err);
    double took = now_s() - begin;
    s->stall_s += took;
    s->step_s += took;
    if (r == 1)
        trace_checkpoint(t, traced);
    return r < 0 ? r : 0;
}

/* Spans of a step for the timeline; the parts follow one another. */
static void trace_step(const struct mr_step_outcome *o, uint64_t begin)
{
    uint64_t end = mr_trace_now(), forward = begin + o->forward_ns,
             backward = forward + o->backward_ns;
    if (!begin || !end)
        return;
    mr_trace_span(MR_PHASE_TRAIN, begin, end, 0, MR_NONE);
    mr_trace_span(MR_PHASE_FORWARD, begin, forward, 0, MR_NONE);
    if (o->backward_ns)
        mr_trace_span(MR_PHASE_BACKWARD, forward, backward, 0, MR_NONE);
    if (o->update_ns)
        mr_trace_span(MR_PHASE_UPDATE, backward, backward + o->update_ns, 0, MR_NONE);
}

static int diverged(struct trainer *t, uint64_t step)
{
    int64_t good = t->saver ? mr_run_saver_last_good(t->saver) : -1;
    char where[96] = "";
    t->spoiled = 1;
    if (good >= 0)
        snprintf(where, sizeof where, "; the last good checkpoint is that of step %lld",
                 (long long)good);
    return mr_fail(t->err, -EDOM,
                   "the loss is not a number any more at step %llu: take a smaller --lr%s",
                   (unsigned long long)step, where);
}

static int one_step(struct trainer *t)
{
    struct mr_step_hooks hooks = {
        .before_write = t->saver ? before_write : NULL, .should_stop = stop_wanted, .ctx = t};
    struct mr_step_outcome outcome;
    struct mr_step_record s = {0};
    double begin = now_s();
    int r = input(t);
    if (r <= 0)
        return r;
    double fed = now_s();
    uint64_t number = t->first + t->out->steps + 1;
    uint64_t traced = mr_trace_now();
    /* Batch k is trained on in the step that bears its number in the trace. */
    mr_trace_context((uint32_t)t->batch[0]->epoch,
                     (uint32_t)(t->pipe ? t->batch[0]->number : number - 1));
    atomic_store(&t->stall_ns, 0);
    r = mr_accelerator_step(t->accelerator, t->batch, t->n_batches, number, &hooks, &outcome,
                            t->err);
    t->spoiled = r && r != -ECANCELED; /* being stopped, it has changed nothing */
    if (r)
        return r;
    double done = now_s();
    trace_step(&outcome, traced);
    if (!t->o->synthetic)
        release(t);
    s.step_s = done - begin;
    s.wait_s = fed - begin;
    s.stall_s = (double)atomic_load(&t->stall_ns) / 1e9;
    s.stall_s = fmin(s.stall_s, done - fed); /* threads that wait at the same time count once */
    s.compute_s = done - fed - s.stall_s;
    s.loss = outcome.loss;
    int finite = t->o->device.kind != MR_ON_CPU || isfinite(s.loss);
    if (t->saver && finite) {
        r = save(t, &s);
        if (r)
            return r;
    }
    t->out->images += outcome.n_images;
    t->epoch_images += outcome.n_images;
    t->epoch_correct += outcome.n_correct;
    r = record(t, &s);
    if (r)
        return r;
    if (!finite)
        return diverged(t, number);
    tell(t, "training", s.loss,
         outcome.n_images ? (double)outcome.n_correct / outcome.n_images : NAN);
    return 1;
}

/* How many of the held-out images are recognised. */
static int evaluate(struct trainer *t)
{
    const struct mr_train_opts *o = t->o;
    struct mr_decoder_opts decode = o->decode;
    struct mr_pipeline_opts p = {.engine = o->pipe.engine,
                                 .threads = t->out->cores.map_workers,
                                 .io_depth = o->pipe.io_depth,
                                 .batch = o->pipe.batch,
                                 .shuffle = MR_SHUFFLE_NONE,
                                 .seed = o->pipe.seed,
                                 .keep_last = 1,
                                 .untraced = 1, /* its samples are those of another data set */
                                 .decode = &decode,
                                 .max_file_bytes = o->pipe.max_file_bytes,
                                 .max_error_share = o->pipe.max_error_share,
                                 .should_stop = o->pipe.should_stop,
                                 .should_stop_ctx = o->pipe.should_stop_ctx};
    struct mr_pipeline *pipe;
    struct mr_batch *b;
    uint64_t n = 0, right = 0;
    double begin = now_s();
    decode.augment = MR_AUGMENT_NONE;
    int r = mr_pipeline_open(o->held, &p, &pipe, t->err);
    if (r)
        return r;
    while ((r = mr_pipeline_next(pipe, &b)) == 1) {
        unsigned correct = 0;
        int e = mr_accelerator_evaluate(t->accelerator, b, &correct, t->err);
        n += b->n;
        right += correct;
        mr_batch_unref(b);
        if (e) {
            mr_pipeline_close(pipe);
            return e;
        }
        tell(t, "evaluating", NAN, NAN);
    }
    if (r < 0)
        mr_fail(t->err, r, "evaluation: %s", mr_pipeline_error(pipe));
    mr_pipeline_close(pipe);
    if (r < 0)
        return r;
    t->out->accuracy = n ? (double)right / (double)n : NAN;
    t->out->eval_s += now_s() - begin;
    return 0;
}

/* Whether the batches of the last step reached the end of an epoch, or of several. */
static int end_of_epoch(struct trainer *t)
{
    struct mr_position at = {.epoch = t->epoch};
    if (t->pipe)
        mr_pipeline_position(t->pipe, &at);
    int over = at.epoch != t->epoch;
    t->epoch = at.epoch;
    return over;
}

/* After a step: an epoch may be over.  1 = enough, 0 = go on, -errno. */
static int after_step(struct trainer *t)
{
    struct mr_train_result *out = t->out;
    uint64_t done = t->first + out->steps;
    int last = done == t->total;
    int epoch_over = end_of_epoch(t);
    if ((epoch_over || last) && t->epoch_images) {
        out->train_accuracy = (double)t->epoch_correct / (double)t->epoch_images;
        t->epoch_images = t->epoch_correct = 0;
    }
    if (!t->o->held || (!epoch_over && !last))
        return last;
    int r = evaluate(t);
    if (r)
        return r;
    if (t->o->until_accuracy > 0 && out->accuracy >= t->o->until_accuracy) {
        out->reached = 1;
        out->reached_s = now_s() - t->started_s;
        return 1;
    }
    return last;
}

/* Accelerator utilization as MLPerf Storage defines it, with the harness's own cost taken off. */
static double utilization(const struct trainer *t)
{
    const struct mr_train_result *r = t->out;
    double busy = 0, total = 0;
    for (uint64_t i = 1; i < r->steps; i++) {
        busy += t->o->device.kind == MR_EMULATED
                    ? mr_accelerator_spec_seconds(&t->o->device, t->o->pipe.batch)
                    : r->step[i].compute_s;
        total += r->step[i].step_s - r->harness_s;
    }
    return total > 0 ? fmin(busy / total, 1) : NAN;
}

/* The final checkpoint: what the last whole step left. */
static int save_last(struct trainer *t)
{
    if (!t->o->final_checkpoint || !t->last || t->spoiled)
        return 0;
    uint64_t traced = mr_trace_now();
    int r = mr_run_saver_last_step(t->saver, t->last, &t->next, t->err);
    if (r == 1)
        trace_checkpoint(t, traced);
    return r < 0 ? r : 0;
}

/* Wait for what is still under way in the background, and take the account. */
static int conclude_saving(struct trainer *t)
{
    struct mr_train_result *out = t->out;
    double begin = now_s();
    tell(t, "saving", NAN, NAN);
    int saved = save_last(t);
    int r = mr_run_saver_finish(t->saver, t->err);
    r = saved ? saved : r;
    out->drain_s = now_s() - begin;
    unsigned n = mr_run_saver_n(t->saver);
    out->record = calloc(n ? n : 1, sizeof *out->record);
    for (unsigned i = 0; out->record && i < n; i++)
        if (!mr_run_saver_record(t->saver, i, &out->record[out->n_records]))
            out->n_records++;
    mr_run_saver_status(t->saver, &out->checkpoint);
    mr_run_saver_close(t->saver);
    return r;
}

int mr_train_run(const struct mr_train_opts *o, struct mr_train_result *out, struct mr_error *err)
{
    struct trainer t = {.o = o, .out = out, .err = err};
    *out = (struct mr_train_result){.accuracy = NAN, .train_accuracy = NAN, .au = NAN};
    int r = set_up(&t), over = 0;
    if (!r)
        tell(&t, "filling", NAN, NAN);
    t.started_s = now_s();
    mr_trace_mark(MR_MARK_BEGIN);
    while (!r && !over) {
        int did = stop_wanted(&t) ? -ECANCELED : one_step(&t);
        r = did < 0 ? did : 0;
        over = did == 0;
        if (did == 1) {
            int enough = after_step(&t);
            r = enough < 0 ? enough : 0;
            over = enough == 1;
        }
    }
    out->partial = r == -ECANCELED;
    out->au = utilization(&t);
    mr_trace_mark(MR_MARK_END);
    if (out->partial && err)
        *err = (struct mr_error){0}; /* what the last checkpoint has to say matters more */
    int saved = t.saver ? conclude_saving(&t) : 0;
    if (saved < 0 && (!r || out->partial))
        r = saved;
    release(&t);
    if (t.pipe)
        mr_pipeline_get_stats(t.pipe, &out->stats);
    mr_pipeline_close(t.pipe);
    mr_accelerator_close(t.accelerator);
    free(t.batch);
    free(t.synthetic.data);
    free(t.synthetic.samples);
    return r;
}

double mr_train_wait_share(const struct mr_train_result *r)
{
    return r->seconds > 0 ? r->input_wait_s / r->seconds : 0;
}

double mr_train_images_per_s(const struct mr_train_result *r)
{
    double seconds = r->first_fill_s + r->seconds;
    return seconds > 0 ? (double)r->images / seconds : 0;
}

void mr_train_result_fini(struct mr_train_result *r)
{
    free(r->step);
    free(r->record);
    r->step = NULL;
    r->record = NULL;
}
