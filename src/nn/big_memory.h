/* big_memory.h - large blocks: huge pages where there are any, touched before they are timed. */
#ifndef MR_BIG_MEMORY_H
#define MR_BIG_MEMORY_H

#include "thread_team.h"

#include <stddef.h>

/* A zeroed block, aligned to 2 MiB; NULL when there is no address space. */
void *mr_big_alloc(size_t bytes);
void mr_big_free(void *block);
/* Have the kernel provide every page now, which takes over a second a gigabyte.  Contents stay. */
void mr_big_touch(void *block, size_t bytes, struct mr_team *team);

/* What this process may still take: the system's estimate, and the control group's limit. */
uint64_t mr_big_available(void);

#endif
