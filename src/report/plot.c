/* plot.c - a figure: title, legend, picture, and the same numbers as a table and as CSV. */
#include "plot.h"

#include "plot_frame.h"

#include <math.h>
#include <string.h>

#define LONG_TABLE 400 /* rows; beyond that the CSV file has to do */

static void legend(const struct mr_plot *p, struct mr_markup *out)
{
    mr_markup_add(out, "<div class=\"legend\">");
    for (unsigned s = 0; s < p->n_series; s++) {
        mr_markup_add(
            out,
            "<button type=\"button\" class=\"key\" data-s=\"%u\" aria-pressed=\"true\"><i "
            "class=\"s%u%s\"></i>",
            s, p->series[s].colour % MR_PLOT_COLOURS, p->series[s].dashed ? " dashed" : "");
        mr_markup_text(out, p->series[s].name);
        mr_markup_add(out, "</button>");
    }
    if (p->mark) {
        mr_markup_add(out, "<span class=\"note\"><i></i>");
        mr_markup_text(out, p->mark);
        mr_markup_add(out, "</span>");
    }
    mr_markup_add(out, "</div>");
}

static void picture(const struct mr_plot *p, struct mr_markup *out)
{
    struct mr_frame f;
    mr_frame_init(&f, p, out);
    mr_markup_add(
        out,
        "<div class=\"scroll\"><svg class=\"plot%s\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
        "aria-labelledby=\"%s-t %s-d\"><title id=\"%s-t\">",
        f.width < MR_PLOT_WIDTH ? " narrow" : "", f.width, f.height, p->id, p->id, p->id);
    mr_markup_text(out, p->title);
    mr_markup_add(out, "</title><desc id=\"%s-d\">", p->id);
    mr_markup_text(out, p->summary);
    mr_markup_add(out, "</desc>");
    mr_frame_axes(&f);
    if (p->kind == MR_PLOT_ROWS)
        mr_draw_rows(&f);
    else if (p->kind == MR_PLOT_DOTS)
        mr_draw_dots(&f);
    else if (mr_plot_has_names(p))
        mr_draw_bars(&f);
    else if (p->kind == MR_PLOT_LINES)
        mr_draw_lines(&f);
    else if (p->kind == MR_PLOT_AREAS)
        mr_draw_areas(&f);
    else
        mr_draw_timeline(&f);
    mr_markup_add(out, "</svg></div>");
}

static unsigned n_rows(const struct mr_plot *p)
{
    unsigned n = 0;
    for (unsigned s = 0; s < p->n_series; s++)
        n += p->series[s].n;
    return n;
}

/* Is the second column words? */
static int has_words(const struct mr_plot *p)
{
    return p->kind == MR_PLOT_TIMELINE || (mr_plot_has_names(p) && !p->touching);
}

static void table_row(const struct mr_plot *p, const struct mr_series *s, unsigned i,
                      struct mr_markup *out)
{
    const struct mr_point *q = &s->point[i];
    char x[32], y[32];
    mr_markup_add(out, "<tr><td>");
    mr_markup_text(out, s->name);
    mr_markup_add(out, "</td><td%s>", has_words(p) ? " class=\"text\"" : "");
    if (p->kind == MR_PLOT_TIMELINE)
        mr_markup_text(out, mr_plot_row(p, q));
    else if (mr_plot_has_names(p))
        mr_markup_text(out, i < p->n_names ? p->names[i] : "");
    else
        mr_markup_add(out, "%s", mr_number_text(q->x, x, sizeof x));
    mr_markup_add(out, "</td><td>");
    if (p->kind == MR_PLOT_TIMELINE || q->hi > q->lo)
        mr_markup_add(out, "%s%s%s to %s%s</td></tr>",
                      p->kind == MR_PLOT_TIMELINE ? "" : mr_number_text(q->y, x, sizeof x),
                      p->kind == MR_PLOT_TIMELINE ? "" : " (", mr_number_text(q->lo, y, sizeof y),
                      mr_number_text(q->hi, (char[32]){0}, 32),
                      p->kind == MR_PLOT_TIMELINE ? "" : ")");
    else
        mr_markup_add(out, "%s</td></tr>", mr_number_text(q->y, x, sizeof x));
}

struct total {
    unsigned n;
    double sum, peak, at; /* peak: of a timeline the longest span */
    double over;          /* sum over x */
};

static struct total total_of(const struct mr_plot *p, const struct mr_series *s)
{
    struct total t = {.peak = -INFINITY};
    for (unsigned i = 0; i < s->n; i++) {
        const struct mr_point *q = &s->point[i];
        int span = p->kind == MR_PLOT_TIMELINE;
        double y = span ? q->hi - q->lo : q->y, before = i ? s->point[i - 1].x : 0;
        if (!isfinite(y))
            continue;
        t.n++;
        t.sum += y;
        t.over += isfinite(q->x - before) ? y * (q->x - before) : 0;
        if (y > t.peak) {
            t.peak = y;
            t.at = span ? q->lo : q->x;
        }
    }
    return t;
}

/* What a series comes to, where there is no room for all of it. */
static void totals(const struct mr_plot *p, struct mr_markup *out)
{
    int span = p->kind == MR_PLOT_TIMELINE;
    char a[32], b[32], c[32], d[32];
    mr_markup_add(out, "<div class=\"scroll\"><table><thead><tr><th>series</th><th>%s, ",
                  span ? "in all" : "mean");
    mr_markup_text(out, span ? p->x_label : p->y_label);
    mr_markup_add(out, "</th><th>%s</th><th>at, ", span ? "longest" : "peak");
    mr_markup_text(out, p->x_label);
    mr_markup_add(out, "</th><th>");
    if (span) {
        mr_markup_add(out, "spans");
    } else {
        mr_markup_add(out, "in all, ");
        mr_markup_text(out, p->y_label);
        mr_markup_add(out, " × ");
        mr_markup_text(out, p->x_label);
    }
    mr_markup_add(out, "</th></tr></thead><tbody>");
    for (unsigned s = 0; s < p->n_series; s++) {
        struct total t = total_of(p, &p->series[s]);
        mr_markup_add(out, "<tr><td>");
        mr_markup_text(out, p->series[s].name);
        mr_markup_add(out, "</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>",
                      mr_number_text(span ? t.sum : t.sum / t.n, a, sizeof a),
                      mr_number_text(t.peak, b, sizeof b), mr_number_text(t.at, c, sizeof c),
                      mr_number_text(span ? t.n : t.over, d, sizeof d));
    }
    mr_markup_add(out, "</tbody></table></div>");
}

static void table(const struct mr_plot *p, struct mr_markup *out)
{
    mr_markup_add(out, "<details class=\"numbers\"><summary>The same in numbers</summary>");
    if (n_rows(p) > LONG_TABLE) {
        totals(p, out);
        mr_markup_add(out, "<p>All %u values: <code>%s.csv</code> beside this page.</p></details>",
                      n_rows(p), p->id);
        return;
    }
    mr_markup_add(out, "<div class=\"scroll\"><table><thead><tr><th>series</th><th%s>",
                  has_words(p) ? " class=\"text\"" : "");
    mr_markup_text(out, p->kind == MR_PLOT_TIMELINE ? "row" : p->x_label);
    mr_markup_add(out, "</th><th>");
    mr_markup_text(out, p->kind == MR_PLOT_TIMELINE ? p->x_label : p->y_label);
    mr_markup_add(out, "</th></tr></thead><tbody>");
    for (unsigned s = 0; s < p->n_series; s++)
        for (unsigned i = 0; i < p->series[s].n; i++)
            table_row(p, &p->series[s], i, out);
    mr_markup_add(out, "</tbody></table></div></details>");
}

void mr_plot_figure(const struct mr_plot *p, struct mr_markup *out)
{
    mr_markup_add(out, "<figure class=\"plot\" id=\"plot-%s\"><figcaption>", p->id);
    mr_markup_text(out, p->title);
    mr_markup_add(out, "</figcaption>");
    if (p->n_series)
        legend(p, out);
    picture(p, out);
    table(p, out);
    mr_markup_add(out, "</figure>\n");
}

static void csv_number(struct mr_markup *out, double v, const char *after)
{
    if (isfinite(v))
        mr_markup_add(out, "%.9g", v);
    mr_markup_add(out, "%s", after);
}

void mr_plot_csv(const struct mr_plot *p, struct mr_markup *out)
{
    mr_markup_add(out, "series,");
    mr_markup_csv(out, p->kind == MR_PLOT_TIMELINE ? "row" : p->x_label);
    mr_markup_add(out, ",");
    mr_markup_csv(out, p->kind == MR_PLOT_TIMELINE ? p->x_label : p->y_label);
    mr_markup_add(out, p->kind == MR_PLOT_TIMELINE ? " of the span,begin,end\n" : ",low,high\n");
    for (unsigned s = 0; s < p->n_series; s++)
        for (unsigned i = 0; i < p->series[s].n; i++) {
            const struct mr_point *q = &p->series[s].point[i];
            mr_markup_csv(out, p->series[s].name);
            mr_markup_add(out, ",");
            if (mr_plot_has_names(p) || p->kind == MR_PLOT_TIMELINE) {
                const char *name = i < p->n_names ? p->names[i] : "";
                mr_markup_csv(out, mr_plot_has_names(p) ? name : mr_plot_row(p, q));
                mr_markup_add(out, ",");
            } else {
                csv_number(out, q->x, ",");
            }
            csv_number(out, p->kind == MR_PLOT_TIMELINE ? q->hi - q->lo : q->y, ",");
            csv_number(out, q->hi > q->lo ? q->lo : NAN, ",");
            csv_number(out, q->hi > q->lo ? q->hi : NAN, "\n");
        }
}
