/* device_profile.h - what an emulated device can do, and the small text file that says it.
 *
 *     name = hdd
 *     calibrated = what these figures were fitted to
 *     read_mb_per_s = 163
 *     write_mb_per_s = 133.14
 *     ...
 *
 * docs/devices.md explains every key.  All values are whole numbers of a small unit, so a profile
 * that is written and read again is the same to the last bit. */
#ifndef MR_DEVICE_PROFILE_H
#define MR_DEVICE_PROFILE_H

#include <millrace/api.h>

#define MR_PROFILE_MAX_TARGETS 256
#define MR_PROFILE_MAX_QUEUE   64
#define MR_PROFILE_MAX_BYTES   ((size_t)16 << 10) /* of a profile's text */

struct mr_device_profile {
    char name[32];        /* letters, digits, '.', '_', '-' */
    char calibrated[240]; /* what the figures were fitted to or measured on; may be "" */
    uint64_t read_bytes_per_s, write_bytes_per_s;
    uint64_t read_latency_ns, write_latency_ns; /* of every operation, beside its transfer */
    uint64_t sync_ns;
    uint64_t metadata_ns;       /* of every open, create, rename, ... */
    uint64_t metadata_parallel; /* of them at once, at most; 0 = any number */
    uint64_t seek_ns;           /* of a read or write that does not follow the one before it */
    uint64_t seek_shrink;       /* thousandths: with q operations waiting a seek takes
                                 * seek_ns / q^(seek_shrink / 1000) */
    uint64_t queue_depth;       /* more waiting operations do not help */
    uint64_t targets;           /* independent devices that share the bandwidth evenly */
    uint64_t stripe_bytes;      /* of a file on one target before the next one follows */
};

/* Read a profile's text; `file` is its name in errors, which say the line and the key. */
int mr_device_profile_parse(const char *text, size_t len, const char *file,
                            struct mr_device_profile *out, struct mr_error *err);
/* A built-in profile by its name (hdd, ssd, optane, lustre), else the file of that name. */
int mr_device_profile_load(const char *name_or_file, struct mr_device_profile *out,
                           struct mr_error *err);
/* The i-th built-in profile's name and text; NULL behind the last. */
const char *mr_device_profile_builtin(unsigned i, const char **text);
/* Write a profile as text with its closing NUL: its length, -ENOSPC when it does not fit, or
 * -EINVAL with words when a value is out of its range. */
int mr_device_profile_format(const struct mr_device_profile *p, char *buf, size_t cap,
                             struct mr_error *err);
/* The same into a file, which is replaced only when all is written. */
int mr_device_profile_save(const struct mr_device_profile *p, const char *path,
                           struct mr_error *err);

#endif
