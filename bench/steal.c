/* steal.c - see steal.h. */
#include "steal.h"

#include "clock.h"

#include <stdio.h>
#include <unistd.h>

static uint64_t ticks(void)
{
    unsigned long long v = 0;
    FILE *f = fopen("/proc/stat", "r");
    if (f && fscanf(f, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &v) != 1)
        v = 0;
    if (f)
        fclose(f);
    return v;
}

void steal_begin(struct steal *s)
{
    *s = (struct steal){ticks(), mr_clock_ns()};
}

double steal_share(const struct steal *s)
{
    double seconds = (double)(mr_clock_ns() - s->start_ns) / 1e9;
    double a_second = (double)sysconf(_SC_NPROCESSORS_ONLN) * (double)sysconf(_SC_CLK_TCK);
    return (double)(ticks() - s->ticks) / a_second / seconds;
}
