/* sample_columns.h - a sample as named numbers: the columns of tables, CSV and JSON.  A number
 * that this system does not have is NaN. */
#ifndef MR_SAMPLE_COLUMNS_H
#define MR_SAMPLE_COLUMNS_H

#include "sampler.h"

/* The system's columns, one row each: the member of struct mr_system_rates, its name in JSON with
 * the unit, its heading in tables and CSV, and the bit of enum mr_known that it needs.  A function
 * of the member's name in sample_columns.c computes it.  docs/extending.md adds one. */
#define MR_SYSTEM_COLUMNS(COLUMN)                                                                  \
    COLUMN(cpu_user, "cpu_user_pct", "CpuUser", MR_KNOWN_CPU) /* of all CPUs' time */              \
    COLUMN(cpu_system, "cpu_system_pct", "CpuSystem", MR_KNOWN_CPU)                                \
    COLUMN(cpu_iowait, "cpu_iowait_pct", "CpuIowait", MR_KNOWN_CPU)                                \
    COLUMN(cpu_steal, "cpu_steal_pct", "CpuSteal", MR_KNOWN_CPU)                                   \
    COLUMN(cpu_idle, "cpu_idle_pct", "CpuIdle", MR_KNOWN_CPU)                                      \
    COLUMN(switches, "context_switches_per_s", "Switches", MR_KNOWN_CPU)                           \
    COLUMN(tasks_running, "tasks_running", "Running", MR_KNOWN_CPU)                                \
    COLUMN(tasks_blocked, "tasks_blocked", "Blocked", MR_KNOWN_CPU)                                \
    COLUMN(free_bytes, "free_bytes", "FreeBytes", MR_KNOWN_MEMORY)                                 \
    COLUMN(available_bytes, "available_bytes", "AvailableBytes", MR_KNOWN_MEMORY)                  \
    COLUMN(buffers_bytes, "buffers_bytes", "BuffersBytes", MR_KNOWN_MEMORY)                        \
    COLUMN(cached_bytes, "cached_bytes", "CachedBytes", MR_KNOWN_MEMORY)                           \
    COLUMN(dirty_bytes, "dirty_bytes", "DirtyBytes", MR_KNOWN_MEMORY)                              \
    COLUMN(writeback_bytes, "writeback_bytes", "WritebackBytes", MR_KNOWN_MEMORY)                  \
    COLUMN(cpu_some, "pressure_cpu_some_pct", "PressureCpuSome", MR_KNOWN_CPU_PRESSURE)            \
    COLUMN(io_some, "pressure_io_some_pct", "PressureIoSome", MR_KNOWN_IO_PRESSURE)                \
    COLUMN(io_full, "pressure_io_full_pct", "PressureIoFull", MR_KNOWN_IO_PRESSURE)                \
    COLUMN(memory_some, "pressure_memory_some_pct", "PressureMemorySome",                          \
           MR_KNOWN_MEMORY_PRESSURE)                                                               \
    COLUMN(memory_full, "pressure_memory_full_pct", "PressureMemoryFull",                          \
           MR_KNOWN_MEMORY_PRESSURE)                                                               \
    COLUMN(processes, "processes", "Processes", MR_KNOWN_PROCESS) /* of the tree watched */        \
    COLUMN(read_bytes, "process_read_bytes_per_s", "ProcessReadBytes", MR_KNOWN_PROCESS)           \
    COLUMN(write_bytes, "process_write_bytes_per_s", "ProcessWriteBytes", MR_KNOWN_PROCESS)        \
    COLUMN(rchar, "process_rchar_per_s", "ProcessRchar", MR_KNOWN_PROCESS)                         \
    COLUMN(wchar, "process_wchar_per_s", "ProcessWchar", MR_KNOWN_PROCESS)

#define MR_COLUMN_MEMBER(member, name, heading, known) double member;
struct mr_system_rates {
    MR_SYSTEM_COLUMNS(MR_COLUMN_MEMBER)
};
#undef MR_COLUMN_MEMBER
enum { MR_N_SYSTEM_COLUMNS = sizeof(struct mr_system_rates) / sizeof(double) };

/* What a column is computed from: counters over some time, and levels as they are now. */
struct mr_sampled {
    const struct mr_system_sample *s;
    const struct mr_system_counts *c; /* of the last interval, or since opening, */
    double seconds;                   /* which took that long */
};

struct mr_system_column {
    const char *name;    /* in JSON, with the unit */
    const char *heading; /* in tables and CSV */
    unsigned known;      /* what it needs of enum mr_known */
    double (*value)(const struct mr_sampled *at);
};

extern const struct mr_system_column mr_system_columns[MR_N_SYSTEM_COLUMNS];
/* NaN where `known` lacks what the column needs. */
double mr_system_column_value(const struct mr_system_column *c, const struct mr_sampled *at,
                              unsigned known);
/* All columns.  Of some counters over `seconds`; memory and tasks are as they are now. */
void mr_system_rates_of(const struct mr_system_sample *s, const struct mr_system_counts *c,
                        unsigned known, double seconds, struct mr_system_rates *out);
/* Column i of them. */
double mr_system_rate(const struct mr_system_rates *r, unsigned i);

/* Columns of a block device are members of a struct, found by their offsets. */
struct mr_column {
    const char *name;    /* in JSON, with the unit */
    const char *heading; /* in tables and CSV */
    size_t offset;       /* of the double */
};

extern const struct mr_column mr_disk_side_columns[]; /* of struct mr_disk_side_rates */
extern const struct mr_column mr_disk_columns[];      /* of struct mr_disk_rates */
enum { MR_N_DISK_SIDE_COLUMNS = 6 };
enum { MR_COLUMN_QLEN, MR_COLUMN_SVCTIM, MR_COLUMN_UTIL, MR_N_DISK_COLUMNS };

extern const char *const mr_disk_side_names[MR_DISK_SIDES]; /* "read", "write", "discard" */
extern const char *const mr_net_side_names[MR_NET_SIDES];   /* "receive", "transmit" */

double mr_column_value(const void *rates, const struct mr_column *c);

/* 1 when a device is to be shown: named in `only` ("vda,/dev/sdb"), or with NULL any that was
 * used and is no partition. */
int mr_disk_chosen(const struct mr_disk *d, const char *only);

#endif
