/* predict.c - see predict.h.
 *
 * With X images a second, X * cpu cores compute at any time and, by Little's law, as many reads are
 * under way as the curve needs to deliver X.  A sample under way holds a place from the begin of
 * its read to the end of its mapping: in the threads engine a place is a worker, in the uring
 * engine one of the io_depth flights, and never are there more than the batches under way have
 * room for.  The CPU's part of reading is in the curve already, so
 *
 *     reads_needed(X) + X * (cpu - read_cpu) <= places     and     X * cpu <= cores, workers
 *
 * and the largest such X is the answer.  Without prefetch input and training take turns; with it
 * the slower one sets the pace. */
#include "predict.h"

#include "device_profile.h"

#include <math.h>

void mr_predict_curve(const struct mr_device_profile *p, double file_bytes,
                      struct mr_read_curve *out)
{
    double targets = p->targets ? (double)p->targets : 1;
    double transfer = file_bytes * targets / (double)p->read_bytes_per_s;
    double fixed = (double)(p->read_latency_ns + p->metadata_ns) / 1e9;
    double most_meta = p->metadata_parallel && p->metadata_ns
                           ? 1e9 * (double)p->metadata_parallel / (double)p->metadata_ns
                           : INFINITY;
    out->n = MR_CURVE_POINTS;
    for (unsigned i = 0; i < MR_CURVE_POINTS; i++) {
        double depth = (double)(1u << i), each = fmax(depth / targets, 1);
        double queue = fmin(each, p->queue_depth ? (double)p->queue_depth : 1);
        double busy =
            (double)p->seek_ns / 1e9 / pow(queue, (double)p->seek_shrink / 1000) + transfer;
        out->depth[i] = depth;
        out->per_s[i] = fmin(fmin(depth / (busy + fixed), targets / busy), most_meta);
    }
}

/* Reads that must be under way for X files a second; INFINITY when no depth is enough. */
static double reads_needed(const struct mr_read_curve *c, double x)
{
    if (!c->n)
        return 0;
    if (x <= c->per_s[0])
        return c->depth[0] * x / c->per_s[0];
    for (unsigned i = 1; i < c->n; i++)
        if (x <= c->per_s[i]) {
            double share = (x - c->per_s[i - 1]) / (c->per_s[i] - c->per_s[i - 1]);
            return c->depth[i - 1] + share * (c->depth[i] - c->depth[i - 1]);
        }
    return INFINITY;
}

static double rate_at(const struct mr_read_curve *c, double depth)
{
    if (!c->n)
        return INFINITY;
    if (depth <= c->depth[0])
        return c->per_s[0] * depth / c->depth[0];
    for (unsigned i = 1; i < c->n; i++)
        if (depth <= c->depth[i]) {
            double share = (depth - c->depth[i - 1]) / (c->depth[i] - c->depth[i - 1]);
            return c->per_s[i - 1] + share * (c->per_s[i] - c->per_s[i - 1]);
        }
    return c->per_s[c->n - 1];
}

/* Samples that can be under way at once. */
static double places(const struct mr_predict_input *in)
{
    double most = in->io_depth ? in->io_depth : in->workers;
    return in->batch ? fmin(most, (double)in->batch * (in->prefetch + 1.0)) : most;
}

static int possible(const struct mr_predict_input *in, double x)
{
    double mapping = x * fmax(in->image_cpu_s - in->read_cpu_s, 0);
    return reads_needed(&in->storage, x) + mapping <= places(in);
}

double mr_predict_input_rate(const struct mr_predict_input *in)
{
    double hands = fmin(in->cores, in->workers);
    double by_cpu = in->image_cpu_s > 0 ? hands / in->image_cpu_s : INFINITY;
    double lo = 0, hi = fmin(by_cpu, rate_at(&in->storage, INFINITY));
    if (!isfinite(hi) || possible(in, hi))
        return hi;
    for (unsigned i = 0; i < 60; i++) {
        double mid = (lo + hi) / 2;
        if (possible(in, mid))
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

double mr_predict_training_rate(const struct mr_predict_input *in)
{
    double input = mr_predict_input_rate(in);
    double training = in->step_s > 0 ? in->batch / in->step_s : INFINITY;
    if (in->prefetch || !isfinite(training))
        return fmin(input, training);
    return 1 / (1 / input + 1 / training);
}
