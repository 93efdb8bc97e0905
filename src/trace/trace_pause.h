/* trace_pause.h - room for a trace within a trace.
 *
 * One process has one trace at a time.  A study that is traced contains an experiment that records
 * runs of its own: meanwhile the study's trace stands still, and has a gap. */
#ifndef MR_TRACE_PAUSE_H
#define MR_TRACE_PAUSE_H

/* The trace that is on stands still: another one may be started and stopped.  1, or 0 when none is
 * on (or one stands still already). */
int mr_trace_pause(void);
/* It goes on, if there is one.  An error: it cannot, and holds what it held before; mr_trace_stop
 * ends it as usual. */
int mr_trace_resume(void);

#endif
