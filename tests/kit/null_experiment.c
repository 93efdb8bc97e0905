/* null_experiment.c - an experiment that measures nothing much: the example of docs/extending.md.
 */
#include "null_experiment.h"

#include "lab.h"
#include "section.h"

#include <errno.h>

/* ---- src/result/points.h: what a point holds ---- */

#define MR_FIELDS_null_point(F) F(COUNT, loops) F(REAL, ns_per_loop) F(LIST, each_ns)
MR_RECORD(null_point)

/* ---- src/study/exp_null.c: how it is run ---- */

static double time_loops(unsigned n)
{
    double start = mr_lab_now();
    for (volatile unsigned i = 0; i < n; i++) {
    }
    return (mr_lab_now() - start) / n * 1e9;
}

static int run(struct mr_lab *lab)
{
    for (unsigned loops = 1000; loops <= 100000; loops *= 10) {
        double ns[3];
        mr_lab_say(lab, "%u loops", loops);
        for (unsigned i = 0; i < 3; i++)
            ns[i] = time_loops(loops);
        struct mr_null_point p = {
            .loops = loops, .ns_per_loop = ns[1], .each_ns = mr_number_list(ns, 3)};
        mr_lab_point(lab, mr_null_point_json(&p));
    }
    return mr_lab_stopped(lab) ? -ECANCELED : 0;
}

const struct mr_experiment mr_experiment_null = {.quick_s = 1, .full_s = 1, .run = run};

/* ---- src/report/view_null.c: how it is shown and compared ---- */

static void show(struct mr_view *v)
{
    struct mr_chart c = {.plot = {.kind = MR_PLOT_LINES,
                                  .id = "null",
                                  .title = "Time of an empty loop",
                                  .x_label = "loops",
                                  .y_label = "ns a loop",
                                  .log_x = 1,
                                  .summary = "A line of the time of a loop over their number."}};
    struct mr_series *line = mr_chart_series(&c, "this machine");
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        struct mr_null_point p = mr_null_point_of(mr_view_point(v, i));
        mr_chart_add(&c, line, (struct mr_point){p.loops, p.ns_per_loop, 0, 0});
        mr_view_finding(v, "%.0f loops: %.2f ns each.", p.loops, p.ns_per_loop);
    }
    mr_view_plot(v, &c);
}

static const struct mr_key keys[] = {{MR_FIELD(null_point, loops), .after = " loops"}, {0}};

static const struct mr_measure measures[] = {{.id = "null",
                                              .title = "Empty loops",
                                              .link = "Loops",
                                              .field = MR_FIELD(null_point, ns_per_loop),
                                              .unit = "ns a loop",
                                              .better = MR_LESS,
                                              .keys = keys,
                                              .each = MR_FIELD(null_point, each_ns)},
                                             {0}};

const struct mr_section mr_section_null = {
    .title = "Empty loops",
    .link = "Loops",
    .question = "What does a loop cost that does nothing?",
    .study = "No study has asked.",
    .emulated = MR_ORIGIN_PREDICTED,
    .show = show,
    .each = MR_FIELD(null_point, each_ns),
    .measures = measures,
};
