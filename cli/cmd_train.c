/* cmd_train.c - `millrace train`: the mini-application. */
#include "commands.h"

#include "cache_sweep.h"
#include "device.h"
#include "errtext.h"
#include "input.h"
#include "output.h"
#include "say.h"
#include "terminal.h"
#include "tracing.h"
#include "train_verdict.h"

#include <millrace/store.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct job {
    const struct options *o;
    struct mr_train_opts t;
    struct mr_dataset *data, *train, *held; /* all of it; what is trained on; what is tested on */
    const char *path;
    struct mr_device *storage, *fast_storage, *slow_storage;
    struct mr_checkpoint_opts checkpoint;
    struct ledger_file ledger;
    struct output out;
    int tracing;
    struct mr_trace_stats traced;
};

/* "training, loss 2.303, test 41.0%, waiting for input 3.1%" */
static void put_progress(const struct mr_train_progress *now, char *buf, size_t cap)
{
    size_t n = (size_t)snprintf(buf, cap, "%s", now->what);
    if (isfinite(now->loss) && n < cap)
        n += (size_t)snprintf(buf + n, cap - n, ", loss %.3f", now->loss);
    if (isfinite(now->held_accuracy) && n < cap)
        n += (size_t)snprintf(buf + n, cap - n, ", test %.1f%%", 100 * now->held_accuracy);
    if (!strcmp(now->what, "training") && n < cap)
        snprintf(buf + n, cap - n, ", waiting for input %.1f%%", 100 * now->wait_share);
}

static void on_progress(void *ctx, const struct mr_train_progress *now)
{
    const struct job *j = ctx;
    char what[96];
    if (now->saves_none && !strcmp(now->what, "filling"))
        say_to(stderr,
               "note: this run saves no checkpoint: it ends at step %llu, and one is due every %u; "
               "leave out --no-final-checkpoint or take a smaller --every\n",
               (unsigned long long)now->steps, j->o->every);
    if (!strcmp(now->what, "saving") && terminal_interrupted(NULL))
        snprintf(what, sizeof what, "saving; Ctrl-C again ends at once");
    else
        put_progress(now, what, sizeof what);
    progress_step(now->what, what, now->step, now->steps);
}

static int usage(const char *fmt, const char *value)
{
    say_to(stderr, "millrace train: ");
    say_to(stderr, fmt, value);
    say_to(stderr, "\nTry 'millrace train --help'.\n");
    return 2;
}

/* --eval: "10%" keeps a tenth out, anything else is a list or a folder. */
static int open_held(struct job *j)
{
    const char *text = j->o->eval;
    struct mr_error err = {0};
    char *end;
    j->train = mr_dataset_ref(j->data);
    if (!text)
        return 0;
    double percent = strtod(text, &end);
    if (!strcmp(end, "%")) {
        if (!(percent > 0 && percent < 100))
            return usage("--eval %s: a share lies between 0%% and 100%%", text);
        mr_dataset_unref(j->train);
        j->train = NULL;
        if (mr_dataset_split(j->data, percent / 100, j->o->seed, &j->train, &j->held, &err)) {
            say_to(stderr, "millrace train: --eval: %s\n", err.text);
            return 1;
        }
        if (!mr_dataset_size(j->held))
            return usage("--eval %s of this data set is not a single image", text);
        return 0;
    }
    if (mr_dataset_open(text, &j->held, &err)) {
        say_to(stderr, "millrace: --eval: %s\n", err.text);
        return 1;
    }
    return 0;
}

static int parse_until(struct job *j)
{
    static const char prefix[] = "accuracy=";
    const char *text = j->o->until;
    char *end;
    if (!text)
        return 0;
    if (strncmp(text, prefix, sizeof prefix - 1))
        return usage("--until %s: it takes accuracy=X, with X between 0 and 1", text);
    j->t.until_accuracy = strtod(text + sizeof prefix - 1, &end);
    if (*end || !(j->t.until_accuracy > 0 && j->t.until_accuracy <= 1))
        return usage("--until %s: it takes accuracy=X, with X between 0 and 1", text);
    return j->o->eval ? 0 : usage("--until %s needs --eval", text);
}

static int open_device(const char *profile, const char *option, struct mr_device **out)
{
    struct mr_error err = {0};
    if (!profile || !mr_device_open(profile, out, &err))
        return 0;
    say_to(stderr, "millrace train: --%s: %s\n", option, err.text);
    return 2;
}

static void on_passed_over(void *ctx, const char *path, const char *why)
{
    (void)ctx;
    say_to(stderr, "passed over %s: %s\n", path, why);
}

static void on_waiting(void *ctx, const char *text)
{
    (void)ctx;
    progress_hide();
    say_to(stderr, "note: %s\n", text);
}

/* --checkpoint and what belongs to it. */
static int understand_checkpoints(struct job *j)
{
    const struct options *o = j->o;
    if (!o->checkpoint_dir)
        return o->drain || o->resume || o->no_final_checkpoint || o->checkpoint_storage ||
                       o->drain_storage
                   ? usage("--drain, --resume, --no-final-checkpoint and storages of checkpoints "
                           "need --checkpoint DIR%s",
                           "")
                   : 0;
    if (o->drain_storage && !o->drain)
        return usage("--drain-storage %s needs --drain DIR", o->drain_storage);
    int status = open_device(o->checkpoint_storage, "checkpoint-storage", &j->fast_storage);
    if (!status)
        status = open_device(o->drain_storage, "drain-storage", &j->slow_storage);
    j->checkpoint = (struct mr_checkpoint_opts){
        .dir = o->checkpoint_dir,
        .drain_dir = o->drain,
        .mode = o->checkpoint_mode,
        .format = o->format,
        .packed = o->packed,
        .keep = o->keep ? o->keep : MR_NONE,
        .drain_bytes_per_s = o->drain_rate,
        .if_busy = o->if_busy,
        .storage = j->fast_storage,
        .drain_storage = j->slow_storage,
        .fresh = !o->resume,
        .waiting = on_waiting,
    };
    j->t.checkpoint = &j->checkpoint;
    j->t.checkpoint_every = o->every;
    j->t.final_checkpoint = !o->no_final_checkpoint;
    j->t.resume = o->resume;
    j->t.passed_over = on_passed_over;
    return status;
}

/* What the options say, checked against each other. */
static int understand(struct job *j)
{
    const struct options *o = j->o;
    struct mr_error err = {0};
    if (mr_accelerator_spec_parse(o->accelerator, &j->t.device, &err))
        return usage("--device: %s", err.text);
    int emulated = j->t.device.kind == MR_EMULATED;
    if (o->threads.n > 1)
        return usage("--threads takes one number here, not %s", "a list");
    if (emulated && (o->eval || o->until))
        return usage("%s learns nothing, so there is nothing to --eval", o->accelerator);
    if (!emulated && (o->image_size.width != 224 || o->image_size.height != 224))
        return usage("the network takes images of 224 x 224: --image-size%s", "");
    if (!emulated && (o->dtype != DTYPE_F32 || o->layout != MR_IMAGE_NHWC))
        return usage("the network takes --dtype f32 --layout nhwc%s", "");
    j->t.decode = input_decoder(o);
    j->t.pipe = input_pipeline(o, o->threads.n ? o->threads.value[0] : 0);
    j->t.pipe.batches = 0;
    if (j->t.device.own_batch && !o->batch_given)
        j->t.pipe.batch = j->t.device.own_batch;
    j->t.epochs = o->epochs;
    j->t.steps = o->steps;
    j->t.synthetic = o->synthetic;
    j->t.learning_rate = o->learning_rate;
    j->t.compute_threads = o->compute_threads;
    j->t.progress = on_progress;
    j->t.progress_ctx = j;
    int status = parse_until(j);
    return status ? status : understand_checkpoints(j);
}

static int open_input(struct job *j)
{
    const struct options *o = j->o;
    if (o->synthetic && !o->data && !o->list)
        return o->eval ? usage("--eval needs a data set%s", "") : 0;
    int status = input_open_data(o, &j->data, &j->path);
    if (!status)
        status = input_open_storage(o, &j->storage);
    j->t.pipe.storage = j->storage;
    if (!status)
        status = open_held(j);
    j->t.data = j->train;
    j->t.held = j->held;
    /* The classes of the whole set, also those that only held-out images have. */
    if (!status)
        j->t.n_classes = mr_dataset_n_classes(j->data);
    return status;
}

/* --cold, --warm, --drop-caches: 0, or an exit status after a message. */
static int prepare_cache(struct job *j, const char **cold)
{
    const struct options *o = j->o;
    struct mr_cache_sweep sweep = {0};
    if (!j->data || !(o->cold || o->drop_caches))
        return 0;
    int r = mr_cache_sweep_data(&sweep, j->data, 1, terminal_interrupted, NULL);
    if (r)
        return r == -ECANCELED ? 130 : 1;
    *cold = sweep.n_unproven ? "unproven" : o->drop_caches ? "data+metadata" : "data";
    if (!o->drop_caches)
        return 0;
    r = mr_cache_drop_all(NULL);
    if (r)
        say_to(stderr, "millrace train: cannot drop the system's caches: %s (needs root)\n",
               mr_errno_text(r));
    return r ? 1 : 0;
}

/* "ssd; checkpoints: optane" */
static void name_storages(const struct job *j, char *buf, size_t cap)
{
    const struct {
        const char *what;
        const struct mr_device *device;
    } all[] = {{"", j->storage}, {"checkpoints: ", j->fast_storage}, {"drain: ", j->slow_storage}};
    size_t n = 0;
    buf[0] = 0;
    for (unsigned i = 0; i < sizeof all / sizeof *all && n < cap; i++)
        if (all[i].device)
            n += (size_t)snprintf(buf + n, cap - n, "%s%s%s", n ? "; " : "", all[i].what,
                                  mr_device_name(all[i].device));
}

/* The trace, if one is asked for, says what in it is emulated. */
static int start_trace(const struct job *j)
{
    char storage[160], accelerator[64];
    name_storages(j, storage, sizeof storage);
    int status = tracing_start(j->o, j->train, storage[0] ? storage : NULL);
    if (!status && j->t.device.kind == MR_EMULATED) {
        snprintf(accelerator, sizeof accelerator, "emulated accelerator: %.40s", j->t.device.name);
        mr_trace_mark(accelerator);
    }
    return status;
}

static void print_heading(const struct job *j)
{
    input_print_storage("", j->storage);
    input_print_storage(" of checkpoints", j->fast_storage);
    input_print_storage(" of drained checkpoints", j->slow_storage);
    if (j->train)
        say("%s: %llu image%s, %u class%s; ", j->path,
            (unsigned long long)mr_dataset_size(j->train), plural(mr_dataset_size(j->train)),
            j->t.n_classes, j->t.n_classes == 1 ? "" : "es");
    say("%s, batch %u", j->t.device.name, j->t.pipe.batch);
    if (j->t.device.n > 1)
        say(" x %u", j->t.device.n);
    if (j->t.synthetic)
        say(", synthetic: one batch in memory\n");
    else
        say(", prefetch %u\n", j->t.pipe.prefetch == MR_NONE ? 0 : j->t.pipe.prefetch);
    fflush(stdout);
}

static void print_checkpoints(const struct job *j, const struct mr_train_result *r)
{
    char bytes[32];
    if (r->from.resumed)
        say("resumed from %s, step %llu\n", r->from.path, (unsigned long long)r->from.step);
    for (unsigned i = 0; i < r->n_records; i++) {
        const struct mr_checkpoint_record *c = &r->record[i];
        say("checkpoint at step %llu: %s, stall %.4f s", (unsigned long long)c->step,
            human_bytes((double)c->bytes, bytes, sizeof bytes), c->stall_s);
        if (c->durable_fast_s >= 0)
            say(", durable after %.2f s", c->durable_fast_s);
        if (j->o->drain && c->durable_slow_s >= 0)
            say(", drained after %.2f s", c->durable_slow_s);
        say("%s%s\n", c->fell_back ? ", went to the slow tier" : "", c->code ? ", FAILED" : "");
    }
    if (r->checkpoint.skipped)
        say("%llu checkpoint%s skipped: the buffers were busy\n",
            (unsigned long long)r->checkpoint.skipped,
            r->checkpoint.skipped == 1 ? " was" : "s were");
    if (r->checkpoint.waited)
        say("%llu checkpoint%s waited for room, %.2f s in all\n",
            (unsigned long long)r->checkpoint.waited, plural(r->checkpoint.waited),
            r->checkpoint.waited_s);
    if (r->checkpoint.notice[0])
        say("%s\n", r->checkpoint.notice);
}

static void print_result(const struct job *j, const struct mr_train_result *r,
                         const struct mr_verdict *v)
{
    double n = r->steps ? (double)r->steps : 1, total = r->seconds > 0 ? r->seconds : 1;
    say("%llu step%s in %.2f s", (unsigned long long)r->steps, r->steps == 1 ? "" : "s",
        r->seconds);
    if (j->train)
        say(" after a first fill of %.2f s", r->first_fill_s);
    say("; %.0f images/s, %u map worker%s", mr_train_images_per_s(r), r->cores.map_workers,
        r->cores.map_workers == 1 ? "" : "s");
    if (r->cores.compute_threads)
        say(", %u compute thread%s on %u core%s", r->cores.compute_threads,
            r->cores.compute_threads == 1 ? "" : "s", r->cores.n, plural(r->cores.n));
    say("\n%-22s %10s %8s\n", "", "s a step", "share");
    say("%-22s %10.4f %7.1f%%\n", "waiting for input", r->input_wait_s / n,
        100 * mr_train_wait_share(r));
    say("%-22s %10.4f %7.1f%%\n", "computing", r->compute_s / n, 100 * r->compute_s / total);
    say("%-22s %10.4f %7.1f%%\n", "checkpoint stall", r->checkpoint_stall_s / n,
        100 * r->checkpoint_stall_s / total);
    if (isfinite(r->au))
        say("accelerator utilization %.1f%%, first step left out%s\n", 100 * r->au,
            j->t.device.minimum_au > 0 && !j->t.synthetic
                ? r->au >= j->t.device.minimum_au ? " (the benchmark asks for 90%: passed)"
                                                  : " (the benchmark asks for 90%: missed)"
                : "");
    if (j->t.device.kind == MR_ON_CPU && r->steps)
        say("loss %.4f -> %.4f\n", r->step[0].loss, r->step[r->steps - 1].loss);
    print_checkpoints(j, r);
    if (isfinite(r->accuracy))
        say("accuracy on %llu held-out image%s: %.2f%%\n",
            (unsigned long long)mr_dataset_size(j->held), plural(mr_dataset_size(j->held)),
            100 * r->accuracy);
    if (r->reached)
        say("reached --until %s after %.1f s\n", j->o->until, r->reached_s);
    if (r->stats.replaced)
        say("%llu bad image%s replaced\n", (unsigned long long)r->stats.replaced,
            r->stats.replaced == 1 ? " was" : "s were");
    if (j->train && !j->t.synthetic && r->steps)
        say("%s\n", v->text);
    if (r->partial)
        say("stopped early: this is what was done until then\n");
}

static int report(struct job *j, const struct mr_train_result *r, const char *cold)
{
    struct mr_verdict verdict;
    mr_train_judge(&j->t, r, &verdict);
    if (!j->out.quiet)
        print_result(j, r, &verdict);
    struct mr_json *results = mr_json_array(), *one = mr_train_result_json(&j->t, r);
    int fed = j->train && !j->t.synthetic;
    mr_json_set(one, "storage", mr_json_string(j->storage ? mr_device_name(j->storage) : NULL));
    mr_json_set(one, "emulated", mr_json_bool(j->storage || j->t.device.kind == MR_EMULATED));
    mr_json_set(one, "calibrated",
                mr_json_string(j->storage ? mr_device_calibrated(j->storage) : NULL));
    mr_json_set(one, "cold", mr_json_string(cold));
    mr_json_set(one, "verdict", fed ? mr_json_string(verdict.text) : mr_json_null());
    mr_json_set(one, "limit", fed ? mr_json_string(mr_limit_name(verdict.limit)) : mr_json_null());
    mr_json_set(one, "trace", j->tracing ? tracing_json(j->o->trace, &j->traced) : mr_json_null());
    mr_json_append(results, one);
    return output_json(&j->out, j->o, j->path, results);
}

int command_train(const struct options *o)
{
    struct job j = {.o = o};
    struct mr_train_result result = {0};
    struct mr_error err = {0};
    const char *cold = NULL;
    int status = understand(&j);
    if (!status)
        status = open_input(&j);
    if (!status)
        status = output_open(o, &j.out) || ledger_open(&j.ledger, o->ledger);
    if (!status)
        status = prepare_cache(&j, &cold);
    if (!status)
        status = start_trace(&j);
    if (!status) {
        ledger_attach(&j.ledger, &j.t.pipe);
        if (!j.out.quiet)
            print_heading(&j);
        j.tracing = o->trace != NULL;
        int r = mr_train_run(&j.t, &result, &err);
        progress_clear();
        int untraced = j.tracing ? tracing_stop(&j.traced) : 0;
        if (r && r != -ECANCELED)
            input_say_error("train", &err);
        if (r == -EEXIST)
            say_to(stderr, "To go on with it: --resume. To begin anew: --checkpoint DIR with %s.\n",
                   j.o->drain ? "another folder, and --drain DIR with another one"
                              : "another folder");
        status = r == -ECANCELED ? 130 : r || untraced ? 1 : 0;
        if ((!r || result.partial) && report(&j, &result, cold))
            status = status ? status : 1;
    }
    if (ledger_close(&j.ledger) && !status)
        status = 1;
    mr_train_result_fini(&result);
    mr_device_close(j.fast_storage);
    mr_device_close(j.slow_storage);
    mr_device_close(j.storage);
    mr_dataset_unref(j.held);
    mr_dataset_unref(j.train);
    mr_dataset_unref(j.data);
    return status;
}
