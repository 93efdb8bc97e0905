/* exp_read.c - reading whole files (Figure 5). */
#include "rate_sweep.h"

static int run(struct mr_lab *lab)
{
    return mr_rate_sweep(lab, 0);
}

/* Quick: at most 28 points of three runs of 0.8 s. */
const struct mr_experiment mr_experiment_read = {
    .quick_s = 62, .full_s = 60, .full_image_s = 0.29, .run = run};
