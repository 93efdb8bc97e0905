/* clock.h - the one clock: CLOCK_MONOTONIC in nanoseconds, and CPU time. */
#ifndef MR_CLOCK_H
#define MR_CLOCK_H

#include <stdint.h>
#include <time.h>

uint64_t mr_clock_ns(void);
/* The same clock as of the last tick, some milliseconds ago: looking at it costs next to nothing.
 */
uint64_t mr_clock_coarse_ns(void);
/* The same moment as the calls that wait for it want it. */
static inline struct timespec mr_clock_at(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
                             .tv_nsec = (long)(ns % 1000000000)};
}
/* User and system time of all threads so far, those that the kernel runs for io_uring included. */
uint64_t mr_clock_process_cpu_ns(void);
/* Of the thread that asks, without those. */
uint64_t mr_clock_thread_cpu_ns(void);

/* Between two looks at something that is about to happen: some tens of cycles, kind to whoever
 * shares the core. */
static inline void mr_clock_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

#endif
