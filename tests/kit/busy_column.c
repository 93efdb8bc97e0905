/* busy_column.c - a column of the sampler: the example of docs/extending.md. */
#include "busy_column.h"

/* Per cent of the time of all CPUs that was neither idle nor spent waiting for I/O. */
static double cpu_busy(const struct mr_sampled *at)
{
    const uint64_t *ticks = at->c->cpu.ticks;
    double all = 0;
    for (unsigned i = 0; i < MR_CPU_KINDS; i++)
        all += (double)ticks[i];
    return all > 0 ? 100 * (1 - (double)(ticks[MR_CPU_IDLE] + ticks[MR_CPU_IOWAIT]) / all) : 0;
}

const struct mr_system_column busy_column = {"cpu_busy_pct", "CpuBusy", MR_KNOWN_CPU, cpu_busy};
