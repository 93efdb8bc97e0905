/* scale.h - numbers on an axis: round ticks, and values as people write them. */
#ifndef MR_SCALE_H
#define MR_SCALE_H

#include <stddef.h>

#define MR_MAX_TICKS 12

struct mr_scale {
    double lo, hi;   /* values at the two ends */
    double from, to; /* where these are, in the picture */
    int log;         /* both ends positive */
    unsigned n_ticks;
    double tick[MR_MAX_TICKS];
    double step; /* between ticks, for their digits; 0 when log */
};

/* An axis that holds lo..hi with about `wanted` ticks; `from_zero` lets it begin at 0. */
void mr_scale_init(struct mr_scale *s, double lo, double hi, double from, double to,
                   unsigned wanted, int log, int from_zero);
double mr_scale_at(const struct mr_scale *s, double value);

/* "1,234", "0.031", "12.5": three digits that count, thousands apart. */
const char *mr_number_text(double v, char *buf, size_t cap);
/* The same, but "<0.001" for what is more than nothing and less than `least`. */
const char *mr_small_text(double v, double least, char *buf, size_t cap);
/* A tick's label, with as many digits as tell it from its neighbours. */
const char *mr_tick_text(const struct mr_scale *s, double v, char *buf, size_t cap);

#endif
