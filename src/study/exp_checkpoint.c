/* exp_checkpoint.c - what training pays for checkpoints (Figure 9).
 *
 * The whole state of the study's network, 704 MB, is saved once between a few steps of 1.5 s; the
 * share is that of a checkpoint every 20 steps, as the study had them.  Images come from the
 * emulated SSD, checkpoints go to emulated devices, and to the real storage beside them. */
#include "lab.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#define STEP_S      1.5
#define EVERY       20
#define QUICK_STEPS 3 /* with one checkpoint after the second */
#define IMAGES      2 /* come from the emulated SSD */

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

static struct mr_device *device(struct mr_lab *lab, const char *name)
{
    for (unsigned i = 0; name && i < MR_LAB_STORAGES; i++)
        if (!strcmp(lab->storage[i].name, name))
            return lab->storage[i].device;
    return NULL;
}

static struct mr_json *point(const struct way *w, const struct mr_train_result *r)
{
    struct mr_json *p = mr_json_object();
    double stall = r->checkpoint_stall_s, fast = NAN, slow = NAN, per_one = 0;
    if (r->n_records) {
        fast = r->record[0].durable_fast_s;
        slow = w->drain ? r->record[0].durable_slow_s : NAN;
        per_one = stall / r->n_records;
    }
    mr_json_set(p, "mode", mr_json_string(w->name));
    mr_json_set(p, "storage", mr_json_string(w->storage));
    mr_json_set(p, "drain", mr_json_string(w->drain));
    mr_json_set(p, "emulated", mr_json_bool(w->storage && strcmp(w->storage, "disk")));
    mr_json_set(p, "steps", mr_json_int((int64_t)r->steps));
    mr_json_set(p, "step_s", mr_json_real(STEP_S));
    mr_json_set(p, "seconds", mr_json_real(r->seconds - r->first_fill_s));
    mr_json_set(p, "checkpoints", mr_json_int(r->n_records));
    mr_json_set(p, "stall_s", mr_json_real(stall));
    mr_json_set(p, "share", mr_json_real(per_one / (per_one + EVERY * STEP_S)));
    mr_json_set(p, "durable_fast_s", mr_json_real(fast));
    mr_json_set(p, "durable_slow_s", mr_json_real(slow));
    mr_json_set(p, "bytes",
                r->n_records ? mr_json_int((int64_t)r->record[0].bytes) : mr_json_int(0));
    return p;
}

static int measure(struct mr_lab *lab, const struct way *w)
{
    struct mr_train_opts t;
    struct mr_train_result result;
    struct mr_lab_input input;
    char fast[PATH_MAX] = "", slow[PATH_MAX] = "";
    struct mr_checkpoint_opts how = {.mode = w->mode,
                                     .keep = 1,
                                     .storage = device(lab, w->storage),
                                     .drain_storage = device(lab, w->drain)};
    mr_lab_say(lab, "%s%s%s%s%s", w->name, w->storage ? " to " : "", w->storage ? w->storage : "",
               w->drain ? ", then to " : "", w->drain ? w->drain : "");
    mr_lab_training(lab, STEP_S, &lab->storage[IMAGES], &t);
    t.steps = lab->o->full ? 5 * EVERY : QUICK_STEPS;
    int r = 0;
    if (w->storage) {
        r = mr_lab_make_dir(lab, "fast", fast, sizeof fast);
        if (!r && w->drain)
            r = mr_lab_make_dir(lab, "slow", slow, sizeof slow);
        how.dir = fast;
        how.drain_dir = slow[0] ? slow : NULL;
        t.checkpoint = &how;
        t.checkpoint_every = lab->o->full ? EVERY : QUICK_STEPS - 1;
    }
    if (!r)
        r = mr_lab_make_ready(lab, &t, &input);
    if (!r) {
        r = mr_lab_train(lab, &lab->storage[IMAGES], &t, &input, &result);
        if (!r) {
            struct mr_json *p = point(w, &result);
            mr_json_set(p, "late_share", mr_json_real(input.late_share));
            mr_lab_point(lab, p);
        }
        mr_train_result_fini(&result);
    }
    if (fast[0])
        mr_lab_remove_dir(fast);
    if (slow[0])
        mr_lab_remove_dir(slow);
    return r;
}

static void tell_command(struct mr_lab *lab, const char *how)
{
    mr_lab_command(lab,
                   "millrace train %s --storage ssd --device emulated:%g --steps %d --checkpoint "
                   "fast --every %d --keep 1 %s",
                   lab->input, STEP_S, lab->o->full ? 5 * EVERY : QUICK_STEPS,
                   lab->o->full ? EVERY : QUICK_STEPS - 1, how);
}

int mr_exp_checkpoint(struct mr_lab *lab)
{
    tell_command(lab, "--mode sync --checkpoint-storage hdd");
    tell_command(lab, "--mode burst --checkpoint-storage optane --drain slow --drain-storage hdd");
    tell_command(lab, "--mode lazy --checkpoint-storage optane --drain slow --drain-storage hdd");
    int r = mr_lab_checkpoint_room(lab, lab->err);
    for (unsigned i = 0; !r && i < sizeof ways / sizeof *ways; i++)
        r = measure(lab, &ways[i]);
    return r;
}
