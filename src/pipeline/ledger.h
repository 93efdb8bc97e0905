/* ledger.h - bad samples: replaced, counted, reported in order. */
#ifndef MR_LEDGER_H
#define MR_LEDGER_H

#include "pipeline_state.h"

/* Attempts at one slot before the run is given up: with nine of ten samples bad, one slot in a
 * thousand gets there, and by then the error budget has spoken. */
#define MR_MAX_ATTEMPTS 64
/* The same where all samples may be bad: with 999 of 1,000 bad, one slot in ten million. */
#define MR_MOST_ATTEMPTS 16384

/* Errors of opening and reading that say nothing about the sample: no descriptors, no memory, no
 * kernel worker. */
int mr_ledger_is_ours(enum mr_stage stage, int code);

/* Worker: note the failure (detail: words, or "") and choose a substitute.  0 = try t->index now;
 * -errno = the slot is given up and its batch fails. */
int mr_ledger_note(struct mr_pipeline *p, struct mr_task *t, enum mr_stage stage, int code,
                   const char *detail);
/* Worker: give a slot up for an error that is not the sample's. */
void mr_ledger_give_up(struct mr_pipeline *p, struct mr_task *t, enum mr_stage stage, int code);

/* Consumer, with the finished batch: report and count its bad samples, check the budget.
 * 0, or -errno with p->error filled. */
int mr_ledger_settle(struct mr_pipeline *p, struct mr_work_batch *b);

#endif
