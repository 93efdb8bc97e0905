/* view_overlap.c - training with input: a step with prefetch, without, and without input. */
#include "section.h"

#include <math.h>
#include <stdio.h>

static void show(struct mr_view *v)
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
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        struct mr_overlap_point p = mr_overlap_point_of(mr_view_point(v, i));
        if (p.synthetic)
            floor_s = p.step_s;
    }
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        struct mr_overlap_point p = mr_overlap_point_of(mr_view_point(v, i));
        double longer = p.step_s / floor_s, lo, hi;
        if (p.synthetic || !isfinite(p.prefetch) || !isfinite(p.threads))
            continue;
        mr_view_storage(v, i, name, sizeof name);
        unsigned at = mr_chart_name(&c, "%s, %.0f", name, p.threads);
        mr_list_range(p.each_step_s, &lo, &hi);
        mr_chart_put(&c, mr_chart_series(&c, "prefetch %.0f", p.prefetch), at, p.step_s, lo, hi);
        if (p.prefetch > 0 && longer > worst)
            worst = longer;
        if (p.prefetch == 0 && longer > without) {
            without = longer;
            snprintf(slowest, sizeof slowest, "%s, %.0f thread%s", name, p.threads,
                     p.threads == 1 ? "" : "s");
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

static const struct mr_key keys[] = {
    {MR_FIELD(overlap_point, storage), MR_KEY_STORAGE},
    {MR_FIELD(overlap_point, prefetch), .before = "prefetch "},
    {MR_FIELD(overlap_point, threads), .after = " thread", .plural = 1},
    {MR_FIELD(overlap_point, synthetic), .before = "no input"},
    {0}};

static const struct mr_measure measures[] = {{.id = "overlap",
                                              .title = "Training with input",
                                              .link = "Overlap",
                                              .field = MR_FIELD(overlap_point, step_s),
                                              .unit = "s a step",
                                              .better = MR_LESS,
                                              .keys = keys,
                                              .each = MR_FIELD(overlap_point, each_step_s),
                                              .of = MR_ONE_STEP},
                                             {0}};

const struct mr_section mr_section_overlap = {
    .title = "Training with input",
    .link = "Overlap",
    .question = "Does training wait for input?",
    .study = "With one batch of prefetch the run time is the same on every storage with any number "
             "of threads; without, the cost of input appears and shrinks with more threads.",
    .repeats = {MR_REF_CHIEN, "Figure 6", "training with and without prefetch",
                "millrace train --data DIR --device emulated:0.2 --prefetch 0 (and 1)"},
    .emulated = MR_ORIGIN_PREDICTED,
    .show = show,
    .each = MR_FIELD(overlap_point, each_step_s),
    .each_of = MR_ONE_STEP,
    .measures = measures,
};
