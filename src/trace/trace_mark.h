/* trace_mark.h - a mark at a moment that its caller has measured by, so that a trace and the
 * figures of the run agree. */
#ifndef MR_TRACE_MARK_H
#define MR_TRACE_MARK_H

#include <stdint.h>

/* What `inspect` takes a run's time from. */
#define MR_MARK_BEGIN "run begins"
#define MR_MARK_END   "end of run"

void mr_trace_mark_at(const char *name, uint64_t t_ns);

#endif
