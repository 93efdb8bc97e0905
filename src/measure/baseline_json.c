/* baseline_json.c - a baseline's results as docs/json.md has them. */
#include "baseline.h"

#include "size_split.h"

#include <millrace/store.h>

static struct mr_json *number_or_null(double v)
{
    return v < 0 ? mr_json_null() : mr_json_real(v);
}

static struct mr_json *list(const double *v, unsigned n)
{
    struct mr_json *a = mr_json_array();
    for (unsigned i = 0; i < n; i++)
        mr_json_append(a, mr_json_real(v[i]));
    return a;
}

static struct mr_json *latency(const struct mr_histogram *h)
{
    static const struct {
        const char *key;
        double share;
    } points[] = {{"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}};
    struct mr_json *o = mr_json_object();
    for (unsigned i = 0; i < sizeof points / sizeof *points; i++)
        mr_json_set(o, points[i].key,
                    h->n ? mr_json_real((double)mr_histogram_at(h, points[i].share) / 1e3)
                         : mr_json_null());
    mr_json_set(o, "max", h->n ? mr_json_real((double)h->max / 1e3) : mr_json_null());
    return o;
}

/* What buffers in ordinary pages make of the same reads. */
static struct mr_json *ordinary_pages(const struct mr_baseline_result *r)
{
    if (!r->n_runs || r->ordinary_iops < 0)
        return mr_json_null();
    struct mr_json *o = mr_json_object();
    mr_json_set(o, "read_mb_per_s", mr_json_real(r->ordinary_mb_per_s));
    mr_json_set(o, "iops", mr_json_real(r->ordinary_iops));
    mr_json_set(o, "runs", list(r->ordinary_runs, r->n_runs));
    return o;
}

static void set_setting(struct mr_json *o, const struct mr_baseline *b,
                        const struct mr_baseline_result *r, const struct mr_baseline_opts *opts)
{
    int raw = r->pattern < MR_PATTERN_SMALL_FILES;
    mr_json_set(o, "engine",
                mr_json_string(!raw                        ? "calls"
                               : b->engine == MR_RAW_URING ? "uring"
                                                           : "threads"));
    mr_json_set(o, "direct", mr_json_bool(r->direct));
    mr_json_set(o, "depth", mr_json_int(r->depth));
    mr_json_set(o, "block_bytes", r->block_bytes ? mr_json_int(r->block_bytes) : mr_json_null());
    mr_json_set(o, "split", r->block_bytes ? mr_json_null() : mr_json_string(MR_SPLIT_IMAGENET));
    mr_json_set(o, "file_bytes", mr_json_int((int64_t)b->file_bytes));
    mr_json_set(o, "storage", mr_json_string(opts->device ? opts->device_name : NULL));
    mr_json_set(o, "emulated", mr_json_bool(opts->device != NULL));
    mr_json_set(o, "calibrated",
                mr_json_string(opts->device ? mr_device_calibrated(opts->device) : NULL));
    mr_json_set(o, "cold", mr_json_string(r->cold));
}

struct mr_json *mr_baseline_result_json(const struct mr_baseline *b,
                                        const struct mr_baseline_result *r,
                                        const struct mr_baseline_opts *opts)
{
    struct mr_json *o = mr_json_object();
    int any = r->n_runs > 0;
    mr_json_set(o, "pattern", mr_json_string(mr_pattern_name(r->pattern)));
    set_setting(o, b, r, opts);
    mr_json_set(o, "read_mb_per_s", number_or_null(any ? r->read_mb_per_s : -1));
    mr_json_set(o, "write_mb_per_s", number_or_null(any ? r->write_mb_per_s : -1));
    mr_json_set(o, "iops", number_or_null(any ? r->iops : -1));
    mr_json_set(o, "created_per_s", number_or_null(any ? r->created_per_s : -1));
    mr_json_set(o, "latency_us", latency(&r->latency));
    mr_json_set(o, "runs", list(r->runs, r->n_runs));
    mr_json_set(o, "write_runs", r->write_runs ? list(r->write_runs, r->n_runs) : mr_json_null());
    mr_json_set(o, "ordinary_pages", ordinary_pages(r));
    mr_json_set(o, "spread", number_or_null(any ? r->spread : -1));
    mr_json_set(o, "cut", mr_json_bool(r->cut));
    mr_json_set(o, "late_share", opts->device ? mr_json_real(r->late_share) : mr_json_null());
    mr_json_set(o, "partial", mr_json_bool(r->partial));
    mr_json_set(o, "warning", mr_json_string(b->warning[0] ? b->warning : NULL));
    return o;
}
