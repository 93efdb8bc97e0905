/* clock.h - the one clock: CLOCK_MONOTONIC in nanoseconds, and CPU time of this process. */
#ifndef MR_CLOCK_H
#define MR_CLOCK_H

#include <stdint.h>

uint64_t mr_clock_ns(void);
/* User and system time of all threads so far, those that the kernel runs for io_uring included. */
uint64_t mr_clock_process_cpu_ns(void);

#endif
