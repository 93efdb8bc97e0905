/* compare.h - figures of two studies side by side: for the comparisons of sections (section.h). */
#ifndef MR_COMPARE_H
#define MR_COMPARE_H

#include "significance.h"
#include "view.h"

enum mr_better { MR_MORE, MR_LESS, MR_NEITHER };
enum mr_key_kind { MR_KEY_PLAIN, MR_KEY_STORAGE, MR_KEY_PATTERN };

/* A field that identifies a point, and the words that it is shown with: "8 threads".  Of a flag
 * that is set, `before` is all that is shown. */
struct mr_key {
    const struct mr_result_field *field;
    enum mr_key_kind kind;
    const char *before, *after; /* NULL: nothing */
    int plural;                 /* "s" behind, unless it is 1 */
};

/* A figure that points of both studies have: a number, or the mean of a series over time. */
struct mr_measure {
    const char *id;    /* of the section and the CSV file: "compare-ID" */
    const char *title; /* of the section */
    const char *link;  /* a word for the bar of links; NULL: none */
    const struct mr_result_field *field;
    double (*figure)(const struct mr_json *point); /* instead of the field's own value, or NULL */
    const char *unit;
    enum mr_better better;
    double least;                       /* a smaller difference is none */
    const struct mr_key *keys;          /* what identifies a point; the last has no field */
    const struct mr_result_field *each; /* the list that its spread is that of, */
    enum mr_one of;                     /* and what an item of it is of */
};

struct mr_pair { /* what both sides of a comparison have */
    const struct mr_json *results[2];
    const char *name[2];
    const struct mr_report_opts *o;
    struct mr_markup *out;
    int code;          /* what on_csv returned */
    unsigned n_tested; /* figures of the page whose noise is known */
};

struct mr_figures { /* of one thing in both studies */
    double x[2];
    double spread[2];         /* NaN: not known */
    const char *alone;        /* why not, in words */
    struct mr_noise noise[2]; /* where the spread is known */
    struct mr_noise alike;    /* of others that should be as noisy */
    double zero_p[2];         /* where the spread is known: the chance that such a figure is 0 */
};

/* Figures whose spread is not known. */
struct mr_figures mr_figures_of(double a, double b, const char *alone);
/* What a list of runs, steps or checkpoints says about the noise of its point. */
struct mr_noise mr_noise_of_list(struct mr_markup *out, const struct mr_json *list, enum mr_one of);

/* A table with a column for each study, for rows of single figures.  `of`: what lies apart by the
 * spread, NULL when that is not the same in all rows. */
void mr_compare_begin(const struct mr_pair *p, const char *what, const char *of);
/* A row of it, unless a figure is negative or not known. */
void mr_compare_row(const struct mr_pair *p, const struct mr_measure *m, const char *title,
                    struct mr_figures f);
void mr_compare_end(const struct mr_pair *p);

/* The points of both studies, for one measure: a plot, a table, and what only one of them has. */
void mr_compare_points(struct mr_pair *p, struct mr_view v[2], const struct mr_measure *m);
/* How many of its figures have a noise that is known. */
unsigned mr_compare_n_tested(const struct mr_pair *p, const struct mr_view v[2],
                             const struct mr_measure *m);

#endif
