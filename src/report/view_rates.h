/* view_rates.h - images a second over threads: what `read` and `decode` have in common. */
#ifndef MR_VIEW_RATES_H
#define MR_VIEW_RATES_H

#include "section.h"

/* The rate over the number of threads, a line for each storage and engine. */
void mr_show_rates(struct mr_view *v, const char *id, const char *title);
/* One row a storage: the way that comes nearest to its limit. */
void mr_show_shares(struct mr_view *v);
/* "uring, 8 threads" */
const char *mr_rate_way(const struct mr_read_point *p, char *buf, size_t cap);

/* What identifies a point. */
extern const struct mr_key mr_rate_keys[];

#endif
