/* exp_overlap.c - overlap of input and training (Figure 6).
 *
 * The accelerator is emulated and takes the study's 1.5 s a step; a quick study does fewer steps,
 * never shorter ones.  Files of the real storage are evicted before a run, those of an emulated one
 * are read ahead. */
#include "lab.h"

#define STEP_S      1.5 /* the study's GPUs took 1 to 2 s */
#define QUICK_STEPS 2
#define FULL_STEPS  142 /* an epoch of Caltech-101 */

static uint64_t n_steps(const struct mr_lab *lab)
{
    return lab->o->full ? FULL_STEPS : QUICK_STEPS;
}

/* Times of the steps from `first` on; the first fill is a part of step 0. */
static void add_steps(const struct mr_train_result *r, unsigned first, struct mr_overlap_point *p)
{
    struct mr_json *each = mr_json_array();
    double wait = 0;
    for (uint64_t i = first; i < r->steps; i++) {
        double fill = i ? 0 : r->first_fill_s;
        p->seconds += fill + r->step[i].step_s;
        wait += fill + r->step[i].wait_s;
        mr_json_append(each, mr_json_real(fill + r->step[i].step_s));
    }
    p->step_s = p->seconds / p->steps;
    p->wait_share = wait / p->seconds;
    p->each_step_s = each;
}

static int overlap_point(struct mr_lab *lab, const struct mr_lab_storage *s, unsigned threads,
                         unsigned prefetch, int synthetic)
{
    struct mr_train_opts t;
    struct mr_train_result r = {0};
    struct mr_lab_input input;
    mr_lab_training(lab, STEP_S, s, &t);
    t.pipe.threads = threads;
    t.pipe.prefetch = prefetch ? prefetch : MR_NONE;
    /* Where input is prepared ahead the first step does not count: nothing could be.  Without
     * prefetch every step begins with nothing, and the first fill is the first one's wait. */
    unsigned first = prefetch || synthetic;
    t.steps = n_steps(lab) + first;
    t.synthetic = synthetic;
    int code = mr_lab_make_ready(lab, &t, &input);
    if (!code)
        code = mr_lab_train(lab, s, &t, &input, &r);
    if (!code && r.steps > first) {
        struct mr_overlap_point p = {.storage = s->name,
                                     .emulated = s->device != NULL,
                                     .prefetch = prefetch,
                                     .threads = threads,
                                     .synthetic = synthetic,
                                     .device = t.device.name,
                                     .steps = (double)(r.steps - first),
                                     .first_fill_s = r.first_fill_s,
                                     .cold = input.cold,
                                     .late_share = input.late_share};
        add_steps(&r, first, &p);
        mr_lab_point(lab, mr_overlap_point_json(&p));
    }
    mr_train_result_fini(&r);
    return code;
}

static int run(struct mr_lab *lab)
{
    for (unsigned prefetch = 0; prefetch < 2; prefetch++)
        mr_lab_command(lab,
                       "millrace train %s --device emulated:%g --steps %llu --threads 8 "
                       "--prefetch %u --storage hdd",
                       lab->input, STEP_S, (unsigned long long)n_steps(lab) + prefetch, prefetch);
    mr_lab_command(lab, "millrace train --synthetic --device emulated:%g --steps %llu", STEP_S,
                   (unsigned long long)n_steps(lab) + 1);
    mr_lab_say(lab, "without input");
    int r = overlap_point(lab, &lab->storage[0], 1, 1, 1);
    for (unsigned i = 0; !r && i < MR_LAB_STORAGES; i++) {
        unsigned threads[4], n = mr_lab_threads(lab, &lab->storage[i], threads);
        for (unsigned k = 0; !r && k < 2 * n; k++) {
            unsigned prefetch = k % 2 == 0;
            if (mr_lab_skips(lab, k / 2, n))
                continue;
            mr_lab_say(lab, "%s, %u threads, prefetch %u", lab->storage[i].name, threads[k / 2],
                       prefetch);
            r = overlap_point(lab, &lab->storage[i], threads[k / 2], prefetch, 0);
        }
    }
    return r;
}

/* Quick: at most 29 points of two or three steps of 1.5 s. */
const struct mr_experiment mr_experiment_overlap = {.quick_s = 122, .full_s = 9400, .run = run};
