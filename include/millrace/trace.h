/* trace.h - what happened when, on one timeline: spans of phases, counters, marks, to a file.
 *
 * Lifetime: start -> spans -> stop; one trace per process at a time.  Any thread may call anything
 *           but start and stop at any time; the call does nothing while no trace is on.
 * Cost:     each thread stores its spans in its own ring, without a lock.  A background thread
 *           writes the rings to the file.  A full ring drops the span and counts it: a traced
 *           program never waits.
 * File:     FILE.csv gets TimeLogger's columns.  Any other name gets Chrome's trace JSON, which
 *           Perfetto and chrome://tracing open.  docs/trace.md describes both.
 * Clock:    CLOCK_MONOTONIC; the wall clock is recorded once, at the start.
 * fork:     a child does not write to its parent's trace; it may start one of its own. */
/* Example:
 *
 *     if (mr_trace_start(&(struct mr_trace_opts){.path = "run.json"}, NULL))
 *         return 1;
 *     uint64_t begin = mr_trace_now();
 *     // one training step
 *     mr_trace_span(MR_PHASE_TRAIN, begin, mr_trace_now(), 0, MR_NONE);
 *     if (mr_trace_stop(NULL, NULL))
 *         return 1;
 */
#ifndef MILLRACE_TRACE_H
#define MILLRACE_TRACE_H

#include <millrace/api.h>

#ifdef __cplusplus
extern "C" {
#endif

enum mr_phase {
    MR_PHASE_READ,       /* a file, open to close */
    MR_PHASE_LOAD,       /* a sample, from the first step to its place in the batch; contains: */
    MR_PHASE_QUEUE_WAIT, /*   it has arrived and waits for a worker */
    MR_PHASE_DECODE,     /*   entropy decoding, inverse transform */
    MR_PHASE_RESIZE,     /*   resize, colour, normalise */
    MR_PHASE_MAP,        /*   the program's own map */
    MR_PHASE_IDLE,       /* a worker has nothing to do: all batches are full */
    MR_PHASE_WAIT,       /* the consumer waits for a batch */
    MR_PHASE_TRAIN,      /* one training step; contains: */
    MR_PHASE_FORWARD,
    MR_PHASE_BACKWARD,
    MR_PHASE_UPDATE,
    MR_PHASE_CHECKPOINT, /* training waits for a checkpoint */
    MR_PHASE_SNAPSHOT,   /* parts of a checkpoint, at whatever time they run: */
    MR_PHASE_WRITE,
    MR_PHASE_SYNC,
    MR_PHASE_DRAIN, /* fast tier to slow tier */
    MR_N_PHASES,    /* names of your own follow: mr_trace_phase */
    MR_LAST_PHASE = 4095,
};

struct mr_trace_opts {   /* zero means default */
    const char *path;    /* needed; an existing file is replaced */
    unsigned ring_spans; /* spans in a thread's ring; 0 = 65536, rounded up to 2^n */
    unsigned rank;       /* of this process in a distributed job */
    /* Names of the emulated devices that the times come from; NULL: none.  The file repeats them,
     * so that no reader takes the times for those of a real device. */
    const char *storage;
    /* Write the file name of sample `id` to buf: 0, or negative when it has none.  Called by the
     * background thread, for slow reads, until stop. */
    int (*file_of)(void *ctx, uint32_t id, char *buf, size_t cap);
    void *file_ctx;
};

struct mr_trace_stats {
    uint64_t events;  /* spans, counters and marks in the file */
    uint64_t dropped; /* the ring was full, or there was no memory for one */
    uint64_t lost;    /* the file could not be written */
};

MR_API int mr_trace_start_sized(const struct mr_trace_opts *opts, size_t size,
                                struct mr_error *err);
/* Create the file and begin to record.  Borrows the callback's context until stop.
 * -EBUSY: a trace is already on. */
static inline int mr_trace_start(const struct mr_trace_opts *opts, struct mr_error *err)
{
    return mr_trace_start_sized(opts, sizeof *opts, err);
}
MR_API int mr_trace_stop_sized(struct mr_trace_stats *out, size_t size, struct mr_error *err);
/* Write the remaining events and close the file.  0 when no trace is on.  An error means that the
 * file is incomplete.  `out` may be NULL and is filled after an error too. */
static inline int mr_trace_stop(struct mr_trace_stats *out, struct mr_error *err)
{
    return mr_trace_stop_sized(out, sizeof *out, err);
}
/* Nonzero while a trace is on: ask before work that only a trace needs. */
MR_API int mr_trace_on(void);

/* Nanoseconds on the trace's clock, 0 while no trace is on. */
MR_API uint64_t mr_trace_now(void);
/* This thread's spans belong to this epoch and step from now on. */
MR_API void mr_trace_context(uint32_t epoch, uint32_t step);
/* `phase` took from begin_ns to end_ns, in this thread.  bytes: moved by it, 0 = none; id: which
 * sample (or tensor), MR_NONE = none.  Spans of a thread must nest, the outer one comes first.
 * begin_ns 0 (no trace was on then) makes it a no-op. */
MR_API void mr_trace_span(enum mr_phase phase, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes,
                          uint32_t id);
/* For spans that overlap within a thread, as reads under way do: from now on this thread's spans
 * are shown on a line of their own, one per `lane` (1 .. 16383); 0 = the thread's line. */
MR_API void mr_trace_lane(unsigned lane);
/* What this thread is called in traces; call it before the thread's first span. */
MR_API void mr_trace_thread_name(const char *name);

/* A phase of your own, by name (up to 63 bytes); the same name gives the same phase.  When there is
 * no room for more names, it is MR_N_PHASES, "other". */
MR_API enum mr_phase mr_trace_phase(const char *name);
/* A moment: "end of run".  A trace may go on after it, until work in the background has ended. */
MR_API void mr_trace_mark(const char *name);
/* A value that changes over time: drawn as a curve of its own.  Chrome traces only. */
MR_API void mr_trace_counter(const char *name, double value, uint64_t t_ns);

#ifdef __cplusplus
}
#endif
#endif
