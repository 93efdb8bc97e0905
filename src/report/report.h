/* report.h - a study's results, as JSON, in; one HTML page and a CSV file per plot out.
 *
 * The page shows what the JSON holds and nothing else, so a study can be rendered again at any
 * time.  Whatever is missing there is said to be missing here. */
#ifndef MR_REPORT_H
#define MR_REPORT_H

#include <millrace/api.h>

#include "json.h"
#include "markup.h"

struct mr_section_row; /* section.h */

struct mr_report_opts {
    /* Called for each plot with its CSV text; nonzero ends the rendering with that code. */
    int (*on_csv)(void *ctx, const char *id, const char *text, size_t len);
    void *ctx;
    /* The sections of the page; NULL = one for each experiment of a study. */
    const struct mr_section_row *sections;
    unsigned n_sections;
};

/* 0; -EBADMSG with words when the JSON is no study's; -ENOMEM. */
int mr_report_render(const struct mr_json *results, const struct mr_report_opts *o,
                     struct mr_markup *page, struct mr_error *err);
/* Two studies side by side; differences beyond their spread are marked.  Ids of plots begin with
 * "compare-". */
int mr_report_compare(const struct mr_json *a, const char *name_a, const struct mr_json *b,
                      const char *name_b, const struct mr_report_opts *o, struct mr_markup *page,
                      struct mr_error *err);
/* 1 with words when the studies are of different data sets; the page of both says so, too. */
#define MR_REPORT_WHY 900 /* room for the words */
int mr_report_data_differ(const struct mr_json *a, const struct mr_json *b, char *why, size_t cap);
/* The verdict and the main figures as plain text, a few lines. */
int mr_report_summary(const struct mr_json *results, struct mr_markup *text, struct mr_error *err);

#endif
