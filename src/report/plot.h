/* plot.h - pictures of numbers: bars, dots, lines, stacked areas over time, histograms, timelines.
 *
 * A plot is plain data; it can be written as SVG inside an HTML figure (with legend and a table as
 * its text equivalent), and as CSV.  Colours are CSS classes s0 .. s7, so a page can be light or
 * dark; they are told apart by people who see colours differently. */
#ifndef MR_PLOT_H
#define MR_PLOT_H

#include "markup.h"

enum mr_plot_kind {
    MR_PLOT_BARS,     /* point i of a series stands at category i, series side by side */
    MR_PLOT_STACK,    /* the same, series on top of each other */
    MR_PLOT_ROWS,     /* as STACK, lying: a row a category, values to the right */
    MR_PLOT_DOTS,     /* a row a category, a dot a series: for many categories, and for log_y */
    MR_PLOT_LINES,    /* points joined; with error marks where lo and hi are given */
    MR_PLOT_AREAS,    /* y over x, series on top of each other; all have the same x */
    MR_PLOT_TIMELINE, /* spans from lo to hi on the row y */
};

#define MR_PLOT_COLOURS 8

struct mr_point {
    double x, y;
    double lo, hi; /* error mark, or a span's ends; lo = hi = 0: none */
};

struct mr_series {
    const char *name;
    unsigned colour; /* 0 .. MR_PLOT_COLOURS - 1 */
    int dashed;      /* lines: another one of the same colour */
    unsigned n;
    const struct mr_point *point;
};

struct mr_plot {
    enum mr_plot_kind kind;
    const char *id;    /* letters, digits, '-': unique among plots, and the CSV's name */
    const char *title; /* also the accessible name */
    const char *x_label,
        *y_label;        /* with units: "threads", "images/s"; lying: y is of the values */
    const char *summary; /* what it shows, in a sentence, for those who do not see it */
    int log_x, log_y;
    double y_reaches; /* the y axis goes at least as far; 0: as far as the data */
    int touching;     /* bars without gaps: a histogram */
    const char *mark; /* areas, lines: what is at mark_x, a line across; NULL: nothing */
    double mark_x;
    unsigned n_series;
    const struct mr_series *series;
    unsigned n_names;         /* categories of bars, rows of a timeline */
    const char *const *names; /* [n_names] */
};

/* A <figure> with legend, picture and table. */
void mr_plot_figure(const struct mr_plot *p, struct mr_markup *out);
void mr_plot_csv(const struct mr_plot *p, struct mr_markup *out);

#endif
