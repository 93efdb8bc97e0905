/* sample_trace.h - the pipeline's spans: what a sample went through, and who waited for whom. */
#ifndef MR_SAMPLE_TRACE_H
#define MR_SAMPLE_TRACE_H

#include "pipeline_state.h"

/* While a trace is on, by the sample's worker: Load and within it Read, Queue wait, and Decode and
 * Resize or Map; or Read alone. */
void mr_sample_trace(const struct mr_pipeline *p, const struct mr_task *t);
/* A worker had nothing to do; begin_ns 0: no trace was on. */
void mr_idle_trace(const struct mr_pipeline *p, uint64_t begin_ns, uint64_t end_ns);
/* The consumer waited for this batch. */
void mr_wait_trace(const struct mr_pipeline *p, const struct mr_batch *b, uint64_t begin_ns,
                   uint64_t end_ns);

#endif
