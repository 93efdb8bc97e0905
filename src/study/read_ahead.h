/* read_ahead.h - files into the page cache, before a run on an emulated storage draws them.
 *
 * An emulated device can only slow down.  With its files cached it is what a run waits for, however
 * slow the storage is that they lie on. */
#ifndef MR_READ_AHEAD_H
#define MR_READ_AHEAD_H

#include <millrace/pipeline.h>

struct mr_read_ahead_opts {
    struct mr_dataset *data;             /* borrows */
    const struct mr_pipeline_opts *pipe; /* of the run; with an emulated storage */
    uint64_t n_batches;                  /* that it draws; 0 = all */
    double run_s;                        /* or as many as the storage delivers in this time;
                                          * 0 = no such limit */
    double box_s;                        /* read for no longer than that; 0 = no such limit */
};

struct mr_read_ahead {
    uint64_t batches; /* that were read, from the start */
    int all;          /* those are all that the run draws */
};

/* 0, -ECANCELED, or -errno with words.  Ends early when half of the memory is full with it. */
int mr_read_ahead(const struct mr_read_ahead_opts *o, struct mr_read_ahead *out,
                  struct mr_error *err);

#define MR_LATE_SHARE 0.05 /* of the samples may come late */
/* The share of a run's samples that the real storage had later than the emulated one; 0 where they
 * came from memory: then their readers waited for a core.  `device_bytes` is what the run had
 * fetched, -1: not known. */
double mr_late_share(const struct mr_pipeline_stats *s, int64_t device_bytes);

#endif
