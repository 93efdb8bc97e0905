/* sample_csv.c - see sample_csv.h.
 *
 *     Time,Interval,Kind,Name,Direction,KBytes,...,Util,CpuUser,...
 *     1.000,1.000,system,,,,,,,,,,,12.5,...             the system's columns
 *     1.000,1.000,disk,vda,read,4096,...,31.2,,,...     the device's
 *     1.000,1.000,net,eth0,receive,12,,9,1.33,,,,,...   KBytes, packets (IOs), Size
 *
 * What does not belong to a row, and what is not known, is empty. */
#include "sample_csv.h"

#include "sample_columns.h"

#include <math.h>

/* Of struct mr_disk_rates, those that a direction does not have itself. */
static const unsigned whole_columns[] = {MR_COLUMN_SVCTIM, MR_COLUMN_UTIL};
enum {
    N_WHOLE = sizeof whole_columns / sizeof *whole_columns,
    N_DEVICE = MR_N_DISK_SIDE_COLUMNS + N_WHOLE
};

static void number(FILE *to, double v)
{
    if (isnan(v))
        fputc(',', to);
    else
        fprintf(to, v == floor(v) && fabs(v) < 1e15 ? ",%.0f" : ",%.3f", v);
}

static void none(FILE *to, unsigned n)
{
    while (n--)
        fputc(',', to);
}

static void begin(FILE *to, const struct mr_system_sample *s, const char *kind, const char *name,
                  const char *direction)
{
    fprintf(to, "%.3f,%.3f,%s,%s,%s", (double)s->since_open_ns / 1e9, (double)s->interval_ns / 1e9,
            kind, name, direction);
}

void mr_sample_csv_heading(FILE *to)
{
    fputs("Time,Interval,Kind,Name,Direction", to);
    for (unsigned i = 0; i < MR_N_DISK_SIDE_COLUMNS; i++)
        fprintf(to, ",%s", mr_disk_side_columns[i].heading);
    for (unsigned i = 0; i < N_WHOLE; i++)
        fprintf(to, ",%s", mr_disk_columns[whole_columns[i]].heading);
    for (unsigned i = 0; i < MR_N_SYSTEM_COLUMNS; i++)
        fprintf(to, ",%s", mr_system_columns[i].heading);
    fputc('\n', to);
}

static void system_row(FILE *to, const struct mr_system_sample *s, double seconds)
{
    struct mr_system_rates r;
    mr_system_rates_of(s, &s->last, s->known, seconds, &r);
    begin(to, s, "system", "", "");
    none(to, N_DEVICE);
    for (unsigned i = 0; i < MR_N_SYSTEM_COLUMNS; i++)
        number(to, mr_system_rate(&r, i));
    fputc('\n', to);
}

static void disk_rows(FILE *to, const struct mr_system_sample *s, const struct mr_disk *d,
                      double seconds)
{
    struct mr_disk_rates r;
    mr_disk_rates_of(&d->last, seconds, &r);
    for (unsigned side = 0; side < MR_DISK_SIDES; side++) {
        if (side == MR_DISK_DISCARD && !d->total.side[side].ios)
            continue;
        begin(to, s, "disk", d->name, mr_disk_side_names[side]);
        for (unsigned i = 0; i < MR_N_DISK_SIDE_COLUMNS; i++)
            number(to, mr_column_value(&r.side[side], &mr_disk_side_columns[i]));
        for (unsigned i = 0; i < N_WHOLE; i++)
            number(to, mr_column_value(&r, &mr_disk_columns[whole_columns[i]]));
        none(to, MR_N_SYSTEM_COLUMNS);
        fputc('\n', to);
    }
}

static void net_rows(FILE *to, const struct mr_system_sample *s, const struct mr_net *k,
                     double seconds)
{
    for (unsigned side = 0; side < MR_NET_SIDES; side++) {
        double kb = (double)k->last[side].bytes / 1024, n = (double)k->last[side].packets;
        begin(to, s, "net", k->name, mr_net_side_names[side]);
        number(to, seconds > 0 ? kb / seconds : 0);
        none(to, 1);
        number(to, seconds > 0 ? n / seconds : 0);
        number(to, n > 0 ? kb / n : 0);
        none(to, N_DEVICE - 4 + MR_N_SYSTEM_COLUMNS);
        fputc('\n', to);
    }
}

void mr_sample_csv_rows(FILE *to, const struct mr_system_sample *s, const char *only)
{
    double seconds = (double)s->interval_ns / 1e9;
    system_row(to, s, seconds);
    for (unsigned i = 0; s->known & MR_KNOWN_DISKS && i < s->n_disks; i++)
        if (s->disks[i].present && mr_disk_chosen(&s->disks[i], only))
            disk_rows(to, s, &s->disks[i], seconds);
    for (unsigned i = 0; s->known & MR_KNOWN_NET && i < s->n_nets; i++)
        if (s->nets[i].present && s->nets[i].used)
            net_rows(to, s, &s->nets[i], seconds);
}
