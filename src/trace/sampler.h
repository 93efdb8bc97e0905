/* sampler.h - the system, sampled at a steady pace: block devices, CPU, memory, pressure, network,
 * and the I/O of one process with its descendants.
 *
 *     struct mr_sampler *s;
 *     struct mr_sampler_opts o = {.interval_ns = 100000000, .on_sample = draw, .ctx = &chart};
 *     if (mr_sampler_open(&o, &s, &err) == 0) {
 *         ... the work ...
 *         mr_sampler_close(s);         // one last sample, marked `final`
 *     }
 *
 * Opening takes the first reading, from which everything counts.  With a callback a thread calls it
 * once an interval, at start + n * interval on the monotonic clock: a late sample does not shift
 * the later ones, and steps of the system's clock do not matter.  Without one, the caller takes
 * samples.  What this system does not have (pressure, a /proc without diskstats) is not `known`. */
#ifndef MR_SAMPLER_H
#define MR_SAMPLER_H

#include "diskstats.h"
#include "net_counters.h"
#include "process_io.h"
#include "system_counters.h"

#include <millrace/api.h>

#define MR_SAMPLER_MIN_NS 10000000u /* shorter intervals say little: the kernel counts in ticks */

enum mr_pressure_kind { MR_PRESSURE_CPU, MR_PRESSURE_IO, MR_PRESSURE_MEMORY, MR_PRESSURE_KINDS };

enum mr_known {
    MR_KNOWN_DISKS = 1,
    MR_KNOWN_CPU = 2,
    MR_KNOWN_MEMORY = 4,
    MR_KNOWN_NET = 8,
    MR_KNOWN_PROCESS = 16,
    MR_KNOWN_PRESSURE = 32, /* shifted by enum mr_pressure_kind */
    MR_KNOWN_CPU_PRESSURE = MR_KNOWN_PRESSURE << MR_PRESSURE_CPU,
    MR_KNOWN_IO_PRESSURE = MR_KNOWN_PRESSURE << MR_PRESSURE_IO,
    MR_KNOWN_MEMORY_PRESSURE = MR_KNOWN_PRESSURE << MR_PRESSURE_MEMORY,
};

/* Counters over some time: the last interval, or all since opening. */
struct mr_system_counts {
    struct mr_cpu cpu;
    struct mr_pressure pressure[MR_PRESSURE_KINDS];
    struct mr_process_io process;
};

/* One sample.  Belongs to the sampler; valid until the next one. */
struct mr_system_sample {
    uint64_t number; /* from 1 */
    uint64_t at_ns;  /* mr_clock_ns */
    uint64_t interval_ns, since_open_ns;
    uint64_t n_missed; /* moments that passed without a sample, so far */
    int final;
    unsigned known; /* enum mr_known: what this sample has */
    struct mr_system_counts last, total;
    struct mr_memory memory;
    unsigned n_processes;
    const struct mr_disk *disks; /* rows keep their index */
    unsigned n_disks;
    const struct mr_net *nets;
    unsigned n_nets;
};

struct mr_sampler_opts {
    uint64_t interval_ns; /* 0 = 1 s; at least MR_SAMPLER_MIN_NS */
    void (*on_sample)(void *ctx,
                      const struct mr_system_sample *s); /* NULL: no thread, mr_sampler_take */
    void *ctx;
    pid_t process;         /* whose I/O, with its descendants'; 0 = none */
    unsigned only;         /* MR_KNOWN_* of what is wanted, to spare the rest; 0 = everything */
    const char *proc_root; /* NULL = "/proc"; copied */
    const char *sys_root;  /* NULL = "/sys"; copied */
    unsigned counter_bits; /* of the kernel's long; 0 = ask it */
};

struct mr_sampler;

/* 0, -EINVAL (interval), -ESRCH (no such process), -ENOENT (nothing to sample), ... */
int mr_sampler_open(const struct mr_sampler_opts *opts, struct mr_sampler **out,
                    struct mr_error *err);
/* A sample now; not with a callback. */
const struct mr_system_sample *mr_sampler_take(struct mr_sampler *s);
/* Stop the thread; take the last sample in the caller's thread and hand it to the callback; free.
 * In a process that was forked after opening: free only.  NULL is a no-op. */
void mr_sampler_close(struct mr_sampler *s);

#endif
