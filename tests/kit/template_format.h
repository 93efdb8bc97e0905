/* template_format.h - a format to begin with: labelled records in one blob (docs/extending.md). */
#ifndef MR_TEST_TEMPLATE_FORMAT_H
#define MR_TEST_TEMPLATE_FORMAT_H

#include "format.h"

extern const struct mr_format template_format;

/* Bytes before a record's payload. */
#define TEMPLATE_HEAD 8

#endif
