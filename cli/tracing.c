/* tracing.c - see tracing.h.
 *
 * Beside the spans stand curves of what the system did meanwhile: every block device that is used,
 * and the CPU, ten times a second.  The program has one trace, so its sampler is here. */
#include "tracing.h"

#include "sample_columns.h"
#include "sampler.h"

#include <errno.h>

#define INTERVAL_NS 100000000

static struct mr_sampler *curves;

static int file_of(void *ctx, uint32_t id, char *buf, size_t cap)
{
    return ctx ? mr_dataset_path(ctx, id, buf, cap) : -ENOENT;
}

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

static void on_sample(void *ctx, const struct mr_system_sample *s)
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

int tracing_start(const struct options *o, struct mr_dataset *data)
{
    struct mr_error err = {0};
    if (!o->trace)
        return 0;
    struct mr_trace_opts opts = {
        .path = o->trace, .rank = o->shard.rank, .file_of = file_of, .file_ctx = data};
    if (!mr_trace_start(&opts, &err)) {
        struct mr_sampler_opts sampler = {.interval_ns = INTERVAL_NS, .on_sample = on_sample};
        if (mr_sampler_open(&sampler, &curves, NULL))
            curves = NULL; /* no /proc: spans only */
        return 0;
    }
    fprintf(stderr, "millrace: --trace %s\n", err.text);
    return 1;
}

int tracing_stop(struct mr_trace_stats *out)
{
    struct mr_error err = {0};
    mr_sampler_close(curves);
    curves = NULL;
    int r = mr_trace_stop(out, &err);
    if (r)
        fprintf(stderr, "millrace: --trace %s\n", err.text);
    if (out->dropped)
        fprintf(stderr,
                "warning: the trace lacks %llu of %llu events: they came faster than they could be "
                "written\n",
                (unsigned long long)out->dropped,
                (unsigned long long)(out->dropped + out->lost + out->events));
    return r != 0;
}

struct mr_json *tracing_json(const char *path, const struct mr_trace_stats *s)
{
    struct mr_json *o = mr_json_object();
    mr_json_set(o, "file", mr_json_string(path));
    mr_json_set(o, "events", mr_json_int((int64_t)s->events));
    mr_json_set(o, "dropped", mr_json_int((int64_t)s->dropped));
    mr_json_set(o, "lost", mr_json_int((int64_t)s->lost));
    return o;
}
