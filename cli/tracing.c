/* tracing.c - see tracing.h.
 *
 * Beside the spans stand curves of what the system did meanwhile: every block device that is used,
 * and the CPU, ten times a second.  The program has one trace, so its sampler is here. */
#include "tracing.h"

#include "errtext.h"
#include "new_file.h"
#include "say.h"
#include "trace_curves.h"

#include <errno.h>

static struct mr_sampler *curves;

static int file_of(void *ctx, uint32_t id, char *buf, size_t cap)
{
    return ctx && id < mr_dataset_size(ctx) ? mr_dataset_name(ctx, id, buf, cap) : -ENOENT;
}

int tracing_check(const struct options *o)
{
    if (!o->trace)
        return 0;
    int r = mr_new_file_check(o->trace);
    if (r)
        say_to(stderr, "millrace: --trace %s: %s\n", o->trace, mr_errno_text(r));
    return r != 0;
}

int tracing_start(const struct options *o, struct mr_dataset *data, const char *storage)
{
    struct mr_error err = {0};
    if (!o->trace)
        return 0;
    struct mr_trace_opts opts = {.path = o->trace,
                                 .rank = o->shard.rank,
                                 .storage = storage,
                                 .file_of = file_of,
                                 .file_ctx = data};
    if (!mr_trace_start(&opts, &err)) {
        curves = mr_trace_curves_open();
        return 0;
    }
    say_to(stderr, "millrace: --trace %s\n", err.text);
    return 1;
}

int tracing_stop(struct mr_trace_stats *out)
{
    struct mr_error err = {0};
    mr_trace_curves_close(curves);
    curves = NULL;
    int r = mr_trace_stop(out, &err);
    if (r)
        say_to(stderr, "millrace: --trace %s\n", err.text);
    if (out->dropped)
        say_to(stderr,
               "warning: the trace lacks %llu of %llu events: they came faster than they could be "
               "written\n",
               (unsigned long long)out->dropped,
               (unsigned long long)(out->dropped + out->lost + out->events));
    return r != 0;
}

struct mr_json *tracing_json(const char *path, const struct mr_trace_stats *s)
{
    struct mr_json *o = mr_json_object();
    mr_json_set(o, "file", mr_json_string(path));
    mr_json_set(o, "events", mr_json_int((int64_t)s->events));
    mr_json_set(o, "dropped", mr_json_int((int64_t)s->dropped));
    mr_json_set(o, "lost", mr_json_int((int64_t)s->lost));
    return o;
}
