/* busy_column.h - the sampler's column that docs/extending.md adds. */
#ifndef MR_BUSY_COLUMN_H
#define MR_BUSY_COLUMN_H

#include "sample_columns.h"

extern const struct mr_system_column busy_column;

#endif
