/* verdict.c - see verdict.h.
 *
 * While training waits for input, the workers are the witnesses.  Batches are made all the time
 * when there is prefetch, and only while training waits without.  In that time
 *
 *     device    what was delivered, of what the storage can deliver of such files
 *     mapping   CPU work on samples, of the workers that have a core
 *     reading   reads that were under way, of those that could be
 *
 * each lie between 0 and 1, and the limit is the one that is used up, unless training stands still
 * for checkpoints longer than it waits for input:
 *   - device near 1 and not below mapping: more reads or more CPU would not help.
 *   - Mapping takes most of the workers' time: the CPU.
 *   - Reading does, and the storage could deliver more: there are too few reads under way.  Where
 *     nobody knows what it could deliver, it is one of these two, and both are said.
 *   - None is: nothing is slow but the passing on.  Either training and input take turns because
 *     there is no prefetch, or the batches under way have room for fewer samples than there are
 *     workers or reads.
 * A worker of the threads engine waits for its read, so reading and mapping share its time.  With
 * io_uring it does not, and a read that has arrived waits for a worker that is mapping: long reads
 * say something only where workers are idle.
 *
 * What a storage can deliver is known from its profile, or because these files were read with more
 * and more reads at once until the rate stayed the same.  A rate that rose to the end is a ceiling
 * that is open: the storage can deliver that much, and perhaps more. */
#include "verdict.h"

#include "device_profile.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FINE      0.05
#define MODERATE  0.20
#define SATURATED 0.80 /* of the ceiling: bursts and gaps take the rest */
#define MOSTLY    0.50 /* of the time of the workers */

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

struct witness {
    double made_s;                   /* during which batches were made */
    double rate;                     /* bytes/s then */
    double device, mapping, reading; /* 0 .. 1; device 0 = not known */
    double busy;                     /* workers that had something to do, 0 .. 1 */
    unsigned room;                   /* samples of the batches that can be filled at once */
    unsigned depth;                  /* reads that can be under way, given that room */
};

static double share(double part, double of)
{
    return of > 0 ? fmin(part / of, 1) : 0;
}

static unsigned less(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static struct witness question(const struct mr_verdict_input *in)
{
    struct witness w = {.made_s = (in->prefetch ? in->seconds : in->input_wait_s)};
    unsigned workers = in->workers ? in->workers : 1, cores = in->cores ? in->cores : 1;
    w.made_s += in->first_fill_s;
    w.room = in->batch ? in->batch * (in->prefetch + 1) : UINT_MAX;
    w.depth = less(in->depth ? in->depth : 1, w.room);
    w.rate = w.made_s > 0 ? (double)in->bytes / w.made_s : 0;
    w.device = in->ceiling_bytes_per_s > 0 ? share(w.rate, in->ceiling_bytes_per_s) : 0;
    workers = less(workers, w.room);
    w.mapping = share(in->map_s, w.made_s * less(workers, cores));
    w.reading = share(in->read_s, w.made_s * w.depth);
    /* More workers than cores cannot all map: used-up cores are busy enough. */
    w.busy = in->reads_hold_workers ? share(in->read_s + in->map_s, w.made_s * workers) : w.reading;
    w.busy = fmax(w.busy, w.mapping);
    return w;
}

/* With prefetch, would input keep up?  Making a batch takes less time than training on it. */
static int turns_are_taken(const struct mr_verdict_input *in)
{
    return !in->prefetch && in->input_wait_s <= in->seconds - in->input_wait_s;
}

static int cpu_is_short(const struct mr_verdict_input *in, const struct witness *w)
{
    return in->reads_hold_workers ? in->map_s >= in->read_s : w->mapping >= MOSTLY;
}

/* Reads take the time: what is to blame for it? */
static enum mr_limit find_limit_of_reading(const struct mr_verdict_input *in,
                                           const struct witness *w)
{
    if (!(in->ceiling_bytes_per_s > 0))
        return MR_LIMIT_READING;
    if (w->device < SATURATED)
        return MR_LIMIT_READ_DEPTH;
    return in->ceiling_open ? MR_LIMIT_READING : MR_LIMIT_DEVICE;
}

static enum mr_limit find_limit(const struct mr_verdict_input *in, const struct witness *w)
{
    if (turns_are_taken(in))
        return MR_LIMIT_HAND_OVER;
    if (w->device >= SATURATED && w->device >= w->mapping && !in->ceiling_open)
        return MR_LIMIT_DEVICE;
    if (w->busy < MOSTLY)
        return MR_LIMIT_HAND_OVER;
    if (cpu_is_short(in, w))
        return w->room < less(in->workers, in->cores) ? MR_LIMIT_HAND_OVER : MR_LIMIT_DECODE;
    if (w->room < in->depth)
        return MR_LIMIT_HAND_OVER;
    return find_limit_of_reading(in, w);
}

/* In words: what limits, and what usually helps. */
static void say(struct mr_verdict *out, const char *remedy, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void say(struct mr_verdict *out, const char *remedy, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(out->finding, sizeof out->finding, fmt, args);
    va_end(args);
    snprintf(out->text, sizeof out->text, "%s%s%s", out->finding, *remedy ? " " : "", remedy);
}

static const char *waiting(const struct mr_verdict_input *in)
{
    return in->computed ? "would wait" : "waits";
}

static void say_hand_over(const struct mr_verdict_input *in, const struct witness *w,
                          struct mr_verdict *out)
{
    static const char more_room[] = "A larger --prefetch or --batch would help.";
    const char *waits = waiting(in);
    double percent = 100 * out->wait_share;
    if (!in->prefetch)
        say(out, "--prefetch 1 would hide all of it.",
            "Training %s for input %.1f%% of the time because they take turns: a batch is "
            "begun only when the one before it has been trained on.",
            waits, percent);
    else if (w->room < in->depth)
        say(out, more_room,
            "Training %s for input %.1f%% of the time. The batches under way have room for "
            "%u samples, so that %u workers or reads at once cannot all be used.",
            waits, percent, w->room, in->depth);
    else
        say(out, more_room,
            "Training %s for input %.1f%% of the time, but neither storage nor CPU is busy: "
            "%.0f%% of the reads that can be under way are, and decoding takes %.0f%% of the "
            "workers' time.",
            waits, percent, 100 * w->reading, 100 * w->mapping);
}

/* What would make checkpoints stop training less: by how they are saved now. */
static const char *fewer_stalls(const struct mr_verdict_input *in)
{
    static const char *const remedy[2][2] = {
        {"A larger --every saves less often; with --drain DIR a faster --checkpoint folder takes "
         "them first.",
         "A larger --every saves less often; a faster --checkpoint folder would help, too."},
        {"--mode lazy writes them beside training; a larger --every saves less often; with --drain "
         "DIR a faster --checkpoint folder takes them first.",
         "--mode lazy writes them beside training; a larger --every saves less often."},
    };
    return remedy[!!in->checkpoints_hold][!!in->checkpoints_drain];
}

static void say_checkpoint(const struct mr_verdict_input *in, struct mr_verdict *out)
{
    say(out, fewer_stalls(in),
        "Training stands still for checkpoints %.1f%% of the time, and waits for input %.1f%%. The "
        "limit is the checkpoints.",
        100 * in->checkpoint_stall_s / in->seconds, 100 * out->wait_share);
}

static void say_device(const struct mr_verdict_input *in, const struct witness *w,
                       struct mr_verdict *out)
{
    static const char remedy[] = "Faster storage or smaller files would help, more threads would "
                                 "not.";
    const char *waits = waiting(in);
    double percent = 100 * out->wait_share, mb = w->rate / 1e6;
    double ceiling = in->ceiling_bytes_per_s / 1e6;
    if (in->ceiling_reads)
        say(out, remedy,
            "Training %s for input %.1f%% of the time. The limit is the storage: it delivers %.0f "
            "MB/s, and no number of reads at once, up to %u, yielded more than %.0f.",
            waits, percent, mb, in->ceiling_reads, fmax(mb, ceiling));
    else if (round(mb) <= round(ceiling))
        say(out, remedy,
            "Training %s for input %.1f%% of the time. The limit is the storage: it delivers %.0f "
            "of the %.0f MB/s that it can with such files.",
            waits, percent, mb, ceiling);
    else
        say(out, remedy,
            "Training %s for input %.1f%% of the time. The limit is the storage: it delivers %.0f "
            "MB/s, all that it can with such files.",
            waits, percent, mb);
}

static void say_read_depth(const struct mr_verdict_input *in, const struct witness *w,
                           struct mr_verdict *out)
{
    char more[64] = ", less than it could";
    if (in->ceiling_reads)
        snprintf(more, sizeof more, "; with %u at once it delivered %.0f", in->ceiling_reads,
                 in->ceiling_bytes_per_s / 1e6);
    say(out, "More --threads, or --engine uring with a larger --io-depth, would help.",
        "Training %s for input %.1f%% of the time. The limit is the number of reads under way: "
        "with %u at once, %.1f ms each, the storage delivers %.0f MB/s%s.",
        waiting(in), 100 * out->wait_share, in->depth,
        in->samples ? 1e3 * in->read_s / (double)in->samples : 0, w->rate / 1e6, more);
}

static void say_reading(const struct mr_verdict_input *in, const struct witness *w,
                        struct mr_verdict *out)
{
    say(out,
        "More --threads, or --engine uring with a larger --io-depth, tell which: if the rate stays "
        "the same, it is the storage.",
        "Training %s for input %.1f%% of the time. The limit is either the storage, if %.0f MB/s "
        "are all that it can with such files, or the number of reads under way, %u at once, %.1f "
        "ms each.",
        waiting(in), 100 * out->wait_share, w->rate / 1e6, in->depth,
        in->samples ? 1e3 * in->read_s / (double)in->samples : 0);
}

static void put_into_words(const struct mr_verdict_input *in, const struct witness *w,
                           struct mr_verdict *out)
{
    const char *waits = waiting(in);
    double percent = 100 * out->wait_share;
    switch (out->limit) {
    case MR_LIMIT_NONE:
        say(out, "", "Input is not the limit: training %s for it %.1f%% of the time.", waits,
            percent);
        break;
    case MR_LIMIT_DECODE:
        say(out,
            in->workers < in->cores ? "More --threads would help."
                                    : "More cores, or smaller stored images, would help.",
            "Training %s for input %.1f%% of the time. The limit is the CPU time of decoding: "
            "%u worker%s on %u core%s spend%s %.0f%% of the time on it, %.2f ms a sample.",
            waits, percent, in->workers, in->workers == 1 ? "" : "s", in->cores,
            in->cores == 1 ? "" : "s", in->workers == 1 ? "s" : "", 100 * w->mapping,
            in->samples ? 1e3 * in->map_s / (double)in->samples : 0);
        break;
    case MR_LIMIT_DEVICE:
        say_device(in, w, out);
        break;
    case MR_LIMIT_READ_DEPTH:
        say_read_depth(in, w, out);
        break;
    case MR_LIMIT_READING:
        say_reading(in, w, out);
        break;
    case MR_LIMIT_HAND_OVER:
        say_hand_over(in, w, out);
        break;
    case MR_LIMIT_CHECKPOINT:
        say_checkpoint(in, out);
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
    double stall_share = in->seconds > 0 ? in->checkpoint_stall_s / in->seconds : 0;
    if (stall_share >= FINE && stall_share > out->wait_share)
        out->limit = MR_LIMIT_CHECKPOINT;
    else if (out->rating != MR_WAIT_FINE)
        out->limit = find_limit(in, &w);
    put_into_words(in, &w, out);
    size_t n = strlen(out->text);
    if (stall_share >= FINE && out->limit != MR_LIMIT_CHECKPOINT)
        snprintf(out->text + n, sizeof out->text - n, " Checkpoints stop it another %.1f%%.",
                 100 * stall_share);
}

const char *mr_limit_name(enum mr_limit limit)
{
    static const char *const name[] = {
        "none",        "device",    "read-depth",          "decode-cpu",
        "checkpoints", "hand-over", "device-or-read-depth"};
    return name[limit];
}
