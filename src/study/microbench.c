/* microbench.c - see microbench.h.
 *
 * A run: evict (if cold) -> ask what is cached -> open -> draw -> close.  What the block layer
 * fetched is read after the close, when the last read-ahead of ours has been submitted.
 *
 * Asking opens every file, which fetches inodes and directories.  So after the system's caches have
 * been dropped nobody asks: what the eviction just before left is the answer.
 *
 * A run that is boxed in time draws a small part of a large data set, and which part is known: the
 * beginning of the order.  Only that is evicted, and the run ends with it, so
 * whatever it draws was proven cold; unless a bad sample's slot went to one from elsewhere. */
#include "microbench.h"

#include "sample_set.h"
#include "cache_sweep.h"
#include "clock.h"
#include "digest.h"
#include "environment.h"
#include "errtext.h"
#include "filesystem.h"
#include "io_account.h"
#include "kept_memory.h"
#include "points.h"
#include "read_ahead.h"
#include "repeat.h"
#include "trace_mark.h"
#include "trainer.h"

#include <millrace/store.h>
#include <millrace/trace.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BOXED_SAMPLES 16384 /* as many as the study's data set has */
#define EVICT_S       0.3
#define AHEAD_S       4 /* for reading ahead, where runs are boxed */

struct bench {
    const struct mr_bench_opts *o;
    struct mr_bench_result *out;
    struct mr_error *err;
    uint64_t total;          /* samples in a run */
    struct mr_filesystem fs; /* where the data are */
    int all_cold;            /* every eviction so far was proven */
    int all_evicted;         /* the whole data set was, not only what this run should draw */
    uint64_t n_cold;         /* batches that this run may draw; 0: all */
    uint64_t n_last;         /* batches that the run before drew; 0: there was none */
    uint64_t n_ahead;        /* batches that a run may draw as they were read ahead; 0: all */
    unsigned n_done;
    struct mr_kept_memory *memory;   /* of batches, from run to run */
    struct mr_pipeline_stats *stats; /* [runs] */
    struct mr_bench_run *run;        /* [runs] warm-up included */
};

static void tell(struct bench *b, const char *what, unsigned run, uint64_t done)
{
    struct mr_bench_progress now = {run, b->o->runs, what, done, b->total};
    if (b->o->progress)
        b->o->progress(b->o->progress_ctx, &now);
}

static int stop_wanted(struct bench *b)
{
    return b->o->pipe.should_stop && b->o->pipe.should_stop(b->o->pipe.should_stop_ctx);
}

static void hash_batch(struct mr_digest *d, const struct mr_batch *b)
{
    mr_digest_add_u64(d, b->n);
    for (unsigned i = 0; i < b->n; i++) {
        mr_digest_add_u64(d, b->samples[i].label);
        mr_digest_add(d, b->samples[i].data, b->samples[i].len);
    }
}

/* Is the box full after `n` batches? */
static int box_is_full(const struct mr_bench_opts *o, uint64_t n_batches, uint64_t n_samples,
                       uint64_t ns)
{
    double boxes = (double)ns / 1e9 / o->box_s;
    return n_batches >= 2 && boxes >= (n_samples < o->least ? MR_LONGER : 1);
}

/* Draw everything, or what fits into the box; *seconds from the first call to the last batch.
 * At least two batches: a single one would be start and end only. */
static int draw_all(struct bench *b, struct mr_pipeline *p, const char *what, unsigned run,
                    int timed, struct mr_digest *digest, double *seconds)
{
    struct mr_batch *batch;
    uint64_t done = 0, start = mr_clock_ns(), last = start, n_drawn = 0;
    int boxed = timed && b->o->box_s > 0;
    int r, ended = 0;
    if (timed)
        mr_trace_mark_at(MR_MARK_BEGIN, start);
    b->total = mr_pipeline_n_samples(p);
    while (!ended) {
        r = mr_pipeline_next(p, &batch);
        if (r < 0)
            return mr_fail(b->err, r, "%s", mr_pipeline_error(p));
        if (r == 0) { /* one epoch is over, or all are */
            ended = done >= b->total;
            continue;
        }
        last = mr_clock_ns();
        done += batch->n;
        if (digest)
            hash_batch(digest, batch);
        mr_batch_unref(batch);
        tell(b, what, run, done);
        if (stop_wanted(b))
            return -ECANCELED;
        ended = boxed && box_is_full(b->o, ++n_drawn, done, last - start);
    }
    *seconds = (double)(last - start) / 1e9;
    if (timed)
        mr_trace_mark_at(MR_MARK_END, last);
    return 0;
}

/* A pass that is not measured: to warm the cache, or to hash. */
static int extra_pass(struct bench *b, const char *what, struct mr_digest *digest)
{
    struct mr_pipeline_opts opts = b->o->pipe;
    struct mr_pipeline *p;
    double seconds;
    opts.allocator = mr_kept_memory_allocator(b->memory);
    opts.on_error = NULL; /* the ledger has these samples already, or will */
    if (!digest)
        opts.storage = NULL; /* the cache is warm as soon, and an emulated device has none */
    int r = mr_pipeline_open(b->o->data, &opts, &p, b->err);
    if (r)
        return r;
    r = draw_all(b, p, what, 0, 0, digest, &seconds);
    mr_pipeline_close(p);
    return r;
}

/* Have in memory what the runs draw from an emulated storage. */
static int read_ahead(struct bench *b)
{
    const struct mr_bench_opts *o = b->o;
    struct mr_read_ahead_opts how = {.data = o->data,
                                     .pipe = &o->pipe,
                                     .n_batches = o->pipe.batches,
                                     .run_s = o->box_s * (o->least ? MR_LONGER : 1),
                                     .box_s = o->box_s > 0 ? AHEAD_S : 0};
    struct mr_read_ahead got;
    tell(b, "warming", 0, 0);
    int r = mr_read_ahead(&how, &got, b->err);
    if (!r && !got.all && o->box_s > 0)
        b->n_ahead = got.batches;
    return r;
}

static uint64_t batch_of(const struct bench *b)
{
    return b->o->pipe.batch ? b->o->pipe.batch : 64;
}

/* Does the eviction say how far a run goes? */
static int is_bounded(const struct bench *b)
{
    const struct mr_bench_opts *o = b->o;
    return o->box_s > 0 && !o->touched && !o->pipe.start.epoch && !o->pipe.start.samples;
}

/* Over what the runs touch. */
static int sweep_files(struct bench *b, int evict, struct mr_cache_sweep *sweep)
{
    uint64_t n = b->o->touched ? b->o->touched : UINT64_MAX;
    return mr_cache_sweep_first(sweep, b->o->data, &b->o->pipe, n, evict);
}

/* Evict what a run is going to draw. */
static int evict_run(struct bench *b, struct mr_cache_sweep *sweep)
{
    const struct mr_pipeline_opts *p = &b->o->pipe;
    if (!is_bounded(b))
        return sweep_files(b, 1, sweep);
    uint64_t most = BOXED_SAMPLES / batch_of(b) + 2;
    /* Runs are much alike: one that is quicker by more than half ends before its time. */
    uint64_t enough = b->n_last + b->n_last / 2 + 2;
    if (b->n_last && enough < most)
        most = enough;
    if (p->batches && p->batches < most)
        most = p->batches;
    int64_t n = mr_cache_sweep_batches(sweep, b->o->data, p, most, EVICT_S, 1);
    b->n_cold = n > 0 ? (uint64_t)n : 0;
    return n < 0 ? (int)n : 0;
}

static int64_t cached_now(struct bench *b)
{
    struct mr_cache_sweep sweep = {0};
    if (is_bounded(b) || sweep_files(b, 0, &sweep)) /* asking might take longer than the run */
        return -1;
    return mr_cache_sweep_cached(&sweep);
}

/* Empty the caches as asked; *cached is what is left of the data, -1 when it cannot be known. */
static int make_cold(struct bench *b, unsigned run, int64_t *cached)
{
    struct mr_cache_sweep sweep = {0};
    tell(b, "evicting", run, 0);
    int r = evict_run(b, &sweep);
    if (r)
        return r;
    b->all_cold &= !sweep.n_unproven;
    b->all_evicted = sweep.files + sweep.n_failed >= mr_dataset_size(b->o->data);
    if (!b->o->drop_caches && !is_bounded(b) && !b->o->touched) {
        *cached = cached_now(b);
        return 0;
    }
    *cached = sweep.n_unknown ? -1 : (int64_t)sweep.cached_after;
    if (!b->o->drop_caches)
        return 0;
    r = mr_cache_drop_all(NULL);
    if (r)
        mr_fail(b->err, r,
                "cannot drop the system's caches: %s (--drop-caches needs root; --cold alone "
                "evicts the data set's own files)",
                mr_errno_text(r));
    return r;
}

/* Bytes fetched from the device, or -1 where the file system does not account them.  Block devices
 * do, and an overlay on one; memory and FUSE do not; elsewhere only a change proves that somebody
 * counts. */
static int64_t device_delta(const struct bench *b, uint64_t before, int have_before)
{
    uint64_t after;
    enum mr_fs_kind kind = b->fs.kind;
    int on_a_disk = kind == MR_FS_BLOCK || (kind == MR_FS_OVERLAY && !b->fs.lower_cache);
    if (!have_before || mr_io_read_bytes(&after) || (!on_a_disk && kind != MR_FS_OTHER))
        return -1;
    return on_a_disk || after > before ? (int64_t)(after - before) : -1;
}

static int one_run(void *ctx, unsigned i)
{
    struct bench *b = ctx;
    struct mr_bench_run *run = &b->run[i];
    struct mr_pipeline_opts opts = b->o->pipe;
    struct mr_pipeline *p = NULL;
    uint64_t device = 0;
    int r = 0;
    if (b->o->cold)
        r = make_cold(b, i, &run->cache_bytes);
    else
        run->cache_bytes = cached_now(b);
    if (r)
        return r;
    opts.start_on_next = 1;
    opts.allocator = mr_kept_memory_allocator(b->memory);
    if (b->o->cold && b->n_cold)
        opts.batches = b->n_cold;
    if (b->n_ahead)
        opts.batches = b->n_ahead;
    if (i)
        opts.on_error = NULL; /* once is enough for the ledger */
    tell(b, "running", i, 0);
    r = mr_pipeline_open(b->o->data, &opts, &p, b->err);
    if (r)
        return r;
    int have_device = !mr_io_read_bytes(&device);
    uint64_t cpu = mr_clock_process_cpu_ns();
    r = draw_all(b, p, "running", i, 1, NULL, &run->seconds);
    run->cpu_s = (double)(mr_clock_process_cpu_ns() - cpu) / 1e9;
    if (r)
        mr_trace_mark(MR_MARK_END);
    struct mr_pipeline_stats *s = &b->stats[i];
    mr_pipeline_get_stats(p, s);
    mr_pipeline_close(p);
    run->device_bytes = device_delta(b, device, have_device);
    run->samples = s->samples;
    b->n_last = s->samples / batch_of(b);
    run->skipped = s->replaced;
    run->delivered_bytes = s->delivered_bytes;
    run->read = s->read;
    run->batch = s->batch;
    run->per_s = run->seconds > 0 ? (double)s->samples / run->seconds : 0;
    if (b->o->cold && !b->all_evicted && run->skipped)
        b->all_cold = 0; /* who replaced them was perhaps not among those evicted */
    if (!r)
        b->n_done++;
    return r;
}

static struct mr_filesystem filesystem_of_data(const struct mr_dataset *data)
{
    char path[PATH_MAX];
    struct mr_filesystem fs = {.kind = MR_FS_OTHER};
    for (uint64_t i = 0; i < mr_dataset_size(data) && i < 64; i++) {
        if (mr_dataset_blob_name(data, i, path, sizeof path) < 0)
            continue;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
            continue;
        int r = mr_filesystem_of(fd, &fs);
        close(fd);
        if (!r)
            break;
    }
    return fs;
}

/* Data that fit into memory may come from there: unless they were evicted, and even then in
 * every epoch after the first. */
static void warn_if_small(struct bench *b)
{
    uint64_t memory = mr_memory_total_bytes();
    unsigned epochs = b->o->pipe.epochs ? b->o->pipe.epochs : 1;
    uint64_t bytes = b->out->median.delivered_bytes / epochs;
    /* Direct I/O on a block device cannot be served from the page cache. */
    if (b->o->pipe.direct && b->fs.kind == MR_FS_BLOCK)
        return;
    /* An emulated device charges cached bytes like others. */
    if (b->o->pipe.storage)
        return;
    const char *why = !b->o->cold ? "without --cold this measures the page cache, not the storage"
                      : !b->all_cold ? "and that they were evicted is unproven: this may measure a "
                                       "cache, not the storage"
                      : epochs > 1   ? "only the first epoch of a run is cold"
                                     : NULL;
    if (why && memory && bytes < memory)
        snprintf(b->out->warning, sizeof b->out->warning,
                 "the data read (%.1f MB) fit into memory (%.0f MB): %s", (double)bytes / 1e6,
                 (double)memory / 1e6, why);
}

/* Medians of what was measured; the warm-up is left out unless it is all there is. */
static int conclude(struct bench *b, int r)
{
    struct mr_bench_result *out = b->out;
    unsigned first = b->n_done > 1 ? mr_repeat_first(b->o->runs) : 0;
    unsigned n = b->n_done - first;
    out->partial = r == -ECANCELED;
    out->cold = !b->o->cold                  ? NULL
                : !b->all_cold || !b->n_done ? "unproven"
                : b->o->drop_caches          ? "data+metadata"
                                             : "data";
    out->median = (struct mr_bench_run){.device_bytes = -1, .cache_bytes = -1};
    if (!b->n_done)
        return r;
    double *rates = calloc(n, sizeof *rates);
    struct mr_summary sum;
    for (unsigned i = 0; rates && i < n; i++)
        rates[i] = b->run[first + i].per_s;
    if (!rates || mr_summarize(rates, n, &sum)) {
        free(rates);
        return mr_fail(b->err, -ENOMEM, "no memory");
    }
    unsigned m = mr_median_index(rates, n);
    memmove(b->run, b->run + first, n * sizeof *b->run);
    out->n_runs = n;
    out->median = b->run[m];
    out->stats = b->stats[first + m];
    out->per_s = sum.median;
    out->spread = sum.spread;
    if (b->o->pipe.storage && out->stats.samples)
        out->late_share = (double)out->stats.overdue / (double)out->stats.samples;
    warn_if_small(b);
    free(rates);
    return r;
}

int mr_microbench_run(const struct mr_bench_opts *o, struct mr_bench_result *out,
                      struct mr_error *err)
{
    struct bench b = {.o = o, .out = out, .err = err, .all_cold = 1};
    *out = (struct mr_bench_result){.pipe = o->pipe, .late_share = NAN};
    b.run = out->run = calloc(o->runs, sizeof *b.run);
    b.stats = calloc(o->runs, sizeof *b.stats);
    int no_memory = !b.run || !b.stats || mr_kept_memory_new(&b.memory);
    int r = no_memory ? mr_fail(err, -ENOMEM, "no memory for %u runs", o->runs) : 0;
    if (!r) {
        b.fs = filesystem_of_data(o->data);
        mr_peak_rss_reset();
        if (o->warm)
            r = extra_pass(&b, "warming", NULL);
        if (!r && o->ahead && o->pipe.storage && !o->pipe.direct)
            r = read_ahead(&b);
    }
    if (!r)
        r = mr_repeat(o->runs, one_run, &b);
    out->peak_rss_bytes = mr_peak_rss_bytes();
    if (!r || r == -ECANCELED)
        r = conclude(&b, r);
    if (!r && o->hash) {
        struct mr_digest digest;
        mr_digest_init(&digest);
        r = extra_pass(&b, "hashing", &digest);
        out->hash = mr_digest_value(&digest);
        out->has_hash = !r;
        out->partial = r == -ECANCELED;
    }
    mr_kept_memory_free(b.memory);
    free(b.stats);
    return r;
}

void mr_bench_result_fini(struct mr_bench_result *r)
{
    free(r->run);
    r->run = NULL;
}

static struct mr_json *latency_json(const struct mr_latency *l)
{
    struct mr_latency_us us = {.p50 = l->p50, .p99 = l->p99, .p999 = l->p999, .max = l->max};
    return mr_latency_us_json(&us);
}

static double known(int64_t v)
{
    return v < 0 ? NAN : (double)v;
}

static struct mr_json *errors_json(const struct mr_pipeline_stats *s)
{
    struct mr_json *o = mr_json_object();
    for (unsigned i = 0; s->errors[i].reason; i++)
        mr_json_set(o, s->errors[i].reason, mr_json_int((int64_t)s->errors[i].n));
    return o;
}

static double per_image(double seconds, uint64_t n)
{
    return n ? seconds / (double)n : NAN;
}

const char *mr_cold_of_both(const char *a, const char *b)
{
    if (!a || !b)
        return a ? a : b;
    return !strcmp(b, "unproven") || !strcmp(a, "data+metadata") ? b : a;
}

double mr_bench_mb_per_s(const struct mr_bench_result *r)
{
    const struct mr_bench_run *m = &r->median;
    return m->samples ? r->per_s * (double)m->delivered_bytes / (double)m->samples / 1e6 : 0;
}

static struct mr_json *image_json(const struct mr_decoder_opts *d)
{
    double mean[3], std[3];
    for (unsigned c = 0; c < 3; c++) {
        mean[c] = d->mean[c];
        std[c] = d->std[c] ? d->std[c] : 1;
    }
    struct mr_decoded_image f = {
        .width = d->width,
        .height = d->height,
        .resize = d->resize == MR_RESIZE_AREA ? "area" : "bilinear",
        .dtype = d->dtype == MR_DT_U8 ? "u8" : "f32",
        .layout = d->layout == MR_IMAGE_NCHW ? "nchw" : "nhwc",
        .augment = d->augment == MR_AUGMENT_CROP_FLIP ? "crop-flip" : "none",
        .mean = mr_number_list(mean, 3),
        .std = mr_number_list(std, 3),
        .exact = d->exact,
        .decoder = d->decoder == MR_DECODER_TURBO ? "turbo" : "auto",
    };
    return mr_decoded_image_json(&f);
}

/* What was run. */
static void set_setting(struct mr_bench_point *p, const struct mr_bench_result *r)
{
    const struct mr_device *d = r->pipe.storage;
    p->threads = r->pipe.threads;
    p->engine = r->pipe.engine == MR_ENGINE_URING ? "uring" : "threads";
    p->io_depth = r->pipe.io_depth;
    p->map = r->pipe.decode ? "decode" : "read";
    p->image = r->pipe.decode ? image_json(r->pipe.decode) : NULL;
    p->direct = r->pipe.direct;
    p->batch = r->pipe.batch;
    p->prefetch = r->pipe.prefetch == MR_NONE ? 0 : r->pipe.prefetch;
    p->storage = d ? mr_device_name(d) : NULL;
    p->emulated = d != NULL;
    p->calibrated = d ? mr_device_calibrated(d) : NULL;
    p->cold = r->cold;
}

/* The rates, and what belongs to the run with the median one. */
static void set_measured(struct mr_bench_point *p, const struct mr_bench_result *r)
{
    const struct mr_bench_run *m = &r->median;
    p->skipped = (double)m->skipped;
    p->errors = errors_json(&r->stats);
    p->images_per_s = r->per_s;
    p->spread = r->spread;
    p->mb_per_s = mr_bench_mb_per_s(r);
    p->cpu_s_per_image = per_image(m->cpu_s, m->samples);
    p->decode_s_per_image = per_image(r->stats.decode_s, m->samples);
    p->resize_s_per_image = per_image(r->stats.resize_s, m->samples);
    p->decoded_by = r->pipe.decode ? mr_decoded_by_json(&r->stats) : NULL;
    p->read_latency_us = latency_json(&m->read);
    p->batch_latency_us = latency_json(&m->batch);
    p->device_bytes = known(m->device_bytes);
    p->cache_bytes = known(m->cache_bytes);
    p->delivered_bytes = (double)m->delivered_bytes;
    p->buffer_bytes = (double)r->stats.memory_peak_bytes;
    p->late_share = r->late_share;
}

/* Before any run is through its figures are null: zeros would look like results. */
struct mr_json *mr_bench_result_json(const struct mr_bench_result *r)
{
    struct mr_bench_point p = mr_bench_point_of(NULL);
    struct mr_json *runs = mr_json_array();
    char hash[17];
    for (unsigned i = 0; i < r->n_runs; i++)
        mr_json_append(runs, mr_json_real(r->run[i].per_s));
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->hash);
    set_setting(&p, r);
    p.images = (double)r->median.samples;
    p.runs = runs;
    if (r->n_runs)
        set_measured(&p, r);
    p.peak_rss_bytes = (double)r->peak_rss_bytes;
    p.batch_hash = r->has_hash ? hash : NULL;
    p.partial = r->partial;
    p.warning = r->warning[0] ? r->warning : NULL;
    return mr_bench_point_json(&p);
}
