/* sample_csv.h - samples as CSV (docs/watch.md): for each sample a row about the system, one per
 * device and direction, one per network interface and direction. */
#ifndef MR_SAMPLE_CSV_H
#define MR_SAMPLE_CSV_H

#include "sampler.h"

#include <stdio.h>

/* Errors stay in the stream: ferror.  `only` as in mr_disk_chosen. */
void mr_sample_csv_heading(FILE *to);
void mr_sample_csv_rows(FILE *to, const struct mr_system_sample *s, const char *only);

#endif
