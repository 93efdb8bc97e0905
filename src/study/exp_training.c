/* exp_training.c - the mini-application: overlap of input and training (Figure 6), batch sizes
 * (Figure 7).
 *
 * The accelerator is emulated and takes the study's 1.5 s a step; a quick study does fewer steps,
 * never shorter ones.  Files of the real storage are evicted before a run, those of an emulated one
 * are read ahead. */
#include "lab.h"

#include "errtext.h"
#include "repeat.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define STEP_S            1.5 /* the study's GPUs took 1 to 2 s */
#define QUICK_STEPS       2
#define FULL_STEPS        142 /* an epoch of Caltech-101 */
#define QUICK_BATCH_STEPS 4   /* the first of them does not count */
#define FULL_BATCH_STEPS  12

static uint64_t n_steps(const struct mr_lab *lab)
{
    return lab->o->full ? FULL_STEPS : QUICK_STEPS;
}

static unsigned n_batch_steps(const struct mr_lab *lab)
{
    return lab->o->full ? FULL_BATCH_STEPS : QUICK_BATCH_STEPS;
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
        struct mr_json *p = mr_lab_storage_json(s), *each = mr_json_array();
        double seconds = 0, wait = 0;
        for (uint64_t i = first; i < r.steps; i++) {
            double fill = i ? 0 : r.first_fill_s;
            seconds += fill + r.step[i].step_s;
            wait += fill + r.step[i].wait_s;
            mr_json_append(each, mr_json_real(fill + r.step[i].step_s));
        }
        double n = (double)(r.steps - first);
        mr_json_set(p, "prefetch", mr_json_int(prefetch));
        mr_json_set(p, "threads", mr_json_int(threads));
        mr_json_set(p, "synthetic", mr_json_bool(synthetic));
        mr_json_set(p, "device", mr_json_string(t.device.name));
        mr_json_set(p, "steps", mr_json_int((int64_t)(r.steps - first)));
        mr_json_set(p, "seconds", mr_json_real(seconds));
        mr_json_set(p, "first_fill_s", mr_json_real(r.first_fill_s));
        mr_json_set(p, "step_s", mr_json_real(seconds / n));
        mr_json_set(p, "each_step_s", each);
        mr_json_set(p, "wait_share", mr_json_real(wait / seconds));
        mr_lab_input_json(p, &input);
        mr_lab_point(lab, p);
    }
    mr_train_result_fini(&r);
    return code;
}

int mr_exp_overlap(struct mr_lab *lab)
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

/* Seconds an image, of each step after the first, and their median.  The quickest would be less the
 * more steps there are, so a full study would not compare with a quick one. */
static int add_times(const struct mr_train_result *r, unsigned batch, struct mr_json *p,
                     struct mr_error *err)
{
    double x[FULL_BATCH_STEPS];
    unsigned n = 0;
    struct mr_summary s;
    struct mr_json *each = mr_json_array();
    for (uint64_t i = 1; i < r->steps && n < FULL_BATCH_STEPS; i++) {
        x[n++] = r->step[i].step_s / batch;
        mr_json_append(each, mr_json_real(r->step[i].step_s / batch));
    }
    mr_json_set(p, "each_s_per_image", each);
    if (mr_summarize(x, n, &s))
        return mr_fail(err, -ENOMEM, "no memory for %u steps", n);
    mr_json_set(p, "s_per_image", mr_json_real(n ? s.median : NAN));
    return 0;
}

static int batch_point(struct mr_lab *lab, const struct mr_accelerator_spec *device, unsigned batch)
{
    struct mr_train_opts t;
    struct mr_train_result r;
    mr_lab_training(lab, 0, NULL, &t);
    t.device = *device;
    t.data = NULL;
    t.synthetic = 1;
    t.pipe.batch = batch;
    t.steps = n_batch_steps(lab);
    t.learning_rate = 0.0001;
    int code = mr_train_run(&t, &r, lab->err);
    if (!code) {
        struct mr_json *p = mr_json_object();
        mr_json_set(p, "device", mr_json_string(t.device.name));
        mr_json_set(p, "emulated", mr_json_bool(t.device.kind == MR_EMULATED));
        mr_json_set(p, "batch", mr_json_int(batch));
        code = add_times(&r, batch, p, lab->err);
        mr_lab_point(lab, p);
    }
    mr_train_result_fini(&r);
    return code;
}

int mr_exp_batch(struct mr_lab *lab)
{
    static const unsigned batches[] = {16, 32, 64, 128};
    static const char *const devices[] = {"emulated:0.1+0.002", "cpu"};
    for (unsigned d = 0; d < 2; d++)
        for (unsigned i = 0; i < 4; i++) {
            struct mr_accelerator_spec spec;
            int r = mr_accelerator_spec_parse(devices[d], &spec, lab->err);
            if (r)
                return r;
            if (spec.kind == MR_ON_CPU && !lab->o->full && batches[i] > 64) {
                mr_lab_warn(lab,
                            "A batch of %u on the processor was left out: its steps take several "
                            "seconds each. millrace study --full has it.",
                            batches[i]);
                continue;
            }
            if (mr_lab_skips(lab, i, 5)) /* the largest, and slowest, too */
                continue;
            mr_lab_say(lab, "%s, batch %u", devices[d], batches[i]);
            r = batch_point(lab, &spec, batches[i]);
            if (r == -ENOTSUP || r == -ENOMEM) {
                mr_lab_warn(lab, "%s", lab->err->text);
                *lab->err = (struct mr_error){0};
                break;
            }
            if (r)
                return r;
        }
    for (unsigned d = 0; d < 2; d++)
        mr_lab_command(lab,
                       "millrace train --synthetic --batch 64 --steps %u --lr 0.0001 --device %s",
                       n_batch_steps(lab), devices[d]);
    return 0;
}
