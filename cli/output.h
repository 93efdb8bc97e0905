/* output.h - where a command's result goes. */
#ifndef MR_OUTPUT_H
#define MR_OUTPUT_H

#include "json.h"
#include "options.h"

#include <stdint.h>

struct output {
    const char *path; /* of the JSON; NULL: none, or it is written */
    int quiet;        /* the JSON goes to standard output, and nothing else does */
};

/* At the start of the program: keep closed standard streams from becoming files of ours, and
 * make a reader that goes away an error like any other (EPIPE), not a signal. */
void output_begin(void);
/* For text that is paged through: a reader that goes away ends the program silently, as with any
 * other filter. */
void output_for_a_reader(void);
/* At its end: `status`, or 1 with a message when standard output could not be written. */
int output_end(int status);

/* Check that the JSON file can be written, before the work; an earlier file stays until there is
 * a result.  0 or 1 with a message. */
int output_open(const struct options *o, struct output *out);
/* Write {"command", "version", "environment", "results"}.  Takes `results`.
 * `storage` is a path whose file system goes into the environment.  0 or 1 with a message. */
int output_json(struct output *out, const struct options *o, const char *storage,
                struct mr_json *results);
/* A new file for what --OPTION names, read while it grows; NULL with a message. */
FILE *output_stream(const char *option, const char *path);

/* What makes a noun plural: "" for 1, else "s". */
static inline const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}
/* "12.3 MB" and the like, 10^6-based. */
const char *human_bytes(double bytes, char *buf, size_t cap);

#endif
