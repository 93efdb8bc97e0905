/* cores.c - the one place where cores are divided.
 *
 * An accelerator leaves all of them to the input.  On the CPU, computing takes every core and the
 * input takes what it needs from them: a batch is decoded in a fraction of the time that it is
 * computed on, so few workers are enough, and more would only take turns with the compute
 * threads, which wait for each other at the end of every layer. */
#include "cores.h"

#include <sched.h>

#define CORES_PER_WORKER 4 /* while the CPU trains */

void mr_cores_divide(const struct mr_accelerator_spec *spec, unsigned map_workers,
                     unsigned compute_threads, struct mr_cores *out)
{
    cpu_set_t set;
    unsigned n = sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
    *out = (struct mr_cores){.n = n};
    if (spec->kind == MR_ON_CPU) {
        out->compute_threads = compute_threads ? compute_threads : n;
        out->map_workers = map_workers             ? map_workers
                           : n <= CORES_PER_WORKER ? 1
                                                   : n / CORES_PER_WORKER;
    } else {
        out->map_workers = map_workers ? map_workers : n;
    }
}
