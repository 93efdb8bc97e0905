/* view_parts.h - the functions that show one experiment each. */
#ifndef MR_VIEW_PARTS_H
#define MR_VIEW_PARTS_H

#include "view.h"

void mr_show_verdict(struct mr_view *v);
void mr_show_baseline(struct mr_view *v);
void mr_show_read(struct mr_view *v);
void mr_show_decode(struct mr_view *v);
void mr_show_overlap(struct mr_view *v);
void mr_show_batch(struct mr_view *v);
void mr_show_activity(struct mr_view *v);
void mr_show_checkpoint(struct mr_view *v);
void mr_show_phases(struct mr_view *v);
void mr_show_files(struct mr_view *v);
/* Cache proof and spread, whatever the points are. */
void mr_show_method(struct mr_view *v);

#endif
