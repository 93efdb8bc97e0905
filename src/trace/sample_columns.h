/* sample_columns.h - a sample as named numbers: the columns of tables, CSV and JSON.
 *
 * A number that this system does not tell is NaN. */
#ifndef MR_SAMPLE_COLUMNS_H
#define MR_SAMPLE_COLUMNS_H

#include "sampler.h"

/* The whole machine, and the process that is watched.  All fields are double: columns are found by
 * their offsets. */
struct mr_system_rates {
    double cpu_user, cpu_system, cpu_iowait, cpu_steal, cpu_idle; /* per cent of all CPUs' time */
    double switches;                                              /* of context, per second */
    double tasks_running, tasks_blocked;
    double free_bytes, available_bytes, buffers_bytes, cached_bytes, dirty_bytes, writeback_bytes;
    double cpu_some, io_some, io_full, memory_some, memory_full; /* pressure, per cent of time */
    double processes;                                            /* of the tree that is watched */
    double read_bytes, write_bytes, rchar, wchar;                /* of the tree, per second */
};

/* Of some counters over `seconds`; memory and tasks are as they are now. */
void mr_system_rates_of(const struct mr_system_sample *s, const struct mr_system_counts *c,
                        unsigned known, double seconds, struct mr_system_rates *out);

struct mr_column {
    const char *name;    /* in JSON, with the unit */
    const char *heading; /* in tables and CSV */
    size_t offset;       /* of the double */
};

extern const struct mr_column mr_system_columns[];    /* of struct mr_system_rates */
extern const struct mr_column mr_disk_side_columns[]; /* of struct mr_disk_side_rates */
extern const struct mr_column mr_disk_columns[];      /* of struct mr_disk_rates */
enum { MR_N_SYSTEM_COLUMNS = 24, MR_N_DISK_SIDE_COLUMNS = 6 };
enum { MR_COLUMN_QLEN, MR_COLUMN_SVCTIM, MR_COLUMN_UTIL, MR_N_DISK_COLUMNS };

extern const char *const mr_disk_side_names[MR_DISK_SIDES]; /* "read", "write", "discard" */
extern const char *const mr_net_side_names[MR_NET_SIDES];   /* "receive", "transmit" */

double mr_column_value(const void *rates, const struct mr_column *c);

/* Whether a device is one to show: named in `only` ("vda,/dev/sdb"), or with NULL any that has
 * moved and is no partition. */
int mr_disk_chosen(const struct mr_disk *d, const char *only);

#endif
