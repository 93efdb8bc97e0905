/* raw_slot.h - what the two engines of raw_io.c share: one place for an operation under way. */
#ifndef MR_RAW_SLOT_H
#define MR_RAW_SLOT_H

#include "raw_io.h"
#include "raw_ring.h"

struct mr_raw_slot {
    struct mr_raw_op op;
    uint64_t start_ns;
    uint64_t due_ns; /* when the emulated device is done; 0 without one */
};

/* Make operation i of the job: place, fresh contents, start, charge. */
void mr_raw_slot_begin(struct mr_raw_slot *s, const struct mr_raw_job *job, uint64_t i);
/* Account for an operation that ended at op.done_ns or, if that is later, at due_ns. */
void mr_raw_slot_count(const struct mr_raw_slot *s, struct mr_raw_result *into);
/* The words for an operation that failed. */
int mr_raw_slot_fail(const struct mr_raw_slot *s, const struct mr_raw_job *job,
                     struct mr_error *err);

/* Run the operations by job->depth threads; slots have their buffers.  As mr_raw_io_run, without
 * the sync. */
int mr_raw_threads_run(struct mr_raw_slot *slots, const struct mr_raw_job *job,
                       struct mr_raw_result *out, struct mr_error *err);

#endif
