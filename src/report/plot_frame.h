/* plot_frame.h - what all kinds of plots share: the picture's measures, axes, a mark's hint. */
#ifndef MR_PLOT_FRAME_H
#define MR_PLOT_FRAME_H

#include "plot.h"
#include "scale.h"

#define MR_PLOT_WIDTH  760.0
#define MR_PLOT_NARROW 440.0 /* with few marks: readable on a phone */
#define MR_PLOT_HEIGHT 360.0

struct mr_frame {
    const struct mr_plot *p;
    struct mr_markup *out;
    struct mr_scale x, y;
    double left, right, top, bottom; /* of the area where data are drawn */
    double width, height;            /* of the picture; higher when names stand aslant */
    double slant;                    /* degrees by which names are turned, 0 or less */
};

/* Do points stand in categories, side by side or in rows below each other? */
static inline int mr_plot_is_lying(const struct mr_plot *p)
{
    return p->kind == MR_PLOT_ROWS || p->kind == MR_PLOT_DOTS;
}
static inline int mr_plot_has_names(const struct mr_plot *p)
{
    return p->kind == MR_PLOT_BARS || p->kind == MR_PLOT_STACK || mr_plot_is_lying(p);
}

/* Scales for the plot's data. */
void mr_frame_init(struct mr_frame *f, const struct mr_plot *p, struct mr_markup *out);
/* Grid, ticks and labels. */
void mr_frame_axes(struct mr_frame *f);
/* The name of the row that a span of a timeline is in. */
const char *mr_plot_row(const struct mr_plot *p, const struct mr_point *q);
/* data-tip="series, category: value unit" for a mark. */
void mr_frame_tip(struct mr_frame *f, const struct mr_series *s, unsigned i);

/* Each kind's marks. */
void mr_draw_bars(struct mr_frame *f);
void mr_draw_rows(struct mr_frame *f);
void mr_draw_dots(struct mr_frame *f);
void mr_draw_lines(struct mr_frame *f);
void mr_draw_areas(struct mr_frame *f);
void mr_draw_timeline(struct mr_frame *f);

#endif
