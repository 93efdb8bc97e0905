/* verdict.h - what limits a run, in words, with the numbers that say so.
 *
 * From what a pipeline and a training loop have counted: how long training waited for input, what
 * the workers did meanwhile, and what the storage could have delivered. */
#ifndef MR_VERDICT_H
#define MR_VERDICT_H

#include <stdint.h>

enum mr_limit {
    MR_LIMIT_NONE,       /* training hardly waits */
    MR_LIMIT_DEVICE,     /* the storage delivers all it can */
    MR_LIMIT_READ_DEPTH, /* too few reads are under way to keep the storage busy */
    MR_LIMIT_DECODE,     /* the workers' CPU time: decoding, resizing, a map */
    MR_LIMIT_CHECKPOINT, /* training stands still while checkpoints are saved */
    MR_LIMIT_HAND_OVER,  /* samples would be there, but workers are kept from making them in time */
    MR_LIMIT_READING,    /* MR_LIMIT_DEVICE or MR_LIMIT_READ_DEPTH: nothing tells which */
};

enum mr_input_wait { /* TensorFlow's profiler: below 5% of the step time, up to 20%, above */
                     MR_WAIT_FINE,
                     MR_WAIT_MODERATE,
                     MR_WAIT_HIGH,
};

struct mr_verdict_input {
    double seconds;            /* of the run, the first fill left out */
    double input_wait_s;       /* of these */
    double first_fill_s;       /* before them: the wait for the very first batch */
    double checkpoint_stall_s; /* of `seconds`: training stood still for checkpoints */
    int checkpoints_hold;      /* it waits until they are durable: burst, sync */
    int checkpoints_drain;     /* there is a second folder that they are drained to */
    uint64_t steps, samples, bytes;
    unsigned workers, cores;
    unsigned batch;             /* samples */
    unsigned prefetch;          /* batches; 0 = none */
    unsigned depth;             /* reads that can be under way at once: workers, or the I/O depth */
    double read_s;              /* open to close, summed over samples */
    double map_s;               /* decoding, resizing or a map, summed over samples */
    double ceiling_bytes_per_s; /* what the samples' own storage can deliver of such files; 0 = not
                                   known */
    unsigned ceiling_reads;     /* at once, up to which that was measured; 0 = by a profile */
    int ceiling_open;           /* more reads at once than that might yield more */
    int reads_hold_workers;     /* a worker waits for its read (threads engine) */
    int computed;               /* nobody trained: the waiting follows from rates */
};

struct mr_verdict {
    enum mr_limit limit;
    enum mr_input_wait rating;
    double wait_share; /* of the run's time */
    char finding[400]; /* what limits, in words, */
    char text[600];    /* and followed by what usually helps */
};

struct mr_device_profile;
/* The most that an emulated device can deliver of files of this size, read in random order, in
 * bytes/s. */
double mr_verdict_ceiling(const struct mr_device_profile *p, double file_bytes);

void mr_verdict_judge(const struct mr_verdict_input *in, struct mr_verdict *out);
/* "none", "device", "read-depth", "decode-cpu", "checkpoints", "hand-over", "device-or-read-depth"
 */
const char *mr_limit_name(enum mr_limit limit);

#endif
