/* page.h - the shell of a report: one HTML file that needs nothing else. */
#ifndef MR_PAGE_H
#define MR_PAGE_H

#include "markup.h"

struct mr_page_link {
    const char *id, *name;
};

/* Head, style and the bar with links to sections. */
void mr_page_begin(struct mr_markup *out, const char *title, const struct mr_page_link *links,
                   unsigned n_links);
/* Foot and script. */
void mr_page_end(struct mr_markup *out, const char *version);

#endif
