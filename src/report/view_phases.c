/* view_phases.c - phases as merged intervals, and what of them training hides. */
#include "section.h"

#include "scale.h"

#include <math.h>
#include <stdio.h>

static void show_timeline(struct mr_view *v, unsigned i)
{
    struct mr_phases_point p = mr_phases_point_of(mr_view_point(v, i));
    char id[32], title[128], name[64];
    snprintf(id, sizeof id, "phases-%u", i + 1);
    snprintf(title, sizeof title, "Phases on %s, shuffle %s",
             mr_view_storage(v, i, name, sizeof name), p.shuffle ? p.shuffle : "");
    struct mr_chart c = {.plot = {.kind = MR_PLOT_TIMELINE,
                                  .id = id,
                                  .title = title,
                                  .x_label = "seconds",
                                  .y_label = "",
                                  .summary = "When each phase was under way; overlapping spans of "
                                             "one phase are merged."}};
    for (unsigned k = 0; p.spans && k < mr_json_len(p.spans); k++) {
        const struct mr_json *span = mr_json_item(p.spans, k);
        const char *phase = mr_json_text(mr_json_item(span, 0));
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
        struct mr_phases_point p = mr_phases_point_of(mr_view_point(v, i));
        if (mr_is_text(p.shuffle, shuffle))
            return p.read_share_of_train;
    }
    return NAN;
}

static void show_phases(struct mr_view *v, const struct mr_json *phases)
{
    char text[32];
    mr_markup_add(v->out, "<div class=\"scroll\"><table><thead><tr><th>phase</th><th>merged "
                          "s</th><th>summed s</th><th>MB/s</th><th>hidden behind training "
                          "%%</th></tr></thead><tbody>");
    for (unsigned k = 0; phases && k < mr_json_len(phases); k++) {
        struct mr_phase_times t = mr_phase_times_of(mr_json_item(phases, k));
        const double columns[] = {t.union_s, t.sum_s, t.mb_per_s, 100 * t.hidden_share};
        mr_markup_add(v->out, "<tr><td>");
        mr_markup_text(v->out, t.name);
        for (unsigned m = 0; m < sizeof columns / sizeof *columns; m++)
            mr_markup_add(v->out, "</td><td>%s", mr_number_text(columns[m], text, sizeof text));
        mr_markup_add(v->out, "</td></tr>");
    }
    mr_markup_add(v->out, "</tbody></table></div>");
}

static void show(struct mr_view *v)
{
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        struct mr_phases_point p = mr_phases_point_of(mr_view_point(v, i));
        show_timeline(v, i);
        show_phases(v, p.phases);
        if (isfinite(p.read_share_of_train))
            mr_view_finding(v, "Reading (shuffle %s) takes %.1f%% of the training time.",
                            p.shuffle ? p.shuffle : "", 100 * p.read_share_of_train);
    }
    double times = read_share(v, "global") / read_share(v, "none");
    if (isfinite(times) && times > 0)
        mr_view_finding(v, "Global shuffling makes reading take %.2f times as long.",
                        fmin(times, 1e6));
}

static const struct mr_key keys[] = {{MR_FIELD(phases_point, storage), MR_KEY_STORAGE},
                                     {MR_FIELD(phases_point, shuffle), .before = "shuffle "},
                                     {0}};

static const struct mr_measure measures[] = {{.id = "phases",
                                              .title = "Phases",
                                              .link = "Phases",
                                              .field = MR_FIELD(phases_point, read_share_of_train),
                                              .unit = "reading / training",
                                              .better = MR_LESS,
                                              .keys = keys,
                                              .each = MR_FIELD(phases_point, each_read_share),
                                              .of = MR_ONE_STEP},
                                             {0}};

const struct mr_section mr_section_phases = {
    .title = "Phases",
    .link = "Phases",
    .question = "How much of reading is hidden behind training?",
    .study = "Reading took 1.4 to 15% of the training time on 64 to 1,024 nodes; global shuffling "
             "made it 2.1 to 2.5 times as long on up to 512 nodes, and on 1,024 hardly longer "
             "(1.49 against 1.44%).",
    .repeats = {MR_REF_CHOWDHURY, "Figure 1", "phases as merged intervals",
                "millrace train --data DIR --trace FILE, then millrace inspect FILE"},
    .emulated = MR_ORIGIN_PREDICTED,
    .show = show,
    .each = MR_FIELD(phases_point, each_read_share),
    .each_of = MR_ONE_STEP,
    .measures = measures,
};
