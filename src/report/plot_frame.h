/* plot_frame.h - what all kinds of plots share: the picture's measures, axes, a mark's hint. */
#ifndef MR_PLOT_FRAME_H
#define MR_PLOT_FRAME_H

#include "plot.h"
#include "scale.h"

#define MR_PLOT_WIDTH  760.0
#define MR_PLOT_HEIGHT 360.0

struct mr_frame {
    const struct mr_plot *p;
    struct mr_markup *out;
    struct mr_scale x, y;
    double left, right, top, bottom; /* of the area where data are drawn */
};

/* Scales for the plot's data; then grid, ticks and labels. */
void mr_frame_begin(struct mr_frame *f, const struct mr_plot *p, struct mr_markup *out);
/* data-tip="series, category: value" for a mark. */
void mr_frame_tip(struct mr_frame *f, const struct mr_series *s, unsigned i);

/* Each kind's marks. */
void mr_draw_bars(struct mr_frame *f);
void mr_draw_lines(struct mr_frame *f);
void mr_draw_areas(struct mr_frame *f);
void mr_draw_timeline(struct mr_frame *f);

#endif
