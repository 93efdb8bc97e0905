/* trace_writer.h - the two forms of a trace's file.
 *
 * A writer turns events into text; the recorder owns the sink and knows the threads. */
#ifndef MR_TRACE_WRITER_H
#define MR_TRACE_WRITER_H

#include "span_ring.h"
#include "text_sink.h"

#define MR_CLOCK_NAME   96
#define MR_STORAGE_NAME 160

/* What is the same for the whole file. */
struct mr_trace_head {
    uint64_t start_ns; /* CLOCK_MONOTONIC when the trace began, */
    uint64_t wall_ns;  /* and what the wall clock said then, since 1970 */
    unsigned pid, rank;
    char program[32];
    char clock[MR_CLOCK_NAME];     /* which monotonic clock: of this boot and time namespace; "" */
    char storage[MR_STORAGE_NAME]; /* emulated; "": the real one */
};

/* The thread that an event comes from. */
struct mr_trace_thread {
    unsigned tid;
    unsigned line; /* where it is drawn: tid, or a number of its own for a lane */
};

/* Text that most events share with a recent one, copied instead of formatted again.  A writer's
 * own; zeroed at the start of a file. */
#define MR_SAME_TEXT 64
struct mr_same_text {
    uint32_t key[3];
    unsigned len; /* 0: none */
    char text[MR_SAME_TEXT];
};
#define MR_SAME_LINES 64
#define MR_SAME_NAMES 32
struct mr_writer_memory {
    struct mr_same_text line[MR_SAME_LINES], name[MR_SAME_NAMES];
};

struct mr_trace_writer {
    void (*begin)(struct mr_text_sink *s, const struct mr_trace_head *h);
    /* A line of the picture has this name; NULL: the format has no use for it. */
    void (*line_name)(struct mr_text_sink *s, const struct mr_trace_head *h, unsigned line,
                      const char *name);
    /* file: of a read whose file is worth naming, or NULL. */
    void (*event)(struct mr_text_sink *s, const struct mr_trace_head *h, struct mr_writer_memory *m,
                  const struct mr_trace_thread *t, const struct mr_event *e, const char *name,
                  const char *file);
    /* `n` events have been dropped until now. */
    void (*dropped)(struct mr_text_sink *s, const struct mr_trace_head *h, uint64_t now_ns,
                    uint64_t n);
    void (*end)(struct mr_text_sink *s);
};
extern const struct mr_trace_writer mr_chrome_writer, mr_timelogger_writer;

/* In both forms, the name of the counter or row that tells what was dropped. */
#define MR_DROPPED_NAME "dropped events"
/* In a TimeLogger file, how the mark begins that names emulated storage. */
#define MR_EMULATED_MARK "emulated storage: "
/* The first line of a TimeLogger file. */
#define MR_TIMELOGGER_HEAD                                                                         \
    "Epoch,Rank,Action Name,Action Description,Start Time,End Time,Time Taken,Process ID,"         \
    "Current Thread"

#endif
