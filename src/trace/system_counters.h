/* system_counters.h - what the whole machine does: CPU time, memory, pressure. */
#ifndef MR_SYSTEM_COUNTERS_H
#define MR_SYSTEM_COUNTERS_H

#include <stdint.h>

/* In clock ticks; guests are part of user. */
enum {
    MR_CPU_USER,
    MR_CPU_NICE,
    MR_CPU_SYSTEM,
    MR_CPU_IDLE,
    MR_CPU_IOWAIT,
    MR_CPU_IRQ,
    MR_CPU_SOFTIRQ,
    MR_CPU_STEAL,
    MR_CPU_KINDS
};

struct mr_cpu {
    uint64_t ticks[MR_CPU_KINDS];
    uint64_t switches;         /* of context */
    uint64_t running, blocked; /* tasks at this moment: ready to run; waiting for I/O */
};

struct mr_memory {
    uint64_t total_bytes, free_bytes, available_bytes;
    uint64_t buffers_bytes, cached_bytes; /* the page cache: of devices, of files */
    uint64_t dirty_bytes, writeback_bytes;
};

/* Microseconds in which some task, or every task that was not idle, was stalled by a lack of it. */
struct mr_pressure {
    uint64_t some_us, full_us;
};

/* Each takes a whole file's text; 0, or -EBADMSG when what it must have is not there. */
int mr_cpu_parse(const char *text, struct mr_cpu *out);           /* /proc/stat */
int mr_memory_parse(const char *text, struct mr_memory *out);     /* /proc/meminfo */
int mr_pressure_parse(const char *text, struct mr_pressure *out); /* /proc/pressure/x */

/* What an interval added.  A counter that falls did not move: idle and iowait do that. */
void mr_cpu_difference(const struct mr_cpu *was, const struct mr_cpu *now, struct mr_cpu *out);
void mr_pressure_difference(const struct mr_pressure *was, const struct mr_pressure *now,
                            struct mr_pressure *out);

#endif
