/* page.c - see page.h.  Style and script are page.css and page.js, which the build turns into the
 * two constants here. */
#include "page.h"

extern const char mr_page_css[], mr_page_js[];

void mr_page_begin(struct mr_markup *out, const char *title, const struct mr_page_link *links,
                   unsigned n_links)
{
    mr_markup_add(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                       "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                       "<meta name=\"color-scheme\" content=\"light dark\">"
                       "<link rel=\"icon\" href=\"data:,\"><title>");
    mr_markup_text(out, title);
    mr_markup_add(out, "</title>\n<style>\n%s</style></head><body>\n", mr_page_css);
    mr_markup_add(out, "<div class=\"bar\"><b>millrace</b><nav aria-label=\"Sections\">");
    for (unsigned i = 0; i < n_links; i++) {
        mr_markup_add(out, "<a href=\"#%s\">", links[i].id);
        mr_markup_text(out, links[i].name);
        mr_markup_add(out, "</a>");
    }
    mr_markup_add(
        out, "</nav><button type=\"button\" class=\"theme\" "
             "aria-label=\"Switch between light and dark\">light/dark</button></div>\n<main>\n");
}

void mr_page_end(struct mr_markup *out, const char *version)
{
    mr_markup_add(out, "</main>\n<footer>Made by millrace ");
    mr_markup_text(out, version);
    mr_markup_add(out,
                  ". This page is one file; it loads nothing.</footer>\n<script>\n%s</script>\n"
                  "</body></html>\n",
                  mr_page_js);
}
