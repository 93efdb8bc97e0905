/* diskstats.c - see diskstats.h.
 *
 *     major minor name  ios merged sectors ms  ios merged sectors ms  in-flight busy weighted
 *                       `---- read --------'   `---- write -------'
 *                       ios merged sectors ms  flushes ms
 *                       `---- discard -----'               (since Linux 4.18, 5.5)
 *
 * What goes wrong with differences of such counters, and what is done about it:
 * - Times are 32 bits wide on every kernel and wrap: the weighted time of a queue of a thousand
 *   requests in an hour.  Their differences are taken modulo 2^32; a step back is no movement.
 * - The others are longs.  On a 64-bit kernel they never wrap, so one that falls is a new device
 *   under an old name, which began at zero.  On a 32-bit kernel a fall is a wrap when the way
 *   forward is the shorter one.
 * - A device that was not listed for a reading and is back is a new one, too.  But a reading with
 *   damaged lines says nothing about devices that it does not list: they are taken to be still
 *   there, and a device that is new after it counts from now.
 *
 * Rows are never removed or moved, so that a caller may remember an index.  The kernel lists
 * devices in the same order each time: a row is looked for where the last one was found. */
#include "diskstats.h"

#include "grow.h"
#include "proc_text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

struct line {
    uint64_t major, minor;
    char name[MR_DISK_NAME];
    struct mr_disk_counts counts;
};

/* A program of 32 bits may run on a kernel of 64. */
static unsigned kernel_long_bits(void)
{
    struct utsname u;
    if (sizeof(long) == 8)
        return 64;
    return !uname(&u) && (strstr(u.machine, "64") || !strcmp(u.machine, "s390x")) ? 64 : 32;
}

void mr_disks_init(struct mr_disks *d, const char *sys_root, unsigned counter_bits)
{
    *d = (struct mr_disks){.sys_root = sys_root,
                           .counter_bits = counter_bits ? counter_bits : kernel_long_bits()};
}

void mr_disks_fini(struct mr_disks *d)
{
    free(d->row);
    d->row = NULL;
    d->n = d->cap = 0;
}

static int parse_side(const char **p, struct mr_disk_side *side)
{
    return mr_scan_u64(p, &side->ios) || mr_scan_u64(p, &side->merged) ||
           mr_scan_u64(p, &side->sectors) || mr_scan_u64(p, &side->ms);
}

static int parse_line(const char *p, struct line *out)
{
    struct line l = {0};
    uint64_t in_flight;
    if (mr_scan_u64(&p, &l.major) || mr_scan_u64(&p, &l.minor) ||
        mr_scan_word(&p, '\n', l.name, sizeof l.name) ||
        parse_side(&p, &l.counts.side[MR_DISK_READ]) ||
        parse_side(&p, &l.counts.side[MR_DISK_WRITE]) || mr_scan_u64(&p, &in_flight) ||
        mr_scan_u64(&p, &l.counts.busy_ms) || mr_scan_u64(&p, &l.counts.weighted_ms))
        return -1;
    if (parse_side(&p, &l.counts.side[MR_DISK_DISCARD]))
        memset(&l.counts.side[MR_DISK_DISCARD], 0, sizeof l.counts.side[0]);
    if (l.major > UINT_MAX || l.minor > UINT_MAX)
        return -1;
    *out = l;
    return 0;
}

static int is_partition(const struct mr_disks *d, const struct line *l)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/dev/block/%u:%u/partition", d->sys_root,
                     (unsigned)l->major, (unsigned)l->minor);
    return n < (int)sizeof path && !access(path, F_OK);
}

/* A row for a device that was never seen. */
static struct mr_disk *add_row(struct mr_disks *d, const struct line *l)
{
    struct mr_disk *row = mr_grown(d->row, d->n, &d->cap, sizeof *row);
    if (!row)
        return NULL;
    d->row = row;
    struct mr_disk *k = &d->row[d->n++];
    *k = (struct mr_disk){.major = (unsigned)l->major, .minor = (unsigned)l->minor};
    memcpy(k->name, l->name, sizeof k->name);
    k->partition = is_partition(d, l);
    return k;
}

static struct mr_disk *find_row(struct mr_disks *d, const struct line *l)
{
    for (unsigned i = 0; i < d->n; i++) {
        unsigned at = d->at + i < d->n ? d->at + i : d->at + i - d->n;
        struct mr_disk *k = &d->row[at];
        if (k->major == l->major && k->minor == l->minor && !strcmp(k->name, l->name)) {
            d->at = at + 1 < d->n ? at + 1 : 0;
            return k;
        }
    }
    return NULL;
}

/* Whether a counter of longs went forward, and by how much. */
static int forward(uint64_t was, uint64_t now, unsigned bits, uint64_t *by)
{
    *by = now - was;
    if (now >= was)
        return 1;
    *by = (uint32_t)*by;
    return bits == 32 && was <= UINT32_MAX && *by < 1u << 31;
}

static uint64_t ms_forward(uint64_t was, uint64_t now)
{
    uint32_t by = (uint32_t)(now - was);
    return by < 1u << 31 ? by : 0;
}

/* The change from one reading to the next; 0 when it is not the same device any more. */
static int difference(const struct mr_disk_counts *was, const struct mr_disk_counts *now,
                      unsigned bits, struct mr_disk_counts *out)
{
    for (unsigned s = 0; s < MR_DISK_SIDES; s++) {
        const struct mr_disk_side *a = &was->side[s], *b = &now->side[s];
        struct mr_disk_side *o = &out->side[s];
        if (!forward(a->ios, b->ios, bits, &o->ios) ||
            !forward(a->merged, b->merged, bits, &o->merged) ||
            !forward(a->sectors, b->sectors, bits, &o->sectors))
            return 0;
        o->ms = ms_forward(a->ms, b->ms);
    }
    out->busy_ms = ms_forward(was->busy_ms, now->busy_ms);
    out->weighted_ms = ms_forward(was->weighted_ms, now->weighted_ms);
    return 1;
}

static void add(struct mr_disk_counts *to, const struct mr_disk_counts *c)
{
    for (unsigned s = 0; s < MR_DISK_SIDES; s++) {
        to->side[s].ios += c->side[s].ios;
        to->side[s].merged += c->side[s].merged;
        to->side[s].sectors += c->side[s].sectors;
        to->side[s].ms += c->side[s].ms;
    }
    to->busy_ms += c->busy_ms;
    to->weighted_ms += c->weighted_ms;
}

static int moved(const struct mr_disk_counts *c)
{
    for (unsigned s = 0; s < MR_DISK_SIDES; s++)
        if (c->side[s].ios)
            return 1;
    return c->busy_ms != 0;
}

static void take(struct mr_disks *d, struct mr_disk *k, const struct mr_disk_counts *now)
{
    static const struct mr_disk_counts zero;
    if (k->seen == d->readings)
        return; /* listed twice: the first line counts */
    if (d->readings == 1 || (!k->seen && d->was_damaged))
        k->last = zero;
    else if (!k->present || !difference(&k->raw, now, d->counter_bits, &k->last))
        k->last = *now;
    add(&k->total, &k->last);
    k->used |= moved(&k->last);
    k->raw = *now;
    k->present = 1;
    k->seen = d->readings;
}

/* A machine without devices has an empty file, and that is a good one. */
static int has_good_line(const char *text)
{
    struct line l;
    for (const char *p = text; *p; p = mr_next_line(p))
        if (!parse_line(p, &l))
            return 1;
    return !*text;
}

int mr_disks_update(struct mr_disks *d, const char *text)
{
    struct line l;
    int r = 0;
    if (!has_good_line(text))
        return -EBADMSG;
    d->readings++;
    d->bad_lines = d->at = 0;
    for (const char *p = text; *p; p = mr_next_line(p)) {
        if (parse_line(p, &l)) {
            d->bad_lines++;
            continue;
        }
        struct mr_disk *k = find_row(d, &l);
        if (!k && !(k = add_row(d, &l)))
            r = -ENOMEM;
        else
            take(d, k, &l.counts);
    }
    for (unsigned i = 0; i < d->n; i++) {
        struct mr_disk *k = &d->row[i];
        if (k->seen == d->readings)
            continue;
        memset(&k->last, 0, sizeof k->last);
        k->present &= d->bad_lines > 0;
    }
    d->was_damaged = r || d->bad_lines;
    return r;
}

void mr_disks_skip(struct mr_disks *d)
{
    for (unsigned i = 0; i < d->n; i++)
        memset(&d->row[i].last, 0, sizeof d->row[i].last);
}

static double per(double what, double of)
{
    return of > 0 ? what / of : 0;
}

void mr_disk_rates_of(const struct mr_disk_counts *c, double seconds, struct mr_disk_rates *out)
{
    double ms = seconds * 1000, ios = 0;
    for (unsigned s = 0; s < MR_DISK_SIDES; s++) {
        const struct mr_disk_side *k = &c->side[s];
        double kb = (double)k->sectors / 2, n = (double)k->ios;
        out->side[s] = (struct mr_disk_side_rates){.kbytes = per(kb, seconds),
                                                   .merged = per((double)k->merged, seconds),
                                                   .ios = per(n, seconds),
                                                   .size = per(kb, n),
                                                   .wait = per((double)k->ms, n),
                                                   .qlen = per((double)k->ms, ms)};
        ios += n;
    }
    out->qlen = per((double)c->weighted_ms, ms);
    out->svctim = per((double)c->busy_ms, ios);
    out->util = per(100 * (double)c->busy_ms, ms);
    if (out->util > 100) /* the kernel counts in ticks, so a short interval may have one too many */
        out->util = 100;
}
