/* watch_table.c - see watch_table.h.  A row for each device and direction that moved, with the
 * columns of collectl, below one about the system. */
#include "watch_table.h"

#include "output.h"
#include "sample_columns.h"
#include "say.h"

#include <math.h>

#define LINES_A_PAGE 24

static void heading(FILE *to)
{
    say_to(to, "%9s %-12s %-8s", "Time", "Name", "");
    for (unsigned i = 0; i < MR_N_DISK_SIDE_COLUMNS; i++)
        say_to(to, " %*s", i == 0 ? 9 : 7, mr_disk_side_columns[i].heading);
    say_to(to, " %7s %6s\n", "SvcTim", "Util");
}

/* Four digits, whatever the size. */
static void cell(FILE *to, int width, double v)
{
    say_to(to, " %*.*f", width, v >= 100 || v == 0 ? 0 : v >= 10 ? 1 : 2, v);
}

static void disk_rows(FILE *to, const char *time, const struct mr_disk *d,
                      const struct mr_disk_counts *c, double seconds, int idle_too, unsigned *lines)
{
    struct mr_disk_rates r;
    mr_disk_rates_of(c, seconds, &r);
    for (unsigned side = 0; side < MR_DISK_SIDES; side++) {
        if (!c->side[side].ios && !(idle_too && side != MR_DISK_DISCARD))
            continue;
        say_to(to, "%9s %-12s %-8s", time, d->name, mr_disk_side_names[side]);
        for (unsigned i = 0; i < MR_N_DISK_SIDE_COLUMNS; i++)
            cell(to, i == 0 ? 9 : 7, mr_column_value(&r.side[side], &mr_disk_side_columns[i]));
        cell(to, 7, r.svctim);
        say_to(to, " %5.1f%%\n", r.util);
        ++*lines;
    }
}

static void bytes(FILE *to, const char *what, double v, const char *after)
{
    char text[32];
    if (!isnan(v))
        say_to(to, "%s %s%s", what, human_bytes(v, text, sizeof text), after);
}

static void system_row(FILE *to, const char *time, const struct mr_system_rates *r)
{
    say_to(to, "%9s %-12s", time, "system");
    if (!isnan(r->cpu_user))
        say_to(to, " user %.0f%%, system %.0f%%, iowait %.0f%%", r->cpu_user, r->cpu_system,
               r->cpu_iowait);
    if (!isnan(r->io_some))
        say_to(to, "; stalled by I/O %.0f%%", r->io_some);
    bytes(to, "; cached", r->cached_bytes, "");
    bytes(to, ", dirty", r->dirty_bytes, "");
    bytes(to, "; command reads", r->read_bytes, "/s");
    bytes(to, ", writes", r->write_bytes, "/s");
    fputc('\n', to);
}

void watch_table_sample(FILE *to, const struct mr_system_sample *s, const char *only,
                        unsigned *lines)
{
    double seconds = (double)s->interval_ns / 1e9;
    struct mr_system_rates r;
    char time[32];
    snprintf(time, sizeof time, "%.2f", (double)s->since_open_ns / 1e9);
    if (*lines == 0 || *lines >= LINES_A_PAGE) {
        heading(to);
        *lines = 0;
    }
    mr_system_rates_of(s, &s->last, s->known, seconds, &r);
    system_row(to, time, &r);
    ++*lines;
    for (unsigned i = 0; i < s->n_disks; i++)
        if (s->disks[i].present && mr_disk_chosen(&s->disks[i], only))
            disk_rows(to, time, &s->disks[i], &s->disks[i].last, seconds, only != NULL, lines);
    fflush(to);
}

static void process_line(FILE *to, const struct mr_process_io *io)
{
    say_to(to, "The command and its descendants:");
    bytes(to, " read", (double)io->count[MR_IO_RCHAR], "; from devices:");
    bytes(to, "", (double)io->count[MR_IO_READ_BYTES], ". ");
    bytes(to, "Wrote", (double)io->count[MR_IO_WCHAR], "; to devices:");
    bytes(to, "", (double)io->count[MR_IO_WRITE_BYTES], ".");
    fputc('\n', to);
}

void watch_table_totals(FILE *to, const struct mr_system_sample *last, const char *only,
                        unsigned known)
{
    double seconds = (double)last->since_open_ns / 1e9;
    struct mr_system_rates r;
    unsigned lines = 0;
    say_to(to, "In all %.2f s, %llu sample%s", seconds, (unsigned long long)last->number,
           plural(last->number));
    if (last->n_missed)
        say_to(to, ", %llu missed", (unsigned long long)last->n_missed);
    fputc('\n', to);
    heading(to);
    mr_system_rates_of(last, &last->total, known & ~(unsigned)MR_KNOWN_PROCESS, seconds, &r);
    system_row(to, "all", &r);
    for (unsigned i = 0; i < last->n_disks; i++)
        if (mr_disk_chosen(&last->disks[i], only))
            disk_rows(to, last->disks[i].present ? "all" : "vanished", &last->disks[i],
                      &last->disks[i].total, seconds, only != NULL, &lines);
    if (known & MR_KNOWN_PROCESS)
        process_line(to, &last->total.process);
}
