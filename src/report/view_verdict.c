/* view_verdict.c - the verdict: what a step consists of, what was tried, and what is fed. */
#include "section.h"

#include "scale.h"
#include "verdict_words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void show_split(struct mr_view *v, const struct mr_verdict_point *p)
{
    const struct {
        double s;
        const char *name;
    } parts[] = {{p->compute_s, "compute"},
                 {p->decode_s, "decode"},
                 {p->fetch_s, "fetch"},
                 {p->hand_over_s, "hand-over"}};
    char title[128];
    snprintf(title, sizeof title, "What a step consists of when nothing overlaps%s%s",
             p->device ? ", with " : "", p->device ? p->device : "");
    struct mr_chart c = {.plot = {.kind = MR_PLOT_ROWS,
                                  .id = "verdict-split",
                                  .title = title,
                                  .x_label = "",
                                  .y_label = "seconds",
                                  .summary = "One stacked bar: computing, decoding, fetching, "
                                             "hand-over; below it, what input takes as it is."}};
    unsigned at = mr_chart_name(&c, "a step");
    for (unsigned k = 0; k < sizeof parts / sizeof *parts; k++)
        if (isfinite(parts[k].s))
            mr_chart_put(&c, mr_chart_series(&c, "%s", parts[k].name), at, fmax(parts[k].s, 0), 0,
                         0);
    if (isfinite(p->step_s))
        mr_chart_put(&c, mr_chart_series(&c, "input, measured as a whole"),
                     mr_chart_name(&c, "its input, overlapped"), p->step_s, 0, 0);
    mr_view_plot(v, &c);
}

/* The runs that take a step apart. */
static void show_rates(struct mr_view *v, const struct mr_step_rates *r)
{
    const struct {
        double per_s;
        const char *run;
    } rows[] = {
        {r->synthetic, "training without input (the accelerator is emulated)"},
        {r->one_sample_read, "one cached image again and again, read"},
        {r->one_sample_decoded, "one cached image again and again, read and decoded"},
        {r->warm, "all images, cached, decoded"},
        {r->cold_read, "all images, cold, not decoded, as many reads at once as help"},
        {r->cold, "all images, cold, decoded, as it is"},
    };
    char text[32];
    if (!isfinite(r->warm))
        return;
    mr_markup_add(v->out, "<h3>The runs that this follows from</h3><div class=\"scroll\"><table>"
                          "<thead><tr><th>run</th><th>images/s</th></tr></thead><tbody>");
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        if (isfinite(rows[i].per_s))
            mr_markup_add(v->out, "<tr><td>%s</td><td>%s</td></tr>", rows[i].run,
                          mr_number_text(rows[i].per_s, text, sizeof text));
    mr_markup_add(v->out, "</tbody></table></div>");
}

/* The rates that the bounds of the sizing rest on. */
static void tell_bounds(struct mr_view *v, const struct mr_verdict_point *p)
{
    char a[32], b[32], c[32], d[32];
    if (!isfinite(p->storage_files_per_s + p->storage_mb_per_s + p->cores_images_per_s + p->cores))
        return;
    mr_markup_add(
        v->out,
        "<p>The storage delivered %s files/s (%s MB/s) without decoding; %s core%s decode "
        "%s images/s.</p>",
        mr_number_text(p->storage_files_per_s, a, sizeof a),
        mr_number_text(p->storage_mb_per_s, b, sizeof b), mr_number_text(p->cores, c, sizeof c),
        p->cores == 1 ? "" : "s", mr_number_text(p->cores_images_per_s, d, sizeof d));
}

static void show_sizing(struct mr_view *v, const struct mr_verdict_point *p)
{
    const struct mr_json *list = p->sizing;
    char text[32];
    if (!list || !mr_json_len(list))
        return;
    mr_markup_add(v->out, "<h3>How many accelerators this machine would feed</h3>");
    tell_bounds(v, p);
    mr_markup_add(v->out,
                  "<div class=\"scroll\"><table><thead><tr><th>accelerator</th><th>images/s "
                  "each</th><th>storage feeds</th><th>cores feed</th><th>the pipeline "
                  "fed, measured</th><th>whole ones</th></tr></thead><tbody>");
    for (unsigned i = 0; i < mr_json_len(list); i++) {
        struct mr_fed_accelerators fed = mr_fed_accelerators_of(mr_json_item(list, i));
        const double columns[] = {fed.images_per_s_each, fed.by_storage, fed.by_cores,
                                  fed.by_measured, fed.feeds};
        mr_markup_add(v->out, "<tr><td>");
        mr_markup_text(v->out, fed.accelerator);
        for (unsigned k = 0; k < sizeof columns / sizeof *columns; k++)
            mr_markup_add(v->out, "</td><td>%s", mr_number_text(columns[k], text, sizeof text));
        mr_markup_add(v->out, "</td></tr>");
    }
    mr_markup_add(v->out, "</tbody></table></div>");
}

/* [[x, n], ...] for one accelerator after the other: {accelerator, curve}. */
static void show_curve(struct mr_view *v, const struct mr_json *list, double here, const char *id,
                       const char *title, const char *x_label)
{
    struct mr_chart c = {
        .plot = {.kind = MR_PLOT_LINES,
                 .id = id,
                 .title = title,
                 .x_label = x_label,
                 .y_label = "accelerators fed",
                 .summary =
                     "Lines of the number of accelerators that are fed, one for each kind."}};
    for (unsigned i = 0; list && i < mr_json_len(list); i++) {
        struct mr_fed_curve fed = mr_fed_curve_of(mr_json_item(list, i));
        struct mr_series *s = mr_chart_series(&c, "%s", fed.accelerator ? fed.accelerator : "");
        for (unsigned k = 0; fed.curve && k < mr_json_len(fed.curve); k++) {
            const struct mr_json *p = mr_json_item(fed.curve, k);
            mr_chart_add(&c, s, (struct mr_point){mr_item(p, 0), mr_item(p, 1), 0, 0});
        }
    }
    if (here > 0) {
        c.plot.mark = "this machine";
        c.plot.mark_x = here;
    }
    mr_view_plot(v, &c);
}

/* One piece of advice in words, and what came of it. */
static void show_advice(struct mr_view *v, const struct mr_advice_shown *a)
{
    if (a->text)
        mr_view_finding(v, "%s", a->text);
    if (isfinite(a->now) && isfinite(a->now_predicted))
        mr_view_finding(v, "Now: %.0f images/s measured, %.0f by the model.", a->now,
                        a->now_predicted);
    if (a->tried)
        mr_view_finding(v,
                        "Predicted for %s: %.0f images/s, measured %.0f: the prediction was off by "
                        "%.1f%%.",
                        a->tried, a->predicted, a->measured,
                        100 * fabs(a->predicted / a->measured - 1));
}

/* Predicted beside measured, as far as a prediction was measured. */
static void show_gains(struct mr_view *v, const struct mr_verdict_point *p)
{
    struct mr_recommendation r = mr_recommendation_of(p->recommendation);
    struct mr_smaller_images s = mr_smaller_images_of(p->smaller_images);
    const struct {
        const char *name;
        double predicted, measured;
    } rows[] = {{"as it is", NAN, mr_step_rates_of(p->rates).cold},
                {"configuration", r.predicted_images_per_s, r.measured_images_per_s},
                {"and smaller images", s.predicted_images_per_s, s.measured_images_per_s}};
    struct mr_chart c = {.plot = {.kind = MR_PLOT_BARS,
                                  .id = "verdict-gains",
                                  .title = "What was tried, predicted and then measured",
                                  .x_label = "what changes",
                                  .y_label = "images/s",
                                  .summary = "A bar predicted beside one measured, for each "
                                             "change."}};
    for (unsigned i = 1; i < sizeof rows / sizeof *rows; i++)
        if (isfinite(rows[i].predicted + rows[i].measured))
            mr_chart_series(&c, "predicted"); /* stands first, though the first row has none */
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!isfinite(rows[i].measured))
            continue;
        unsigned at = mr_chart_name(&c, "%s", rows[i].name);
        if (isfinite(rows[i].predicted))
            mr_chart_put(&c, mr_chart_series(&c, "predicted"), at, rows[i].predicted, 0, 0);
        mr_chart_put(&c, mr_chart_series(&c, "measured"), at, rows[i].measured, 0, 0);
    }
    mr_view_plot(v, &c);
}

static void show(struct mr_view *v)
{
    struct mr_verdict_point p = mr_verdict_point_of(mr_view_point(v, 0));
    struct mr_step_rates rates = mr_step_rates_of(p.rates);
    struct mr_advice_shown advice[2];
    mr_verdict_advice(&p, advice);
    show_gains(v, &p);
    show_split(v, &p);
    show_rates(v, &rates);
    if (mr_verdict_is_old(&p))
        mr_view_finding(v, MR_OLD_ADVICE);
    show_advice(v, &advice[0]);
    show_advice(v, &advice[1]);
    show_sizing(v, &p);
    show_curve(v, p.by_bandwidth, p.storage_mb_per_s, "sizing-storage",
               "Accelerators fed, by storage bandwidth", "MB/s from storage");
    show_curve(v, p.by_cores, p.cores, "sizing-cores", "Accelerators fed, by cores", "cores");
}

/* ---- two of them ---- */

/* The verdict's rates are medians whose runs are not kept.  Three of its figures have a noise that
 * is known all the same: the rate of cold images by the runs of Decoding, and decoding and CPU time
 * by the control, which is the same measured again with the proof. */
#define MEDIANS  "medians of several runs"
#define N_TESTED 3

/* The runs that say how far apart those of the verdict's rate may have been: the same was done for
 * Decoding, on the real storage with a worker a core.  The other points on it are alike. */
static void add_decoding(const struct mr_pair *pair, double cores, unsigned k, struct mr_figures *f)
{
    const struct mr_json *decode =
        mr_result_find(pair->results[k], mr_experiment_name(MR_EXPERIMENT_decode));
    for (size_t i = 0; i < mr_result_n_points(decode); i++) {
        struct mr_decode_point p = mr_decode_point_of(mr_result_point(decode, i));
        if (!mr_is_text(p.storage, "disk") || !p.engine)
            continue;
        struct mr_noise noise = mr_noise_of_list(pair->out, p.runs, MR_ONE_RUN);
        if (strcmp(p.engine, "threads") || p.threads != cores) {
            mr_noise_add(&f->alike, &noise);
            continue;
        }
        f->noise[k] = noise;
        f->spread[k] = mr_list_spread(p.runs, MR_ONE_RUN);
    }
}

/* A control is 1 where two measurements agree. */
static void add_control(double control, unsigned k, struct mr_figures *f)
{
    f->noise[k] = mr_noise_of_two(control);
    f->spread[k] = fabs(control - 1);
    if (f->x[1 - k] == 0)
        f->zero_p[k] = mr_student_p(M_SQRT2 / f->spread[k], 1);
}

static void compare_step(struct mr_pair *pair, const struct mr_verdict_point p[2])
{
    static const struct mr_measure more = {.better = MR_MORE}, less = {.better = MR_LESS};
    struct mr_figures cold = mr_figures_of(mr_step_rates_of(p[0].rates).cold,
                                           mr_step_rates_of(p[1].rates).cold, MEDIANS),
                      decode = mr_figures_of(p[0].decode_s, p[1].decode_s, MEDIANS),
                      cpu = mr_figures_of(p[0].image_cpu_s, p[1].image_cpu_s, MEDIANS);
    for (unsigned k = 0; k < 2; k++) {
        add_decoding(pair, p[k].cores, k, &cold);
        add_control(p[k].control, k, &decode);
        add_control(p[k].control, k, &cpu);
    }
    mr_compare_row(pair, &more, "images/s delivered, cold", cold);
    mr_compare_row(pair, &less, "fetch, s a step",
                   mr_figures_of(p[0].fetch_s, p[1].fetch_s, MEDIANS));
    mr_compare_row(pair, &less, "decode, s a step", decode);
    mr_compare_row(pair, &less, "hand-over, s a step",
                   mr_figures_of(p[0].hand_over_s, p[1].hand_over_s, MEDIANS));
    mr_compare_row(pair, &less, "compute, s a step",
                   mr_figures_of(p[0].compute_s, p[1].compute_s, "one run"));
    mr_compare_row(pair, &less, "CPU, s an image", cpu);
}

/* How many accelerators of each kind are fed. */
static void compare_sizing(struct mr_pair *pair, const struct mr_verdict_point p[2])
{
    static const struct mr_measure whole = {.better = MR_MORE, .least = 1};
    char title[96];
    if (!mr_json_is_array(p[0].sizing) || !mr_json_is_array(p[1].sizing))
        return;
    for (size_t i = 0; i < mr_json_len(p[0].sizing); i++) {
        struct mr_fed_accelerators a = mr_fed_accelerators_of(mr_json_item(p[0].sizing, i)),
                                   b = mr_fed_accelerators_of(mr_json_item(p[1].sizing, i));
        if (!mr_is_text(a.accelerator, b.accelerator))
            continue;
        snprintf(title, sizeof title, "%s fed", a.accelerator);
        mr_compare_row(pair, &whole, title, mr_figures_of(a.feeds, b.feeds, MEDIANS));
    }
}

/* The headline of one, and its advice. */
static void tell_verdict(struct mr_pair *pair, unsigned k, const struct mr_verdict_point *p)
{
    char buf[MR_HEADLINE];
    const char *text = mr_verdict_text(p, buf, sizeof buf);
    struct mr_advice_shown advice[2];
    mr_verdict_advice(p, advice);
    const char *first = mr_verdict_is_old(p) ? MR_OLD_ADVICE : advice[0].text;
    mr_markup_add(pair->out, "<div><h3 class=\"name\">");
    mr_markup_text(pair->out, pair->name[k]);
    mr_markup_add(pair->out, "</h3><p>");
    mr_markup_text(pair->out, text ? text : "No verdict.");
    mr_markup_add(pair->out, "</p><p>");
    if (first && !(text && strstr(text, first))) /* the first words end in it */
        mr_markup_text(pair->out, first);
    mr_markup_add(pair->out, "</p><p>");
    mr_markup_text(pair->out, advice[1].text ? advice[1].text : "");
    mr_markup_add(pair->out, "</p></div>");
}

/* Both headlines, what a step consists of, and what is fed. */
static void compare(struct mr_pair *pair, const struct mr_view v[2])
{
    struct mr_verdict_point p[2];
    mr_markup_add(pair->out, "<div class=\"beside\">");
    for (unsigned k = 0; k < 2; k++) {
        p[k] = mr_verdict_point_of(mr_view_point(&v[k], 0));
        tell_verdict(pair, k, &p[k]);
    }
    mr_markup_add(pair->out, "</div>");
    mr_compare_begin(pair, "", NULL);
    compare_step(pair, p);
    compare_sizing(pair, p);
    mr_compare_end(pair);
}

const struct mr_section mr_section_verdict = {
    .title = "Verdict and sizing",
    .link = "Verdict",
    .question = "What limits training here, what should change, what would it gain, and how many "
                "accelerators can this machine feed?",
    .study = "The original study found input hidden behind training once one batch was prefetched, "
             "and 1.0 to 1.3 GB/s to be enough for eight V100.",
    .emulated = MR_ORIGIN_PREDICTED,
    .leads = 1,
    .show = show,
    .medians = 1,
    .compare = compare,
    .n_tested = N_TESTED,
};
