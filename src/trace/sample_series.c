/* sample_series.c - see sample_series.h.
 *
 * One column of doubles a quantity, all of the same length; a device's begin when it is first
 * chosen, with NaN (null) for the samples before.  Eight bytes a number: the default limit of four
 * million takes 32 MB, and several times that when it becomes JSON. */
#include "sample_series.h"

#include "grow.h"
#include "sample_columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_VALUES (4u << 20)

enum {
    TIME,
    INTERVAL,
    SYSTEM,
    N_COMMON = SYSTEM + MR_N_SYSTEM_COLUMNS,
    N_DISK = MR_DISK_SIDES * MR_N_DISK_SIDE_COLUMNS + MR_N_DISK_COLUMNS,
    N_NET = 2 * MR_NET_SIDES,
    N_MOST = N_COMMON > N_DISK ? N_COMMON : N_DISK,
};

/* Columns that belong together: those of the system, of a device, of an interface. */
struct group {
    unsigned index; /* of the row in the sample */
    double *v[N_MOST];
};

struct groups {
    struct group *g;
    unsigned n;
    size_t cap;
};

struct mr_sample_series {
    const char *only;
    uint64_t max_values;
    size_t n, cap; /* samples */
    struct group common;
    struct groups disks, nets;
    unsigned known; /* in any sample */
    int truncated;
};

struct mr_sample_series *mr_sample_series_new(const char *only, uint64_t max_values)
{
    struct mr_sample_series *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->only = only;
    s->max_values = max_values ? max_values : MAX_VALUES;
    return s;
}

static void free_group(struct group *g)
{
    for (unsigned i = 0; i < N_MOST; i++)
        free(g->v[i]);
}

static void free_groups(struct groups *a)
{
    for (unsigned i = 0; i < a->n; i++)
        free_group(&a->g[i]);
    free(a->g);
}

void mr_sample_series_free(struct mr_sample_series *s)
{
    if (!s)
        return;
    free_group(&s->common);
    free_groups(&s->disks);
    free_groups(&s->nets);
    free(s);
}

static int resize_group(struct group *g, unsigned n_columns, size_t cap)
{
    for (unsigned i = 0; i < n_columns; i++) {
        double *v = realloc(g->v[i], cap * sizeof *v);
        if (!v)
            return -1;
        g->v[i] = v;
    }
    return 0;
}

/* Room for one more sample in every column. */
static int grow(struct mr_sample_series *s)
{
    size_t cap = s->cap ? 2 * s->cap : 64;
    if (s->n < s->cap)
        return 0;
    int r = resize_group(&s->common, N_COMMON, cap);
    for (unsigned i = 0; !r && i < s->disks.n; i++)
        r = resize_group(&s->disks.g[i], N_DISK, cap);
    for (unsigned i = 0; !r && i < s->nets.n; i++)
        r = resize_group(&s->nets.g[i], N_NET, cap);
    if (!r)
        s->cap = cap;
    return r;
}

static struct group *group_of(struct mr_sample_series *s, struct groups *a, unsigned index,
                              unsigned n_columns)
{
    for (unsigned i = 0; i < a->n; i++)
        if (a->g[i].index == index)
            return &a->g[i];
    struct group *g = mr_grown(a->g, a->n, &a->cap, sizeof *g);
    if (!g)
        return NULL;
    a->g = g;
    g += a->n;
    *g = (struct group){.index = index};
    if (resize_group(g, n_columns, s->cap)) {
        free_group(g);
        return NULL;
    }
    a->n++;
    for (unsigned i = 0; i < n_columns; i++)
        for (size_t k = 0; k < s->n; k++)
            g->v[i][k] = NAN;
    return g;
}

static void put_common(struct mr_sample_series *s, const struct mr_system_sample *m, double seconds)
{
    struct mr_system_rates r;
    mr_system_rates_of(m, &m->last, m->known, seconds, &r);
    s->common.v[TIME][s->n] = (double)m->since_open_ns / 1e9;
    s->common.v[INTERVAL][s->n] = seconds;
    for (unsigned i = 0; i < MR_N_SYSTEM_COLUMNS; i++)
        s->common.v[SYSTEM + i][s->n] = mr_system_rate(&r, i);
}

static int put_disk(struct mr_sample_series *s, unsigned index, const struct mr_disk *d, int known,
                    double seconds)
{
    struct group *g = group_of(s, &s->disks, index, N_DISK);
    struct mr_disk_rates r;
    unsigned at = 0;
    if (!g)
        return -1;
    mr_disk_rates_of(&d->last, known ? seconds : NAN, &r);
    for (unsigned side = 0; side < MR_DISK_SIDES; side++)
        for (unsigned i = 0; i < MR_N_DISK_SIDE_COLUMNS; i++)
            g->v[at++][s->n] =
                known ? mr_column_value(&r.side[side], &mr_disk_side_columns[i]) : NAN;
    for (unsigned i = 0; i < MR_N_DISK_COLUMNS; i++)
        g->v[at++][s->n] = known ? mr_column_value(&r, &mr_disk_columns[i]) : NAN;
    return 0;
}

static int put_net(struct mr_sample_series *s, unsigned index, const struct mr_net *k, int known,
                   double seconds)
{
    struct group *g = group_of(s, &s->nets, index, N_NET);
    if (!g)
        return -1;
    for (unsigned side = 0; side < MR_NET_SIDES; side++) {
        g->v[2 * side][s->n] = known ? (double)k->last[side].bytes / 1024 / seconds : NAN;
        g->v[2 * side + 1][s->n] = known ? (double)k->last[side].packets / seconds : NAN;
    }
    return 0;
}

static uint64_t values(const struct mr_sample_series *s)
{
    return (uint64_t)(s->n + 1) * (N_COMMON + s->disks.n * N_DISK + s->nets.n * N_NET);
}

void mr_sample_series_add(struct mr_sample_series *s, const struct mr_system_sample *m)
{
    double seconds = (double)m->interval_ns / 1e9;
    int bad = 0;
    s->known |= m->known;
    if (s->truncated || values(s) > s->max_values || grow(s)) {
        s->truncated = 1;
        return;
    }
    put_common(s, m, seconds);
    for (unsigned i = 0; !bad && i < m->n_disks; i++)
        if (mr_disk_chosen(&m->disks[i], s->only))
            bad = put_disk(s, i, &m->disks[i], m->disks[i].present && m->known & MR_KNOWN_DISKS,
                           seconds);
    for (unsigned i = 0; !bad && i < m->n_nets; i++)
        if (m->nets[i].used)
            bad =
                put_net(s, i, &m->nets[i], m->nets[i].present && m->known & MR_KNOWN_NET, seconds);
    s->truncated = bad;
    s->n += !bad;
}

/* Whole numbers without a fraction: shorter, and exact beyond nine digits. */
static struct mr_json *real(double v)
{
    return isfinite(v) && v == floor(v) && fabs(v) < 1e15 ? mr_json_int((int64_t)v)
                                                          : mr_json_real(v);
}

static struct mr_json *column(const struct mr_sample_series *s, const double *v)
{
    struct mr_json *a = mr_json_array();
    for (size_t i = 0; i < s->n; i++)
        mr_json_append(a, real(v[i]));
    return a;
}

static struct mr_json *disk_series(const struct mr_sample_series *s, const struct group *g)
{
    struct mr_json *o = mr_json_object();
    unsigned at = 0;
    for (unsigned side = 0; side < MR_DISK_SIDES; side++) {
        struct mr_json *p = mr_json_object();
        for (unsigned i = 0; i < MR_N_DISK_SIDE_COLUMNS; i++)
            mr_json_set(p, mr_disk_side_columns[i].name, column(s, g->v[at++]));
        mr_json_set(o, mr_disk_side_names[side], p);
    }
    for (unsigned i = 0; i < MR_N_DISK_COLUMNS; i++)
        mr_json_set(o, mr_disk_columns[i].name, column(s, g->v[at++]));
    return o;
}

static struct mr_json *net_series(const struct mr_sample_series *s, const struct group *g)
{
    struct mr_json *o = mr_json_object();
    for (unsigned side = 0; side < MR_NET_SIDES; side++) {
        struct mr_json *p = mr_json_object();
        mr_json_set(p, "kbytes_per_s", column(s, g->v[2 * side]));
        mr_json_set(p, "packets_per_s", column(s, g->v[2 * side + 1]));
        mr_json_set(o, mr_net_side_names[side], p);
    }
    return o;
}

static struct mr_json *series_json(const struct mr_sample_series *s,
                                   const struct mr_system_sample *last)
{
    struct mr_json *o = mr_json_object(), *system = mr_json_object(), *devices = mr_json_object(),
                   *network = mr_json_object();
    mr_json_set(o, "truncated", mr_json_bool(s->truncated));
    mr_json_set(o, "time_s", column(s, s->common.v[TIME]));
    mr_json_set(o, "interval_s", column(s, s->common.v[INTERVAL]));
    for (unsigned i = 0; i < MR_N_SYSTEM_COLUMNS; i++)
        mr_json_set(system, mr_system_columns[i].name, column(s, s->common.v[SYSTEM + i]));
    for (unsigned i = 0; i < s->disks.n; i++)
        mr_json_set(devices, last->disks[s->disks.g[i].index].name, disk_series(s, &s->disks.g[i]));
    for (unsigned i = 0; i < s->nets.n; i++)
        mr_json_set(network, last->nets[s->nets.g[i].index].name, net_series(s, &s->nets.g[i]));
    mr_json_set(o, "system", system);
    mr_json_set(o, "devices", devices);
    mr_json_set(o, "network", network);
    return o;
}

static struct mr_json *disk_total(const struct mr_disk *d, double seconds)
{
    struct mr_json *o = mr_json_object();
    struct mr_disk_rates r;
    mr_disk_rates_of(&d->total, seconds, &r);
    mr_json_set(o, "name", mr_json_string(d->name));
    mr_json_set(o, "partition", mr_json_bool(d->partition));
    mr_json_set(o, "vanished", mr_json_bool(!d->present));
    for (unsigned side = 0; side < MR_DISK_SIDES; side++) {
        const struct mr_disk_side *t = &d->total.side[side];
        struct mr_json *p = mr_json_object();
        mr_json_set(p, "bytes", mr_json_int((int64_t)(t->sectors * 512)));
        mr_json_set(p, "ios", mr_json_int((int64_t)t->ios));
        mr_json_set(p, "merged", mr_json_int((int64_t)t->merged));
        for (unsigned i = 0; i < MR_N_DISK_SIDE_COLUMNS; i++)
            mr_json_set(p, mr_disk_side_columns[i].name,
                        real(mr_column_value(&r.side[side], &mr_disk_side_columns[i])));
        mr_json_set(o, mr_disk_side_names[side], p);
    }
    for (unsigned i = 0; i < MR_N_DISK_COLUMNS; i++)
        mr_json_set(o, mr_disk_columns[i].name, real(mr_column_value(&r, &mr_disk_columns[i])));
    return o;
}

static struct mr_json *net_total(const struct mr_net *k)
{
    struct mr_json *o = mr_json_object();
    mr_json_set(o, "name", mr_json_string(k->name));
    for (unsigned side = 0; side < MR_NET_SIDES; side++) {
        struct mr_json *p = mr_json_object();
        mr_json_set(p, "bytes", mr_json_int((int64_t)k->total[side].bytes));
        mr_json_set(p, "packets", mr_json_int((int64_t)k->total[side].packets));
        mr_json_set(o, mr_net_side_names[side], p);
    }
    return o;
}

static struct mr_json *process_total(const struct mr_process_io *io)
{
    static const char *const name[MR_IO_KINDS] = {
        "rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes"};
    struct mr_json *o = mr_json_object();
    for (unsigned i = 0; i < MR_IO_KINDS; i++)
        mr_json_set(o, name[i], mr_json_int((int64_t)io->count[i]));
    return o;
}

void mr_sample_series_json(const struct mr_sample_series *s, const struct mr_system_sample *last,
                           struct mr_json *into)
{
    double seconds = (double)last->since_open_ns / 1e9;
    struct mr_json *system = mr_json_object(), *devices = mr_json_array(),
                   *network = mr_json_array();
    struct mr_system_rates r;
    mr_system_rates_of(last, &last->total, s->known, seconds, &r);
    for (unsigned i = 0; i < MR_N_SYSTEM_COLUMNS; i++)
        mr_json_set(system, mr_system_columns[i].name, real(mr_system_rate(&r, i)));
    for (unsigned i = 0; i < last->n_disks; i++)
        if (mr_disk_chosen(&last->disks[i], s->only))
            mr_json_append(devices, disk_total(&last->disks[i], seconds));
    for (unsigned i = 0; i < last->n_nets; i++)
        if (last->nets[i].used)
            mr_json_append(network, net_total(&last->nets[i]));
    mr_json_set(into, "seconds", real(seconds));
    mr_json_set(into, "samples", mr_json_int((int64_t)last->number));
    mr_json_set(into, "missed", mr_json_int((int64_t)last->n_missed));
    mr_json_set(into, "system", system);
    mr_json_set(into, "devices", devices);
    mr_json_set(into, "network", network);
    mr_json_set(into, "process",
                s->known & MR_KNOWN_PROCESS ? process_total(&last->total.process) : mr_json_null());
    mr_json_set(into, "series", series_json(s, last));
}
