/* kept_memory.h - batch memory that goes from one run's pipeline to the next.
 *
 * First touch is slow: a measurement that opens a pipeline for each run would pay for it each time.
 *
 * Lifetime: new -> allocator -> free, when no pipeline uses it any more.  Any thread. */
#ifndef MR_KEPT_MEMORY_H
#define MR_KEPT_MEMORY_H

#include <millrace/pipeline.h>

struct mr_kept_memory;

/* 0 or -ENOMEM. */
int mr_kept_memory_new(struct mr_kept_memory **out);
void mr_kept_memory_free(struct mr_kept_memory *k);
/* For struct mr_pipeline_opts. */
struct mr_allocator mr_kept_memory_allocator(struct mr_kept_memory *k);

#endif
