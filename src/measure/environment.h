/* environment.h - what a result was measured on. */
#ifndef MR_ENVIRONMENT_H
#define MR_ENVIRONMENT_H

#include <stddef.h>
#include <stdint.h>

#include "json.h"

/* Machine, kernel, and the storage below `path` (NULL: without storage). */
struct mr_json *mr_environment(const char *path);
/* The storage alone. */
struct mr_json *mr_environment_storage(const char *path);
/* The time as results have it, "2026-01-02T03:04:05Z", which sorts as text; `buf`, of 32 bytes. */
const char *mr_environment_now(char *buf, size_t cap);

uint64_t mr_memory_total_bytes(void);
/* Start a new peak of resident memory, and read it.  0 when the kernel does not tell. */
void mr_peak_rss_reset(void);
uint64_t mr_peak_rss_bytes(void);

#endif
