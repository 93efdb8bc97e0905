/* exp_checkpoint.c - what training pays for checkpoints (Figure 9).
 *
 * The whole state of the study's network, 704 MB, is saved between a few steps of 1.5 s; the share
 * is that of a checkpoint every 20 steps, as the study had them.  Images come from the emulated
 * SSD, checkpoints go to emulated devices, and to the real storage beside them.
 *
 * A quick study takes two checkpoints where training waits for all of them: how far their stalls
 * lie apart is what a difference between two studies is held against.  What goes on in the
 * background takes longer than the few steps, and a second one would wait for it, which no
 * checkpoint does 20 steps later: there is one. */
#include "lab.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define STEP_S 1.5
#define EVERY  20
#define IMAGES 2 /* come from the emulated SSD */

struct way {
    const char *name;
    enum mr_checkpoint_mode mode;
    const char *storage, *drain; /* NULL: none */
};

static const struct way ways[] = {
    {"none", 0, NULL, NULL},
    {"sync", MR_CHECKPOINT_SYNC, "hdd", NULL},
    {"sync", MR_CHECKPOINT_SYNC, "ssd", NULL},
    {"sync", MR_CHECKPOINT_SYNC, "optane", NULL},
    {"sync", MR_CHECKPOINT_SYNC, "lustre", NULL},
    {"burst", MR_CHECKPOINT_BURST, "optane", "hdd"},
    {"lazy", MR_CHECKPOINT_LAZY, "optane", "hdd"},
    {"sync", MR_CHECKPOINT_SYNC, "disk", NULL},
    {"lazy", MR_CHECKPOINT_LAZY, "disk", NULL},
};

/* Steps of a run, and how many of them lie between checkpoints. */
struct plan {
    unsigned steps, every, keep;
};

static struct plan plan_of(const struct mr_lab *lab, const struct way *w)
{
    if (lab->o->full)
        return (struct plan){5 * EVERY, EVERY, 1};
    if (w->storage && w->mode == MR_CHECKPOINT_SYNC)
        return (struct plan){2, 1, 2};
    return (struct plan){3, 2, 1};
}

static struct mr_device *device(struct mr_lab *lab, const char *name)
{
    for (unsigned i = 0; name && i < MR_LAB_STORAGES; i++)
        if (!strcmp(lab->storage[i].name, name))
            return lab->storage[i].device;
    return NULL;
}

/* Seconds that each checkpoint stopped training: from the step after which it began to the next
 * checkpoint. */
static struct mr_json *stalls(const struct mr_train_result *r, unsigned every)
{
    struct mr_json *list = mr_json_array();
    for (unsigned k = 1; k <= r->n_records; k++) {
        double sum = 0;
        for (uint64_t i = (uint64_t)k * every - 1;
             i < r->steps && (k == r->n_records || i < (k + 1ull) * every - 1); i++)
            sum += r->step[i].stall_s;
        mr_json_append(list, mr_json_real(sum));
    }
    return list;
}

static struct mr_json *point(const struct way *w, const struct mr_train_result *r, unsigned every,
                             double late_share)
{
    double stall = r->checkpoint_stall_s, fast = NAN, slow = NAN, per_one = 0;
    if (r->n_records) {
        fast = r->record[0].durable_fast_s;
        slow = w->drain ? r->record[0].durable_slow_s : NAN;
        per_one = stall / r->n_records;
    }
    struct mr_checkpoint_point p = {.mode = w->name,
                                    .storage = w->storage,
                                    .emulated = w->storage && strcmp(w->storage, "disk"),
                                    .drain = w->drain,
                                    .steps = (double)r->steps,
                                    .step_s = STEP_S,
                                    .seconds = r->seconds,
                                    .checkpoints = r->n_records,
                                    .stall_s = stall,
                                    .each_stall_s = stalls(r, every),
                                    .share = per_one / (per_one + EVERY * STEP_S),
                                    .durable_fast_s = fast,
                                    .durable_slow_s = slow,
                                    .bytes = r->n_records ? (double)r->record[0].bytes : 0,
                                    .late_share = late_share};
    return mr_checkpoint_point_json(&p);
}

static int measure(struct mr_lab *lab, const struct way *w)
{
    struct mr_train_opts t;
    struct mr_train_result result;
    struct mr_lab_input input;
    char fast[PATH_MAX] = "", slow[PATH_MAX] = "";
    struct plan plan = plan_of(lab, w);
    struct mr_checkpoint_opts how = {.mode = w->mode,
                                     .keep = plan.keep,
                                     .storage = device(lab, w->storage),
                                     .drain_storage = device(lab, w->drain)};
    mr_lab_say(lab, "%s%s%s%s%s", w->name, w->storage ? " to " : "", w->storage ? w->storage : "",
               w->drain ? ", then to " : "", w->drain ? w->drain : "");
    mr_lab_training(lab, STEP_S, &lab->storage[IMAGES], &t);
    t.steps = plan.steps;
    int r = 0;
    if (w->storage) {
        r = mr_lab_make_dir(lab, "fast", fast, sizeof fast);
        if (!r && w->drain)
            r = mr_lab_make_dir(lab, "slow", slow, sizeof slow);
        how.dir = fast;
        how.drain_dir = slow[0] ? slow : NULL;
        t.checkpoint = &how;
        t.checkpoint_every = plan.every;
    }
    if (!r)
        r = mr_lab_make_ready(lab, &t, &input);
    if (!r) {
        r = mr_lab_train(lab, &lab->storage[IMAGES], &t, &input, &result);
        if (!r)
            mr_lab_point(lab, point(w, &result, plan.every, input.late_share));
        mr_train_result_fini(&result);
    }
    if (fast[0])
        mr_lab_remove_dir(fast);
    if (slow[0])
        mr_lab_remove_dir(slow);
    return r;
}

static void tell_command(struct mr_lab *lab, const struct way *w)
{
    struct plan plan = plan_of(lab, w);
    char drain[64] = "";
    if (w->drain)
        snprintf(drain, sizeof drain, " --drain slow --drain-storage %s", w->drain);
    mr_lab_command(lab,
                   "millrace train %s --storage ssd --device emulated:%g --steps %u --checkpoint "
                   "fast --every %u --keep %u --mode %s --checkpoint-storage %s%s",
                   lab->input, STEP_S, plan.steps, plan.every, plan.keep, w->name, w->storage,
                   drain);
}

static int run(struct mr_lab *lab)
{
    int r = mr_lab_checkpoint_room(lab, lab->err);
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++)
        if (ways[i].drain || (ways[i].storage && !strcmp(ways[i].storage, "hdd")))
            tell_command(lab, &ways[i]);
    for (unsigned i = 0; !r && i < sizeof ways / sizeof *ways; i++)
        r = measure(lab, &ways[i]);
    return r;
}

const struct mr_experiment mr_experiment_checkpoint = {.quick_s = 87, .full_s = 1600, .run = run};
