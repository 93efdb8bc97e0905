/* train_json.c - the result of a training run as docs/json.md describes it. */
#include "trainer.h"

#include <math.h>

static struct mr_json *per_step(const struct mr_train_result *r,
                                double (*of)(const struct mr_step_record *))
{
    struct mr_json *a = mr_json_array();
    for (uint64_t i = 0; i < r->steps; i++)
        mr_json_append(a, mr_json_real(of(&r->step[i])));
    return a;
}

static double loss_of(const struct mr_step_record *s)
{
    return s->loss;
}

static double seconds_of(const struct mr_step_record *s)
{
    return s->step_s;
}

static double wait_of(const struct mr_step_record *s)
{
    return s->wait_s;
}

static struct mr_json *errors(const struct mr_pipeline_stats *s)
{
    struct mr_json *o = mr_json_object();
    for (unsigned i = 0; i < MR_N_REASONS && s->errors[i].reason; i++)
        mr_json_set(o, s->errors[i].reason, mr_json_int((int64_t)s->errors[i].n));
    return o;
}

struct mr_json *mr_decoded_by_json(const struct mr_pipeline_stats *s)
{
    struct mr_json *o = mr_json_object();
    mr_json_set(o, "own", mr_json_int((int64_t)s->decoded_by[MR_PATH_OWN]));
    mr_json_set(o, "turbo", mr_json_int((int64_t)s->decoded_by[MR_PATH_TURBO]));
    mr_json_set(o, "png", mr_json_int((int64_t)s->decoded_by[MR_PATH_PNG]));
    return o;
}

/* Seconds, or null when that was not reached. */
static struct mr_json *reached(double s)
{
    return s < 0 ? mr_json_null() : mr_json_real(s);
}

static struct mr_json *checkpoints(const struct mr_train_result *r)
{
    struct mr_json *a = mr_json_array();
    for (unsigned i = 0; i < r->n_records; i++) {
        const struct mr_checkpoint_record *c = &r->record[i];
        struct mr_json *o = mr_json_object();
        mr_json_set(o, "step", mr_json_int((int64_t)c->step));
        mr_json_set(o, "bytes", mr_json_int((int64_t)c->bytes));
        mr_json_set(o, "stall_s", mr_json_real(c->stall_s));
        mr_json_set(o, "snapshot_s", reached(c->snapshot_s));
        mr_json_set(o, "durable_fast_s", reached(c->durable_fast_s));
        mr_json_set(o, "durable_slow_s", reached(c->durable_slow_s));
        mr_json_set(o, "fell_back", mr_json_bool(c->fell_back));
        mr_json_set(o, "error", c->code ? mr_json_int(c->code) : mr_json_null());
        mr_json_append(a, o);
    }
    return a;
}

struct mr_json *mr_train_result_json(const struct mr_train_opts *o, const struct mr_train_result *r)
{
    struct mr_json *j = mr_json_object();
    int learns = o->device.kind == MR_ON_CPU;
    mr_json_set(j, "steps", mr_json_int((int64_t)r->steps));
    mr_json_set(j, "seconds", mr_json_real(r->seconds));
    mr_json_set(j, "input_wait_s", mr_json_real(r->input_wait_s));
    mr_json_set(j, "input_wait_share", mr_json_real(mr_train_wait_share(r)));
    mr_json_set(j, "first_fill_s", mr_json_real(r->first_fill_s));
    mr_json_set(j, "compute_s", mr_json_real(r->compute_s));
    mr_json_set(j, "checkpoint_stall_s", mr_json_real(r->checkpoint_stall_s));
    mr_json_set(j, "images", mr_json_int((int64_t)r->images));
    mr_json_set(j, "images_per_s", mr_json_real(mr_train_images_per_s(r)));
    mr_json_set(j, "au", mr_json_real(r->au));
    mr_json_set(j, "harness_s_per_step", mr_json_real(r->harness_s));
    mr_json_set(j, "loss", learns ? per_step(r, loss_of) : mr_json_array());
    mr_json_set(j, "step_s", per_step(r, seconds_of));
    mr_json_set(j, "wait_s", per_step(r, wait_of));
    mr_json_set(j, "accuracy", mr_json_real(r->accuracy));
    mr_json_set(j, "train_accuracy", learns ? mr_json_real(r->train_accuracy) : mr_json_null());
    mr_json_set(j, "eval_s", mr_json_real(r->eval_s));
    mr_json_set(j, "reached_s", r->reached ? mr_json_real(r->reached_s) : mr_json_null());
    mr_json_set(j, "threads", mr_json_int(r->cores.map_workers));
    mr_json_set(j, "compute_threads", mr_json_int(r->cores.compute_threads));
    mr_json_set(j, "engine",
                mr_json_string(o->pipe.engine == MR_ENGINE_URING ? "uring" : "threads"));
    mr_json_set(j, "batch", mr_json_int(o->pipe.batch));
    mr_json_set(j, "prefetch", mr_json_int(o->pipe.prefetch == MR_NONE ? 0 : o->pipe.prefetch));
    mr_json_set(j, "device", mr_json_string(o->device.name));
    mr_json_set(j, "accelerators", mr_json_int(o->device.n));
    mr_json_set(j, "synthetic", mr_json_bool(o->synthetic || !o->data));
    mr_json_set(j, "skipped", mr_json_int((int64_t)r->stats.replaced));
    mr_json_set(j, "errors", errors(&r->stats));
    mr_json_set(j, "decoded_by",
                o->synthetic || !o->data ? mr_json_null() : mr_decoded_by_json(&r->stats));
    mr_json_set(j, "delivered_bytes", mr_json_int((int64_t)r->stats.delivered_bytes));
    mr_json_set(j, "checkpoints", checkpoints(r));
    mr_json_set(j, "checkpoints_skipped", mr_json_int((int64_t)r->checkpoint.skipped));
    mr_json_set(j, "checkpoints_waited", mr_json_int((int64_t)r->checkpoint.waited));
    mr_json_set(j, "checkpoint_wait_s", mr_json_real(r->checkpoint.waited_s));
    mr_json_set(j, "drain_s", mr_json_real(r->drain_s));
    mr_json_set(j, "state_bytes", mr_json_int((int64_t)r->state_bytes));
    mr_json_set(j, "resumed_from", r->from.resumed ? mr_json_string(r->from.path) : mr_json_null());
    mr_json_set(j, "first_step", mr_json_int((int64_t)r->from.step + 1));
    mr_json_set(j, "partial", mr_json_bool(r->partial));
    return j;
}
