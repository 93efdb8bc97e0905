/* trace_curves.h - beside the spans of a trace: what block devices and the CPU did meanwhile. */
#ifndef MR_TRACE_CURVES_H
#define MR_TRACE_CURVES_H

#include "sampler.h"

/* Ten times a second, as counters of the trace that is on.  NULL where the system has no such
 * counters: then there are spans only. */
struct mr_sampler *mr_trace_curves_open(void);
/* Before mr_trace_stop, for the last values.  NULL is a no-op. */
void mr_trace_curves_close(struct mr_sampler *s);

#endif
