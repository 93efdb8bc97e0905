/* sample_columns.c - see sample_columns.h. */
#include "sample_columns.h"

#include <math.h>
#include <string.h>

#define SIDE(name, heading, field)                                                                 \
    {                                                                                              \
        name, heading, offsetof(struct mr_disk_side_rates, field)                                  \
    }

const struct mr_column mr_disk_side_columns[MR_N_DISK_SIDE_COLUMNS] = {
    SIDE("kbytes_per_s", "KBytes", kbytes), SIDE("merged_per_s", "Merged", merged),
    SIDE("ios_per_s", "IOs", ios),          SIDE("size_kb", "Size", size),
    SIDE("wait_ms", "Wait", wait),          SIDE("qlen", "QLen", qlen),
};

#define DISK(name, heading, field)                                                                 \
    {                                                                                              \
        name, heading, offsetof(struct mr_disk_rates, field)                                       \
    }

const struct mr_column mr_disk_columns[MR_N_DISK_COLUMNS] = {
    [MR_COLUMN_QLEN] = DISK("qlen", "QLen", qlen),
    [MR_COLUMN_SVCTIM] = DISK("svctim_ms", "SvcTim", svctim),
    [MR_COLUMN_UTIL] = DISK("util_pct", "Util", util),
};

const char *const mr_disk_side_names[MR_DISK_SIDES] = {"read", "write", "discard"};
const char *const mr_net_side_names[MR_NET_SIDES] = {"receive", "transmit"};

double mr_column_value(const void *rates, const struct mr_column *c)
{
    double v;
    memcpy(&v, (const char *)rates + c->offset, sizeof v);
    return v;
}

/* ---- the system's columns: a function each ---- */

static double per(double what, double of)
{
    return of > 0 ? what / of : 0;
}

/* Per cent of the time of all CPUs that went to one kind. */
static double cpu_share(const struct mr_sampled *at, unsigned kind)
{
    double all = 0;
    for (unsigned i = 0; i < MR_CPU_KINDS; i++)
        all += (double)at->c->cpu.ticks[i];
    return per(100 * (double)at->c->cpu.ticks[kind], all);
}

static double cpu_user(const struct mr_sampled *at)
{
    return cpu_share(at, MR_CPU_USER) + cpu_share(at, MR_CPU_NICE);
}

static double cpu_system(const struct mr_sampled *at)
{
    return cpu_share(at, MR_CPU_SYSTEM) + cpu_share(at, MR_CPU_IRQ) + cpu_share(at, MR_CPU_SOFTIRQ);
}

static double cpu_iowait(const struct mr_sampled *at)
{
    return cpu_share(at, MR_CPU_IOWAIT);
}

static double cpu_steal(const struct mr_sampled *at)
{
    return cpu_share(at, MR_CPU_STEAL);
}

static double cpu_idle(const struct mr_sampled *at)
{
    return cpu_share(at, MR_CPU_IDLE);
}

static double switches(const struct mr_sampled *at)
{
    return per((double)at->c->cpu.switches, at->seconds);
}

static double tasks_running(const struct mr_sampled *at)
{
    return (double)at->c->cpu.running;
}

static double tasks_blocked(const struct mr_sampled *at)
{
    return (double)at->c->cpu.blocked;
}

static double free_bytes(const struct mr_sampled *at)
{
    return (double)at->s->memory.free_bytes;
}

static double available_bytes(const struct mr_sampled *at)
{
    return (double)at->s->memory.available_bytes;
}

static double buffers_bytes(const struct mr_sampled *at)
{
    return (double)at->s->memory.buffers_bytes;
}

static double cached_bytes(const struct mr_sampled *at)
{
    return (double)at->s->memory.cached_bytes;
}

static double dirty_bytes(const struct mr_sampled *at)
{
    return (double)at->s->memory.dirty_bytes;
}

static double writeback_bytes(const struct mr_sampled *at)
{
    return (double)at->s->memory.writeback_bytes;
}

/* Microseconds of the time, per cent; the kernel adds them up now and then, so one interval may get
 * what belongs to the one before. */
static double stalled(uint64_t us, const struct mr_sampled *at)
{
    return fmin(100, per((double)us / 1e4, at->seconds));
}

static double cpu_some(const struct mr_sampled *at)
{
    return stalled(at->c->pressure[MR_PRESSURE_CPU].some_us, at);
}

static double io_some(const struct mr_sampled *at)
{
    return stalled(at->c->pressure[MR_PRESSURE_IO].some_us, at);
}

static double io_full(const struct mr_sampled *at)
{
    return stalled(at->c->pressure[MR_PRESSURE_IO].full_us, at);
}

static double memory_some(const struct mr_sampled *at)
{
    return stalled(at->c->pressure[MR_PRESSURE_MEMORY].some_us, at);
}

static double memory_full(const struct mr_sampled *at)
{
    return stalled(at->c->pressure[MR_PRESSURE_MEMORY].full_us, at);
}

static double processes(const struct mr_sampled *at)
{
    return at->s->n_processes;
}

static double io_rate(const struct mr_sampled *at, unsigned counter)
{
    return per((double)at->c->process.count[counter], at->seconds);
}

static double read_bytes(const struct mr_sampled *at)
{
    return io_rate(at, MR_IO_READ_BYTES);
}

static double write_bytes(const struct mr_sampled *at)
{
    return io_rate(at, MR_IO_WRITE_BYTES);
}

static double rchar(const struct mr_sampled *at)
{
    return io_rate(at, MR_IO_RCHAR);
}

static double wchar(const struct mr_sampled *at)
{
    return io_rate(at, MR_IO_WCHAR);
}

#define COLUMN(member, name, heading, known) {name, heading, known, member},
const struct mr_system_column mr_system_columns[MR_N_SYSTEM_COLUMNS] = {MR_SYSTEM_COLUMNS(COLUMN)};

double mr_system_column_value(const struct mr_system_column *c, const struct mr_sampled *at,
                              unsigned known)
{
    return (known & c->known) == c->known ? c->value(at) : NAN;
}

void mr_system_rates_of(const struct mr_system_sample *s, const struct mr_system_counts *c,
                        unsigned known, double seconds, struct mr_system_rates *out)
{
    struct mr_sampled at = {s, c, seconds};
    double value[MR_N_SYSTEM_COLUMNS];
    for (unsigned i = 0; i < MR_N_SYSTEM_COLUMNS; i++)
        value[i] = mr_system_column_value(&mr_system_columns[i], &at, known);
    memcpy(out, value, sizeof value);
}

double mr_system_rate(const struct mr_system_rates *r, unsigned i)
{
    double value[MR_N_SYSTEM_COLUMNS];
    memcpy(value, r, sizeof value);
    return value[i];
}

/* ---- which devices are shown ---- */

static int is_named(const char *name, const char *list)
{
    size_t n = strlen(name);
    while (*list) {
        size_t len = strcspn(list, ",");
        const char *word = list;
        list += len + (list[len] == ',');
        if (len > 5 && !strncmp(word, "/dev/", 5)) {
            word += 5;
            len -= 5;
        }
        if (len == n && !strncmp(word, name, n))
            return 1;
    }
    return 0;
}

int mr_disk_chosen(const struct mr_disk *d, const char *only)
{
    return only ? is_named(d->name, only) : d->used && !d->partition;
}
