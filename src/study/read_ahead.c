/* read_ahead.c - see read_ahead.h.
 *
 * A pipeline with the run's order, without its storage and its decoding, reads the same files by
 * several threads.  Files that are cached are read once more, which takes less time than asking
 * whether they are.
 *
 * How much a run with a box will draw is known from the profile: it delivers no more.  Two batches
 * tell how large files are. */
#include "read_ahead.h"

#include "clock.h"
#include "device.h"
#include "environment.h"
#include "errtext.h"
#include "predict.h"

#include <errno.h>

#define READERS       8
#define MARGIN        1.1  /* times what a device should deliver */
#define LEAST         2    /* batches */
#define FETCHED_SHARE 0.02 /* of the bytes: from memory, but for names and the like */
#define UNKNOWN_SHARE 0.5  /* of the samples: cores are not to blame for that many */

static unsigned reads_at_once(const struct mr_pipeline_opts *p)
{
    return p->engine == MR_ENGINE_URING ? p->io_depth : p->threads;
}

/* Batches that the storage delivers to the run in its time, and what is fetched beyond. */
static uint64_t n_wanted(const struct mr_read_ahead_opts *o, double file_bytes)
{
    const struct mr_pipeline_opts *p = o->pipe;
    struct mr_read_curve c;
    unsigned i = 0, batch = p->batch ? p->batch : 64;
    unsigned ahead = p->prefetch == MR_NONE ? 0 : p->prefetch ? p->prefetch : 1;
    mr_predict_curve(mr_device_profile_of(p->storage), file_bytes, &c);
    while (i + 1 < c.n && c.depth[i] < reads_at_once(p))
        i++;
    double n = MARGIN * c.per_s[i] * o->run_s / batch + ahead + LEAST;
    return n < 1e15 ? (uint64_t)n + 1 : UINT64_MAX;
}

static uint64_t bytes_of(const struct mr_batch *b)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < b->n; i++)
        bytes += b->samples[i].len;
    return bytes;
}

static int is_over(const struct mr_read_ahead_opts *o, uint64_t n, uint64_t bytes, uint64_t ns)
{
    uint64_t memory = mr_memory_total_bytes();
    if (n < LEAST)
        return 0;
    return (o->box_s > 0 && (double)ns > o->box_s * 1e9) || (memory && bytes > memory / 2);
}

static int draw(const struct mr_read_ahead_opts *o, struct mr_pipeline *p,
                struct mr_read_ahead *out, struct mr_error *err)
{
    uint64_t start = mr_clock_ns(), bytes = 0, samples = 0, wanted = UINT64_MAX;
    struct mr_read_ahead a = {0};
    struct mr_batch *b;
    int r = 1;
    while (a.batches < wanted && !is_over(o, a.batches, bytes, mr_clock_ns() - start)) {
        if (o->pipe->should_stop && o->pipe->should_stop(o->pipe->should_stop_ctx))
            return mr_fail(err, -ECANCELED, "stopped");
        r = mr_pipeline_next(p, &b);
        if (r <= 0)
            break;
        a.batches++;
        bytes += bytes_of(b);
        samples += b->n;
        mr_batch_unref(b);
        if (a.batches == LEAST && o->run_s > 0)
            wanted = n_wanted(o, (double)bytes / (double)samples);
    }
    if (r < 0)
        return mr_fail(err, r, "%s", mr_pipeline_error(p));
    a.all = !r || a.batches >= wanted;
    *out = a;
    return 0;
}

int mr_read_ahead(const struct mr_read_ahead_opts *o, struct mr_read_ahead *out,
                  struct mr_error *err)
{
    struct mr_pipeline_opts with = *o->pipe;
    struct mr_pipeline *p;
    with.engine = MR_ENGINE_THREADS;
    with.threads = READERS;
    with.prefetch = 1;
    with.epochs = 1;
    with.keep_last = 1; /* another epoch has these in other batches */
    with.batches = o->n_batches;
    with.storage = NULL;
    with.decode = NULL;
    with.on_error = NULL; /* the run itself will tell */
    int r = mr_pipeline_open(o->data, &with, &p, err);
    if (r)
        return r;
    r = draw(o, p, out, err);
    mr_pipeline_close(p);
    return r;
}

double mr_late_share(const struct mr_pipeline_stats *s, int64_t device_bytes)
{
    double share = s->samples ? (double)s->overdue / (double)s->samples : 0;
    if (device_bytes < 0)
        return share > UNKNOWN_SHARE ? share : 0;
    return (double)device_bytes > FETCHED_SHARE * (double)s->delivered_bytes ? share : 0;
}
