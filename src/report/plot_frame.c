/* plot_frame.c - see plot_frame.h.
 *
 *      title and legend are HTML above the picture
 *      +-----------------------------+
 *    y |  data                       |     left is as wide as the longest label of the y axis
 *      |                             |
 *      +-----------------------------+
 *         x ticks, x label */
#include "plot_frame.h"

#include <math.h>
#include <string.h>

#define CHARACTER    7.8 /* width of a character at the labels' size on a phone */
#define LONGEST_NAME 34  /* characters of a category's name that are shown, */
#define LONGEST_ROW  56  /* and of a row's */
#define ROW_HEIGHT   58  /* of one bar that lies, */
#define ROWS_HEIGHT  34  /* of several, */
#define DOTS_HEIGHT  22  /* and of a row of dots */
#define FEW          5 /* categories, or places on the x axis, that a narrow picture has room for */

struct range {
    double lo, hi;
};

static void widen(struct range *r, double v)
{
    if (!isfinite(v))
        return;
    r->lo = fmin(r->lo, v);
    r->hi = fmax(r->hi, v);
}

/* The sum of all series at point i, for those that are drawn on top of each other. */
static double height_at(const struct mr_plot *p, unsigned i)
{
    double sum = 0;
    for (unsigned s = 0; s < p->n_series; s++)
        if (i < p->series[s].n && isfinite(p->series[s].point[i].y))
            sum += p->series[s].point[i].y;
    return sum;
}

static void find_ranges(const struct mr_plot *p, struct range *x, struct range *y)
{
    int stacked = p->kind == MR_PLOT_STACK || p->kind == MR_PLOT_ROWS || p->kind == MR_PLOT_AREAS;
    *x = *y = (struct range){INFINITY, -INFINITY};
    for (unsigned s = 0; s < p->n_series; s++)
        for (unsigned i = 0; i < p->series[s].n; i++) {
            const struct mr_point *q = &p->series[s].point[i];
            if (p->kind == MR_PLOT_TIMELINE) {
                widen(x, q->lo);
                widen(x, q->hi);
                continue;
            }
            widen(x, q->x);
            widen(y, stacked ? height_at(p, i) : q->y);
            if (q->hi > q->lo && !stacked) {
                widen(y, q->lo);
                widen(y, q->hi);
            }
        }
}

/* On a logarithmic axis of a few places (1, 2, 4, 8 threads) these are the ticks. */
static void tick_at_points(struct mr_frame *f, const struct range *x)
{
    double place[MR_MAX_TICKS];
    unsigned n = 0;
    for (unsigned s = 0; s < f->p->n_series; s++)
        for (unsigned i = 0; i < f->p->series[s].n; i++) {
            double v = f->p->series[s].point[i].x;
            unsigned k = 0;
            if (!(v > 0) || !isfinite(v))
                continue;
            while (k < n && place[k] != v)
                k++;
            if (k == MR_MAX_TICKS)
                return;
            if (k == n)
                place[n++] = v;
        }
    if (n < 2)
        return;
    f->x.lo = x->lo / 1.06;
    f->x.hi = x->hi * 1.06;
    f->x.n_ticks = n;
    for (unsigned i = 0; i < n; i++)
        f->x.tick[i] = place[i];
}

static double label_width(const struct mr_frame *f)
{
    char buf[32];
    size_t longest = 1;
    for (unsigned i = 0; i < f->y.n_ticks; i++) {
        size_t n = strlen(mr_tick_text(&f->y, f->y.tick[i], buf, sizeof buf));
        longest = n > longest ? n : longest;
    }
    return CHARACTER * (double)longest;
}

/* Characters, not bytes. */
static size_t n_characters(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

/* Characters of the longest name, as far as it is shown. */
static size_t longest_name(const struct mr_plot *p, size_t most)
{
    size_t longest = 4;
    for (unsigned i = 0; i < p->n_names; i++) {
        size_t n = n_characters(p->names[i]);
        longest = n > longest ? n : longest;
    }
    return longest > most ? most : longest;
}

static void draw_y_axis(struct mr_frame *f)
{
    char buf[32];
    for (unsigned i = 0; i < f->y.n_ticks; i++) {
        double at = mr_scale_at(&f->y, f->y.tick[i]);
        mr_markup_add(f->out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", f->left, at,
                      f->right);
        mr_markup_add(f->out,
                      "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>",
                      f->left - 8, at + 4, mr_tick_text(&f->y, f->y.tick[i], buf, sizeof buf));
    }
    mr_markup_add(f->out,
                  "<text class=\"label\" transform=\"translate(14 %.1f) rotate(-90)\" "
                  "text-anchor=\"middle\">",
                  (f->top + f->bottom) / 2);
    mr_markup_text(f->out, f->p->y_label);
    mr_markup_add(f->out, "</text>");
}

/* The first characters of a name that is too long, whole ones. */
static void short_name(struct mr_markup *out, const char *name, size_t most)
{
    char cut[4 * LONGEST_ROW + 4];
    size_t n = 0;
    if (n_characters(name) <= most) {
        mr_markup_text(out, name);
        return;
    }
    for (size_t i = 0; n < sizeof cut - 4 && name[n]; n++) {
        i += ((unsigned char)name[n] & 0xc0) != 0x80;
        if (i == most)
            break;
    }
    memcpy(cut, name, n);
    memcpy(cut + n, "…", sizeof "…");
    mr_markup_text(out, cut);
}

static double slot_of(const struct mr_frame *f)
{
    return (f->right - f->left) / (f->p->n_names ? f->p->n_names : 1);
}

static void draw_names(struct mr_frame *f)
{
    const struct mr_plot *p = f->p;
    double width = slot_of(f);
    unsigned every = 1;
    if (p->touching && width < 5 * CHARACTER)
        every = (unsigned)ceil(5 * CHARACTER / width);
    for (unsigned i = 0; i < p->n_names; i += every) {
        double x = f->left + width * (i + 0.5);
        if (f->slant < 0)
            mr_markup_add(f->out,
                          "<text class=\"tick\" transform=\"translate(%.1f %.1f) rotate(%.0f)\" "
                          "text-anchor=\"end\">",
                          x + 4, f->bottom + 14, f->slant);
        else
            mr_markup_add(f->out,
                          "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", x,
                          f->bottom + 18);
        short_name(f->out, p->names[i], LONGEST_NAME);
        mr_markup_add(f->out, "</text>");
    }
}

/* Names that do not fit side by side stand aslant, upright when there are many; the picture grows
 * by what they need below it. */
static void turn_names(struct mr_frame *f)
{
    const struct mr_plot *p = f->p;
    size_t longest = longest_name(p, LONGEST_NAME);
    if (!mr_plot_has_names(p) || p->touching || CHARACTER * ((double)longest + 1) <= slot_of(f))
        return;
    f->slant = slot_of(f) < 22 ? -90 : -40;
    double turn = -f->slant * acos(-1) / 180;
    f->height += CHARACTER * (double)longest * sin(turn);
    for (unsigned i = 0; i < p->n_names; i++) { /* the first ones reach beyond the axis */
        double n = fmin((double)n_characters(p->names[i]), LONGEST_NAME);
        f->left = fmax(f->left, 24 + CHARACTER * n * cos(turn) - slot_of(f) * (i + 0.5));
    }
}

static void draw_x_axis(struct mr_frame *f)
{
    char buf[32];
    int lying = mr_plot_is_lying(f->p);
    if (mr_plot_has_names(f->p) && !lying) {
        draw_names(f);
    } else {
        mr_markup_add(f->out, "<g class=\"xticks\">");
        for (unsigned i = 0; i < f->x.n_ticks; i++)
            mr_markup_add(
                f->out,
                "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>",
                mr_scale_at(&f->x, f->x.tick[i]), f->bottom + 18,
                mr_tick_text(&f->x, f->x.tick[i], buf, sizeof buf));
        mr_markup_add(f->out, "</g>");
    }
    mr_markup_add(f->out, "<path class=\"axis\" d=\"M%.1f %.1fH%.1f\"/>", f->left, f->bottom,
                  f->right);
    mr_markup_add(f->out, "<text class=\"label\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
                  (f->left + f->right) / 2, f->height - 6);
    mr_markup_text(f->out, lying ? f->p->y_label : f->p->x_label);
    mr_markup_add(f->out, "</text>");
}

/* Where the values of rows are. */
static void draw_upright_grid(struct mr_frame *f)
{
    for (unsigned i = 0; i < f->x.n_ticks; i++) {
        double at = mr_scale_at(&f->x, f->x.tick[i]);
        mr_markup_add(f->out, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", at, f->top,
                      f->bottom);
    }
}

static void draw_rows(struct mr_frame *f)
{
    const struct mr_plot *p = f->p;
    double height = (f->bottom - f->top) / (p->n_names ? p->n_names : 1);
    for (unsigned i = 0; i < p->n_names; i++) {
        mr_markup_add(f->out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", f->left,
                      f->top + height * (i + 1), f->right);
        mr_markup_add(f->out, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">",
                      f->left - 8, f->top + height * (i + 0.5) + 4);
        short_name(f->out, p->names[i], LONGEST_ROW);
        mr_markup_add(f->out, "</text>");
    }
}

/* Do few enough marks fit into a narrow picture? */
static int is_narrow(const struct mr_plot *p)
{
    double place[FEW] = {0};
    unsigned n = 0;
    if (p->kind == MR_PLOT_BARS || p->kind == MR_PLOT_STACK)
        return p->n_names <= FEW;
    if (p->kind == MR_PLOT_ROWS)
        return 1; /* what is at the right end counts */
    if (p->kind != MR_PLOT_LINES || !p->log_x || p->n_series > FEW)
        return 0;
    for (unsigned s = 0; s < p->n_series; s++)
        for (unsigned i = 0; i < p->series[s].n; i++) {
            unsigned k = 0;
            while (k < n && place[k] != p->series[s].point[i].x)
                k++;
            if (k == FEW)
                return 0;
            if (k == n)
                place[n++] = p->series[s].point[i].x;
        }
    return 1;
}

/* Rows below each other; the values are on the x axis. */
static void lay_down(struct mr_frame *f, const struct range *y)
{
    const struct mr_plot *p = f->p;
    double row = p->kind == MR_PLOT_DOTS ? DOTS_HEIGHT : p->n_names < 2 ? ROW_HEIGHT : ROWS_HEIGHT;
    f->left = CHARACTER * (double)longest_name(p, LONGEST_ROW) + 16;
    f->bottom = f->top + row * (p->n_names ? p->n_names : 1);
    f->height = f->bottom + 46;
    f->right = f->width - 34;
    unsigned ticks = (unsigned)fmax(2, fmin(5, (f->right - f->left) / 60));
    mr_scale_init(&f->x, y->lo, y->hi, f->left, f->right, ticks, p->log_y, 1);
}

void mr_frame_init(struct mr_frame *f, const struct mr_plot *p, struct mr_markup *out)
{
    struct range x, y;
    *f = (struct mr_frame){.p = p,
                           .out = out,
                           .top = 10,
                           .bottom = MR_PLOT_HEIGHT - 46,
                           .width = is_narrow(p) ? MR_PLOT_NARROW : MR_PLOT_WIDTH,
                           .height = MR_PLOT_HEIGHT};
    f->right = f->width - 26; /* half a label */
    find_ranges(p, &x, &y);
    if (p->y_reaches > 0)
        widen(&y, p->y_reaches);
    if (p->mark)
        widen(&x, p->mark_x);
    if (mr_plot_is_lying(p)) {
        lay_down(f, &y);
        return;
    }
    if (p->kind == MR_PLOT_TIMELINE)
        f->left = CHARACTER * (double)longest_name(p, LONGEST_ROW) + 16;
    else {
        mr_scale_init(&f->y, y.lo, y.hi, f->bottom, f->top, 5, p->log_y, 1);
        f->left = label_width(f) + 34;
        turn_names(f);
    }
    int from_zero = p->kind == MR_PLOT_TIMELINE || p->kind == MR_PLOT_AREAS;
    mr_scale_init(&f->x, x.lo, x.hi, f->left, f->right, 8, p->log_x, from_zero);
    if (!mr_plot_has_names(p) && !p->log_x) { /* data, not ticks, fill the width */
        f->x.lo = from_zero ? fmin(x.lo, 0) : x.lo;
        f->x.hi = x.hi > f->x.lo ? x.hi : f->x.lo + 1;
        unsigned n = 0;
        for (unsigned i = 0; i < f->x.n_ticks; i++)
            if (f->x.tick[i] >= f->x.lo - 1e-12 && f->x.tick[i] <= f->x.hi + 1e-12)
                f->x.tick[n++] = f->x.tick[i];
        f->x.n_ticks = n;
    }
    if (f->x.log)
        tick_at_points(f, &x);
}

const char *mr_plot_row(const struct mr_plot *p, const struct mr_point *q)
{
    return q->y >= 0 && q->y < p->n_names ? p->names[(unsigned)q->y] : "";
}

void mr_frame_axes(struct mr_frame *f)
{
    if (mr_plot_is_lying(f->p))
        draw_upright_grid(f);
    if (f->p->kind == MR_PLOT_TIMELINE || mr_plot_is_lying(f->p))
        draw_rows(f);
    else
        draw_y_axis(f);
    draw_x_axis(f);
}

void mr_frame_tip(struct mr_frame *f, const struct mr_series *s, unsigned i)
{
    const struct mr_plot *p = f->p;
    const struct mr_point *q = &s->point[i];
    char a[32], b[32];
    mr_markup_add(f->out, " data-tip=\"");
    mr_markup_text(f->out, s->name);
    if (p->kind == MR_PLOT_TIMELINE) {
        mr_markup_add(f->out, ": %s to %s ", mr_number_text(q->lo, a, sizeof a),
                      mr_number_text(q->hi, b, sizeof b));
        mr_markup_text(f->out, p->x_label);
    } else {
        mr_markup_add(f->out, ", ");
        if (mr_plot_has_names(p))
            mr_markup_text(f->out, i < p->n_names ? p->names[i] : "");
        else
            mr_markup_add(f->out, "%s", mr_number_text(q->x, a, sizeof a));
        mr_markup_add(f->out, ": %s ", mr_number_text(q->y, a, sizeof a));
        mr_markup_text(f->out, p->y_label);
        if (q->hi > q->lo)
            mr_markup_add(f->out, " (%s to %s)", mr_number_text(q->lo, a, sizeof a),
                          mr_number_text(q->hi, b, sizeof b));
    }
    mr_markup_add(f->out, "\"");
}
