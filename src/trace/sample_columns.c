/* sample_columns.c - see sample_columns.h. */
#include "sample_columns.h"

#include <math.h>
#include <string.h>

#define SYSTEM(name, heading, field)                                                               \
    {                                                                                              \
        name, heading, offsetof(struct mr_system_rates, field)                                     \
    }

const struct mr_column mr_system_columns[MR_N_SYSTEM_COLUMNS] = {
    SYSTEM("cpu_user_pct", "CpuUser", cpu_user),
    SYSTEM("cpu_system_pct", "CpuSystem", cpu_system),
    SYSTEM("cpu_iowait_pct", "CpuIowait", cpu_iowait),
    SYSTEM("cpu_steal_pct", "CpuSteal", cpu_steal),
    SYSTEM("cpu_idle_pct", "CpuIdle", cpu_idle),
    SYSTEM("context_switches_per_s", "Switches", switches),
    SYSTEM("tasks_running", "Running", tasks_running),
    SYSTEM("tasks_blocked", "Blocked", tasks_blocked),
    SYSTEM("free_bytes", "FreeBytes", free_bytes),
    SYSTEM("available_bytes", "AvailableBytes", available_bytes),
    SYSTEM("buffers_bytes", "BuffersBytes", buffers_bytes),
    SYSTEM("cached_bytes", "CachedBytes", cached_bytes),
    SYSTEM("dirty_bytes", "DirtyBytes", dirty_bytes),
    SYSTEM("writeback_bytes", "WritebackBytes", writeback_bytes),
    SYSTEM("pressure_cpu_some_pct", "PressureCpuSome", cpu_some),
    SYSTEM("pressure_io_some_pct", "PressureIoSome", io_some),
    SYSTEM("pressure_io_full_pct", "PressureIoFull", io_full),
    SYSTEM("pressure_memory_some_pct", "PressureMemorySome", memory_some),
    SYSTEM("pressure_memory_full_pct", "PressureMemoryFull", memory_full),
    SYSTEM("processes", "Processes", processes),
    SYSTEM("process_read_bytes_per_s", "ProcessReadBytes", read_bytes),
    SYSTEM("process_write_bytes_per_s", "ProcessWriteBytes", write_bytes),
    SYSTEM("process_rchar_per_s", "ProcessRchar", rchar),
    SYSTEM("process_wchar_per_s", "ProcessWchar", wchar),
};

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

static double per(double what, double of)
{
    return of > 0 ? what / of : 0;
}

static void cpu_rates(const struct mr_cpu *c, double seconds, struct mr_system_rates *out)
{
    double all = 0, share[MR_CPU_KINDS];
    for (unsigned i = 0; i < MR_CPU_KINDS; i++)
        all += (double)c->ticks[i];
    for (unsigned i = 0; i < MR_CPU_KINDS; i++)
        share[i] = per(100 * (double)c->ticks[i], all);
    out->cpu_user = share[MR_CPU_USER] + share[MR_CPU_NICE];
    out->cpu_system = share[MR_CPU_SYSTEM] + share[MR_CPU_IRQ] + share[MR_CPU_SOFTIRQ];
    out->cpu_iowait = share[MR_CPU_IOWAIT];
    out->cpu_steal = share[MR_CPU_STEAL];
    out->cpu_idle = share[MR_CPU_IDLE];
    out->switches = per((double)c->switches, seconds);
    out->tasks_running = (double)c->running;
    out->tasks_blocked = (double)c->blocked;
}

static void memory_levels(const struct mr_memory *m, struct mr_system_rates *out)
{
    out->free_bytes = (double)m->free_bytes;
    out->available_bytes = (double)m->available_bytes;
    out->buffers_bytes = (double)m->buffers_bytes;
    out->cached_bytes = (double)m->cached_bytes;
    out->dirty_bytes = (double)m->dirty_bytes;
    out->writeback_bytes = (double)m->writeback_bytes;
}

/* Microseconds of `seconds`, per cent; the kernel adds them up now and then, so one interval may
 * get what belongs to the one before. */
static double stalled(uint64_t us, double seconds)
{
    return fmin(100, per((double)us / 1e4, seconds));
}

static void process_rates(const struct mr_process_io *io, double seconds,
                          struct mr_system_rates *out)
{
    out->read_bytes = per((double)io->count[MR_IO_READ_BYTES], seconds);
    out->write_bytes = per((double)io->count[MR_IO_WRITE_BYTES], seconds);
    out->rchar = per((double)io->count[MR_IO_RCHAR], seconds);
    out->wchar = per((double)io->count[MR_IO_WCHAR], seconds);
}

void mr_system_rates_of(const struct mr_system_sample *s, const struct mr_system_counts *c,
                        unsigned known, double seconds, struct mr_system_rates *out)
{
    const struct mr_pressure *p = c->pressure;
    const unsigned pressure = MR_KNOWN_PRESSURE;
    const double unknown = NAN;
    for (unsigned i = 0; i < MR_N_SYSTEM_COLUMNS; i++)
        memcpy((char *)out + mr_system_columns[i].offset, &unknown, sizeof unknown);
    if (known & MR_KNOWN_CPU)
        cpu_rates(&c->cpu, seconds, out);
    if (known & MR_KNOWN_MEMORY)
        memory_levels(&s->memory, out);
    if (known & pressure << MR_PRESSURE_CPU)
        out->cpu_some = stalled(p[MR_PRESSURE_CPU].some_us, seconds);
    if (known & pressure << MR_PRESSURE_IO) {
        out->io_some = stalled(p[MR_PRESSURE_IO].some_us, seconds);
        out->io_full = stalled(p[MR_PRESSURE_IO].full_us, seconds);
    }
    if (known & pressure << MR_PRESSURE_MEMORY) {
        out->memory_some = stalled(p[MR_PRESSURE_MEMORY].some_us, seconds);
        out->memory_full = stalled(p[MR_PRESSURE_MEMORY].full_us, seconds);
    }
    if (known & MR_KNOWN_PROCESS) {
        out->processes = s->n_processes;
        process_rates(&c->process, seconds, out);
    }
}

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
