/* rate_sweep.h - the micro-benchmark over storages, engines and numbers of threads. */
#ifndef MR_RATE_SWEEP_H
#define MR_RATE_SWEEP_H

#include "lab.h"

/* Points with images a second, read only or decoded; as an experiment's `run`. */
int mr_rate_sweep(struct mr_lab *lab, int decode);

#endif
