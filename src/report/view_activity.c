/* view_activity.c - devices over time: what was read and written in each tenth of a second.
 *
 * The plots with and without prefetch have the same scale, so that they can be laid side by side;
 * the one with checkpoints, which moves a hundred times as much, has its own. */
#include "section.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Samples that point i has; 0 when a series is missing. */
static unsigned n_samples(const struct mr_activity_point *p)
{
    return p->time_s && p->read_mb_per_s && p->write_mb_per_s ? (unsigned)mr_json_len(p->time_s)
                                                              : 0;
}

static int is_about_prefetch(const struct mr_activity_point *p)
{
    return p->variant && !strncmp(p->variant, "prefetch ", 9);
}

/* The largest rate of the plots that share a scale. */
static double common_height(const struct mr_view *v)
{
    double most = 0;
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        struct mr_activity_point p = mr_activity_point_of(mr_view_point(v, i));
        for (unsigned k = 0; is_about_prefetch(&p) && k < n_samples(&p); k++) {
            double sum = mr_item(p.read_mb_per_s, k) + mr_item(p.write_mb_per_s, k);
            most = isfinite(sum) ? fmax(most, sum) : most;
        }
    }
    return most;
}

/* In how many of the samples something was read, and how much at most. */
static void tell_bursts(struct mr_view *v, const struct mr_activity_point *p)
{
    double most = 0;
    unsigned busy = 0, n = 0;
    for (unsigned k = 0; k < n_samples(p); k++) {
        double at = mr_item(p->time_s, k), rate = mr_item(p->read_mb_per_s, k);
        if (!isfinite(rate) || at < p->begin_s)
            continue;
        n++;
        busy += rate > 0;
        most = fmax(most, rate);
    }
    if (n)
        mr_view_finding(v, "With %s the device read in %.0f%% of the samples, at most %.0f MB/s.",
                        p->variant, 100.0 * busy / n, fmin(most, 1e9));
}

static void show_one(struct mr_view *v, unsigned i, double height)
{
    struct mr_activity_point p = mr_activity_point_of(mr_view_point(v, i));
    char id[32], title[256];
    snprintf(id, sizeof id, "activity-%u", i + 1);
    snprintf(title, sizeof title, "Activity of %s: %s",
             p.block_device ? p.block_device : "all disks (which one holds the data is not known)",
             p.variant ? p.variant : "");
    struct mr_chart c = {.plot = {.kind = MR_PLOT_AREAS,
                                  .id = id,
                                  .title = title,
                                  .x_label = "seconds",
                                  .y_label = "MB/s",
                                  .y_reaches = is_about_prefetch(&p) ? height : 0,
                                  .summary = "What was read and written over time, stacked."}};
    struct mr_series *reads = mr_chart_series(&c, "read"), *writes = mr_chart_series(&c, "written");
    for (unsigned k = 0; k < n_samples(&p); k++) {
        double at = mr_item(p.time_s, k);
        mr_chart_add(&c, reads, (struct mr_point){at, mr_item(p.read_mb_per_s, k), 0, 0});
        mr_chart_add(&c, writes, (struct mr_point){at, mr_item(p.write_mb_per_s, k), 0, 0});
    }
    double end = p.end_of_run_s;
    if (isfinite(end)) {
        c.plot.mark = "end of training";
        c.plot.mark_x = end;
    }
    mr_view_plot(v, &c);
    if (is_about_prefetch(&p))
        tell_bursts(v, &p);
    if (isfinite(end))
        mr_view_finding(
            v,
            "With checkpoints training ended at %.1f s; what follows is the drain in the "
            "background. Before an older checkpoint is removed the newer one is read "
            "back and verified: the peak of reading at the end of a drain.",
            fmin(end, 1e9));
}

static void show(struct mr_view *v)
{
    double height = common_height(v);
    for (unsigned i = 0; i < mr_view_n(v); i++)
        show_one(v, i, height);
}

static const struct mr_key keys[] = {
    {MR_FIELD(activity_point, variant)}, {MR_FIELD(activity_point, storage), MR_KEY_STORAGE}, {0}};

static const struct mr_measure measures[] = {{.id = "activity",
                                              .title = "Activity: read",
                                              .link = "Activity",
                                              .field = MR_FIELD(activity_point, read_mb_per_s),
                                              .unit = "MB/s on average",
                                              .better = MR_NEITHER,
                                              .least = 1,
                                              .keys = keys,
                                              .each = MR_FIELD(activity_point, each_read_mb_per_s),
                                              .of = MR_ONE_STEP},
                                             {.id = "activity-written",
                                              .title = "Activity: written",
                                              .field = MR_FIELD(activity_point, write_mb_per_s),
                                              .unit = "MB/s on average",
                                              .better = MR_NEITHER,
                                              .least = 1,
                                              .keys = keys,
                                              .each = MR_FIELD(activity_point, each_write_mb_per_s),
                                              .of = MR_ONE_STEP},
                                             {0}};

const struct mr_section mr_section_activity = {
    .title = "Activity over time",
    .link = "Activity",
    .question = "When is the device busy?",
    .study = "Reading from the HDD came at intervals without prefetch; with it these were closer "
             "together and more was read in each. From the SSD the difference was small. Draining "
             "the burst buffer went on after the end of training.",
    .repeats = {MR_REF_CHIEN, "Figures 8 and 10", "the device over time",
                "millrace watch -- millrace train --data DIR --cold"},
    .emulated = MR_ORIGIN_PREDICTED,
    .show = show,
    .each = MR_FIELD(activity_point, each_read_mb_per_s),
    .each_of = MR_ONE_STEP,
    .measures = measures,
};
