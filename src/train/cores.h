/* cores.h - who gets the cores: the workers that bring samples, or the threads that compute. */
#ifndef MR_CORES_H
#define MR_CORES_H

#include "accelerator_spec.h"

struct mr_cores {
    unsigned n;               /* cores that this process may use */
    unsigned map_workers;     /* threads of the pipeline */
    unsigned compute_threads; /* 0 on an emulated accelerator */
};

/* 0 = not asked for. */
void mr_cores_divide(const struct mr_accelerator_spec *spec, unsigned map_workers,
                     unsigned compute_threads, struct mr_cores *out);

#endif
