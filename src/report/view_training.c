/* view_training.c - the experiments about training: checkpoints, phases, and the verdict that comes
 * of it all. */
#include "view_parts.h"

#include "scale.h"
#include "verdict_words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EVERY 20 /* steps between checkpoints, in the study and in `share` */

/* Seconds that a checkpoint taken that way stopped training; NaN when it is not there. */
static double stall_to(const struct mr_view *v, const char *mode, const char *storage)
{
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        const char *m = mr_view_text(v, i, "mode"), *s = mr_view_text(v, i, "storage");
        if (m && s && !strcmp(m, mode) && !strcmp(s, storage))
            return mr_view_stall(v, i);
    }
    return NAN;
}

/* The bars are of 20 steps and one checkpoint; the runs that they are computed from may be shorter.
 */
static void checkpoint_title(const struct mr_view *v, char *buf, size_t cap)
{
    double least = INFINITY, most = 0;
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        double steps = mr_view_number(v, i, "steps");
        least = steps > 0 ? fmin(least, steps) : least;
        most = steps > 0 && isfinite(steps) ? fmax(most, steps) : most;
    }
    if (least == most && most < 1e9)
        snprintf(buf, cap, "%d training steps and one checkpoint, computed from runs of %.0f steps",
                 EVERY, most);
    else if (least < most && most < 1e9)
        snprintf(buf, cap,
                 "%d training steps and one checkpoint, computed from runs of %.0f to %.0f steps",
                 EVERY, least, most);
    else
        snprintf(buf, cap, "%d training steps and one checkpoint, computed from the runs", EVERY);
}

/* "burst: optane → hdd (emulated)" */
static const char *way_words(const struct mr_view *v, unsigned i, char *buf, size_t cap)
{
    const char *mode = mr_view_text(v, i, "mode"), *to = mr_view_text(v, i, "storage"),
               *drain = mr_view_text(v, i, "drain");
    char fast[64];
    mr_storage_words(to, mr_view_flag(v, i, "emulated") && !drain, fast, sizeof fast);
    if (!to)
        snprintf(buf, cap, "%s", mode ? mode : "");
    else if (!drain)
        snprintf(buf, cap, "%s: %s", mode ? mode : "", fast);
    else
        snprintf(buf, cap, "%s: %s → %s%s", mode ? mode : "", fast,
                 strcmp(drain, "disk") ? drain : "this disk",
                 mr_view_flag(v, i, "emulated") ? " (emulated)" : "");
    return buf;
}

/* Seconds of 20 steps and one checkpoint.  Runs have different numbers of both, so how long they
 * took says nothing about one beside another. */
static double with_one(const struct mr_view *v, unsigned i)
{
    double steps = EVERY * mr_view_number(v, i, "step_s"), share = mr_view_number(v, i, "share");
    return steps / (1 - share);
}

static void checkpoint_row(struct mr_view *v, unsigned i)
{
    const char *to = mr_view_text(v, i, "storage"), *drain = mr_view_text(v, i, "drain");
    const double columns[] = {mr_view_stall(v, i), 100 * mr_view_number(v, i, "share"),
                              mr_view_number(v, i, "durable_fast_s"),
                              mr_view_number(v, i, "durable_slow_s"), with_one(v, i)};
    int emulated = mr_view_flag(v, i, "emulated");
    char text[64];
    mr_markup_add(v->out, "<tr><td>");
    mr_markup_text(v->out, mr_view_text(v, i, "mode"));
    mr_markup_add(v->out, "</td><td class=\"text\">");
    mr_markup_text(v->out, to ? mr_storage_words(to, emulated, text, sizeof text) : "-");
    mr_markup_add(v->out, "</td><td class=\"text\">");
    mr_markup_text(v->out, drain ? mr_storage_words(drain, emulated, text, sizeof text) : "-");
    for (unsigned k = 0; k < sizeof columns / sizeof *columns; k++) {
        mr_markup_add(v->out, "</td><td>");
        mr_markup_text(v->out, mr_small_text(columns[k], 0.001, text, sizeof text));
    }
    mr_markup_add(v->out, "</td></tr>");
}

void mr_show_checkpoint(struct mr_view *v)
{
    char title[128];
    checkpoint_title(v, title, sizeof title);
    struct mr_chart c = {.plot = {.kind = MR_PLOT_ROWS,
                                  .id = "checkpoint",
                                  .title = title,
                                  .x_label = "how checkpoints are taken",
                                  .y_label = "seconds",
                                  .summary = "Stacked bars: time of the steps, and time that "
                                             "training stood still for checkpoints."}};
    struct mr_series *steps = mr_chart_series(&c, "training"),
                     *stall = mr_chart_series(&c, "standing still for checkpoints");
    mr_markup_add(
        v->out,
        "<div class=\"scroll\"><table><thead><tr><th>mode</th><th class=\"text\">to</th>"
        "<th class=\"text\">then to</th><th>stall of one, s</th><th>share of the run, %%</th>"
        "<th>durable on the fast tier, s</th><th>on the slow tier, s</th>"
        "<th>%d steps and one checkpoint, s</th></tr></thead><tbody>",
        EVERY);
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        double seconds = EVERY * mr_view_number(v, i, "step_s");
        char way[128];
        unsigned at = mr_chart_name(&c, "%s", way_words(v, i, way, sizeof way));
        mr_chart_put(&c, steps, at, seconds, 0, 0);
        mr_chart_put(&c, stall, at, with_one(v, i) - seconds, 0, 0);
        checkpoint_row(v, i);
    }
    mr_markup_add(v->out, "</tbody></table></div>");
    mr_view_plot(v, &c);
    double direct = stall_to(v, "sync", "hdd"), burst = stall_to(v, "burst", "optane"),
           lazy = stall_to(v, "lazy", "optane");
    if (direct > 0 && burst > 0)
        mr_view_finding(v,
                        "A checkpoint to the emulated hard disk stops training for %.2f s, through "
                        "a burst buffer for %.2f s: %.1f times less.",
                        direct, burst, direct / burst);
    if (isfinite(lazy))
        mr_view_finding(v, "Lazily, in the background, it stops training for %.2f ms.", 1e3 * lazy);
}

static void show_timeline(struct mr_view *v, unsigned i)
{
    const struct mr_json *spans = mr_view_at(v, i, "spans");
    const char *shuffle = mr_view_text(v, i, "shuffle");
    char id[32], title[128], name[64], path[32];
    snprintf(id, sizeof id, "phases-%u", i + 1);
    snprintf(title, sizeof title, "Phases on %s, shuffle %s",
             mr_view_storage(v, i, name, sizeof name), shuffle ? shuffle : "");
    struct mr_chart c = {.plot = {.kind = MR_PLOT_TIMELINE,
                                  .id = id,
                                  .title = title,
                                  .x_label = "seconds",
                                  .y_label = "",
                                  .summary = "When each phase was under way; overlapping spans of "
                                             "one phase are merged."}};
    for (unsigned k = 0; spans && k < mr_json_len(spans); k++) {
        snprintf(path, sizeof path, "%u", k);
        const struct mr_json *span = mr_json_at(spans, path);
        const char *phase = mr_json_text(mr_json_at(span, "0"));
        struct mr_series *s = mr_chart_series(&c, "%s", phase ? phase : "");
        mr_chart_add(&c, s,
                     (struct mr_point){0, mr_chart_name(&c, "%s", phase ? phase : ""),
                                       mr_item(span, 1), mr_item(span, 2)});
    }
    mr_view_plot(v, &c);
}

/* Reading as a share of training with that shuffling; NaN when there is none. */
static double read_share(const struct mr_view *v, const char *shuffle)
{
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        const char *s = mr_view_text(v, i, "shuffle");
        if (s && !strcmp(s, shuffle))
            return mr_view_number(v, i, "read_share_of_train");
    }
    return NAN;
}

void mr_show_phases(struct mr_view *v)
{
    char text[32], path[64];
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        const struct mr_json *phases = mr_view_at(v, i, "phases");
        const char *shuffle = mr_view_text(v, i, "shuffle");
        show_timeline(v, i);
        mr_markup_add(v->out, "<div class=\"scroll\"><table><thead><tr><th>phase</th><th>merged "
                              "s</th><th>summed s</th><th>MB/s</th><th>hidden behind training "
                              "%%</th></tr></thead><tbody>");
        for (unsigned k = 0; phases && k < mr_json_len(phases); k++) {
            static const char *const columns[] = {"union_s", "sum_s", "mb_per_s", "hidden_share"};
            snprintf(path, sizeof path, "%u.name", k);
            mr_markup_add(v->out, "<tr><td>");
            mr_markup_text(v->out, mr_json_text(mr_json_at(phases, path)));
            for (unsigned m = 0; m < 4; m++) {
                snprintf(path, sizeof path, "%u.%s", k, columns[m]);
                double x = mr_json_number(mr_json_at(phases, path));
                mr_markup_add(v->out, "</td><td>%s",
                              mr_number_text(m == 3 ? 100 * x : x, text, sizeof text));
            }
            mr_markup_add(v->out, "</td></tr>");
        }
        mr_markup_add(v->out, "</tbody></table></div>");
        double share = mr_view_number(v, i, "read_share_of_train");
        if (isfinite(share))
            mr_view_finding(v, "Reading (shuffle %s) takes %.1f%% of the training time.",
                            shuffle ? shuffle : "", 100 * share);
    }
    double times = read_share(v, "global") / read_share(v, "none");
    if (isfinite(times) && times > 0)
        mr_view_finding(v, "Global shuffling makes reading take %.2f times as long.",
                        fmin(times, 1e6));
}

static void show_split(struct mr_view *v)
{
    const char *device = mr_view_text(v, 0, "device");
    char title[128];
    snprintf(title, sizeof title, "What a step consists of when nothing overlaps%s%s",
             device ? ", with " : "", device ? device : "");
    struct mr_chart c = {.plot = {.kind = MR_PLOT_ROWS,
                                  .id = "verdict-split",
                                  .title = title,
                                  .x_label = "",
                                  .y_label = "seconds",
                                  .summary = "One stacked bar: computing, decoding, fetching, "
                                             "hand-over; below it, what input takes as it is."}};
    static const char *const parts[][2] = {{"compute_s", "compute"},
                                           {"decode_s", "decode"},
                                           {"fetch_s", "fetch"},
                                           {"hand_over_s", "hand-over"}};
    unsigned at = mr_chart_name(&c, "a step");
    for (unsigned k = 0; k < 4; k++) {
        double x = mr_view_number(v, 0, parts[k][0]);
        if (isfinite(x))
            mr_chart_put(&c, mr_chart_series(&c, "%s", parts[k][1]), at, fmax(x, 0), 0, 0);
    }
    double whole = mr_view_number(v, 0, "step_s");
    if (isfinite(whole))
        mr_chart_put(&c, mr_chart_series(&c, "input, measured as a whole"),
                     mr_chart_name(&c, "its input, overlapped"), whole, 0, 0);
    mr_view_plot(v, &c);
}

/* The runs that take a step apart. */
static void show_rates(struct mr_view *v)
{
    static const char *const rows[][2] = {
        {"rates.synthetic", "training without input (the accelerator is emulated)"},
        {"rates.one_sample_read", "one cached image again and again, read"},
        {"rates.one_sample_decoded", "one cached image again and again, read and decoded"},
        {"rates.warm", "all images, cached, decoded"},
        {"rates.cold_read", "all images, cold, not decoded, as many reads at once as help"},
        {"rates.cold", "all images, cold, decoded, as it is"},
    };
    char text[32];
    if (!isfinite(mr_view_number(v, 0, "rates.warm")))
        return;
    mr_markup_add(v->out, "<h3>The runs that this follows from</h3><div class=\"scroll\"><table>"
                          "<thead><tr><th>run</th><th>images/s</th></tr></thead><tbody>");
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        double x = mr_view_number(v, 0, rows[i][0]);
        if (isfinite(x))
            mr_markup_add(v->out, "<tr><td>%s</td><td>%s</td></tr>", rows[i][1],
                          mr_number_text(x, text, sizeof text));
    }
    mr_markup_add(v->out, "</tbody></table></div>");
}

/* The rates that the bounds of the sizing rest on. */
static void tell_bounds(struct mr_view *v)
{
    double files = mr_view_number(v, 0, "storage_files_per_s"),
           mb = mr_view_number(v, 0, "storage_mb_per_s"),
           images = mr_view_number(v, 0, "cores_images_per_s"),
           cores = mr_view_number(v, 0, "cores");
    char a[32], b[32], c[32], d[32];
    if (!isfinite(files + mb + images + cores))
        return;
    mr_markup_add(
        v->out,
        "<p>The storage delivered %s files/s (%s MB/s) without decoding; %s core%s decode "
        "%s images/s.</p>",
        mr_number_text(files, a, sizeof a), mr_number_text(mb, b, sizeof b),
        mr_number_text(cores, c, sizeof c), cores == 1 ? "" : "s",
        mr_number_text(images, d, sizeof d));
}

static void show_sizing(struct mr_view *v)
{
    const struct mr_json *list = mr_view_at(v, 0, "sizing");
    static const char *const columns[] = {"images_per_s_each", "by_storage", "by_cores",
                                          "by_measured", "feeds"};
    char path[64], text[32];
    if (!list || !mr_json_len(list))
        return;
    mr_markup_add(v->out, "<h3>How many accelerators this machine would feed</h3>");
    tell_bounds(v);
    mr_markup_add(v->out,
                  "<div class=\"scroll\"><table><thead><tr><th>accelerator</th><th>images/s "
                  "each</th><th>storage feeds</th><th>cores feed</th><th>the pipeline "
                  "fed, measured</th><th>whole ones</th></tr></thead><tbody>");
    for (unsigned i = 0; i < mr_json_len(list); i++) {
        snprintf(path, sizeof path, "%u.accelerator", i);
        mr_markup_add(v->out, "<tr><td>");
        mr_markup_text(v->out, mr_json_text(mr_json_at(list, path)));
        for (unsigned k = 0; k < 5; k++) {
            snprintf(path, sizeof path, "%u.%s", i, columns[k]);
            mr_markup_add(
                v->out, "</td><td>%s",
                mr_number_text(mr_json_number(mr_json_at(list, path)), text, sizeof text));
        }
        mr_markup_add(v->out, "</td></tr>");
    }
    mr_markup_add(v->out, "</tbody></table></div>");
}

/* [[x, n], ...] for one accelerator after the other: {accelerator, curve}. */
static void show_curve(struct mr_view *v, const char *field, const char *here, const char *id,
                       const char *title, const char *x_label)
{
    const struct mr_json *list = mr_view_at(v, 0, field);
    struct mr_chart c = {
        .plot = {.kind = MR_PLOT_LINES,
                 .id = id,
                 .title = title,
                 .x_label = x_label,
                 .y_label = "accelerators fed",
                 .summary =
                     "Lines of the number of accelerators that are fed, one for each kind."}};
    char path[64];
    for (unsigned i = 0; list && i < mr_json_len(list); i++) {
        snprintf(path, sizeof path, "%u.accelerator", i);
        const char *name = mr_json_text(mr_json_at(list, path));
        struct mr_series *s = mr_chart_series(&c, "%s", name ? name : "");
        snprintf(path, sizeof path, "%u.curve", i);
        const struct mr_json *curve = mr_json_at(list, path);
        for (unsigned k = 0; curve && k < mr_json_len(curve); k++) {
            snprintf(path, sizeof path, "%u", k);
            const struct mr_json *p = mr_json_at(curve, path);
            mr_chart_add(&c, s, (struct mr_point){mr_item(p, 0), mr_item(p, 1), 0, 0});
        }
    }
    if (mr_view_number(v, 0, here) > 0) {
        c.plot.mark = "this machine";
        c.plot.mark_x = mr_view_number(v, 0, here);
    }
    mr_view_plot(v, &c);
}

/* One piece of advice in words, and what came of it. */
static void show_advice(struct mr_view *v, const struct mr_json *advice)
{
    const char *text = mr_json_text(mr_json_at(advice, "text"));
    double predicted = mr_json_number(mr_json_at(advice, "predicted_images_per_s"));
    double measured = mr_json_number(mr_json_at(advice, "measured_images_per_s"));
    double now = mr_json_number(mr_json_at(advice, "now_images_per_s"));
    double model = mr_json_number(mr_json_at(advice, "now_predicted_images_per_s"));
    const char *tried = mr_advice_tried(advice);
    if (text)
        mr_view_finding(v, "%s", text);
    if (isfinite(now) && isfinite(model))
        mr_view_finding(v, "Now: %.0f images/s measured, %.0f by the model.", now, model);
    if (tried)
        mr_view_finding(v,
                        "Predicted for %s: %.0f images/s, measured %.0f: the prediction was off by "
                        "%.1f%%.",
                        tried, predicted, measured, 100 * fabs(predicted / measured - 1));
}

/* Predicted beside measured, as far as a prediction was measured. */
static void show_gains(struct mr_view *v)
{
    static const struct {
        const char *name, *predicted, *measured;
    } rows[] = {{"as it is", NULL, "rates.cold"},
                {"configuration", "recommendation.predicted_images_per_s",
                 "recommendation.measured_images_per_s"},
                {"and smaller images", "smaller_images.predicted_images_per_s",
                 "smaller_images.measured_images_per_s"}};
    struct mr_chart c = {.plot = {.kind = MR_PLOT_BARS,
                                  .id = "verdict-gains",
                                  .title = "What was tried, predicted and then measured",
                                  .x_label = "what changes",
                                  .y_label = "images/s",
                                  .summary = "A bar predicted beside one measured, for each "
                                             "change."}};
    for (unsigned i = 1; i < sizeof rows / sizeof *rows; i++)
        if (isfinite(mr_view_number(v, 0, rows[i].predicted) +
                     mr_view_number(v, 0, rows[i].measured)))
            mr_chart_series(&c, "predicted"); /* stands first, though the first row has none */
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        double measured = mr_view_number(v, 0, rows[i].measured);
        double predicted = rows[i].predicted ? mr_view_number(v, 0, rows[i].predicted) : NAN;
        if (!isfinite(measured))
            continue;
        unsigned at = mr_chart_name(&c, "%s", rows[i].name);
        if (isfinite(predicted))
            mr_chart_put(&c, mr_chart_series(&c, "predicted"), at, predicted, 0, 0);
        mr_chart_put(&c, mr_chart_series(&c, "measured"), at, measured, 0, 0);
    }
    mr_view_plot(v, &c);
}

void mr_show_verdict(struct mr_view *v)
{
    show_gains(v);
    show_split(v);
    show_rates(v);
    if (mr_verdict_is_old(v))
        mr_view_finding(v, MR_OLD_ADVICE);
    show_advice(v, mr_verdict_advice(v, "recommendation"));
    show_advice(v, mr_verdict_advice(v, "smaller_images"));
    show_sizing(v);
    show_curve(v, "by_bandwidth", "storage_mb_per_s", "sizing-storage",
               "Accelerators fed, by storage bandwidth", "MB/s from storage");
    show_curve(v, "by_cores", "cores", "sizing-cores", "Accelerators fed, by cores", "cores");
}
