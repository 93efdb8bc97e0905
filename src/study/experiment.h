/* experiment.h - how the study runs an experiment: one row, in its exp_NAME.c.
 *
 * mr_experiment_NAME of each experiment of experiments.h; study.c makes the table. */
#ifndef MR_EXPERIMENT_H
#define MR_EXPERIMENT_H

#include "study.h"

struct mr_lab; /* lab.h */

struct mr_experiment {
    /* Seconds on two cores with nothing else to do, generated data.  Quick: with room for a seventh
     * more, all experiments take ten minutes.  Full: the studies' sizes at the profiles' rates, six
     * runs. */
    double quick_s;
    double full_s, full_image_s; /* in all, and more for each image of the data set */
    int traces; /* records runs of its own: the trace of the whole study, if any, is paused */
    /* 0, -ECANCELED, or another -errno with words in lab->err. */
    int (*run)(struct mr_lab *lab);
};

struct mr_experiment_row {
    const char *name;
    const struct mr_experiment *experiment;
};

#endif
