/* chart.h - from points in JSON to plots: which of them belong to a series, and in what order.
 *
 * A chart owns the arrays that a struct mr_plot points to. */
#ifndef MR_CHART_H
#define MR_CHART_H

#include "json.h"
#include "plot.h"

#define MR_CHART_SERIES 16
#define MR_CHART_NAMES  64

struct mr_chart {
    struct mr_plot plot; /* series and names are filled in by mr_chart_finish */
    struct mr_series series[MR_CHART_SERIES];
    struct mr_point *points[MR_CHART_SERIES];
    size_t cap[MR_CHART_SERIES];
    char *names[MR_CHART_NAMES], *series_names[MR_CHART_SERIES];
    unsigned n_names, n_series;
    int failed;
};

/* The series of that name, made when it is new; NULL when there are too many. */
struct mr_series *mr_chart_series(struct mr_chart *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The number of a category or row, made when it is new; MR_CHART_NAMES when there are too many:
 * what is put there is left out. */
unsigned mr_chart_name(struct mr_chart *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void mr_chart_add(struct mr_chart *c, struct mr_series *s, struct mr_point p);
/* Bars: the point of category `at`; what lies between is empty. */
void mr_chart_put(struct mr_chart *c, struct mr_series *s, unsigned at, double y, double lo,
                  double hi);
/* Point the plot at what was gathered. */
void mr_chart_finish(struct mr_chart *c);
void mr_chart_fini(struct mr_chart *c);

#endif
