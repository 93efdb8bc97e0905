/* cmd_baseline.c - `millrace baseline`: raw limits of the storage behind a folder. */
#include "commands.h"

#include "baseline.h"
#include "environment.h"
#include "errtext.h"
#include "fit_profile.h"
#include "input.h"
#include "new_file.h"
#include "output.h"
#include "say.h"
#include "terminal.h"

#include <millrace/store.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct show {
    const struct options *o;
    struct output out;
    const struct mr_device *device;
    int headed; /* the heading is there */
};

static const char *or_dash(double v, const char *fmt, char *buf, size_t cap)
{
    if (v < 0)
        return "-";
    snprintf(buf, cap, fmt, v);
    return buf;
}

/* Once, when something is being measured: what cannot be has no table. */
static void print_heading(struct show *s)
{
    const struct options *o = s->o;
    if (s->headed || s->out.quiet)
        return;
    s->headed = 1;
    input_print_storage("", s->device);
    struct mr_json *env = mr_environment(o->paths[0]);
    const char *fs = mr_json_text(mr_json_at(env, "storage.file_system"));
    const char *mount = mr_json_text(mr_json_at(env, "storage.mount_options"));
    const char *dev = mr_json_text(mr_json_at(env, "storage.device"));
    const char *scheduler = mr_json_text(mr_json_at(env, "storage.scheduler"));
    char bytes[32];
    say("%s: a file of %s, %u run%s\n", o->paths[0],
        human_bytes((double)o->size, bytes, sizeof bytes), o->runs,
        o->runs > 1 ? "s, first left out" : "");
    say("%s%s%s%s", dev ? "device " : "no block device", dev ? dev : "",
        scheduler ? ", scheduler " : "", scheduler ? scheduler : "");
    double ahead = mr_json_number(mr_json_at(env, "storage.read_ahead_kb"));
    double most = mr_json_number(mr_json_at(env, "storage.max_request_kb"));
    if (ahead >= 0)
        say(", read-ahead %.0f KB", ahead);
    if (most >= 0)
        say(", requests up to %.0f KB", most);
    say("; %s (%s)\n", fs ? fs : "unknown file system", mount ? mount : "");
    mr_json_free(env);
    say("%-16s %6s %6s %10s %10s %10s %7s  %24s  %s\n", "pattern", "block", "depth", "read MB/s",
        "write MB/s", "ops/s", "spread", "us p50/p99/p99.9", "cache before");
    fflush(stdout);
}

static int on_progress(void *ctx, const struct mr_baseline_progress *now)
{
    struct show *s = ctx;
    char what[64];
    print_heading(s);
    snprintf(what, sizeof what, "%s %s, run %u/%u, all in about %.0f s",
             mr_pattern_name(now->pattern), now->doing, now->run + 1, now->runs, now->left_s);
    progress_show(what, now->done, now->total);
    return terminal_interrupted(NULL);
}

static void print_row(void *ctx, const struct mr_baseline_result *r)
{
    struct show *s = ctx;
    char block[16] = "split", read[24], write[24], latency[64], spread[24] = "-";
    progress_clear();
    if (s->out.quiet)
        return;
    print_heading(s);
    if (!r->n_runs) {
        say("%-16s stopped before the first run was through\n", mr_pattern_name(r->pattern));
        return;
    }
    if (r->block_bytes)
        snprintf(block, sizeof block, "%uK", r->block_bytes >> 10);
    snprintf(latency, sizeof latency, "%.0f/%.0f/%.0f",
             (double)mr_histogram_at(&r->latency, 0.5) / 1e3,
             (double)mr_histogram_at(&r->latency, 0.99) / 1e3,
             (double)mr_histogram_at(&r->latency, 0.999) / 1e3);
    if (r->n_runs > 1)
        snprintf(spread, sizeof spread, "%.1f%%", 100 * r->spread);
    say("%-16s %6s %6u %10s %10s %10.0f %7s  %24s  %s%s%s%s\n", mr_pattern_name(r->pattern), block,
        r->depth, or_dash(r->read_mb_per_s, "%.1f", read, sizeof read),
        or_dash(r->write_mb_per_s, "%.1f", write, sizeof write), r->iops, spread, latency,
        r->cold ? "cold: " : "-", r->cold ? r->cold : "", r->cut ? " (cut)" : "",
        r->partial ? " (partial)" : "");
    if (r->ordinary_iops >= 0)
        say("%-16s %6s %6s %10.1f %10s %10.0f\n", "  ordinary pages", "", "", r->ordinary_mb_per_s,
            "", r->ordinary_iops);
    if (r->created_per_s >= 0)
        say("%-16s %6s %6s %10s %10s %10.0f\n", "  creating", "", "", "", "", r->created_per_s);
    fflush(stdout);
}

/* What "(cut)" in the table means, and that the file was not written whole. */
static void print_cut(const struct show *s, const struct mr_baseline *b)
{
    int any = 0, emulated = s->device != NULL;
    char wrote[32], asked[32];
    for (unsigned i = 0; i < b->n_results; i++)
        any |= b->result[i].cut;
    if (any)
        say("cut: a part of a run ends after %u s (seq) or %u s; rates are those until then\n",
            mr_pattern_box_s(MR_PATTERN_SEQ, emulated),
            mr_pattern_box_s(MR_PATTERN_FSYNC, emulated));
    if (b->file_bytes && b->file_bytes + MR_BASELINE_MIN_SIZE <= s->o->size)
        say("the file has %s, not %s: that is what could be written in this time\n",
            human_bytes((double)b->file_bytes, wrote, sizeof wrote),
            human_bytes((double)s->o->size, asked, sizeof asked));
}

/* "DIR/fast-disk.profile" -> "fast-disk". */
static void profile_name(const char *path, char *buf, size_t cap)
{
    const char *slash = strrchr(path, '/');
    snprintf(buf, cap, "%s", slash ? slash + 1 : path);
    char *dot = strrchr(buf, '.');
    if (dot && dot != buf)
        *dot = 0;
}

/* Can the profile be written, before all is measured in vain? */
static int check_profile_path(const char *path)
{
    int r = mr_new_file_check(path);
    if (r)
        say_to(stderr, "millrace baseline: --save-profile %s: %s\n", path, mr_errno_text(r));
    return r != 0;
}

static int save_profile(const struct options *o, const struct mr_baseline *b, int quiet)
{
    struct mr_device_profile p;
    struct mr_error err = {0};
    struct mr_json *env = mr_environment(o->paths[0]);
    const char *host = mr_json_text(mr_json_at(env, "host"));
    const char *dev = mr_json_text(mr_json_at(env, "storage.device"));
    const char *fs = mr_json_text(mr_json_at(env, "storage.file_system"));
    const char *time = mr_json_text(mr_json_at(env, "time"));
    char name[256], measured[240], bytes[32];
    profile_name(o->save_profile, name, sizeof name);
    snprintf(measured, sizeof measured,
             "measured by millrace baseline: %s, %s on %s, %s, %s, %u runs",
             host ? host : "unknown host", fs ? fs : "unknown file system",
             dev ? dev : "no block device", time ? time : "",
             human_bytes((double)b->file_bytes, bytes, sizeof bytes), o->runs);
    mr_json_free(env);
    int r = mr_fit_profile(b, name, measured, &p, &err);
    if (!r)
        r = mr_device_profile_save(&p, o->save_profile, &err);
    if (r)
        say_to(stderr, "millrace baseline: --save-profile %s: %s\n", o->save_profile, err.text);
    else if (!quiet)
        say("profile: %s\n", o->save_profile);
    return r != 0;
}

static int check_options(const struct options *o)
{
    if (o->size < MR_BASELINE_MIN_SIZE)
        say_to(stderr, "millrace baseline: --size: at least 1M\n");
    else if (o->storage && o->save_profile)
        say_to(stderr, "millrace baseline: --save-profile measures the real storage: leave "
                       "--storage out\n");
    else
        return 0;
    return 2;
}

static struct mr_json *results_of(const struct mr_baseline *b, const struct mr_baseline_opts *opts)
{
    struct mr_json *results = mr_json_array();
    for (unsigned i = 0; i < b->n_results; i++)
        mr_json_append(results, mr_baseline_result_json(b, &b->result[i], opts));
    return results;
}

int command_baseline(const struct options *o)
{
    struct show s = {.o = o};
    struct mr_error err = {0};
    struct mr_device *device = NULL;
    struct mr_baseline *b = NULL;
    int status = check_options(o);
    if (status)
        return status;
    status = input_open_storage(o, &device);
    if (status)
        return status;
    s.device = device;
    struct mr_baseline_opts opts = {
        .dir = o->paths[0],
        .size = o->size,
        .runs = o->runs,
        .device = device,
        .device_name = device ? mr_device_name(device) : NULL,
        .drop_caches = o->drop_caches,
        .both_pages = 1,
        .progress = on_progress,
        .on_result = print_row,
        .ctx = &s,
    };
    status = (o->save_profile && check_profile_path(o->save_profile)) || output_open(o, &s.out);
    b = calloc(1, sizeof *b);
    if (status || !b)
        goto done;
    int r = mr_baseline_run(&opts, b, &err);
    progress_clear();
    if (r && r != -ECANCELED)
        say_to(stderr, "millrace baseline: %s\n", err.text);
    if (!s.out.quiet && (!r || r == -ECANCELED))
        print_cut(&s, b);
    if (b->n_stale)
        say_to(stderr, "note: removed what %u killed run%s had left in %s\n", b->n_stale,
               b->n_stale > 1 ? "s" : "", o->paths[0]);
    if (b->warning[0] && (!r || r == -ECANCELED))
        say_to(stderr, "warning: %s\n", b->warning);
    status = !r ? 0 : r == -ECANCELED ? 130 : 1;
    if (!status && o->save_profile)
        status = save_profile(o, b, s.out.quiet);
    /* A profile that could not be saved takes nothing from the result. */
    if ((!r || r == -ECANCELED) && output_json(&s.out, o, o->paths[0], results_of(b, &opts)) &&
        !status)
        status = 1;
done:
    if (b)
        mr_baseline_fini(b);
    free(b);
    mr_device_close(device);
    return status;
}
