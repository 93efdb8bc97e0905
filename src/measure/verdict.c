/* verdict.c - see verdict.h.
 *
 * While training waits for input, the workers are the witnesses.  Their time divides into
 *
 *     reading | mapping | idle          together: workers x seconds during which batches were made
 *
 * Batches are made all the time when there is prefetch, and only while training waits without.
 *   - Mostly mapping: the CPU is the limit, more of it or less work per sample would help.
 *   - Mostly reading: the storage is the limit if it delivers about what it can (its ceiling for
 *     files of this size), else there are too few reads under way.  Where the ceiling is not
 *     known, many reads under way speak for the storage and few for the depth.
 *   - Mostly idle: nothing is slow but the passing on: no prefetch, so that training and input
 *     take turns, or too few batches for workers to work on.
 * With io_uring a read does not hold its worker, so a worker that is not mapping has no
 * reads to process: whether it waits for them or for room shows in how long reads take. */
#include "verdict.h"

#include "device_profile.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define FINE       0.05
#define MODERATE   0.20
#define SATURATED  0.80 /* of the ceiling: bursts and gaps take the rest */
#define MOSTLY     0.50 /* of the time of the workers */
#define MANY_READS 8

double mr_verdict_ceiling(const struct mr_device_profile *p, double file_bytes)
{
    double targets = p->targets ? (double)p->targets : 1;
    double depth = p->queue_depth ? (double)p->queue_depth : 1;
    double seek_s = (double)p->seek_ns / 1e9 / pow(depth, (double)p->seek_shrink / 1000);
    double busy_s = seek_s + file_bytes * targets / (double)p->read_bytes_per_s;
    double files_per_s = targets / busy_s;
    if (p->metadata_parallel && p->metadata_ns)
        files_per_s =
            fmin(files_per_s, 1e9 * (double)p->metadata_parallel / (double)p->metadata_ns);
    return files_per_s * file_bytes;
}

/* Shares of the workers' time. */
struct witness {
    double reading, mapping;
    double rate; /* bytes/s while batches were made */
    double made_s;
};

static struct witness question(const struct mr_verdict_input *in)
{
    struct witness w = {.made_s = in->prefetch ? in->seconds : in->input_wait_s};
    double time = w.made_s * (in->workers ? in->workers : 1);
    double depth = in->depth ? in->depth : 1;
    if (time <= 0)
        return w;
    w.mapping = in->map_s / time;
    w.reading = in->reads_hold_workers ? in->read_s / time : in->read_s / (w.made_s * depth);
    w.rate = (double)in->bytes / w.made_s;
    return w;
}

static int storage_is_busy(const struct mr_verdict_input *in, const struct witness *w)
{
    if (in->ceiling_bytes_per_s > 0)
        return w->rate >= SATURATED * in->ceiling_bytes_per_s;
    return in->depth >= MANY_READS;
}

/* With prefetch, would input keep up?  Making a batch takes less time than training on it. */
static int turns_are_taken(const struct mr_verdict_input *in)
{
    return !in->prefetch && in->input_wait_s <= in->seconds - in->input_wait_s;
}

static enum mr_limit find_limit(const struct mr_verdict_input *in, const struct witness *w)
{
    if (turns_are_taken(in))
        return MR_LIMIT_HAND_OVER;
    double reading = w->reading, mapping = w->mapping;
    if (!in->reads_hold_workers && reading + mapping > 1)
        reading = 1 - mapping > 0 ? 1 - mapping : 0;
    if (mapping >= MOSTLY || (mapping > reading && reading + mapping >= MOSTLY))
        return MR_LIMIT_DECODE;
    if (reading >= MOSTLY || reading + mapping >= MOSTLY)
        return storage_is_busy(in, w) ? MR_LIMIT_DEVICE : MR_LIMIT_READ_DEPTH;
    if (in->ceiling_bytes_per_s > 0 && storage_is_busy(in, w))
        return MR_LIMIT_DEVICE;
    return MR_LIMIT_HAND_OVER;
}

static void say(struct mr_verdict *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(struct mr_verdict *out, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(out->text, sizeof out->text, fmt, args);
    va_end(args);
}

static void put_into_words(const struct mr_verdict_input *in, const struct witness *w,
                           struct mr_verdict *out)
{
    double share = 100 * out->wait_share, mb = w->rate / 1e6;
    double ceiling = in->ceiling_bytes_per_s / 1e6;
    switch (out->limit) {
    case MR_LIMIT_NONE:
        say(out, "Input is not the limit: training waits for it %.1f%% of the time.", share);
        break;
    case MR_LIMIT_DECODE:
        say(out,
            "Training waits for input %.1f%% of the time. The limit is the CPU time of decoding: "
            "%u worker%s on %u core%s spend%s %.0f%% of the time on it, %.2f ms a sample. %s",
            share, in->workers, in->workers == 1 ? "" : "s", in->cores, in->cores == 1 ? "" : "s",
            in->workers == 1 ? "s" : "", 100 * w->mapping,
            in->samples ? 1e3 * in->map_s / (double)in->samples : 0,
            in->workers < in->cores ? "More --threads would help."
                                    : "More cores, or smaller stored images, would help.");
        break;
    case MR_LIMIT_DEVICE:
        if (ceiling > 0)
            say(out,
                "Training waits for input %.1f%% of the time. The limit is the storage: it "
                "delivers %.0f of the %.0f MB/s that it can with such files. Faster storage or "
                "smaller files would help, more threads would not.",
                share, mb, ceiling);
        else
            say(out,
                "Training waits for input %.1f%% of the time. The limit seems to be the storage: "
                "%u reads under way yield %.0f MB/s. 'millrace baseline' tells what it can.",
                share, in->depth, mb);
        break;
    case MR_LIMIT_READ_DEPTH:
        say(out,
            "Training waits for input %.1f%% of the time. The limit is the number of reads under "
            "way: with %u at once, %.1f ms each, the storage delivers %.0f MB/s%s. More "
            "--threads, or --engine uring with a larger --io-depth, would help.",
            share, in->depth, in->samples ? 1e3 * in->read_s / (double)in->samples : 0, mb,
            ceiling > 0 && mb < 0.9 * ceiling ? ", less than it could" : "");
        break;
    case MR_LIMIT_HAND_OVER:
        if (!in->prefetch)
            say(out,
                "Training waits for input %.1f%% of the time because they take turns: a batch is "
                "begun only when the one before it has been trained on. --prefetch 1 would hide "
                "all of it.",
                share);
        else
            say(out,
                "Training waits for input %.1f%% of the time, but neither storage nor CPU is busy: "
                "workers read %.0f%% and decode %.0f%% of the time. A larger --prefetch or --batch "
                "would help.",
                share, 100 * w->reading, 100 * w->mapping);
        break;
    }
}

void mr_verdict_judge(const struct mr_verdict_input *in, struct mr_verdict *out)
{
    struct witness w = question(in);
    *out = (struct mr_verdict){.limit = MR_LIMIT_NONE};
    out->wait_share = in->seconds > 0 ? in->input_wait_s / in->seconds : 0;
    out->rating = out->wait_share < FINE       ? MR_WAIT_FINE
                  : out->wait_share < MODERATE ? MR_WAIT_MODERATE
                                               : MR_WAIT_HIGH;
    if (out->rating != MR_WAIT_FINE)
        out->limit = find_limit(in, &w);
    put_into_words(in, &w, out);
}

const char *mr_limit_name(enum mr_limit limit)
{
    static const char *const name[] = {"none", "device", "read-depth", "decode-cpu", "hand-over"};
    return name[limit];
}
