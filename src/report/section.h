/* section.h - what the report knows about an experiment: one row, in its view_NAME.c.
 *
 * mr_section_NAME of each experiment of experiments.h; sections.c puts them in order. */
#ifndef MR_SECTION_H
#define MR_SECTION_H

#include "compare.h"
#include "references.h"
#include "view.h"

/* How a figure came about; the page never lets one pass for another. */
enum mr_origin {
    MR_ORIGIN_REAL,       /* measured on this machine's own storage and cores */
    MR_ORIGIN_PREDICTED,  /* follows from emulated devices, was not put into them */
    MR_ORIGIN_CALIBRATED, /* the emulated device was fitted to it */
};

struct mr_section {
    const char *title;
    const char *link;          /* a word for the bar of links */
    const char *question;      /* what it answers, in a sentence */
    const char *study;         /* what the studies found */
    struct mr_repeats repeats; /* the figure of a study; .figure is NULL when there is none */
    enum mr_origin emulated;   /* what its figures from emulated devices are */
    int leads;                 /* the page begins with it */

    void (*show)(struct mr_view *v);
    /* The list of a point with the same figure of each run, step or checkpoint. */
    const struct mr_result_field *each;
    enum mr_one each_of;
    int medians; /* its point has medians of runs that are not kept */

    /* What is compared between two studies: a table of figures, ended by one without a field, or
     * a function, with the number of its figures whose noise is known. */
    const struct mr_measure *measures;
    void (*compare)(struct mr_pair *p, const struct mr_view v[2]);
    unsigned n_tested;
};

struct mr_section_row {
    const char *name; /* of the experiment */
    const struct mr_section *section;
};

/* The sections of a page in its order: those of `o`, or of all experiments; their number. */
#define MR_MAX_SECTIONS 32
unsigned mr_sections(const struct mr_report_opts *o, struct mr_section_row out[MR_MAX_SECTIONS]);
/* Bits 1 << enum mr_origin of what the points are. */
unsigned mr_view_origins(const struct mr_view *v);

#endif
