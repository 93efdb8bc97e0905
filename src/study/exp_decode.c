/* exp_decode.c - reading, decoding and resizing (Figure 4). */
#include "rate_sweep.h"

static int run(struct mr_lab *lab)
{
    return mr_rate_sweep(lab, 1);
}

const struct mr_experiment mr_experiment_decode = {
    .quick_s = 82, .full_s = 60, .full_image_s = 0.37, .run = run};
