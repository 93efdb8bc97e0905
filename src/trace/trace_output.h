/* trace_output.h - the recorder's other half: events of all rings to the file, in one thread. */
#ifndef MR_TRACE_OUTPUT_H
#define MR_TRACE_OUTPUT_H

#include <millrace/trace.h>

#include "histogram.h"
#include "name_table.h"
#include "span_ring.h"
#include "trace_writer.h"

#define MR_THREAD_NAME_BYTES 32

enum mr_ring_state {
    MR_RING_FREE,  /* nobody's; may have lost its memory */
    MR_RING_OWNED, /* its thread lives */
    MR_RING_LEFT,  /* its thread has ended; events may be inside */
};

/* A thread's ring.  The list of them only grows; a ring that was left is used again. */
struct mr_traced_thread {
    struct mr_span_ring ring;
    struct mr_traced_thread *next; /* set once */
    atomic_int state;              /* an enum mr_ring_state */

    /* Written by the owner before it sets the state */
    unsigned tid, first_line; /* lane n is drawn at first_line + n */
    char name[MR_THREAD_NAME_BYTES];
    size_t wanted; /* spans it was made for */

    /* The output's */
    uint64_t dropped_seen;
    int announced;                             /* its name is in the file */
    uint8_t lane_named[(MR_MAX_LANE + 1) / 8]; /* bits */
};

struct mr_trace_output {
    struct mr_trace_opts o;
    struct mr_trace_head head;
    const struct mr_trace_writer *writer;
    const struct mr_name_table *names;
    struct mr_text_sink sink;
    struct mr_writer_memory memory;
    struct mr_histogram read_ns; /* durations so far, and from which on a file is named */
    uint64_t slow_ns;
    uint64_t dropped;
    int open;
};

/* Create the file and write its head. */
int mr_trace_output_open(struct mr_trace_output *t, const struct mr_trace_opts *o,
                         const struct mr_name_table *names, struct mr_error *err);
/* Take everything out of the rings of the list; rings that were left become free. */
void mr_trace_output_drain(struct mr_trace_output *t, struct mr_traced_thread *list,
                           uint64_t also_dropped);
/* Write the end and close: 0 or the first error. */
int mr_trace_output_close(struct mr_trace_output *t, struct mr_trace_stats *out,
                          struct mr_error *err);

#endif
