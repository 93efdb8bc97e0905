/* repeat.h - run a thing several times, leave the first out, and say what is typical and how far
 * the others were from it. */
#ifndef MR_REPEAT_H
#define MR_REPEAT_H

struct mr_summary {
    unsigned n;
    double median, min, max;
    double spread; /* (max - min) / median */
};

/* All zero for n = 0.  Sorts a copy: -ENOMEM is possible. */
int mr_summarize(const double *values, unsigned n, struct mr_summary *out);

/* Which of the values is the median (the lower one of two): for fields that belong to one run. */
unsigned mr_median_index(const double *values, unsigned n);

/* Call run(ctx, i) for i = 0 .. n-1 until one returns nonzero; returns that, or 0.
 * Run 0 is a warm-up whenever n > 1: mr_repeat_first says how many to leave out. */
int mr_repeat(unsigned n, int (*run)(void *ctx, unsigned i), void *ctx);
static inline unsigned mr_repeat_first(unsigned n)
{
    return n > 1;
}

#endif
