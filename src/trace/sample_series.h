/* sample_series.h - samples gathered in memory, as JSON at the end: totals and columns over time
 * (docs/json.md, watch). */
#ifndef MR_SAMPLE_SERIES_H
#define MR_SAMPLE_SERIES_H

#include "json.h"
#include "sampler.h"

struct mr_sample_series;

/* NULL without memory.  `only`, borrowed, as in mr_disk_chosen; max_values: 0 = four million. */
struct mr_sample_series *mr_sample_series_new(const char *only, uint64_t max_values);
void mr_sample_series_free(struct mr_sample_series *s);

/* Gather a sample.  Past max_values numbers, or without memory, the series ends and says so; the
 * totals go on. */
void mr_sample_series_add(struct mr_sample_series *s, const struct mr_system_sample *sample);

/* Set "seconds", "samples", "missed", "system", "devices", "network", "process" and "series" in an
 * object.  `last` is the last sample: totals are taken from it. */
void mr_sample_series_json(const struct mr_sample_series *s, const struct mr_system_sample *last,
                           struct mr_json *into);

#endif
