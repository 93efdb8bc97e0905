/* view.c - see view.h: looking things up in an experiment's JSON, and writing what was found. */
#include "view.h"

#include "plot.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct mr_json *mr_view_find(const struct mr_json *root, const char *experiment)
{
    const struct mr_json *list = mr_json_at(root, "results");
    char path[32];
    for (unsigned i = 0; list && i < mr_json_len(list); i++) {
        snprintf(path, sizeof path, "%u.experiment", i);
        const char *name = mr_json_text(mr_json_at(list, path));
        snprintf(path, sizeof path, "%u", i);
        if (name && !strcmp(name, experiment))
            return mr_json_at(list, path);
    }
    return NULL;
}

unsigned mr_view_n(const struct mr_view *v)
{
    const struct mr_json *points = mr_json_at(v->e, "points");
    return points ? (unsigned)mr_json_len(points) : 0;
}

const struct mr_json *mr_view_at(const struct mr_view *v, unsigned i, const char *field)
{
    char path[128];
    snprintf(path, sizeof path, "points.%u.%s", i, field);
    return mr_json_at(v->e, path);
}

double mr_view_number(const struct mr_view *v, unsigned i, const char *field)
{
    const struct mr_json *j = mr_view_at(v, i, field);
    return j ? mr_json_number(j) : NAN;
}

const char *mr_view_text(const struct mr_view *v, unsigned i, const char *field)
{
    const struct mr_json *j = mr_view_at(v, i, field);
    return j ? mr_json_text(j) : NULL;
}

int mr_view_flag(const struct mr_view *v, unsigned i, const char *field)
{
    const struct mr_json *j = mr_view_at(v, i, field);
    return j && mr_json_is_true(j);
}

double mr_item(const struct mr_json *list, unsigned k)
{
    return list && k < mr_json_len(list) ? mr_json_number(mr_json_item(list, k)) : NAN;
}

void mr_view_spread(const struct mr_view *v, unsigned i, const char *field, double *lo, double *hi)
{
    const struct mr_json *list = mr_view_at(v, i, field);
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

const char *mr_view_each(const struct mr_view *v, unsigned i, const char **one)
{
    static const char *const lists[][2] = {
        {"runs", "run"},
        {"each_step_s", "step"},
        {"each_s_per_image", "step"},
        {"each_stall_s", "checkpoint"},
        {"each_read_share", "step"},
        {"each_read_mb_per_s", "step"},
    };
    for (unsigned k = 0; k < sizeof lists / sizeof *lists; k++)
        if (mr_json_is_array(mr_view_at(v, i, lists[k][0]))) {
            *one = lists[k][1];
            return lists[k][0];
        }
    *one = "run";
    return NULL;
}

unsigned mr_view_n_each(const struct mr_view *v, unsigned i)
{
    const char *one, *list = mr_view_each(v, i, &one);
    return list ? (unsigned)mr_json_len(mr_view_at(v, i, list)) : 0;
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

double mr_view_list_spread(const struct mr_view *v, unsigned i, const char *list)
{
    const struct mr_json *each = mr_view_at(v, i, list);
    unsigned n = mr_json_is_array(each) ? (unsigned)mr_json_len(each) : 0;
    double lo, hi;
    if (n < 2)
        return NAN;
    if (strncmp(list, "each_", 5) || n < MR_VIEW_MANY)
        mr_view_spread(v, i, list, &lo, &hi);
    else
        quarters(each, &lo, &hi);
    return hi + lo > 0 ? 2 * (hi - lo) / (hi + lo) : 0;
}

double mr_view_stall(const struct mr_view *v, unsigned i)
{
    double n = mr_view_number(v, i, "checkpoints");
    return mr_view_number(v, i, "stall_s") / (n > 1 ? n : 1);
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
    return mr_storage_words(mr_view_text(v, i, "storage"), mr_view_flag(v, i, "emulated"), buf,
                            cap);
}

unsigned mr_view_origins(const struct mr_view *v, const struct mr_experiment *x)
{
    unsigned origins = 0;
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        const char *device = mr_view_text(v, i, "device");
        int emulated = mr_view_flag(v, i, "emulated");
        int accelerator = device && !strncmp(device, "emulated:", 9);
        if (emulated)
            origins |= 1u << x->emulated;
        else if (accelerator)
            origins |= 1u << MR_ORIGIN_PREDICTED;
        if (!emulated)
            origins |= 1u << MR_ORIGIN_REAL;
    }
    return origins;
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
