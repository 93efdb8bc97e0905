/* inspect_trace.h - the part of `millrace inspect` that deals with traces. */
#ifndef MR_INSPECT_TRACE_H
#define MR_INSPECT_TRACE_H

#include "options.h"

/* The operands are one trace or two; exit status. */
int inspect_traces(const struct options *o);

#endif
