/* view.c - see view.h: looking things up in an experiment's JSON, and writing what was found. */
#include "view.h"

#include "plot.h"
#include "section.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *mr_one_word(enum mr_one one)
{
    static const char *const words[MR_N_ONES] = {"run", "step", "checkpoint"};
    return words[one];
}

unsigned mr_view_n(const struct mr_view *v)
{
    return (unsigned)mr_result_n_points(v->e);
}

const struct mr_json *mr_view_point(const struct mr_view *v, unsigned i)
{
    return mr_result_point(v->e, i);
}

struct mr_any_point mr_view_any(const struct mr_view *v, unsigned i)
{
    return mr_any_point_of(mr_view_point(v, i));
}

const struct mr_json *mr_view_each(const struct mr_view *v, unsigned i)
{
    return v->section->each ? mr_field_list(v->section->each, mr_view_point(v, i)) : NULL;
}

enum mr_one mr_view_one(const struct mr_view *v, unsigned i)
{
    return mr_view_each(v, i) ? v->section->each_of : MR_ONE_RUN;
}

unsigned mr_view_n_each(const struct mr_view *v, unsigned i)
{
    const struct mr_json *list = mr_view_each(v, i);
    return list ? (unsigned)mr_json_len(list) : 0;
}

double mr_item(const struct mr_json *list, unsigned k)
{
    return list && k < mr_json_len(list) ? mr_json_number(mr_json_item(list, k)) : NAN;
}

void mr_list_range(const struct mr_json *list, double *lo, double *hi)
{
    unsigned n = list ? (unsigned)mr_json_len(list) : 0;
    *lo = INFINITY;
    *hi = -INFINITY;
    for (unsigned k = 0; k < n; k++) {
        double x = mr_item(list, k);
        if (isfinite(x)) {
            *lo = fmin(*lo, x);
            *hi = fmax(*hi, x);
        }
    }
    if (n < 2 || !(*hi > *lo))
        *lo = *hi = 0;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The quarters of a list; both 0 when there is nothing to sort, or no memory. */
static void quarters(const struct mr_json *list, double *lo, double *hi)
{
    unsigned n = 0;
    double *x = calloc(mr_json_len(list), sizeof *x);
    for (unsigned k = 0; x && k < mr_json_len(list); k++)
        if (isfinite(mr_item(list, k)))
            x[n++] = mr_item(list, k);
    if (n)
        qsort(x, n, sizeof *x, by_size);
    *lo = n ? x[n / 4] : 0;
    *hi = n ? x[n - 1 - n / 4] : 0;
    free(x);
}

double mr_list_spread(const struct mr_json *list, enum mr_one of)
{
    unsigned n = mr_json_is_array(list) ? (unsigned)mr_json_len(list) : 0;
    double lo, hi;
    if (n < 2)
        return NAN;
    if (of == MR_ONE_RUN || n < MR_VIEW_MANY)
        mr_list_range(list, &lo, &hi);
    else
        quarters(list, &lo, &hi);
    return hi + lo > 0 ? 2 * (hi - lo) / (hi + lo) : 0;
}

double mr_stall_of_one(const struct mr_checkpoint_point *p)
{
    return p->stall_s / (p->checkpoints > 1 ? p->checkpoints : 1);
}

int mr_is_text(const char *a, const char *b)
{
    return a && b && !strcmp(a, b);
}

const char *mr_storage_words(const char *storage, int emulated, char *buf, size_t cap)
{
    if (!storage || !strcmp(storage, "disk"))
        snprintf(buf, cap, "this disk");
    else
        snprintf(buf, cap, "%s%s", storage, emulated ? " (emulated)" : "");
    return buf;
}

const char *mr_pattern_words(const char *pattern)
{
    static const char *const words[][2] = {
        {"seq", "in order"},
        {"random-imagenet", "random, ImageNet's sizes"},
        {"random-4k", "random, 4 KiB"},
        {"random-16k", "random, 16 KiB"},
        {"small-files", "small files"},
        {"fsync", "write and fsync"},
    };
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(pattern, words[i][0]))
            return words[i][1];
    return pattern;
}

const char *mr_view_storage(const struct mr_view *v, unsigned i, char *buf, size_t cap)
{
    struct mr_any_point p = mr_view_any(v, i);
    return mr_storage_words(p.storage, p.emulated, buf, cap);
}

/* Is there a single value?  A timeline's are lo and hi. */
static int has_values(const struct mr_chart *c)
{
    for (unsigned s = 0; s < c->n_series; s++)
        for (unsigned i = 0; i < c->series[s].n; i++) {
            const struct mr_point *q = &c->series[s].point[i];
            if (isfinite(c->plot.kind == MR_PLOT_TIMELINE ? q->hi - q->lo : q->y))
                return 1;
        }
    return 0;
}

void mr_view_plot(struct mr_view *v, struct mr_chart *c)
{
    struct mr_markup csv = {0};
    mr_chart_finish(c);
    if (c->failed)
        v->out->failed = 1;
    if (!has_values(c) && !c->failed) {
        mr_markup_add(v->out, "<p class=\"meta\">Nothing to draw: ");
        mr_markup_text(v->out, c->plot.title);
        mr_markup_add(v->out, "</p>");
    } else if (!c->failed) {
        mr_plot_figure(&c->plot, v->out);
        mr_plot_csv(&c->plot, &csv);
        if (v->o && v->o->on_csv && !v->code && mr_markup_ok(&csv))
            v->code = v->o->on_csv(v->o->ctx, c->plot.id, csv.data, csv.len);
        mr_markup_fini(&csv);
    }
    mr_chart_fini(c);
}

void mr_view_finding(struct mr_view *v, const char *fmt, ...)
{
    char text[600];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    mr_markup_add(&v->here, "<p class=\"finding\">");
    mr_markup_text(&v->here, text);
    mr_markup_add(&v->here, "</p>");
}
