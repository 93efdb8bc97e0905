/* trace_pause.h - pause a trace.  A process has one trace at a time.  A study that is traced
 * contains an experiment that records runs of its own: meanwhile the study's trace is paused,
 * and has a gap. */
#ifndef MR_TRACE_PAUSE_H
#define MR_TRACE_PAUSE_H

/* Pause the trace that is on: another one may be started and stopped.  1, or 0 when none is on
 * (or one is paused already). */
int mr_trace_pause(void);
/* Resume it, if there is one.  An error: it cannot, and holds what it held before; mr_trace_stop
 * ends it as usual. */
int mr_trace_resume(void);

#endif
