/* view.h - one experiment of a study as a section of the page: reading it, and writing what was
 * found. */
#ifndef MR_VIEW_H
#define MR_VIEW_H

#include "chart.h"
#include "points.h"
#include "report.h"

struct mr_section;

struct mr_view {
    const struct mr_json *e; /* the experiment's result; NULL: it was not run */
    const struct mr_section *section;
    struct mr_markup *out;
    struct mr_markup here; /* what was found, in words */
    const struct mr_report_opts *o;
    int code; /* what on_csv returned */
};

/* What a point was measured on several times. */
enum mr_one { MR_ONE_RUN, MR_ONE_STEP, MR_ONE_CHECKPOINT, MR_N_ONES };
const char *mr_one_word(enum mr_one one); /* "run" */

unsigned mr_view_n(const struct mr_view *v);
/* Point i, for the reader of its record: mr_overlap_point_of(mr_view_point(v, i)). */
const struct mr_json *mr_view_point(const struct mr_view *v, unsigned i);
/* What every experiment's points may have. */
struct mr_any_point mr_view_any(const struct mr_view *v, unsigned i);

/* The list of point i that its section names (`each`); NULL when the point does not have it. */
const struct mr_json *mr_view_each(const struct mr_view *v, unsigned i);
/* What an item of that list is of; a run where there is no list. */
enum mr_one mr_view_one(const struct mr_view *v, unsigned i);
/* How many items it has, 0 when there is none. */
unsigned mr_view_n_each(const struct mr_view *v, unsigned i);

/* Number k of an array, NaN when it is none. */
double mr_item(const struct mr_json *list, unsigned k);
/* Smallest and largest of an array of numbers; both 0 for fewer than two. */
void mr_list_range(const struct mr_json *list, double *lo, double *hi);
/* How far the items of a list lie apart, of their middle: the largest from the smallest, or, of
 * many steps, where some always stray, the upper quarter from the lower one.  NaN for fewer than
 * two. */
double mr_list_spread(const struct mr_json *list, enum mr_one of);
#define MR_VIEW_MANY 8 /* steps: from here on it is quarters */

/* Seconds that one checkpoint of a point stopped training: `stall_s` is of all of the run. */
double mr_stall_of_one(const struct mr_checkpoint_point *p);
/* "hdd (emulated)" or "this disk" */
const char *mr_view_storage(const struct mr_view *v, unsigned i, char *buf, size_t cap);
/* The same for another field that names a storage; only the real one is called "disk". */
const char *mr_storage_words(const char *storage, int emulated, char *buf, size_t cap);
/* "in order" for "seq": a pattern of raw access as people say it. */
const char *mr_pattern_words(const char *pattern);
/* 1 when both texts are there and the same. */
int mr_is_text(const char *a, const char *b);

/* Write the figure and its CSV, and free the chart. */
void mr_view_plot(struct mr_view *v, struct mr_chart *c);
/* A sentence about what was found, to stand beside what the studies found. */
void mr_view_finding(struct mr_view *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Cache proof and spread, whatever the points are (view_method.c). */
void mr_view_method(struct mr_view *v);

#endif
