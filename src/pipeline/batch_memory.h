/* batch_memory.h - memory of batches: from the caller's allocator, or our own. */
#ifndef MR_BATCH_MEMORY_H
#define MR_BATCH_MEMORY_H

#include <millrace/pipeline.h>

#include "buffer.h"

/* Room for at least `size` bytes; the contents stay, the address may change.  0 or -ENOMEM. */
int mr_batch_memory_reserve(const struct mr_allocator *a, struct mr_buffer *b, size_t size);
/* Have all of it mapped now; an allocator's memory is as it comes. */
void mr_batch_memory_touch(const struct mr_allocator *a, struct mr_buffer *b);
void mr_batch_memory_fini(const struct mr_allocator *a, struct mr_buffer *b);

#endif
