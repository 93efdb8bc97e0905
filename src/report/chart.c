/* chart.c - see chart.h. */
#include "chart.h"

#include "grow.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int find(char *const *list, unsigned n, const char *name)
{
    for (unsigned i = 0; i < n; i++)
        if (!strcmp(list[i], name))
            return (int)i;
    return -1;
}

static void format(char *buf, size_t cap, const char *fmt, va_list args)
{
    vsnprintf(buf, cap, fmt, args);
}

struct mr_series *mr_chart_series(struct mr_chart *c, const char *fmt, ...)
{
    char name[96];
    va_list args;
    va_start(args, fmt);
    format(name, sizeof name, fmt, args);
    va_end(args);
    int at = find(c->series_names, c->n_series, name);
    if (at >= 0)
        return &c->series[at];
    if (c->n_series == MR_CHART_SERIES)
        return NULL;
    if (!(c->series_names[c->n_series] = strdup(name))) {
        c->failed = 1;
        return NULL;
    }
    struct mr_series *s = &c->series[c->n_series];
    *s = (struct mr_series){.name = c->series_names[c->n_series],
                            .colour = c->n_series % MR_PLOT_COLOURS};
    c->n_series++;
    return s;
}

unsigned mr_chart_name(struct mr_chart *c, const char *fmt, ...)
{
    char name[96];
    va_list args;
    va_start(args, fmt);
    format(name, sizeof name, fmt, args);
    va_end(args);
    int at = find(c->names, c->n_names, name);
    if (at >= 0)
        return (unsigned)at;
    if (c->n_names == MR_CHART_NAMES)
        return MR_CHART_NAMES;
    if (!(c->names[c->n_names] = strdup(name))) {
        c->failed = 1;
        return MR_CHART_NAMES;
    }
    return c->n_names++;
}

void mr_chart_add(struct mr_chart *c, struct mr_series *s, struct mr_point p)
{
    if (!s || c->failed)
        return;
    size_t k = (size_t)(s - c->series);
    struct mr_point *points = mr_grown(c->points[k], s->n, &c->cap[k], sizeof p);
    if (!points) {
        c->failed = 1;
        return;
    }
    c->points[k] = points;
    points[s->n++] = p;
    s->point = c->points[k];
}

void mr_chart_put(struct mr_chart *c, struct mr_series *s, unsigned at, double y, double lo,
                  double hi)
{
    if (at >= MR_CHART_NAMES)
        return;
    while (s && s->n <= at && !c->failed)
        mr_chart_add(c, s, (struct mr_point){.x = s->n, .y = NAN});
    if (s && !c->failed)
        c->points[s - c->series][at] = (struct mr_point){at, y, lo, hi};
}

void mr_chart_finish(struct mr_chart *c)
{
    c->plot.series = c->series;
    c->plot.n_series = c->n_series;
    c->plot.names = (const char *const *)c->names;
    c->plot.n_names = c->n_names;
}

void mr_chart_fini(struct mr_chart *c)
{
    for (unsigned i = 0; i < c->n_series; i++) {
        free(c->points[i]);
        free(c->series_names[i]);
    }
    for (unsigned i = 0; i < c->n_names; i++)
        free(c->names[i]);
}
