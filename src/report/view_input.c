/* view_input.c - the experiments about input: raw limits, reading, decoding, overlap, batch sizes,
 * the files themselves. */
#include "view_parts.h"

#include "scale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The point of a storage and a pattern; mr_view_n when there is none. */
static unsigned limit_of(const struct mr_view *v, const char *storage, const char *pattern)
{
    unsigned i = 0;
    for (; i < mr_view_n(v); i++) {
        const char *s = mr_view_text(v, i, "storage"), *p = mr_view_text(v, i, "pattern");
        if (s && p && !strcmp(s, storage) && !strcmp(p, pattern))
            break;
    }
    return i;
}

/* This disk in a sentence, and how near the emulated ones come to Table I. */
static void tell_limits(struct mr_view *v)
{
    static const struct {
        const char *storage;
        double read, write; /* of Table I, MB/s */
    } table[] = {
        {"hdd", 163, 133}, {"ssd", 281, 195}, {"optane", 1603, 512}, {"lustre", 1969, 992}};
    unsigned seq = limit_of(v, "disk", "seq"), random = limit_of(v, "disk", "random-imagenet"),
             n = 0;
    char a[32], b[32], c[32];
    double off = 0;
    if (seq < mr_view_n(v))
        mr_view_finding(
            v,
            "This disk: %s / %s MB/s (read / write) in order, %s MB/s at random with ImageNet's "
            "sizes.",
            mr_number_text(mr_view_number(v, seq, "read_mb_per_s"), a, sizeof a),
            mr_number_text(mr_view_number(v, seq, "write_mb_per_s"), b, sizeof b),
            mr_number_text(mr_view_number(v, random, "read_mb_per_s"), c, sizeof c));
    for (unsigned k = 0; k < sizeof table / sizeof *table; k++) {
        unsigned i = limit_of(v, table[k].storage, "seq");
        double read = mr_view_number(v, i, "read_mb_per_s") / table[k].read - 1,
               write = mr_view_number(v, i, "write_mb_per_s") / table[k].write - 1;
        if (!isfinite(read + write))
            continue;
        n++;
        off = fmax(off, fmax(fabs(read), fabs(write)));
    }
    if (n)
        mr_view_finding(
            v,
            "The emulated devices (%u of 4) come within %.1f%% of the study's table, to "
            "which they were calibrated.",
            n, fmin(100 * off, 1e6));
}

void mr_show_baseline(struct mr_view *v)
{
    struct mr_chart c = {.plot = {.kind = MR_PLOT_BARS,
                                  .id = "baseline",
                                  .title = "Sequential bandwidth",
                                  .x_label = "storage",
                                  .y_label = "MB/s",
                                  .summary = "Bars of sequential read and write bandwidth for each "
                                             "storage."}};
    char name[64], text[32];
    struct mr_series *reads = mr_chart_series(&c, "read"), *writes = mr_chart_series(&c, "write");
    mr_markup_add(v->out, "<div class=\"scroll\"><table><thead><tr><th>storage</th><th "
                          "class=\"text\">pattern</th><th>read MB/s</th><th>write MB/s</th>"
                          "<th>operations/s</th><th>latency, median µs</th><th>latency, 99%% "
                          "within µs</th><th>runs</th></tr></thead><tbody>");
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        static const char *const columns[] = {"read_mb_per_s", "write_mb_per_s", "iops",
                                              "latency_us.p50", "latency_us.p99"};
        const char *pattern = mr_view_text(v, i, "pattern");
        mr_view_storage(v, i, name, sizeof name);
        mr_markup_add(v->out, "<tr><td>");
        mr_markup_text(v->out, name);
        mr_markup_add(v->out, "</td><td class=\"text\">");
        mr_markup_text(v->out, pattern ? mr_pattern_words(pattern) : "-");
        for (unsigned k = 0; k < 5; k++)
            mr_markup_add(v->out, "</td><td>%s",
                          mr_number_text(mr_view_number(v, i, columns[k]), text, sizeof text));
        if (mr_view_n_each(v, i) > 1)
            mr_markup_add(v->out, "</td><td>%u, ±%.1f%%</td></tr>", mr_view_n_each(v, i),
                          50 * fmin(mr_view_list_spread(v, i, "runs"), 1e4));
        else
            mr_markup_add(v->out, "</td><td>one run</td></tr>");
        double read = mr_view_number(v, i, "read_mb_per_s");
        if (pattern && !strcmp(pattern, "seq")) {
            unsigned at = mr_chart_name(&c, "%s", name);
            double lo, hi;
            mr_view_spread(v, i, "runs", &lo, &hi);
            mr_chart_put(&c, reads, at, read, lo, hi);
            mr_view_spread(v, i, "write_runs", &lo, &hi);
            mr_chart_put(&c, writes, at, mr_view_number(v, i, "write_mb_per_s"), lo, hi);
        }
    }
    mr_markup_add(v->out, "</tbody></table></div>");
    mr_view_plot(v, &c);
    tell_limits(v);
}

/* Speed-up from the fewest to the most threads on one storage and engine; NaN when not there. */
static double speed_up(const struct mr_view *v, const char *storage, const char *engine)
{
    double few = INFINITY, many = 0, at_few = NAN, at_many = NAN;
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        const char *s = mr_view_text(v, i, "storage"), *e = mr_view_text(v, i, "engine");
        double t = mr_view_number(v, i, "threads");
        if (!s || !e || strcmp(s, storage) || strcmp(e, engine))
            continue;
        if (t < few) {
            few = t;
            at_few = mr_view_number(v, i, "images_per_s");
        }
        if (t > many) {
            many = t;
            at_many = mr_view_number(v, i, "images_per_s");
        }
    }
    return at_many / at_few;
}

/* "hdd (emulated) 2.30 times, ..." */
static void tell_speed_ups(struct mr_view *v)
{
    static const char *const storages[] = {"disk", "hdd", "ssd", "optane", "lustre"};
    char list[300] = "", name[64];
    for (unsigned i = 0; i < sizeof storages / sizeof *storages; i++) {
        double times = speed_up(v, storages[i], "threads");
        size_t at = strlen(list);
        if (isfinite(times))
            snprintf(list + at, sizeof list - at, "%s%s %.2f", at ? ", " : "",
                     mr_storage_words(storages[i], i > 0, name, sizeof name), fmin(times, 1e6));
    }
    if (list[0])
        mr_view_finding(v, "From the fewest to the most threads it gets so many times as fast: %s.",
                        list);
}

/* "threads", and what a thread of the ring is: it has several reads under way. */
static void threads_label(const struct mr_view *v, char *buf, size_t cap)
{
    snprintf(buf, cap, "threads");
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        const char *engine = mr_view_text(v, i, "engine");
        double reads = mr_view_number(v, i, "io_depth") / mr_view_number(v, i, "threads");
        if (engine && !strcmp(engine, "uring") && reads > 0 && reads < 1e6) {
            snprintf(buf, cap, "threads (uring: %.3g reads under way for each)", reads);
            return;
        }
    }
}

static void rate_over_threads(struct mr_view *v, const char *id, const char *title)
{
    char x_label[80];
    struct mr_chart c = {.plot = {.kind = MR_PLOT_LINES,
                                  .id = id,
                                  .title = title,
                                  .x_label = x_label,
                                  .y_label = "images/s",
                                  .log_x = 1,
                                  .log_y = 1,
                                  .summary = "Lines of images per second over the number of "
                                             "threads, one for each storage and engine."}};
    char name[64];
    threads_label(v, x_label, sizeof x_label);
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        const char *engine = mr_view_text(v, i, "engine");
        double lo, hi;
        mr_view_storage(v, i, name, sizeof name);
        struct mr_series *s = mr_chart_series(&c, "%s, %s", name, engine ? engine : "");
        if (s) { /* a colour for each storage */
            s->colour = mr_chart_name(&c, "%s", name) % MR_PLOT_COLOURS;
            s->dashed = engine && !strcmp(engine, "uring");
        }
        mr_view_spread(v, i, "runs", &lo, &hi);
        mr_chart_add(&c, s,
                     (struct mr_point){mr_view_number(v, i, "threads"),
                                       mr_view_number(v, i, "images_per_s"), lo, hi});
    }
    mr_view_plot(v, &c);
    tell_speed_ups(v);
}

/* "uring, 8 threads" */
static const char *engine_and_threads(const struct mr_view *v, unsigned i, char *buf, size_t cap)
{
    const char *engine = mr_view_text(v, i, "engine");
    double threads = mr_view_number(v, i, "threads");
    snprintf(buf, cap, "%s, %.0f thread%s", engine ? engine : "-", isfinite(threads) ? threads : 0,
             threads == 1 ? "" : "s");
    return buf;
}

/* The point of the same storage as point i that reaches most of its baseline; the first of them
 * when that is not known of any. */
static unsigned best_share(const struct mr_view *v, unsigned i)
{
    const char *storage = mr_view_text(v, i, "storage");
    unsigned best = mr_view_n(v);
    for (unsigned k = 0; storage && k < mr_view_n(v); k++) {
        const char *other = mr_view_text(v, k, "storage");
        double share = mr_view_number(v, k, "baseline_share");
        if (!other || strcmp(storage, other))
            continue;
        if (best == mr_view_n(v) ||
            (isfinite(share) && !(mr_view_number(v, best, "baseline_share") >= share)))
            best = k;
    }
    return storage ? best : i;
}

/* A baseline that files were read faster than is no limit.  A little more than all of it is noise.
 */
static int exceeds(double share)
{
    return share > 1.05;
}

static void tell_share(struct mr_view *v, unsigned i, const char *way, double share)
{
    double mb = mr_view_number(v, i, "mb_per_s");
    char rate[32], raw[32];
    if (!exceeds(share))
        mr_view_finding(v,
                        "The best way here (%s) reaches %.0f%% of what the device delivers at "
                        "random with ImageNet's sizes.",
                        way, 100 * fmin(share, 1));
    else
        mr_view_finding(v,
                        "The best way here (%s) reads %s MB/s, more than the %s of the baseline at "
                        "random with ImageNet's sizes: that was not the device's limit.",
                        way, mr_number_text(mb, rate, sizeof rate),
                        mr_number_text(mb / share, raw, sizeof raw));
}

/* One row a storage: the way that comes nearest to its limit. */
static void show_shares(struct mr_view *v)
{
    char name[64], way[64], text[32];
    mr_markup_add(
        v->out,
        "<h3>%% of the baseline reached</h3><div class=\"scroll\"><table><thead>"
        "<tr><th>storage</th><th class=\"text\">best way</th><th>MB/s</th><th>%% of its random "
        "baseline</th></tr></thead><tbody>");
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        unsigned best = best_share(v, i);
        double share = mr_view_number(v, best, "baseline_share");
        if (best != i)
            continue; /* another point speaks for this storage */
        engine_and_threads(v, i, way, sizeof way);
        mr_markup_add(v->out, "<tr><td>");
        mr_markup_text(v->out, mr_view_storage(v, i, name, sizeof name));
        mr_markup_add(v->out, "</td><td class=\"text\">");
        mr_markup_text(v->out, isfinite(share) ? way : "-");
        mr_markup_add(v->out, "</td><td>%s</td><td>",
                      isfinite(share)
                          ? mr_number_text(mr_view_number(v, i, "mb_per_s"), text, sizeof text)
                          : "-");
        if (isfinite(share) && exceeds(share))
            mr_markup_add(v->out, "more than the baseline</td></tr>");
        else if (isfinite(share))
            mr_markup_add(v->out, "%.0f</td></tr>", 100 * fmax(fmin(share, 1), -1e4));
        else
            mr_markup_add(v->out, "no baseline</td></tr>");
        if (share > 0 && !mr_view_flag(v, i, "emulated"))
            tell_share(v, i, way, share);
    }
    mr_markup_add(v->out, "</tbody></table></div>");
}

void mr_show_read(struct mr_view *v)
{
    rate_over_threads(v, "read", "Reading whole files");
    show_shares(v);
}

/* Where the time of a worker for one image goes, in ms; in all, what it holds an image. */
struct held {
    double decode, resize, rest, wait;
};

/* Decoding and resizing are timed by the clock, which runs on while a worker waits for a core: of
 * these times no more is CPU time than the process has used.  The rest of what is held is waiting.
 */
static struct held where_time_goes(const struct mr_view *v, unsigned i)
{
    double d = 1e3 * mr_view_number(v, i, "decode_s_per_image");
    double r = 1e3 * mr_view_number(v, i, "resize_s_per_image");
    double held = 1e3 * mr_view_number(v, i, "threads") / mr_view_number(v, i, "images_per_s");
    double cpu = fmin(1e3 * mr_view_number(v, i, "cpu_s_per_image"), held);
    if (!(d >= 0 && r >= 0 && cpu >= 0 && isfinite(d + r + held)))
        return (struct held){NAN, NAN, NAN, NAN};
    double part = d + r > cpu ? cpu / (d + r) : 1;
    return (struct held){part * d, part * r, fmax(cpu - part * (d + r), 0), held - cpu};
}

void mr_show_decode(struct mr_view *v)
{
    struct mr_chart c = {.plot = {.kind = MR_PLOT_STACK,
                                  .id = "decode-cpu",
                                  .title = "Where the workers' time for an image goes",
                                  .x_label = "engine and threads, on this disk",
                                  .y_label = "ms of a worker an image",
                                  .summary =
                                      "Stacked bars, as high as a worker holds an image: CPU "
                                      "time for decoding, resizing and all the rest, and "
                                      "waiting."}};
    char name[64], waits[64] = "";
    double largest = 0;
    rate_over_threads(v, "decode", "Reading, decoding and resizing");
    show_shares(v);
    struct mr_series *decode = mr_chart_series(&c, "decode"),
                     *resize = mr_chart_series(&c, "resize"),
                     *rest = mr_chart_series(&c, "other CPU time"),
                     *wait = mr_chart_series(&c, "waiting for storage or a core");
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        if (mr_view_flag(v, i, "emulated"))
            continue;
        struct held h = where_time_goes(v, i);
        unsigned at = mr_chart_name(&c, "%s", engine_and_threads(v, i, name, sizeof name));
        mr_chart_put(&c, decode, at, h.decode, 0, 0);
        mr_chart_put(&c, resize, at, h.resize, 0, 0);
        mr_chart_put(&c, rest, at, h.rest, 0, 0);
        mr_chart_put(&c, wait, at, h.wait, 0, 0);
        double held = h.decode + h.resize + h.rest + h.wait;
        if (held > 0 && h.wait > largest * held) {
            largest = h.wait / held;
            snprintf(waits, sizeof waits, "%s", name);
        }
    }
    mr_view_plot(v, &c);
    if (largest > 0)
        mr_view_finding(v, "Workers wait most with %s: %.0f%% of their time.", waits,
                        100 * largest);
}

void mr_show_overlap(struct mr_view *v)
{
    struct mr_chart c = {.plot = {.kind = MR_PLOT_BARS,
                                  .id = "overlap",
                                  .title = "Time of a training step, with and without prefetch",
                                  .x_label = "storage and threads",
                                  .y_label = "seconds a step",
                                  .summary =
                                      "Bars of the time of a step for each storage and number "
                                      "of threads, with prefetch, without, and without any "
                                      "input."}};
    char name[64], slowest[96] = "";
    double floor_s = NAN, worst = 0, without = 0;
    for (unsigned i = 0; i < mr_view_n(v); i++)
        if (mr_view_flag(v, i, "synthetic"))
            floor_s = mr_view_number(v, i, "step_s");
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        if (mr_view_flag(v, i, "synthetic"))
            continue;
        double prefetch = mr_view_number(v, i, "prefetch"), step = mr_view_number(v, i, "step_s");
        mr_view_storage(v, i, name, sizeof name);
        double threads = mr_view_number(v, i, "threads");
        if (!isfinite(prefetch) || !isfinite(threads))
            continue;
        unsigned at = mr_chart_name(&c, "%s, %.0f", name, threads);
        double lo, hi;
        mr_view_spread(v, i, "each_step_s", &lo, &hi);
        mr_chart_put(&c, mr_chart_series(&c, "prefetch %.0f", prefetch), at, step, lo, hi);
        if (prefetch > 0 && step / floor_s > worst)
            worst = step / floor_s;
        if (prefetch == 0 && step / floor_s > without) {
            without = step / floor_s;
            snprintf(slowest, sizeof slowest, "%s, %.0f thread%s", name, threads,
                     threads == 1 ? "" : "s");
        }
    }
    for (unsigned k = 0; isfinite(floor_s) && k < c.n_names; k++)
        mr_chart_put(&c, mr_chart_series(&c, "no input (synthetic)"), k, floor_s, 0, 0);
    mr_view_plot(v, &c);
    if (worst > 0 && worst < 1.001)
        mr_view_finding(v, "With one batch of prefetch no step is longer than without any input.");
    else if (worst > 0)
        mr_view_finding(v,
                        "With one batch of prefetch no storage and no number of threads makes a "
                        "step more than %.1f%% longer than without any input.",
                        fmin(100 * (worst - 1), 1e6));
    if (without > 0)
        mr_view_finding(v, "Without prefetch a step is up to %.1f%% longer (%s).",
                        fmin(fmax(100 * (without - 1), 0), 1e6), slowest);
}

void mr_show_batch(struct mr_view *v)
{
    struct mr_chart c = {
        .plot = {.kind = MR_PLOT_LINES,
                 .id = "batch",
                 .title = "Time per image against batch size",
                 .x_label = "images in a batch",
                 .y_label = "ms an image, median of the steps",
                 .log_x = 1,
                 .summary =
                     "Lines of the time of an image over the batch size, one for each device."}};
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        const char *device = mr_view_text(v, i, "device");
        double lo, hi;
        mr_view_spread(v, i, "each_s_per_image", &lo, &hi);
        mr_chart_add(&c, mr_chart_series(&c, "%s", device ? device : ""),
                     (struct mr_point){mr_view_number(v, i, "batch"),
                                       1e3 * mr_view_number(v, i, "s_per_image"), 1e3 * lo,
                                       1e3 * hi});
    }
    for (unsigned s = 0; s < c.n_series; s++) {
        const struct mr_point *q = c.points[s];
        unsigned last = c.series[s].n ? c.series[s].n - 1 : 0;
        if (last && isfinite(q[0].y / q[last].y))
            mr_view_finding(v,
                            "%s: an image costs %.2f ms in batches of %.0f, %.2f in those of %.0f.",
                            c.series[s].name, q[0].y, q[0].x, q[last].y, q[last].x);
    }
    mr_view_plot(v, &c);
}

/* The two neighbouring bins of the histogram that hold most. */
static void tell_common_sizes(struct mr_view *v, const struct mr_json *bins)
{
    double all = 0, most = 0, to = 0, before = 0;
    for (size_t i = 0; mr_json_is_array(bins) && i < mr_json_len(bins); i++) {
        double n = mr_json_number(mr_json_at(mr_json_item(bins, i), "n"));
        if (!(n >= 0 && n < 1e15))
            n = 0;
        all += n;
        if (n + before > most) {
            most = n + before;
            to = mr_json_number(mr_json_at(mr_json_item(bins, i), "to_bytes"));
        }
        before = n;
    }
    if (all > 0 && to > 0 && to < 1e15)
        mr_view_finding(v, "%.0f%% of the files have more than %.0f and at most %.0f KiB.",
                        100 * most / all, to / 4096, to / 1024);
}

static void show_requests(struct mr_view *v)
{
    char path[64], text[32], more[32];
    const struct mr_json *requests = mr_view_at(v, 0, "requests");
    if (!requests || !mr_json_len(requests))
        return;
    mr_markup_add(
        v->out,
        "<h3>Requests at the device while reading</h3><div class=\"scroll\"><table>"
        "<thead><tr><th>device</th><th>KB a request</th><th>ms a request takes</th>"
        "<th>requests under way</th><th>ms of service</th><th>busy %%</th></tr></thead><tbody>");
    for (unsigned i = 0; i < mr_json_len(requests); i++) {
        static const char *const columns[] = {"read_kb", "wait_ms", "queue", "svc_ms", "util"};
        snprintf(path, sizeof path, "%u.device", i);
        mr_markup_add(v->out, "<tr><td>");
        mr_markup_text(v->out, mr_json_text(mr_json_at(requests, path)));
        for (unsigned k = 0; k < 5; k++) {
            snprintf(path, sizeof path, "%u.%s", i, columns[k]);
            mr_markup_add(
                v->out, "</td><td>%s",
                mr_number_text(mr_json_number(mr_json_at(requests, path)), text, sizeof text));
        }
        mr_markup_add(v->out, "</td></tr>");
    }
    mr_markup_add(v->out, "</tbody></table></div>");
    double kb = mr_view_number(v, 0, "requests.0.read_kb"),
           queue = mr_view_number(v, 0, "requests.0.queue"),
           busy = mr_view_number(v, 0, "requests.0.util");
    if (isfinite(kb + queue + busy))
        mr_view_finding(v,
                        "While they were read the device had requests of %s KB, %s under way on "
                        "average, and was busy %s%% of the time.",
                        mr_number_text(kb, text, sizeof text),
                        mr_number_text(queue, more, sizeof more), mr_number_text(busy, path, 32));
}

void mr_show_files(struct mr_view *v)
{
    struct mr_chart c = {.plot = {.kind = MR_PLOT_BARS,
                                  .id = "files",
                                  .title = "Sizes of the files",
                                  .x_label = "file size up to, KiB",
                                  .y_label = "files",
                                  .touching = 1,
                                  .summary = "Histogram of file sizes in powers of two."}};
    const struct mr_json *bins = mr_view_at(v, 0, "histogram");
    struct mr_series *s = mr_chart_series(&c, "files");
    char path[64], text[32];
    for (unsigned i = 0; bins && i < mr_json_len(bins); i++) {
        snprintf(path, sizeof path, "%u.to_bytes", i);
        double to = mr_json_number(mr_json_at(bins, path));
        snprintf(path, sizeof path, "%u.n", i);
        double n = mr_json_number(mr_json_at(bins, path));
        unsigned at = mr_chart_name(&c, "%s", mr_number_text(to / 1024, text, sizeof text));
        mr_chart_put(&c, s, at, n, 0, 0);
    }
    mr_view_plot(v, &c);
    tell_common_sizes(v, bins);
    double samples = mr_view_number(v, 0, "samples"), seen = mr_view_number(v, 0, "looked_at"),
           drawn = mr_view_number(v, 0, "images_read");
    char all[32];
    if (seen < samples)
        mr_view_finding(v, "%s of the %s files were looked at, chosen at random.",
                        mr_number_text(seen, text, sizeof text),
                        mr_number_text(samples, all, sizeof all));
    if (drawn < samples)
        mr_view_finding(v, "The device was watched while %s of them were read.",
                        mr_number_text(drawn, text, sizeof text));
    show_requests(v);
}
