/* view_checkpoint.c - what training pays for checkpoints. */
#include "section.h"

#include "scale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EVERY 20 /* steps between checkpoints, in the study and in `share` */

/* Seconds that a checkpoint taken that way stopped training; NaN when it is not there. */
static double stall_to(const struct mr_view *v, const char *mode, const char *storage)
{
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        struct mr_checkpoint_point p = mr_checkpoint_point_of(mr_view_point(v, i));
        if (mr_is_text(p.mode, mode) && mr_is_text(p.storage, storage))
            return mr_stall_of_one(&p);
    }
    return NAN;
}

/* The bars are of 20 steps and one checkpoint; the runs that they are computed from may be shorter.
 */
static void checkpoint_title(const struct mr_view *v, char *buf, size_t cap)
{
    double least = INFINITY, most = 0;
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        double steps = mr_view_any(v, i).steps;
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
static const char *way_words(const struct mr_checkpoint_point *p, char *buf, size_t cap)
{
    const char *mode = p->mode ? p->mode : "";
    char fast[64];
    mr_storage_words(p->storage, p->emulated && !p->drain, fast, sizeof fast);
    if (!p->storage)
        snprintf(buf, cap, "%s", mode);
    else if (!p->drain)
        snprintf(buf, cap, "%s: %s", mode, fast);
    else
        snprintf(buf, cap, "%s: %s → %s%s", mode, fast,
                 strcmp(p->drain, "disk") ? p->drain : "this disk",
                 p->emulated ? " (emulated)" : "");
    return buf;
}

/* Seconds of 20 steps and one checkpoint.  Runs have different numbers of both, so how long they
 * took says nothing about one beside another. */
static double with_one(const struct mr_checkpoint_point *p)
{
    return EVERY * p->step_s / (1 - p->share);
}

static void checkpoint_row(struct mr_view *v, const struct mr_checkpoint_point *p)
{
    const double columns[] = {mr_stall_of_one(p), 100 * p->share, p->durable_fast_s,
                              p->durable_slow_s, with_one(p)};
    const char *const storages[] = {p->storage, p->drain};
    char text[64];
    mr_markup_add(v->out, "<tr><td>");
    mr_markup_text(v->out, p->mode);
    for (unsigned k = 0; k < 2; k++) {
        mr_markup_add(v->out, "</td><td class=\"text\">");
        mr_markup_text(v->out, storages[k]
                                   ? mr_storage_words(storages[k], p->emulated, text, sizeof text)
                                   : "-");
    }
    for (unsigned k = 0; k < sizeof columns / sizeof *columns; k++) {
        mr_markup_add(v->out, "</td><td>");
        mr_markup_text(v->out, mr_small_text(columns[k], 0.001, text, sizeof text));
    }
    mr_markup_add(v->out, "</td></tr>");
}

static void show(struct mr_view *v)
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
        struct mr_checkpoint_point p = mr_checkpoint_point_of(mr_view_point(v, i));
        double seconds = EVERY * p.step_s;
        char way[128];
        unsigned at = mr_chart_name(&c, "%s", way_words(&p, way, sizeof way));
        mr_chart_put(&c, steps, at, seconds, 0, 0);
        mr_chart_put(&c, stall, at, with_one(&p) - seconds, 0, 0);
        checkpoint_row(v, &p);
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

/* Runs have different numbers of checkpoints: the figure is of one. */
static double stall_figure(const struct mr_json *point)
{
    struct mr_checkpoint_point p = mr_checkpoint_point_of(point);
    return mr_stall_of_one(&p);
}

static const struct mr_key keys[] = {
    {MR_FIELD(checkpoint_point, mode)},
    {MR_FIELD(checkpoint_point, storage), MR_KEY_STORAGE},
    {MR_FIELD(checkpoint_point, drain), MR_KEY_STORAGE, .before = "then "},
    {0}};

static const struct mr_measure measures[] = {{.id = "checkpoint",
                                              .title = "Checkpoints",
                                              .link = "Checkpoints",
                                              .field = MR_FIELD(checkpoint_point, stall_s),
                                              .figure = stall_figure,
                                              .unit = "s of stall a checkpoint",
                                              .better = MR_LESS,
                                              .least = 0.05,
                                              .keys = keys,
                                              .each = MR_FIELD(checkpoint_point, each_stall_s),
                                              .of = MR_ONE_CHECKPOINT},
                                             {0}};

const struct mr_section mr_section_checkpoint = {
    .title = "Checkpoints",
    .link = "Checkpoints",
    .question = "What does training pay for checkpoints?",
    .study = "About 15% of the run when written directly; a burst buffer made them 2.6 times "
             "cheaper than writing to the HDD.",
    .repeats = {MR_REF_CHIEN, "Figure 9", "what checkpoints cost",
                "millrace train --data DIR --checkpoint FAST --drain SLOW"},
    .emulated = MR_ORIGIN_PREDICTED,
    .show = show,
    .each = MR_FIELD(checkpoint_point, each_stall_s),
    .each_of = MR_ONE_CHECKPOINT,
    .measures = measures,
};
