/* trace_curves.c - see trace_curves.h.
 *
 * A sampler of its own that reads the two files it needs and no more, for curves of every block
 * device that is used, and of the CPU. */
#include "trace_curves.h"

#include "sample_columns.h"

#include <millrace/trace.h>

#include <stdio.h>

#define INTERVAL_NS 100000000

static void draw_disk(const struct mr_disk *d, double seconds, uint64_t at_ns)
{
    struct mr_disk_rates rates;
    char name[MR_DISK_NAME + 16];
    mr_disk_rates_of(&d->last, seconds, &rates);
    snprintf(name, sizeof name, "%s read MB/s", d->name);
    mr_trace_counter(name, rates.side[MR_DISK_READ].kbytes * 1.024e-3, at_ns);
    snprintf(name, sizeof name, "%s write MB/s", d->name);
    mr_trace_counter(name, rates.side[MR_DISK_WRITE].kbytes * 1.024e-3, at_ns);
    snprintf(name, sizeof name, "%s queue", d->name);
    mr_trace_counter(name, rates.qlen, at_ns);
}

static void draw(void *ctx, const struct mr_system_sample *s)
{
    struct mr_system_rates rates;
    double seconds = (double)s->interval_ns / 1e9;
    (void)ctx;
    for (unsigned i = 0; (s->known & MR_KNOWN_DISKS) && i < s->n_disks; i++)
        if (s->disks[i].used && s->disks[i].present && !s->disks[i].partition)
            draw_disk(&s->disks[i], seconds, s->at_ns);
    if (s->known & MR_KNOWN_CPU) {
        mr_system_rates_of(s, &s->last, s->known, seconds, &rates);
        mr_trace_counter("CPU busy %", 100 - rates.cpu_idle - rates.cpu_iowait, s->at_ns);
    }
}

struct mr_sampler *mr_trace_curves_open(void)
{
    struct mr_sampler_opts o = {
        .interval_ns = INTERVAL_NS, .on_sample = draw, .only = MR_KNOWN_DISKS | MR_KNOWN_CPU};
    struct mr_sampler *s;
    return mr_sampler_open(&o, &s, NULL) ? NULL : s;
}

void mr_trace_curves_close(struct mr_sampler *s)
{
    mr_sampler_close(s);
}
