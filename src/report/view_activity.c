/* view_activity.c - devices over time: what was read and written in each tenth of a second.
 *
 * The plots with and without prefetch have the same scale, so that they can be laid side by side;
 * the one with checkpoints, which moves a hundred times as much, has its own. */
#include "view_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct arrays {
    const struct mr_json *time, *read, *write;
    unsigned n;
};

static struct arrays arrays_of(const struct mr_view *v, unsigned i)
{
    struct arrays a = {mr_view_at(v, i, "time_s"), mr_view_at(v, i, "read_mb_per_s"),
                       mr_view_at(v, i, "write_mb_per_s"), 0};
    if (mr_json_is_array(a.time) && mr_json_is_array(a.read) && mr_json_is_array(a.write))
        a.n = (unsigned)mr_json_len(a.time);
    return a;
}

static int is_about_prefetch(const struct mr_view *v, unsigned i)
{
    const char *variant = mr_view_text(v, i, "variant");
    return variant && !strncmp(variant, "prefetch ", 9);
}

/* The largest rate of the plots that share a scale. */
static double common_height(const struct mr_view *v)
{
    double most = 0;
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        struct arrays a = arrays_of(v, i);
        for (unsigned k = 0; is_about_prefetch(v, i) && k < a.n; k++) {
            double sum = mr_item(a.read, k) + mr_item(a.write, k);
            most = isfinite(sum) ? fmax(most, sum) : most;
        }
    }
    return most;
}

/* In how many of the samples something was read, and how much at most. */
static void tell_bursts(struct mr_view *v, unsigned i)
{
    struct arrays a = arrays_of(v, i);
    double begin = mr_view_number(v, i, "begin_s"), most = 0;
    unsigned busy = 0, n = 0;
    for (unsigned k = 0; k < a.n; k++) {
        double at = mr_item(a.time, k), rate = mr_item(a.read, k);
        if (!isfinite(rate) || at < begin)
            continue;
        n++;
        busy += rate > 0;
        most = fmax(most, rate);
    }
    if (n)
        mr_view_finding(v, "With %s the device read in %.0f%% of the samples, at most %.0f MB/s.",
                        mr_view_text(v, i, "variant"), 100.0 * busy / n, fmin(most, 1e9));
}

static void show_one(struct mr_view *v, unsigned i, double height)
{
    struct arrays a = arrays_of(v, i);
    char id[32], title[256];
    const char *variant = mr_view_text(v, i, "variant"),
               *device = mr_view_text(v, i, "block_device");
    snprintf(id, sizeof id, "activity-%u", i + 1);
    snprintf(title, sizeof title, "Activity of %s: %s",
             device ? device : "all disks (which one holds the data is not known)",
             variant ? variant : "");
    struct mr_chart c = {.plot = {.kind = MR_PLOT_AREAS,
                                  .id = id,
                                  .title = title,
                                  .x_label = "seconds",
                                  .y_label = "MB/s",
                                  .y_reaches = is_about_prefetch(v, i) ? height : 0,
                                  .summary = "What was read and written over time, stacked."}};
    struct mr_series *reads = mr_chart_series(&c, "read"), *writes = mr_chart_series(&c, "written");
    for (unsigned k = 0; k < a.n; k++) {
        double at = mr_item(a.time, k);
        mr_chart_add(&c, reads, (struct mr_point){at, mr_item(a.read, k), 0, 0});
        mr_chart_add(&c, writes, (struct mr_point){at, mr_item(a.write, k), 0, 0});
    }
    double end = mr_view_number(v, i, "end_of_run_s");
    if (isfinite(end)) {
        c.plot.mark = "end of training";
        c.plot.mark_x = end;
    }
    mr_view_plot(v, &c);
    if (is_about_prefetch(v, i))
        tell_bursts(v, i);
    if (isfinite(end))
        mr_view_finding(
            v,
            "With checkpoints training ended at %.1f s; what follows is the drain in the "
            "background. Before an older checkpoint is removed the newer one is read "
            "back and verified: the peak of reading at the end of a drain.",
            fmin(end, 1e9));
}

void mr_show_activity(struct mr_view *v)
{
    double height = common_height(v);
    for (unsigned i = 0; i < mr_view_n(v); i++)
        show_one(v, i, height);
}
