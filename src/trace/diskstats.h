/* diskstats.h - block devices: the counters of /proc/diskstats without wraps and resets, and the
 * columns that collectl and iostat make of them. */
#ifndef MR_DISKSTATS_H
#define MR_DISKSTATS_H

#include <stddef.h>
#include <stdint.h>

#define MR_DISK_NAME 40

enum { MR_DISK_READ, MR_DISK_WRITE, MR_DISK_DISCARD, MR_DISK_SIDES };

struct mr_disk_side {
    uint64_t ios, merged, sectors; /* sectors of 512 bytes, whatever the device's are */
    uint64_t ms;                   /* the sum over requests of their time */
};

struct mr_disk_counts {
    struct mr_disk_side side[MR_DISK_SIDES];
    uint64_t busy_ms;     /* at least one request was under way */
    uint64_t weighted_ms; /* the sum over time of requests under way */
};

struct mr_disk {
    char name[MR_DISK_NAME];
    unsigned major, minor;
    int partition;               /* of a device that has a row of its own */
    int present;                 /* listed in the last reading; a row stays when its device goes */
    int used;                    /* has moved since the first reading */
    struct mr_disk_counts last;  /* what the last interval added */
    struct mr_disk_counts total; /* and all of them since the first reading */
    struct mr_disk_counts raw;   /* the kernel's numbers */
    uint64_t seen;               /* the reading that listed it last */
};

/* The columns, per second where it makes sense; a mean over no requests is 0. */
struct mr_disk_side_rates {
    double kbytes, merged, ios; /* per second; KB = 1024 bytes */
    double size;                /* KB a request */
    double wait;                /* ms a request, waiting and being served */
    double qlen;                /* requests of this direction under way, on average */
};

struct mr_disk_rates {
    struct mr_disk_side_rates side[MR_DISK_SIDES];
    double qlen;   /* requests under way: weighted ms / elapsed ms */
    double svctim; /* busy ms / requests of all directions */
    double util;   /* per cent of the time with a request under way */
};

struct mr_disks {
    struct mr_disk *row;
    unsigned n;
    size_t cap;
    uint64_t readings;
    unsigned bad_lines;    /* of the last reading */
    int was_damaged;       /* it could not be taken over whole */
    unsigned at;           /* where the next line's row is likely */
    unsigned counter_bits; /* of the kernel's long */
    const char *sys_root;  /* borrowed */
};

/* counter_bits 0: those of the running kernel. */
void mr_disks_init(struct mr_disks *d, const char *sys_root, unsigned counter_bits);
void mr_disks_fini(struct mr_disks *d);
/* Add a reading: the text of /proc/diskstats.  Counting begins with the first one; a device that
 * appears later counts from its own beginning.  Damaged lines are counted and skipped.  0,
 * -EBADMSG when there is no other line (then it is no reading), -ENOMEM when a new device got no
 * row. */
int mr_disks_update(struct mr_disks *d, const char *text);
/* An interval without a reading: nothing moved. */
void mr_disks_skip(struct mr_disks *d);

void mr_disk_rates_of(const struct mr_disk_counts *c, double seconds, struct mr_disk_rates *out);

#endif
