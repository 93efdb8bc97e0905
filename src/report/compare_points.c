/* compare_points.c - see compare.h.
 *
 * Points are matched by what identifies them (storage, engine, threads, ...); of each one figure is
 * compared.  A difference counts when it is larger than 5% and than noise explains.  The noise is
 * known from the spread of several runs, or within a run of its steps or checkpoints.  A page
 * compares many figures, and some stray by chance: each has its share of the 5% of pages of
 * identical studies that may have a mark.  Identical studies hardly ever differ by three times,
 * whatever their noise: there a lower bar is enough.
 *
 * The spread of a figure that was measured once is not known: then a difference counts when one is
 * three times the other, or when something was nothing before, or is nothing now.  What only one of
 * the studies has is listed. */
#include "compare.h"

#include "scale.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST  0.05 /* a smaller difference is none */
#define CHANCE 0.05 /* that a page of two identical studies has a mark */
#define ALONE  3.0  /* times: a difference of figures whose spread is not known */
#define LARGE  0.01 /* chance of a difference of as many times, in one figure */

/* ---- what identifies a point ---- */

/* The value of a key as people say it; "" when the point does not have it. */
static const char *key_value(const struct mr_json *point, const struct mr_key *k, char *buf,
                             size_t cap)
{
    const char *text = mr_field_text(k->field, point);
    double x = mr_field_number(k->field, point);
    buf[0] = 0;
    if (k->field->kind == MR_FIELD_REAL && isfinite(x))
        snprintf(buf, cap, "%g", x);
    else if (k->field->kind != MR_FIELD_TEXT || !text)
        return buf;
    else if (k->kind == MR_KEY_STORAGE)
        mr_storage_words(text, mr_any_point_of(point).emulated, buf, cap);
    else
        snprintf(buf, cap, "%s", k->kind == MR_KEY_PATTERN ? mr_pattern_words(text) : text);
    return buf;
}

/* The same with the words around it: "8 threads". */
static const char *key_words(const struct mr_json *point, const struct mr_key *k, char *buf,
                             size_t cap)
{
    char value[96];
    int there = key_value(point, k, value, sizeof value)[0] || mr_field_flag(k->field, point);
    snprintf(buf, cap, "%s%s%s%s", there && k->before ? k->before : "", value,
             there && k->after ? k->after : "",
             there && k->plural && strcmp(value, "1") ? "s" : "");
    return buf;
}

/* "hdd (emulated), threads engine, 8 threads" */
static void key_of(const struct mr_json *point, const struct mr_measure *m, char *buf, size_t cap)
{
    char words[128];
    buf[0] = 0;
    for (const struct mr_key *k = m->keys; k->field; k++) {
        size_t at = strlen(buf);
        if (key_words(point, k, words, sizeof words)[0])
            snprintf(buf + at, cap - at, "%s%s", at ? ", " : "", words);
    }
}

/* Points of one kind should be much as noisy: its storage, or what else identifies it first. */
static void kind_of(const struct mr_json *point, const struct mr_measure *m, char *buf, size_t cap)
{
    struct mr_any_point p = mr_any_point_of(point);
    if (p.storage)
        mr_storage_words(p.storage, p.emulated, buf, cap);
    else
        key_words(point, m->keys, buf, cap);
}

/* The figure of a point: a number, or the mean of several. */
static double figure_of(const struct mr_json *point, const struct mr_measure *m)
{
    const struct mr_json *list = mr_field_list(m->field, point);
    double sum = 0, n = 0;
    if (m->figure)
        return m->figure(point);
    if (!list)
        return mr_field_number(m->field, point);
    for (unsigned k = 0; k < mr_json_len(list); k++) {
        double x = mr_item(list, k);
        sum += isfinite(x) ? x : 0;
        n += isfinite(x);
    }
    return n > 0 ? sum / n : NAN;
}

/* The point of `v` that is identified by the same words; -1 when there is none. */
static int find(const struct mr_view *v, const struct mr_measure *m, const char *key)
{
    char other[256];
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        key_of(mr_view_point(v, i), m, other, sizeof other);
        if (!strcmp(key, other))
            return (int)i;
    }
    return -1;
}

/* ---- noise ---- */

/* The numbers of a list, to be freed; NULL when there are none, or no memory, which the page knows.
 */
static double *values_of(struct mr_markup *out, const struct mr_json *list, unsigned *n)
{
    size_t len = mr_json_is_array(list) ? mr_json_len(list) : 0;
    double *x = len ? calloc(len, sizeof *x) : NULL;
    *n = 0;
    if (len && !x)
        out->failed = 1;
    for (unsigned k = 0; x && k < len; k++)
        if (isfinite(mr_item(list, k)))
            x[(*n)++] = mr_item(list, k);
    return x;
}

/* How likely it is that a point with such a list has none of what is measured: not at all where
 * each of its values is more than `least`. */
static double zero_p_of(struct mr_markup *out, const struct mr_json *list, double least)
{
    unsigned n, above = 0;
    double *x = values_of(out, list, &n), p = x ? mr_zero_p(x, n) : 1;
    for (unsigned k = 0; k < n; k++)
        above += x[k] > least;
    free(x);
    return n > 1 && above == n ? 0 : p;
}

struct mr_noise mr_noise_of_list(struct mr_markup *out, const struct mr_json *list, enum mr_one of)
{
    struct mr_noise noise = {0};
    unsigned n;
    double *x = values_of(out, list, &n);
    if (x)
        noise = of == MR_ONE_RUN ? mr_noise_of_runs(x, n) : mr_noise_of_steps(x, n);
    free(x);
    return noise;
}

struct mr_figures mr_figures_of(double a, double b, const char *alone)
{
    return (struct mr_figures){.x = {a, b}, .spread = {NAN, NAN}, .alone = alone};
}

/* Why a spread is not known: one run was made, or the list of steps was not kept. */
static const char *why_alone(const struct mr_measure *m, int kept)
{
    static const char *const words[MR_N_ONES] = {"one run", "one step", "one checkpoint"};
    return kept || m->of == MR_ONE_RUN ? words[m->of] : "not known";
}

/* Of the figure in both studies; NaN where there was one of what it is of. */
static void add_spreads(const struct mr_pair *p, const struct mr_json *const point[2],
                        const struct mr_measure *m, struct mr_figures *f)
{
    int kept = 1;
    for (unsigned k = 0; k < 2; k++) {
        const struct mr_json *list = mr_field_list(m->each, point[k]);
        f->spread[k] = mr_list_spread(list, m->of);
        f->noise[k] = mr_noise_of_list(p->out, list, m->of);
        f->zero_p[k] = zero_p_of(p->out, list, m->least);
        kept &= list != NULL;
    }
    f->alone = why_alone(m, kept);
}

/* ---- a row ---- */

static int is_known(const struct mr_figures *f)
{
    return isfinite(f->spread[0] + f->spread[1]);
}

/* Is the figure of study `k` more than noise around 0?  One whose spread is not known counts. */
static int is_above_0(const struct mr_figures *f, unsigned k, unsigned n_tested)
{
    return !isfinite(f->spread[k]) || f->zero_p[k] * n_tested < CHANCE || f->zero_p[k] < LARGE;
}

/* Is the difference more than noise, on a page with n_tested figures? */
static int counts(const struct mr_measure *m, const struct mr_figures *f, unsigned n_tested)
{
    double a = f->x[0], b = f->x[1];
    if (!(fabs(b - a) > m->least) || !is_above_0(f, b > a, n_tested))
        return 0;
    if (a == 0 || b == 0) /* which have no logarithm */
        return 1;
    double times = fmax(a, b) / fmin(a, b); /* whichever of the studies comes first */
    if (!is_known(f))
        return times >= ALONE;
    double p = mr_difference_p(a, b, f->noise, &f->alike);
    return times - 1 > LEAST && (p * n_tested < CHANCE || (times >= ALONE && p < LARGE));
}

static void difference(const struct mr_pair *p, const struct mr_measure *m,
                       const struct mr_figures *f, struct mr_markup *out)
{
    double a = f->x[0], b = f->x[1];
    int more = b > a, mark = counts(m, f, p->n_tested);
    const char *word = !mark                            ? ""
                       : m->better == MR_NEITHER        ? "differs"
                       : more == (m->better == MR_MORE) ? "better"
                                                        : "worse";
    mr_markup_add(out, "<td class=\"%s\">", word);
    if (a > 0)
        mr_markup_add(out, "%+.1f%%", fmin(100 * (b / a - 1), 1e6));
    else
        mr_markup_add(out, b > 0 ? "from 0" : "same");
    if (mark)
        mr_markup_add(out, " %s %s", more ? "▲" : "▼", word);
    mr_markup_add(out, "</td>");
}

static void row(const struct mr_pair *p, const struct mr_measure *m, const char *key,
                const struct mr_figures *f, struct mr_markup *out)
{
    char text[32];
    mr_markup_add(out, "<tr><td>");
    mr_markup_text(out, key);
    mr_markup_add(out, "</td>");
    difference(p, m, f, out);
    for (unsigned k = 0; k < 2; k++)
        mr_markup_add(out, "<td>%s</td>", mr_number_text(f->x[k], text, sizeof text));
    if (is_known(f))
        mr_markup_add(out, "<td>%.1f%%, %.1f%%</td></tr>", 100 * fmin(f->spread[0], 1e4),
                      100 * fmin(f->spread[1], 1e4));
    else
        mr_markup_add(out, "<td>%s</td></tr>", f->alone);
}

void mr_compare_begin(const struct mr_pair *p, const char *what, const char *of)
{
    mr_markup_add(p->out, "<div class=\"scroll\"><table><thead><tr><th>%s</th><th>difference",
                  what);
    for (unsigned k = 0; k < 2; k++) {
        mr_markup_add(p->out, "</th><th>");
        mr_markup_text(p->out, p->name[k]);
    }
    mr_markup_add(p->out, "</th><th>spread%s%s%s</th></tr></thead><tbody>", of ? " of " : "",
                  of ? of : "", of ? "s" : "");
}

void mr_compare_row(const struct mr_pair *p, const struct mr_measure *m, const char *title,
                    struct mr_figures f)
{
    if (f.x[0] >= 0 && f.x[1] >= 0 && isfinite(f.x[0] + f.x[1]))
        row(p, m, title, &f, p->out);
}

void mr_compare_end(const struct mr_pair *p)
{
    mr_markup_add(p->out, "</tbody></table></div>");
}

/* ---- all points ---- */

/* Points of study `k` that the other one does not have. */
static void only_in(const struct mr_pair *p, unsigned k, const struct mr_view v[2],
                    const struct mr_measure *m)
{
    unsigned n = 0;
    char key[256];
    for (unsigned i = 0; i < mr_view_n(&v[k]); i++) {
        const struct mr_json *point = mr_view_point(&v[k], i);
        key_of(point, m, key, sizeof key);
        if (find(&v[1 - k], m, key) >= 0 || !isfinite(figure_of(point, m)))
            continue;
        if (!n++) {
            mr_markup_add(p->out, "<p class=\"only\">Only in ");
            mr_markup_text(p->out, p->name[k]);
            mr_markup_add(p->out, ": ");
        } else {
            mr_markup_add(p->out, "; ");
        }
        mr_markup_text(p->out, key);
    }
    if (n)
        mr_markup_add(p->out, ".</p>");
}

/* A point that both studies have. */
struct match {
    const struct mr_json *point; /* of the first */
    char kind[128];
    struct mr_figures f;
};

/* 1 when point `i` of the first study is in both, and has figures. */
static int match(const struct mr_pair *p, const struct mr_view v[2], const struct mr_measure *m,
                 unsigned i, struct match *out)
{
    const struct mr_json *point[2] = {mr_view_point(&v[0], i)};
    char key[256];
    key_of(point[0], m, key, sizeof key);
    int other = find(&v[1], m, key);
    if (other < 0)
        return 0;
    point[1] = mr_view_point(&v[1], (unsigned)other);
    *out = (struct match){.point = point[0]};
    for (unsigned k = 0; k < 2; k++)
        out->f.x[k] = figure_of(point[k], m);
    const double *x = out->f.x;
    if (!(x[0] >= 0 && x[1] >= 0 && x[0] + x[1] > 0 && isfinite(x[0] + x[1])))
        return 0;
    kind_of(point[0], m, out->kind, sizeof out->kind);
    add_spreads(p, point, m, &out->f);
    return 1;
}

/* For each, what the others of its kind say about noise. */
static void add_alike(struct match *list, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < n; k++)
            if (k != i && !strcmp(list[i].kind, list[k].kind))
                for (unsigned of = 0; of < 2; of++)
                    mr_noise_add(&list[i].f.alike, &list[k].f.noise[of]);
}

/* All of them, to be freed; NULL when there are none, or no memory, which the page knows. */
static struct match *matches(const struct mr_pair *p, const struct mr_view v[2],
                             const struct mr_measure *m, unsigned *n)
{
    *n = 0;
    if (!mr_view_n(&v[0]))
        return NULL;
    struct match *list = calloc(mr_view_n(&v[0]), sizeof *list);
    if (!list)
        p->out->failed = 1;
    for (unsigned i = 0; list && i < mr_view_n(&v[0]); i++)
        *n += (unsigned)match(p, v, m, i, &list[*n]);
    add_alike(list, *n);
    return list;
}

unsigned mr_compare_n_tested(const struct mr_pair *p, const struct mr_view v[2],
                             const struct mr_measure *m)
{
    unsigned n, n_tested = 0;
    struct match *list = matches(p, v, m, &n);
    for (unsigned k = 0; k < n; k++)
        n_tested += (unsigned)is_known(&list[k].f);
    free(list);
    return n_tested;
}

void mr_compare_points(struct mr_pair *p, struct mr_view v[2], const struct mr_measure *m)
{
    char id[64], title[96], key[256];
    unsigned n;
    struct mr_chart c = {
        .plot = {.kind = MR_PLOT_DOTS,
                 .id = id,
                 .title = title,
                 .x_label = "what was measured",
                 .y_label = m->unit,
                 .log_y = m->better == MR_MORE,
                 .summary = "A row for each point, with a dot for each of the studies."}};
    struct mr_series *series[] = {mr_chart_series(&c, "%s", p->name[0]),
                                  mr_chart_series(&c, "%s ", p->name[1])};
    struct mr_markup table = {0};
    struct match *list = matches(p, v, m, &n);
    snprintf(id, sizeof id, "compare-%s", m->id);
    snprintf(title, sizeof title, "Point by point, %s", m->unit);
    for (unsigned i = 0; i < n; i++) {
        key_of(list[i].point, m, key, sizeof key);
        row(p, m, key, &list[i].f, &table);
        unsigned at = mr_chart_name(&c, "%s", key);
        for (unsigned k = 0; k < 2; k++)
            mr_chart_put(&c, series[k], at, list[i].f.x[k], 0, 0);
    }
    free(list);
    if (table.len) {
        mr_view_plot(&v[0], &c);
        mr_compare_begin(p, m->unit, mr_one_word(m->of));
        mr_markup_add(p->out, "%s", table.data);
        mr_compare_end(p);
    } else {
        mr_chart_fini(&c);
        mr_markup_add(p->out, "<p>Nothing that both have measured alike.</p>");
    }
    mr_markup_fini(&table);
    for (unsigned k = 0; k < 2; k++)
        only_in(p, k, v, m);
}
