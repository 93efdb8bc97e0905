/* clock.c - see clock.h.  CPU time comes from getrusage because io_uring's kernel workers belong to
 * the process and are counted there. */
#include "clock.h"

#include <sys/resource.h>
#include <time.h>

static uint64_t read_clock(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t mr_clock_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t mr_clock_thread_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

static uint64_t timeval_ns(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

uint64_t mr_clock_process_cpu_ns(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return timeval_ns(u.ru_utime) + timeval_ns(u.ru_stime);
}
