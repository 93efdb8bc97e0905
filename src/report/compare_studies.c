/* compare_studies.c - two studies side by side.
 *
 * Points are matched by what identifies them (storage, engine, threads, ...); of each one figure is
 * compared.  A difference counts when it is larger than both points' own spread, and than 5%. */
#include "report.h"

#include "errtext.h"
#include "page.h"
#include "scale.h"
#include "view.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NOISE 0.05

static const struct measure {
    const char *experiment, *title, *field, *unit;
    int less_is_better;
    const char *keys[4]; /* what identifies a point */
} measures[] = {
    {"baseline", "Raw limits", "read_mb_per_s", "MB/s", 0, {"storage", "pattern"}},
    {"read", "Reading files", "images_per_s", "files/s", 0, {"storage", "engine", "threads"}},
    {"decode", "Decoding", "images_per_s", "images/s", 0, {"storage", "engine", "threads"}},
    {"overlap", "Training with input", "step_s", "s a step", 1, {"storage", "prefetch", "threads"}},
    {"batch", "Batch size", "s_per_image", "s an image", 1, {"device", "batch"}},
    {"checkpoint", "Checkpoints", "stall_s", "s of stall", 1, {"mode", "storage", "drain"}},
};

/* "hdd (emulated), threads, 8" */
static void key_of(const struct mr_view *v, unsigned i, const struct measure *m, char *buf,
                   size_t cap)
{
    buf[0] = 0;
    for (unsigned k = 0; k < 4 && m->keys[k]; k++) {
        char words[64];
        const char *text = mr_view_text(v, i, m->keys[k]);
        if (text && (!strcmp(m->keys[k], "storage") || !strcmp(m->keys[k], "drain")))
            text = mr_storage_words(text, mr_view_flag(v, i, "emulated"), words, sizeof words);
        double x = mr_view_number(v, i, m->keys[k]);
        size_t at = strlen(buf);
        if (text)
            snprintf(buf + at, cap - at, "%s%s", at ? ", " : "", text);
        else if (isfinite(x))
            snprintf(buf + at, cap - at, "%s%s %g", at ? ", " : "", m->keys[k], x);
    }
}

static double spread_of(const struct mr_view *v, unsigned i)
{
    double spread = mr_view_run_spread(v, i);
    return isfinite(spread) ? spread : 0;
}

static void row(const struct measure *m, const char *key, double a, double b, double noise,
                struct mr_markup *out)
{
    char ta[32], tb[32];
    double change = b / a - 1;
    int counts = fabs(change) > fmax(noise, NOISE);
    const char *class = !counts ? "" : (change > 0) != m->less_is_better ? "better" : "worse";
    mr_markup_add(out, "<tr><td>");
    mr_markup_text(out, key);
    mr_markup_add(out, "</td><td>%s</td><td>%s</td><td class=\"%s\">%+.1f%%%s</td></tr>",
                  mr_number_text(a, ta, sizeof ta), mr_number_text(b, tb, sizeof tb), class,
                  100 * change, counts ? change > 0 ? " ▲" : " ▼" : "");
}

static void compare(const struct measure *m, const struct mr_json *a, const struct mr_json *b,
                    const char *const names[2], struct mr_markup *out)
{
    struct mr_view va = {.e = mr_view_find(a, m->experiment), .out = out},
                   vb = {.e = mr_view_find(b, m->experiment), .out = out};
    mr_markup_add(out, "<section id=\"%s\"><h2>%s</h2>", m->experiment, m->title);
    if (!va.e || !vb.e) {
        mr_markup_add(
            out,
            "<p><span class=\"chip missing\">missing</span> Not in both studies.</p></section>\n");
        return;
    }
    struct mr_chart c = {.plot = {.kind = MR_PLOT_BARS,
                                  .id = m->experiment,
                                  .title = m->title,
                                  .x_label = "what was measured",
                                  .y_label = m->unit,
                                  .log_y = !m->less_is_better,
                                  .summary = "Bars of both studies side by side."}};
    struct mr_series *sa = mr_chart_series(&c, "%s", names[0]),
                     *sb = mr_chart_series(&c, "%s ", names[1]);
    struct mr_markup table = {0};
    for (unsigned i = 0; i < mr_view_n(&va); i++) {
        char key[128], other[128];
        double x = mr_view_number(&va, i, m->field);
        key_of(&va, i, m, key, sizeof key);
        for (unsigned k = 0; k < mr_view_n(&vb); k++) {
            double y = mr_view_number(&vb, k, m->field);
            key_of(&vb, k, m, other, sizeof other);
            if (strcmp(key, other) || !(x > 0) || !isfinite(y / x))
                continue;
            row(m, key, x, y, fmax(spread_of(&va, i), spread_of(&vb, k)), &table);
            unsigned at = mr_chart_name(&c, "%s", key);
            mr_chart_put(&c, sa, at, x, 0, 0);
            mr_chart_put(&c, sb, at, y, 0, 0);
            break;
        }
    }
    if (table.len) {
        mr_view_plot(&va, &c);
        mr_markup_add(out, "<div class=\"scroll\"><table><thead><tr><th>%s</th><th>", m->unit);
        mr_markup_text(out, names[0]);
        mr_markup_add(out, "</th><th>");
        mr_markup_text(out, names[1]);
        mr_markup_add(out, "</th><th>difference</th></tr></thead><tbody>%s</tbody></table></div>",
                      table.data);
    } else {
        mr_chart_fini(&c);
        mr_markup_add(out, "<p>Nothing that both have measured alike.</p>");
    }
    mr_markup_fini(&table);
    mr_markup_add(out, "</section>\n");
}

int mr_report_compare(const struct mr_json *a, const char *name_a, const struct mr_json *b,
                      const char *name_b, struct mr_markup *page, struct mr_error *err)
{
    enum { N = sizeof measures / sizeof *measures };
    const char *const names[2] = {name_a, name_b};
    struct mr_page_link links[N];
    if (!mr_json_is_array(mr_json_at(a, "results")) || !mr_json_is_array(mr_json_at(b, "results")))
        return mr_fail(err, -EBADMSG, "these are not the results of two studies");
    for (unsigned i = 0; i < N; i++)
        links[i] = (struct mr_page_link){measures[i].experiment, measures[i].title};
    mr_page_begin(page, "millrace: two studies", links, N);
    mr_markup_add(page, "<h1>");
    mr_markup_text(page, name_a);
    mr_markup_add(page, " and ");
    mr_markup_text(page, name_b);
    mr_markup_add(page,
                  "</h1><p class=\"lead\">Differences larger than the measurements' own spread "
                  "(and than 5%%) are marked.</p>");
    for (unsigned i = 0; i < N; i++)
        compare(&measures[i], a, b, names, page);
    mr_page_end(page, mr_json_text(mr_json_at(b, "version")));
    return mr_markup_ok(page) ? 0 : mr_fail(err, -ENOMEM, "no memory for the page");
}
