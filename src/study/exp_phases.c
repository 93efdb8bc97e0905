/* exp_phases.c - phases as merged intervals (NERSC's Figure 1), from a trace of a short run on the
 * emulated hard disk, with and without global shuffling.  In the middle of it a checkpoint is
 * written to the emulated Optane, so that all components of a run are there. */
#include "lab.h"

#include "errtext.h"
#include "trace_summary.h"

#include <millrace/trace.h>

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STEP_S    0.5
#define HDD       1 /* among the lab's storages */
#define OPTANE    3
#define MAX_SPANS 400 /* of a phase, in the page */

static const char *const shown[] = {"Read", "Load", "Wait", "Train", "Checkpoint"};

static int find_phase(const struct mr_trace_summary *s, const char *name)
{
    for (size_t i = 0; i < s->n_phases; i++)
        if (!strcmp(s->phase[i].name, name))
            return (int)i;
    return -1;
}

static void add_phase(const struct mr_trace_summary *s, const char *name, int train,
                      struct mr_json *phases, struct mr_json *spans)
{
    int at = find_phase(s, name);
    if (at < 0)
        return;
    const struct mr_phase_summary *p = &s->phase[at];
    double merged = (double)p->union_ns / 1e9;
    double hidden = train >= 0 && train != at
                        ? (double)mr_summary_overlap(s, (size_t)at, (size_t)train) / 1e9
                        : 0;
    struct mr_phase_times times = {.name = name,
                                   .union_s = merged,
                                   .sum_s = (double)p->sum_ns / 1e9,
                                   .bytes = (double)p->bytes,
                                   .mb_per_s = p->bytes ? (double)p->bytes / merged / 1e6 : NAN,
                                   .hidden_share = at == train ? NAN : hidden / merged};
    mr_json_append(phases, mr_phase_times_json(&times));
    for (size_t i = 0; i < p->n_when && i < MAX_SPANS; i++) {
        struct mr_json *span = mr_json_array();
        mr_json_append(span, mr_json_string(name));
        mr_json_append(span, mr_json_real((double)((int64_t)p->when[i].begin - s->begin_ns) / 1e9));
        mr_json_append(span, mr_json_real((double)((int64_t)p->when[i].end - s->begin_ns) / 1e9));
        mr_json_append(spans, span);
    }
}

/* Reading as a share of training, step by step: how far batches lie apart. */
static struct mr_json *step_shares(const struct mr_trace_summary *s)
{
    struct mr_json *list = mr_json_array();
    for (size_t i = 0; i < s->n_steps; i++)
        if (s->step[i].compute_ns && s->step[i].read_ns)
            mr_json_append(
                list, mr_json_real((double)s->step[i].read_ns / (double)s->step[i].compute_ns));
    return list;
}

/* What the trace in `path` says, as a point. */
static int read_trace(struct mr_lab *lab, const char *path, const char *shuffle,
                      const struct mr_lab_input *input)
{
    struct mr_trace_log *log = NULL;
    struct mr_trace_summary *s = NULL;
    int r = mr_trace_log_read(path, &log, lab->err);
    if (r)
        return r;
    const struct mr_trace_log *logs[] = {log};
    r = mr_trace_summarize(logs, 1, &s);
    if (!r) {
        struct mr_json *phases = mr_json_array(), *spans = mr_json_array();
        int train = find_phase(s, "Train"), read = find_phase(s, "Read");
        for (unsigned i = 0; i < sizeof shown / sizeof *shown; i++)
            add_phase(s, shown[i], train, phases, spans);
        struct mr_phases_point p = {
            .storage = lab->storage[HDD].name,
            .emulated = lab->storage[HDD].device != NULL,
            .shuffle = shuffle,
            .phases = phases,
            .spans = spans,
            .late_share = input->late_share,
            .read_share_of_train = train >= 0 && read >= 0 ? (double)s->phase[read].union_ns /
                                                                 (double)s->phase[train].union_ns
                                                           : NAN,
            .each_read_share = step_shares(s)};
        mr_lab_point(lab, mr_phases_point_json(&p));
    }
    mr_trace_summary_free(s);
    mr_trace_log_free(log);
    return r ? mr_fail(lab->err, r, "no memory for a trace") : 0;
}

static int trace_run(struct mr_lab *lab, const char *dir, enum mr_shuffle shuffle, const char *name)
{
    char path[PATH_MAX + 32], saved[PATH_MAX + 32];
    struct mr_train_opts t;
    struct mr_train_result result;
    struct mr_lab_input input;
    struct mr_error full = {0};
    struct mr_checkpoint_opts how = {.mode = MR_CHECKPOINT_SYNC,
                                     .keep = 1,
                                     .dir = saved,
                                     .storage = lab->storage[OPTANE].device};
    snprintf(path, sizeof path, "%s/%s.json", dir, name);
    snprintf(saved, sizeof saved, "%s/checkpoints-%s", dir, name);
    mr_lab_say(lab, "shuffle %s", name);
    mr_lab_training(lab, STEP_S, &lab->storage[HDD], &t);
    t.pipe.shuffle = shuffle;
    t.pipe.threads = 4;
    t.steps = lab->o->full ? 60 : 8;
    t.checkpoint_every = lab->o->full ? 20 : 5;
    if (!mr_lab_checkpoint_room(lab, &full))
        t.checkpoint = &how;
    else
        mr_lab_warn(lab, "Without a checkpoint: %s.", full.text);
    int r = mr_lab_make_ready(lab, &t, &input);
    if (!r)
        r = mr_trace_start(&(struct mr_trace_opts){.path = path}, lab->err);
    if (r)
        return r;
    r = mr_lab_train(lab, &lab->storage[HDD], &t, &input, &result);
    int stopped = mr_trace_stop(NULL, lab->err);
    mr_train_result_fini(&result);
    mr_lab_remove_dir(saved);
    r = r ? r : stopped;
    return r ? r : read_trace(lab, path, name, &input);
}

static int run(struct mr_lab *lab)
{
    char dir[PATH_MAX];
    for (unsigned i = 0; i < 2; i++)
        mr_lab_command(
            lab,
            "millrace train %s --storage hdd --device emulated:%g --threads 4 --steps %d "
            "--shuffle %s --checkpoint saved --checkpoint-storage optane --every %d "
            "--mode sync --keep 1 --trace run.json",
            lab->input, STEP_S, lab->o->full ? 60 : 8, i ? "none" : "global",
            lab->o->full ? 20 : 5);
    mr_lab_command(lab, "millrace inspect run.json");
    int r = mr_lab_make_dir(lab, "trace", dir, sizeof dir);
    if (r)
        return r;
    r = trace_run(lab, dir, MR_SHUFFLE_GLOBAL, "global");
    if (!r)
        r = trace_run(lab, dir, MR_SHUFFLE_NONE, "none");
    mr_lab_remove_dir(dir);
    return r;
}

const struct mr_experiment mr_experiment_phases = {
    .quick_s = 16, .full_s = 85, .traces = 1, .run = run};
