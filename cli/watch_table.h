/* watch_table.h - samples as a table for people. */
#ifndef MR_WATCH_TABLE_H
#define MR_WATCH_TABLE_H

#include "sampler.h"

#include <stdio.h>

/* A sample's rows; `*lines` counts them, and every now and then there is a heading. */
void watch_table_sample(FILE *to, const struct mr_system_sample *s, const char *only,
                        unsigned *lines);
/* The same about the whole time, from the last sample. */
void watch_table_totals(FILE *to, const struct mr_system_sample *last, const char *only,
                        unsigned known);

#endif
