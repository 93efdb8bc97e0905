/* trace_pause.h - room for a trace within a trace.
 *
 * One process has one trace at a time.  A study that is traced contains an experiment that records
 * runs of its own: meanwhile the study's trace is paused, and has a gap. */
#ifndef MR_TRACE_PAUSE_H
#define MR_TRACE_PAUSE_H

/* Pause the trace that is on, so that another one may be started and stopped.  1, or 0 when none is
 * on or one is already paused. */
int mr_trace_pause(void);
/* Continue the paused trace, if there is one.  On an error it keeps what it has recorded, and
 * mr_trace_stop ends it as usual. */
int mr_trace_resume(void);

#endif
