/* view.h - one experiment of a study as a section of the page. */
#ifndef MR_VIEW_H
#define MR_VIEW_H

#include "chart.h"
#include "report.h"

struct mr_view {
    const struct mr_json *e; /* the experiment */
    struct mr_markup *out;
    struct mr_markup here; /* what was found, in words */
    const struct mr_report_opts *o;
    int code; /* what on_csv returned */
};

/* How a figure came about; the page never lets one pass for another. */
enum mr_origin {
    MR_ORIGIN_REAL,       /* measured on this machine's own storage and cores */
    MR_ORIGIN_PREDICTED,  /* follows from emulated devices, was not put into them */
    MR_ORIGIN_CALIBRATED, /* the emulated device was fitted to it */
};

struct mr_experiment {
    const char *name, *title;
    const char *link;        /* a word for the bar of links */
    const char *question;    /* what it answers, in a sentence */
    const char *study;       /* what the studies found */
    enum mr_origin emulated; /* what its figures from emulated devices are */
    void (*show)(struct mr_view *v);
};

extern const struct mr_experiment mr_experiments[];
extern const unsigned mr_n_experiments;

/* The experiment of that name among a study's results, NULL when it is not there. */
const struct mr_json *mr_view_find(const struct mr_json *root, const char *experiment);

/* Members of point i, e.g. mr_view_number(v, 3, "images_per_s"): NaN or NULL when absent. */
unsigned mr_view_n(const struct mr_view *v);
const struct mr_json *mr_view_at(const struct mr_view *v, unsigned i, const char *field);
double mr_view_number(const struct mr_view *v, unsigned i, const char *field);
const char *mr_view_text(const struct mr_view *v, unsigned i, const char *field);
int mr_view_flag(const struct mr_view *v, unsigned i, const char *field);
/* Number k of an array, NaN when it is none. */
double mr_item(const struct mr_json *list, unsigned k);
/* Smallest and largest of an array of numbers; both 0 for fewer than two. */
void mr_view_spread(const struct mr_view *v, unsigned i, const char *field, double *lo, double *hi);
/* What point i was measured on several times: the name of the list of it, and in *one what an item
 * is of ("run", "step", "checkpoint").  NULL and "run" when there is no such list. */
const char *mr_view_each(const struct mr_view *v, unsigned i, const char **one);
/* How many items that list has, 0 when there is none. */
unsigned mr_view_n_each(const struct mr_view *v, unsigned i);
/* How far the items of a list lie apart, of their middle: the largest from the smallest, or, of
 * many steps, where some always stray, the upper quarter from the lower one.  NaN for fewer than
 * two. */
double mr_view_list_spread(const struct mr_view *v, unsigned i, const char *list);
#define MR_VIEW_MANY 8 /* from so many steps on it is quarters */
/* Seconds that one checkpoint of point i stopped training: `stall_s` is of all of the run. */
double mr_view_stall(const struct mr_view *v, unsigned i);
/* "hdd (emulated)" or "this disk" */
const char *mr_view_storage(const struct mr_view *v, unsigned i, char *buf, size_t cap);
/* The same for another field that names a storage; only the real one is called "disk". */
const char *mr_storage_words(const char *storage, int emulated, char *buf, size_t cap);
/* "in order" for "seq": a pattern of raw access as people say it. */
const char *mr_pattern_words(const char *pattern);
/* Bits 1 << enum mr_origin of what the points are. */
unsigned mr_view_origins(const struct mr_view *v, const struct mr_experiment *x);

/* Write the figure and its CSV, and free the chart. */
void mr_view_plot(struct mr_view *v, struct mr_chart *c);
/* A sentence about what was found, to stand beside what the studies found. */
void mr_view_finding(struct mr_view *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
