/* baseline_json.c - a baseline's results as docs/json.md has them. */
#include "baseline.h"

#include "size_split.h"

#include <millrace/store.h>

#include <math.h>

/* A negative rate is one that was not measured. */
static double known(double v, int any)
{
    return any && v >= 0 ? v : NAN;
}

static double at(const struct mr_histogram *h, double share)
{
    return h->n ? (double)mr_histogram_at(h, share) / 1e3 : NAN;
}

static struct mr_json *latency(const struct mr_histogram *h)
{
    struct mr_latency_us us = {.p50 = at(h, 0.5),
                               .p99 = at(h, 0.99),
                               .p999 = at(h, 0.999),
                               .max = h->n ? (double)h->max / 1e3 : NAN};
    return mr_latency_us_json(&us);
}

/* What buffers in ordinary pages make of the same reads. */
static struct mr_json *ordinary_pages(const struct mr_baseline_result *r)
{
    if (!r->n_runs || r->ordinary_iops < 0)
        return NULL;
    struct mr_ordinary_pages pages = {.read_mb_per_s = r->ordinary_mb_per_s,
                                      .iops = r->ordinary_iops,
                                      .runs = mr_number_list(r->ordinary_runs, r->n_runs)};
    return mr_ordinary_pages_json(&pages);
}

static const char *engine_name(const struct mr_baseline *b, const struct mr_baseline_result *r)
{
    if (r->pattern >= MR_PATTERN_SMALL_FILES)
        return "calls";
    return b->engine == MR_RAW_URING ? "uring" : "threads";
}

struct mr_baseline_point mr_baseline_result_point(const struct mr_baseline *b,
                                                  const struct mr_baseline_result *r,
                                                  const struct mr_baseline_opts *opts)
{
    int any = r->n_runs > 0;
    return (struct mr_baseline_point){
        .pattern = mr_pattern_name(r->pattern),
        .engine = engine_name(b, r),
        .direct = r->direct,
        .depth = r->depth,
        .block_bytes = r->block_bytes ? (double)r->block_bytes : NAN,
        .split = r->block_bytes ? NULL : MR_SPLIT_IMAGENET,
        .file_bytes = (double)b->file_bytes,
        .storage = opts->device ? opts->device_name : NULL,
        .emulated = opts->device != NULL,
        .calibrated = opts->device ? mr_device_calibrated(opts->device) : NULL,
        .cold = r->cold,
        .read_mb_per_s = known(r->read_mb_per_s, any),
        .write_mb_per_s = known(r->write_mb_per_s, any),
        .iops = known(r->iops, any),
        .created_per_s = known(r->created_per_s, any),
        .latency_us = latency(&r->latency),
        .runs = mr_number_list(r->runs, r->n_runs),
        .write_runs = r->write_runs ? mr_number_list(r->write_runs, r->n_runs) : NULL,
        .ordinary_pages = ordinary_pages(r),
        .spread = known(r->spread, any),
        .cut = r->cut,
        .late_share = opts->device ? r->late_share : NAN,
        .partial = r->partial,
        .warning = b->warning[0] ? b->warning : NULL,
    };
}

struct mr_json *mr_baseline_result_json(const struct mr_baseline *b,
                                        const struct mr_baseline_result *r,
                                        const struct mr_baseline_opts *opts)
{
    struct mr_baseline_point p = mr_baseline_result_point(b, r, opts);
    return mr_baseline_point_json(&p);
}
