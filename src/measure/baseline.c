/* baseline.c - see baseline.h.  Pattern after pattern, run after run; medians at the end.
 *
 *     open folder -> take space -> for each pattern: runs -> result -> close, which removes all
 *
 * A run is all or nothing: one that fails ends the baseline, one that is stopped is not counted.
 * No part of a run takes longer than its box, so the whole is bounded on storage of any speed; a
 * run that was cut is reported by its rate until there.  The first run is left out when there are
 * several: it finds device, file system and memory in a state that no later run finds them in. */
#include "baseline.h"

#include "baseline_run.h"
#include "clock.h"
#include "errtext.h"
#include "repeat.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES ((size_t)MR_DEEP * (256 << 10)) /* also holds MR_SEQ_DEPTH of MR_SEQ_BLOCK */
#define MAX_SMALL    2000
#define MIN_SMALL    16

/* Block 0: sizes vary.  The box in seconds, of the real storage and of an emulated device, whose
 * rate needs no long look. */
static const struct {
    const char *name;
    unsigned depth;
    uint32_t block_bytes;
    unsigned box_s, emulated_box_s;
} pattern[MR_N_PATTERNS] = {
    [MR_PATTERN_SEQ] = {"seq", MR_SEQ_DEPTH, MR_SEQ_BLOCK, 60, 10},
    [MR_PATTERN_RANDOM_IMAGENET] = {"random-imagenet", MR_DEEP, 0, 5, 3},
    [MR_PATTERN_RANDOM_16K] = {"random-16k", MR_DEEP, 16384, 5, 3},
    [MR_PATTERN_RANDOM_4K] = {"random-4k", 1, 4096, 5, 3},
    [MR_PATTERN_SMALL_FILES] = {"small-files", 1, MR_SMALL_BYTES, 5, 3},
    [MR_PATTERN_FSYNC] = {"fsync", 1, MR_SMALL_BYTES, 5, 3},
};

const char *mr_pattern_name(enum mr_pattern p)
{
    return pattern[p].name;
}

unsigned mr_pattern_box_s(enum mr_pattern p, int emulated)
{
    return emulated ? pattern[p].emulated_box_s : pattern[p].box_s;
}

uint64_t mr_baseline_box_ns(const struct mr_baseline_state *b, enum mr_pattern p)
{
    return (uint64_t)mr_pattern_box_s(p, b->o.device != NULL) * 1000000000u;
}

uint64_t mr_baseline_small_count(const struct mr_baseline_state *b)
{
    uint64_t n = b->asked_bytes >> 16;
    return n < MIN_SMALL ? MIN_SMALL : n > MAX_SMALL ? MAX_SMALL : n;
}

void mr_baseline_warn(struct mr_baseline_state *b, const char *fmt, ...)
{
    va_list args;
    if (b->out->warning[0])
        return;
    va_start(args, fmt);
    vsnprintf(b->out->warning, sizeof b->out->warning, fmt, args);
    va_end(args);
}

/* What is still to come: runs of this pattern and of the later ones, at what a run has taken. */
static double seconds_left(const struct mr_baseline_state *b)
{
    double s = b->run_s[b->now.pattern] * (b->now.runs - b->now.run);
    for (unsigned p = b->now.pattern + 1; p < b->o.n_patterns; p++)
        s += b->run_s[p] * b->now.runs;
    return s;
}

int mr_baseline_tell(void *state, uint64_t done, uint64_t total)
{
    struct mr_baseline_state *b = state;
    if (!b->o.progress)
        return 0;
    b->now.done = done;
    b->now.total = total;
    return b->o.progress(b->o.ctx, &b->now) ? -ECANCELED : 0;
}

/* Before anything is known: what the box allows, or what slow storage would take. */
static void guess_times(struct mr_baseline_state *b)
{
    for (unsigned p = 0; p < MR_N_PATTERNS; p++)
        b->run_s[p] = (double)mr_baseline_box_ns(b, p) / 1e9;
    double slow = (double)b->asked_bytes / 150e6;
    for (unsigned p = 0; p <= MR_PATTERN_RANDOM_4K; p++)
        b->run_s[p] = b->run_s[p] < slow ? b->run_s[p] : slow;
    b->run_s[MR_PATTERN_SEQ] *= 2; /* written and read */
    b->run_s[MR_PATTERN_SMALL_FILES] *= 2;
}

static int run_once(struct mr_baseline_state *b, enum mr_pattern p, unsigned run,
                    struct mr_baseline_sample *out)
{
    memset(out, 0, sizeof *out);
    b->now.pattern = p;
    b->now.run = run;
    b->now.runs = b->o.runs;
    b->now.left_s = seconds_left(b);
    uint64_t start = mr_clock_ns();
    int r = p == MR_PATTERN_FSYNC         ? mr_fsync_run(b, out)
            : p == MR_PATTERN_SMALL_FILES ? mr_small_files_run(b, run, out)
                                          : mr_file_patterns_run(b, p, run, out);
    b->run_s[p] = (double)(mr_clock_ns() - start) / 1e9;
    return r;
}

/* A pattern's runs so far. */
struct tally {
    unsigned n;
    /* Rates of each run. */
    double *mb, *ops, *written_mb, *written_ops, *ordinary_mb, *ordinary_ops;
    uint64_t n_ordinary; /* operations */
    uint64_t n_ops, n_late;
    enum mr_coldness cold;
};

static double rate(double amount, double seconds)
{
    return seconds > 0 ? amount / seconds : 0;
}

static void add(struct tally *t, const struct mr_baseline_sample *s, struct mr_baseline_result *r)
{
    t->mb[t->n] = rate((double)s->read.bytes / 1e6, s->read.seconds);
    t->ops[t->n] = rate((double)s->read.n_ops, s->read.seconds);
    t->written_mb[t->n] = rate((double)s->write_bytes / 1e6, s->write_seconds);
    t->written_ops[t->n] = rate((double)s->write_ops, s->write_seconds);
    t->ordinary_mb[t->n] = rate((double)s->ordinary.bytes / 1e6, s->ordinary.seconds);
    t->ordinary_ops[t->n] = rate((double)s->ordinary.n_ops, s->ordinary.seconds);
    t->n++;
    t->n_ordinary += s->ordinary.n_ops;
    t->n_ops += s->read.n_ops + s->write_ops;
    t->n_late += s->n_late;
    t->cold = s->cold < t->cold ? s->cold : t->cold;
    r->cut |= s->read.cut | s->write_cut;
    mr_histogram_merge(&r->latency, &s->read.latency);
}

static double median_of(const double *values, unsigned n, int *code)
{
    struct mr_summary s;
    int r = mr_summarize(values, n, &s);
    *code = *code ? *code : r;
    return r ? -1 : s.median;
}

/* Keep a list of rates in the result. */
static double *keep(const double *values, unsigned n, int *code)
{
    double *copy = malloc((n ? n : 1) * sizeof *copy);
    if (copy)
        memcpy(copy, values, n * sizeof *copy);
    else
        *code = -ENOMEM;
    return copy;
}

/* Medians of a pattern's runs. */
static int settle(const struct tally *t, struct mr_baseline_result *r)
{
    static const char *const cold[] = {"unproven", "data", "data+metadata", NULL};
    enum mr_pattern p = r->pattern;
    int code = 0, by_bytes = p == MR_PATTERN_SEQ || p == MR_PATTERN_RANDOM_IMAGENET;
    struct mr_summary sum;
    r->n_runs = t->n;
    r->cold = t->n ? cold[t->cold] : NULL;
    r->iops = median_of(t->ops, t->n, &code);
    if (p != MR_PATTERN_FSYNC)
        r->read_mb_per_s = median_of(t->mb, t->n, &code);
    if (p == MR_PATTERN_SEQ || p == MR_PATTERN_SMALL_FILES) {
        r->write_mb_per_s = median_of(t->written_mb, t->n, &code);
        r->write_runs = keep(p == MR_PATTERN_SEQ ? t->written_mb : t->written_ops, t->n, &code);
    }
    if (p == MR_PATTERN_SMALL_FILES)
        r->created_per_s = median_of(t->written_ops, t->n, &code);
    if (t->n_ordinary) {
        r->ordinary_mb_per_s = median_of(t->ordinary_mb, t->n, &code);
        r->ordinary_iops = median_of(t->ordinary_ops, t->n, &code);
        r->ordinary_runs = keep(by_bytes ? t->ordinary_mb : t->ordinary_ops, t->n, &code);
    }
    r->runs = keep(by_bytes ? t->mb : t->ops, t->n, &code);
    if (!code)
        code = mr_summarize(r->runs, t->n, &sum);
    if (!code)
        r->spread = sum.spread;
    r->late_share = t->n_ops ? (double)t->n_late / (double)t->n_ops : 0;
    return code;
}

/* All runs of one pattern, and its result in *r, also of what was done before it was stopped. */
static int measure(struct mr_baseline_state *b, enum mr_pattern p, struct mr_baseline_result *r)
{
    unsigned n = b->o.runs, first = mr_repeat_first(n);
    struct tally t = {.cold = MR_IS_COLD_UNASKED};
    struct mr_baseline_sample *s = malloc(sizeof *s);
    double *rates = calloc(6 * (size_t)n, sizeof *rates);
    *r = (struct mr_baseline_result){.pattern = p,
                                     .depth = pattern[p].depth,
                                     .block_bytes = pattern[p].block_bytes,
                                     .direct = b->direct && p < MR_PATTERN_SMALL_FILES,
                                     .read_mb_per_s = -1,
                                     .write_mb_per_s = -1,
                                     .created_per_s = -1,
                                     .ordinary_mb_per_s = -1,
                                     .ordinary_iops = -1};
    int code = s && rates ? 0 : mr_fail(b->err, -ENOMEM, "no memory");
    if (!code) {
        t.mb = rates;
        t.ops = rates + n;
        t.written_mb = rates + 2 * (size_t)n;
        t.written_ops = rates + 3 * (size_t)n;
        t.ordinary_mb = rates + 4 * (size_t)n;
        t.ordinary_ops = rates + 5 * (size_t)n;
    }
    for (unsigned i = 0; !code && i < n; i++) {
        code = run_once(b, p, i, s);
        if (!code && i >= first)
            add(&t, s, r);
    }
    r->partial = code == -ECANCELED;
    if ((!code || code == -ECANCELED) && settle(&t, r))
        code = mr_fail(b->err, -ENOMEM, "no memory");
    free(rates);
    free(s);
    return code;
}

static int check_options(const struct mr_baseline_opts *o, struct mr_error *err)
{
    if (o->size && o->size < MR_BASELINE_MIN_SIZE)
        return mr_fail(err, -EINVAL, "a file of %llu bytes is too small: 1 MiB is the least",
                       (unsigned long long)o->size);
    if (o->size > INT64_MAX)
        return mr_fail(err, -EFBIG, "no file can have %llu bytes", (unsigned long long)o->size);
    if (o->runs > MR_BASELINE_MAX_RUNS)
        return mr_fail(err, -EINVAL, "at most %d runs", MR_BASELINE_MAX_RUNS);
    return 0;
}

static void warn_if_late(struct mr_baseline_state *b, const struct mr_baseline_result *r)
{
    if (r->late_share > 0.05)
        mr_baseline_warn(b,
                         "%s is itself too slow for the emulated device in %.0f%% of the operations"
                         " of %s: its rate is not the device's",
                         b->o.dir, 100 * r->late_share, mr_pattern_name(r->pattern));
}

int mr_baseline_run(const struct mr_baseline_opts *opts, struct mr_baseline *out,
                    struct mr_error *err)
{
    struct mr_baseline_state b = {.o = *opts, .out = out, .err = err, .fd = -1};
    memset(out, 0, sizeof *out);
    int r = check_options(opts, err);
    if (r)
        return r;
    b.o.runs = opts->runs ? opts->runs : 6;
    b.o.n_patterns =
        opts->n_patterns && opts->n_patterns < MR_N_PATTERNS ? opts->n_patterns : MR_N_PATTERNS;
    b.asked_bytes = (opts->size ? opts->size : MR_BASELINE_SIZE) / MR_SEQ_BLOCK * MR_SEQ_BLOCK;
    guess_times(&b);
    r = mr_scratch_open(opts->dir, &b.scratch, err);
    if (!r)
        r = mr_raw_io_open(opts->engine, MR_DEEP, BUFFER_BYTES, &b.io, err);
    if (!r)
        r = mr_file_patterns_open(&b);
    out->n_stale = b.scratch ? mr_scratch_n_stale(b.scratch) : 0;
    out->engine = b.io ? mr_raw_io_engine(b.io) : MR_RAW_AUTO;
    for (unsigned p = 0; !r && p < b.o.n_patterns; p++) {
        struct mr_baseline_result *result = &out->result[p];
        r = measure(&b, p, result);
        out->n_results = p + 1;
        out->file_bytes = b.file_bytes;
        warn_if_late(&b, result);
        if (b.o.on_result && (!r || r == -ECANCELED))
            b.o.on_result(b.o.ctx, result);
    }
    mr_file_patterns_close(&b);
    mr_raw_io_close(b.io);
    mr_scratch_close(b.scratch);
    return r;
}

void mr_baseline_fini(struct mr_baseline *b)
{
    for (unsigned p = 0; p < MR_N_PATTERNS; p++) {
        free(b->result[p].runs);
        free(b->result[p].write_runs);
        free(b->result[p].ordinary_runs);
        b->result[p].runs = b->result[p].write_runs = b->result[p].ordinary_runs = NULL;
    }
}
