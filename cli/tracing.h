/* tracing.h - --trace FILE of the commands that run something. */
#ifndef MR_TRACING_H
#define MR_TRACING_H

#include <millrace/dataset.h>
#include <millrace/trace.h>

#include "json.h"
#include "options.h"

/* Can the file that was asked for, if one was, be written?  So a wrong path is known before long
 * preparations; an earlier file stays.  0, or 1 with a message. */
int tracing_check(const struct options *o);
/* Begin the trace that was asked for, if one was.  Borrows the data set until stop: slow reads are
 * named by it.  storage: emulated devices, in words, or NULL.  0, or 1 with a message. */
int tracing_start(const struct options *o, struct mr_dataset *data, const char *storage);
/* End it.  What is missing in the file is said on standard error; 1 when it could not be written
 * completely. */
int tracing_stop(struct mr_trace_stats *out);
/* {"file", "events", "dropped", "lost"} */
struct mr_json *tracing_json(const char *path, const struct mr_trace_stats *s);

#endif
