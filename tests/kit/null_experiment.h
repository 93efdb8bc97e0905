/* null_experiment.h - the rows of the experiment that docs/extending.md adds. */
#ifndef MR_NULL_EXPERIMENT_H
#define MR_NULL_EXPERIMENT_H

#include "experiment.h"
#include "section.h"

extern const struct mr_experiment mr_experiment_null;
extern const struct mr_section mr_section_null;

#endif
