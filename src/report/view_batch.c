/* view_batch.c - what an image costs in batches of different sizes. */
#include "section.h"

#include <math.h>

static void show(struct mr_view *v)
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
        struct mr_batch_point p = mr_batch_point_of(mr_view_point(v, i));
        double lo, hi;
        mr_list_range(p.each_s_per_image, &lo, &hi);
        mr_chart_add(&c, mr_chart_series(&c, "%s", p.device ? p.device : ""),
                     (struct mr_point){p.batch, 1e3 * p.s_per_image, 1e3 * lo, 1e3 * hi});
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

static const struct mr_key keys[] = {
    {MR_FIELD(batch_point, device)}, {MR_FIELD(batch_point, batch), .before = "batch "}, {0}};

static const struct mr_measure measures[] = {{.id = "batch",
                                              .title = "Batch size",
                                              .link = "Batch",
                                              .field = MR_FIELD(batch_point, s_per_image),
                                              .unit = "s an image",
                                              .better = MR_LESS,
                                              .keys = keys,
                                              .each = MR_FIELD(batch_point, each_s_per_image),
                                              .of = MR_ONE_STEP},
                                             {0}};

const struct mr_section mr_section_batch = {
    .title = "Batch size",
    .link = "Batch",
    .question = "What does an image cost in batches of different sizes?",
    .study = "Larger batches cost less time an image.",
    .repeats = {MR_REF_CHIEN, "Figure 7", "training over batch sizes",
                "millrace train --synthetic --batch 128"},
    .emulated = MR_ORIGIN_PREDICTED,
    .show = show,
    .each = MR_FIELD(batch_point, each_s_per_image),
    .each_of = MR_ONE_STEP,
    .measures = measures,
};
