/* device.h - an emulated storage device: when would it be done with this operation?
 *
 *     uint64_t due = mr_device_reserve(dev, MR_DEV_READ, &place, bytes);
 *     ... read the bytes from wherever they really are ...
 *     mr_device_wait_until(due);
 *
 * A device never does I/O and never sleeps of its own; it only answers when.  Callers reserve in
 * the order in which operations reach the device, do the real I/O meanwhile, and hold the result
 * back until it is due.  Every byte is charged, whether or not it is cached.  NULL stands for the
 * real storage in all code that takes a device; only close and wait accept it here.
 *
 * Opening, closing and the name are in millrace/store.h.  Thread-safe; an operation costs O(1). */
#ifndef MR_DEVICE_H
#define MR_DEVICE_H

#include <millrace/store.h>

#include "device_profile.h"

#include <stdatomic.h>

enum mr_device_op {
    MR_DEV_READ,
    MR_DEV_WRITE,
    MR_DEV_META, /* open, create, rename, unlink, ...; `where` and `bytes` do not matter */
    MR_DEV_SYNC, /* what was written before has reached the medium; `bytes` does not matter */
};

/* Where an operation takes place.  NULL or all zero: nowhere in particular, so a seek is due. */
struct mr_device_place {
    uint64_t file;     /* the inode's number; 0 = unknown */
    uint64_t offset;   /* in the file */
    uint64_t physical; /* of that offset, in bytes from the start of the medium, */
    int has_physical;  /* if this is set; else inodes are taken to lie in their order */
};

/* A device of this profile (copied). */
int mr_device_new(const struct mr_device_profile *profile, struct mr_device **out,
                  struct mr_error *err);
const struct mr_device_profile *mr_device_profile_of(const struct mr_device *d);

/* The CLOCK_MONOTONIC ns at which the device is done with an operation that arrives now. */
uint64_t mr_device_reserve(struct mr_device *d, enum mr_device_op op,
                           const struct mr_device_place *where, uint64_t bytes);
/* The same for one that arrived at `now_ns`; the device looks at no other clock. */
uint64_t mr_device_reserve_at(struct mr_device *d, uint64_t now_ns, enum mr_device_op op,
                              const struct mr_device_place *where, uint64_t bytes);
/* Open, read and close of a whole file: one metadata operation and one read. */
uint64_t mr_device_reserve_file(struct mr_device *d, uint64_t now_ns,
                                const struct mr_device_place *where, uint64_t bytes);

/* Find out where byte `offset` of an open file lies, by FIEMAP where the file system tells and as
 * far as this device cares.  Failing that the place says less; it is never wrong. */
void mr_device_place_fd(const struct mr_device *d, int fd, uint64_t offset,
                        struct mr_device_place *out);
/* The same for a file that is not open; a relative path begins at the folder `dir`, and `file` is
 * its inode's number, 0: unknown. */
void mr_device_place_path(const struct mr_device *d, int dir, const char *path, uint64_t file,
                          uint64_t offset, struct mr_device_place *out);

/* The kernel's timers may be late by this much, so the last bit of a wait is spun. */
#define MR_DEVICE_SPIN_NS 50000
/* How often a wait that can be stopped looks whether it should. */
#define MR_DEVICE_SLICE_NS 50000000

/* Sleep until then: no CPU but for the last 50 us at the most, so as not to come late. */
void mr_device_wait_until(uint64_t deadline_ns);
/* The same, but -ECANCELED within a fraction of a second after *stop became nonzero. */
int mr_device_wait_unless(uint64_t deadline_ns, const atomic_int *stop);

/* An operation was due, its bytes were really there at `ready_ns`, and its reader goes on at
 * `now_ns`.  How much of the delay is the host's fault and not the device's, up to `most_ns`: all
 * of it if the bytes were there in time, for then a timer was late; else what is left of the delay
 * with which the operation began (`before_ns`).  The reader's next operation may arrive that much
 * earlier (reserve_at), so that late timers do not add up.  It is still not before the deadline, so
 * the limit holds from the first operation on, and in any stretch of time it is exceeded by no more
 * than what the device delivers in `most_ns`. */
uint64_t mr_device_late_ns(uint64_t deadline_ns, uint64_t ready_ns, uint64_t now_ns,
                           uint64_t before_ns, uint64_t most_ns);
/* For readers that do nothing but read: longer than a scheduler's slice, which is what they wait
 * for when something else has the processor. */
#define MR_DEVICE_LATE_NS 5000000
/* For those that compute as well: then they wait for each other's processor, on a real device too,
 * and only the timers are to blame. */
#define MR_DEVICE_LATE_BUSY_NS 500000

#endif
