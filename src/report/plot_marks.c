/* plot_marks.c - the marks of each kind of plot.  A series is a <g class="series sN"> that the
 * legend can switch off; kinds with many points draw into a nested <svg class="zoom"> that the
 * page's script can stretch. */
#include "plot_frame.h"

#include <math.h>

#define MOMENTS 2000 /* of an area that tell their values */

static void begin_series(struct mr_frame *f, unsigned s, const char *more)
{
    mr_markup_add(f->out, "<g class=\"series s%u%s\" data-s=\"%u\">",
                  f->p->series[s].colour % MR_PLOT_COLOURS, more, s);
}

static void end_series(struct mr_frame *f)
{
    mr_markup_add(f->out, "</g>");
}

static void error_mark(struct mr_frame *f, double x, const struct mr_point *q)
{
    if (!(q->hi > q->lo))
        return;
    double lo = mr_scale_at(&f->y, q->lo), hi = mr_scale_at(&f->y, q->hi);
    mr_markup_add(f->out, "<path class=\"err\" d=\"M%.1f %.1fV%.1fM%.1f %.1fh8M%.1f %.1fh8\"/>", x,
                  lo, hi, x - 4, lo, x - 4, hi);
}

/* The height at which series s begins in category i, when they are stacked. */
static double base_of(const struct mr_plot *p, unsigned s, unsigned i)
{
    double sum = 0;
    for (unsigned k = 0; k < s; k++)
        if (i < p->series[k].n && isfinite(p->series[k].point[i].y))
            sum += p->series[k].point[i].y;
    return sum;
}

void mr_draw_bars(struct mr_frame *f)
{
    const struct mr_plot *p = f->p;
    int stacked = p->kind == MR_PLOT_STACK;
    double slot = (f->right - f->left) / (p->n_names ? p->n_names : 1);
    double room = p->touching ? slot - 1 : fmin(slot * 0.78, 42.0 * (stacked ? 1.6 : p->n_series));
    double width = stacked || !p->n_series ? room : room / p->n_series;
    for (unsigned s = 0; s < p->n_series; s++) {
        begin_series(f, s, " bars");
        for (unsigned i = 0; i < p->series[s].n && i < p->n_names; i++) {
            const struct mr_point *q = &p->series[s].point[i];
            if (!isfinite(q->y))
                continue;
            double base = stacked ? base_of(p, s, i) : 0;
            double x = f->left + slot * (i + 0.5) - room / 2 + (stacked ? 0 : s * width);
            double bottom = mr_scale_at(&f->y, f->y.log ? f->y.lo : base);
            double top = mr_scale_at(&f->y, base + q->y);
            mr_markup_add(f->out,
                          "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%s\"", x,
                          fmin(top, bottom), fmax(width - (stacked || p->touching ? 0 : 2), 0.5),
                          fabs(bottom - top), p->touching || stacked ? "0" : "2");
            mr_frame_tip(f, &p->series[s], i);
            mr_markup_add(f->out, "/>");
            if (!stacked)
                error_mark(f, x + width / 2 - 1, q);
        }
        end_series(f);
    }
}

/* Bars that lie, on top of each other from left to right. */
void mr_draw_rows(struct mr_frame *f)
{
    const struct mr_plot *p = f->p;
    double height = (f->bottom - f->top) / (p->n_names ? p->n_names : 1);
    for (unsigned s = 0; s < p->n_series; s++) {
        begin_series(f, s, " bars");
        for (unsigned i = 0; i < p->series[s].n && i < p->n_names; i++) {
            double y = p->series[s].point[i].y, base = base_of(p, s, i);
            if (!isfinite(y))
                continue;
            double from = mr_scale_at(&f->x, base), to = mr_scale_at(&f->x, base + y);
            mr_markup_add(f->out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"",
                          fmin(from, to), f->top + height * (i + 0.2), fabs(to - from),
                          height * 0.6);
            mr_frame_tip(f, &p->series[s], i);
            mr_markup_add(f->out, "/>");
        }
        end_series(f);
    }
}

/* A line from the least to the largest dot of each row, and the dots. */
void mr_draw_dots(struct mr_frame *f)
{
    const struct mr_plot *p = f->p;
    double height = (f->bottom - f->top) / (p->n_names ? p->n_names : 1);
    for (unsigned i = 0; i < p->n_names; i++) {
        double lo = INFINITY, hi = -INFINITY;
        for (unsigned s = 0; s < p->n_series; s++)
            if (i < p->series[s].n && isfinite(p->series[s].point[i].y)) {
                lo = fmin(lo, p->series[s].point[i].y);
                hi = fmax(hi, p->series[s].point[i].y);
            }
        if (hi > lo)
            mr_markup_add(f->out, "<path class=\"join\" d=\"M%.1f %.1fH%.1f\"/>",
                          mr_scale_at(&f->x, lo), f->top + height * (i + 0.5),
                          mr_scale_at(&f->x, hi));
    }
    for (unsigned s = 0; s < p->n_series; s++) {
        begin_series(f, s, " dots");
        for (unsigned i = 0; i < p->series[s].n && i < p->n_names; i++) {
            double y = p->series[s].point[i].y;
            if (!isfinite(y))
                continue;
            mr_markup_add(f->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"", mr_scale_at(&f->x, y),
                          f->top + height * (i + 0.5), s ? 4 : 6);
            mr_frame_tip(f, &p->series[s], i);
            mr_markup_add(f->out, "/>");
        }
        end_series(f);
    }
}

static int is_drawn(const struct mr_point *q)
{
    return isfinite(q->x) && isfinite(q->y);
}

/* A line across at one x, which the legend explains. */
static void draw_mark(const struct mr_frame *f)
{
    if (f->p->mark)
        mr_markup_add(f->out, "<path class=\"mark\" d=\"M%.1f %.1fV%.1f\"/>",
                      mr_scale_at(&f->x, f->p->mark_x), f->top, f->bottom);
}

void mr_draw_lines(struct mr_frame *f)
{
    const struct mr_plot *p = f->p;
    for (unsigned s = 0; s < p->n_series; s++) {
        const struct mr_series *q = &p->series[s];
        int pen = 0;
        begin_series(f, s, q->dashed ? " line dashed" : " line");
        mr_markup_add(f->out, "<path class=\"curve\" d=\"");
        for (unsigned i = 0; i < q->n; i++) {
            if (!is_drawn(&q->point[i])) {
                pen = 0;
                continue;
            }
            mr_markup_add(f->out, "%c%.1f %.1f", pen ? 'L' : 'M', mr_scale_at(&f->x, q->point[i].x),
                          mr_scale_at(&f->y, q->point[i].y));
            pen = 1;
        }
        mr_markup_add(f->out, "\"/>");
        for (unsigned i = 0; i < q->n && q->n <= 64; i++) {
            if (!is_drawn(&q->point[i]))
                continue;
            double x = mr_scale_at(&f->x, q->point[i].x);
            error_mark(f, x, &q->point[i]);
            mr_markup_add(f->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\"", x,
                          mr_scale_at(&f->y, q->point[i].y));
            mr_frame_tip(f, q, i);
            mr_markup_add(f->out, "/>");
        }
        end_series(f);
    }
    draw_mark(f);
}

static void begin_zoom(struct mr_frame *f)
{
    double w = f->right - f->left, h = f->bottom - f->top;
    mr_markup_add(f->out,
                  "<svg class=\"zoom\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                  "viewBox=\"%.1f %.1f %.1f %.1f\" preserveAspectRatio=\"none\" data-lo=\"%.9g\" "
                  "data-hi=\"%.9g\">",
                  f->left, f->top, w, h, f->left, f->top, w, h, f->x.lo, f->x.hi);
}

/* The values at one moment, shown where the pointer is; at most MOMENTS of them. */
static void draw_moments(struct mr_frame *f)
{
    const struct mr_plot *p = f->p;
    unsigned n = p->n_series ? p->series[0].n : 0, every = n / MOMENTS + 1;
    char text[32];
    for (unsigned i = 0; i < n; i += every) {
        double x = p->series[0].point[i].x, before = i ? p->series[0].point[i - 1].x : f->x.lo;
        unsigned last = i + every - 1 < n ? i + every - 1 : n - 1;
        double from = mr_scale_at(&f->x, before),
               to = mr_scale_at(&f->x, p->series[0].point[last].x);
        if (!isfinite(x) || !(to > from))
            continue;
        mr_markup_add(f->out,
                      "<rect class=\"hit\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" "
                      "data-tip=\"%s ",
                      from, f->top, to - from, f->bottom - f->top,
                      mr_number_text(x, text, sizeof text));
        mr_markup_text(f->out, p->x_label);
        for (unsigned s = 0; s < p->n_series; s++) {
            mr_markup_add(f->out, s ? ", " : ": ");
            mr_markup_text(f->out, p->series[s].name);
            mr_markup_add(f->out, " %s ",
                          mr_number_text(i < p->series[s].n ? p->series[s].point[i].y : NAN, text,
                                         sizeof text));
            mr_markup_text(f->out, p->y_label);
        }
        mr_markup_add(f->out, "\"/>");
    }
}

void mr_draw_areas(struct mr_frame *f)
{
    const struct mr_plot *p = f->p;
    begin_zoom(f);
    for (unsigned s = 0; s < p->n_series; s++) {
        const struct mr_series *q = &p->series[s];
        begin_series(f, s, " area");
        mr_markup_add(f->out, "<path d=\"");
        for (unsigned i = 0; i < q->n; i++)
            mr_markup_add(f->out, "%c%.1f %.1f", i ? 'L' : 'M', mr_scale_at(&f->x, q->point[i].x),
                          mr_scale_at(&f->y, base_of(p, s, i) + fmax(q->point[i].y, 0)));
        for (unsigned i = q->n; i-- > 0;)
            mr_markup_add(f->out, "L%.1f %.1f", mr_scale_at(&f->x, q->point[i].x),
                          mr_scale_at(&f->y, base_of(p, s, i)));
        mr_markup_add(f->out, "Z\"/>");
        end_series(f);
    }
    draw_mark(f);
    draw_moments(f);
    mr_markup_add(f->out, "</svg>");
}

void mr_draw_timeline(struct mr_frame *f)
{
    const struct mr_plot *p = f->p;
    double height = (f->bottom - f->top) / (p->n_names ? p->n_names : 1);
    begin_zoom(f);
    for (unsigned s = 0; s < p->n_series; s++) {
        const struct mr_series *q = &p->series[s];
        begin_series(f, s, " spans");
        for (unsigned i = 0; i < q->n; i++) {
            if (!isfinite(q->point[i].hi - q->point[i].lo) || !mr_plot_row(p, &q->point[i])[0])
                continue;
            double from = mr_scale_at(&f->x, q->point[i].lo),
                   to = mr_scale_at(&f->x, q->point[i].hi);
            mr_markup_add(f->out, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\"",
                          from, f->top + height * (q->point[i].y + 0.15), fmax(to - from, 0.3),
                          height * 0.7);
            mr_frame_tip(f, q, i);
            mr_markup_add(f->out, "/>");
        }
        end_series(f);
    }
    mr_markup_add(f->out, "</svg>");
}
