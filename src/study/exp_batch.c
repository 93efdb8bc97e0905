/* exp_batch.c - batch sizes (Figure 7): an emulated accelerator, and the processor. */
#include "lab.h"

#include "errtext.h"
#include "repeat.h"

#include <errno.h>
#include <math.h>

#define QUICK_STEPS 4 /* the first of them does not count */
#define FULL_STEPS  12

static unsigned n_steps(const struct mr_lab *lab)
{
    return lab->o->full ? FULL_STEPS : QUICK_STEPS;
}

/* Seconds an image, of each step after the first, and their median.  Not the fastest: it falls
 * with the number of steps, and a full study would not compare with a quick one. */
static int add_times(const struct mr_train_result *r, struct mr_batch_point *p,
                     struct mr_error *err)
{
    double x[FULL_STEPS];
    unsigned n = 0;
    struct mr_summary s;
    for (uint64_t i = 1; i < r->steps && n < FULL_STEPS; i++)
        x[n++] = r->step[i].step_s / p->batch;
    if (mr_summarize(x, n, &s))
        return mr_fail(err, -ENOMEM, "no memory for %u steps", n);
    p->s_per_image = n ? s.median : NAN;
    p->each_s_per_image = mr_number_list(x, n);
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
    t.steps = n_steps(lab);
    t.learning_rate = 0.0001;
    int code = mr_train_run(&t, &r, lab->err);
    if (!code) {
        struct mr_batch_point p = {
            .device = t.device.name, .emulated = t.device.kind == MR_EMULATED, .batch = batch};
        code = add_times(&r, &p, lab->err);
        if (!code)
            mr_lab_point(lab, mr_batch_point_json(&p));
    }
    mr_train_result_fini(&r);
    return code;
}

static int run(struct mr_lab *lab)
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
                       n_steps(lab), devices[d]);
    return 0;
}

const struct mr_experiment mr_experiment_batch = {.quick_s = 25, .full_s = 150, .run = run};
