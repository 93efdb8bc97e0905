/* raw_io.h - operations on one open file, `depth` of them at once, timed.
 *
 * The place and size of operation i are functions of i.  io_uring keeps all operations outstanding
 * from one thread; where it is unavailable, each operation has a thread.  So the device is timed,
 * not the way to ask it. */
#ifndef MR_RAW_IO_H
#define MR_RAW_IO_H

#include <millrace/api.h>

#include "histogram.h"

struct mr_device;

enum mr_raw_engine {
    MR_RAW_AUTO, /* io_uring, or threads where it is not available */
    MR_RAW_URING,
    MR_RAW_THREADS,
};

struct mr_raw_io;

struct mr_raw_job {
    const char *name; /* of the file, for messages */
    int fd;
    int write;
    int sync;         /* fsync at the end, inside the time */
    int ordinary;     /* buffers in ordinary pages, as most programs have them; else in huge ones */
    unsigned depth;   /* operations under way; depth * max_len fits into the buffers */
    uint32_t max_len; /* of the largest operation; a multiple of 4096 */
    /* Operation i: called from several threads in any order. */
    void (*place)(const void *ctx, uint64_t i, uint64_t *offset, uint32_t *len);
    const void *place_ctx;
    uint64_t n_ops;
    uint64_t box_ns;          /* none begins later than that after the start; 0: no limit */
    struct mr_device *device; /* every operation is charged to it; NULL: the real one only */
    uint64_t inode;           /* of the file, so that the device knows what follows what */
    /* About ten times a second, and before the first operation; nonzero stops.  May be NULL. */
    int (*progress)(void *ctx, uint64_t n_done, uint64_t n_ops);
    void *progress_ctx;
};

struct mr_raw_result {
    uint64_t n_ops, bytes;
    double seconds;  /* from the first operation's start to the last one's end, sync included */
    int cut;         /* the time ran out before the operations did */
    uint64_t n_late; /* emulated: operations that the real storage finished too late */
    struct mr_histogram latency; /* ns, from being asked for to being done */
};

/* Buffers of `bytes` in all, touched and filled with noise, and an engine for up to `max_depth`. */
int mr_raw_io_open(enum mr_raw_engine engine, unsigned max_depth, size_t bytes,
                   struct mr_raw_io **out, struct mr_error *err);
/* Which it is: MR_RAW_URING or MR_RAW_THREADS. */
enum mr_raw_engine mr_raw_io_engine(const struct mr_raw_io *io);
/* Memory for an operation outside of a job: the first of the buffers, page-aligned. */
uint8_t *mr_raw_io_buffer(struct mr_raw_io *io);
/* -ECANCELED when progress stopped it: *out then holds what was done until there. */
int mr_raw_io_run(struct mr_raw_io *io, const struct mr_raw_job *job, struct mr_raw_result *out,
                  struct mr_error *err);
void mr_raw_io_close(struct mr_raw_io *io);

/* Fill with bytes that do not compress; the same for the same seed. */
void mr_noise_fill(uint8_t *buf, size_t n, uint64_t seed);

#endif
