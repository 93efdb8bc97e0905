/* environment.h - what a result was measured on. */
#ifndef MR_ENVIRONMENT_H
#define MR_ENVIRONMENT_H

#include <stdint.h>

#include "json.h"

/* Machine, kernel, and the storage below `path` (NULL: without storage). */
struct mr_json *mr_environment(const char *path);

uint64_t mr_memory_total_bytes(void);
/* Start a new peak of resident memory, and read it.  0 when the kernel does not tell. */
void mr_peak_rss_reset(void);
uint64_t mr_peak_rss_bytes(void);

#endif
