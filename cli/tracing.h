/* tracing.h - --trace FILE of the commands that run something. */
#ifndef MR_TRACING_H
#define MR_TRACING_H

#include <millrace/dataset.h>
#include <millrace/trace.h>

#include "json.h"
#include "options.h"

/* Check that the file of --trace, if any, can be written, before long preparations; an earlier
 * file stays.  0, or 1 with a message. */
int tracing_check(const struct options *o);
/* Begin the trace of --trace, if any.  Borrows the data set until stop, for the names of slow
 * reads.  storage: emulated devices, in words, or NULL.  0, or 1 with a message. */
int tracing_start(const struct options *o, struct mr_dataset *data, const char *storage);
/* End it.  A message says what the file lacks; 1 when it could not be written completely. */
int tracing_stop(struct mr_trace_stats *out);
/* {"file", "events", "dropped", "lost"} */
struct mr_json *tracing_json(const char *path, const struct mr_trace_stats *s);

#endif
