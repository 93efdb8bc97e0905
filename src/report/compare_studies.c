/* compare_studies.c - the page of two studies: a section for each experiment, then the machines.
 *
 * What is compared of an experiment is its section's (section.h), and how is compare_points.c's. */
#include "report.h"

#include "errtext.h"
#include "machine_rows.h"
#include "page.h"
#include "section.h"

#include <errno.h>

/* 1 when both studies have the experiment; else the page says which one lacks it. */
static int both_have(const struct mr_pair *p, const struct mr_view v[2])
{
    if (v[0].e && v[1].e)
        return 1;
    mr_markup_add(p->out, "<p><span class=\"chip missing\">missing</span> ");
    if (!v[0].e && !v[1].e)
        mr_markup_add(p->out, "In neither study.</p>");
    else {
        mr_markup_add(p->out, "Only in ");
        mr_markup_text(p->out, p->name[v[0].e ? 0 : 1]);
        mr_markup_add(p->out, ".</p>");
    }
    return 0;
}

static void view_both(const struct mr_pair *p, const struct mr_section_row *row,
                      struct mr_view v[2])
{
    for (unsigned k = 0; k < 2; k++)
        v[k] = (struct mr_view){.e = mr_result_find(p->results[k], row->name),
                                .section = row->section,
                                .out = p->out,
                                .o = p->o};
}

/* Figures of one experiment whose noise is known. */
static unsigned n_tested(const struct mr_pair *p, const struct mr_section_row *row)
{
    struct mr_view v[2];
    unsigned n = row->section->n_tested;
    view_both(p, row, v);
    for (const struct mr_measure *m = row->section->measures; m && m->field; m++)
        n += mr_compare_n_tested(p, v, m);
    return n;
}

/* One section: a measure of the experiment, or with its function all there is. */
static void compare(struct mr_pair *p, const struct mr_section_row *row, const struct mr_measure *m)
{
    struct mr_view v[2];
    view_both(p, row, v);
    mr_markup_add(p->out, "<section id=\"%s\"><h2>%s</h2>", m ? m->id : row->name,
                  m ? m->title : row->section->title);
    if (both_have(p, v) && m)
        mr_compare_points(p, v, m);
    else if (v[0].e && v[1].e)
        row->section->compare(p, v);
    mr_markup_add(p->out, "</section>\n");
    if (v[0].code && !p->code)
        p->code = v[0].code;
}

static void machines(struct mr_pair *p, const struct mr_json *a, const struct mr_json *b)
{
    mr_markup_add(p->out,
                  "<section id=\"machine\"><h2>The machines</h2><div class=\"scroll\"><table>"
                  "<thead><tr><th>");
    for (unsigned k = 0; k < 2; k++) {
        mr_markup_add(p->out, "</th><th>");
        mr_markup_text(p->out, p->name[k]);
    }
    mr_markup_add(p->out, "</th></tr></thead><tbody>");
    mr_machine_rows(p->out, a, b);
    mr_markup_add(p->out, "</tbody></table></div></section>\n");
}

/* The bar of links: every section that has a word for it. */
static void begin_page(struct mr_markup *page, const struct mr_section_row *rows, unsigned n_rows)
{
    struct mr_page_link links[2 * MR_MAX_SECTIONS + 1];
    unsigned n = 0;
    for (unsigned i = 0; i < n_rows; i++) {
        const struct mr_section *s = rows[i].section;
        if (s->compare)
            links[n++] = (struct mr_page_link){rows[i].name, s->link};
        for (const struct mr_measure *m = s->measures; m && m->field; m++)
            if (m->link && n < 2 * MR_MAX_SECTIONS)
                links[n++] = (struct mr_page_link){m->id, m->link};
    }
    links[n++] = (struct mr_page_link){"machine", "Machines"};
    mr_page_begin(page, "millrace: two studies", links, n);
}

/* Names, the rule by which differences are marked, and whether the data are the same. */
static void top(const struct mr_pair *p, const struct mr_json *a, const struct mr_json *b)
{
    char why[MR_REPORT_WHY];
    mr_markup_add(p->out, "<h1>");
    mr_markup_text(p->out, p->name[0]);
    mr_markup_add(p->out, " and ");
    mr_markup_text(p->out, p->name[1]);
    mr_markup_add(
        p->out,
        "</h1><p class=\"lead\">A difference is marked when it is larger than 5%% and larger "
        "than the spread of runs, steps or checkpoints explains: where identical studies "
        "differ by chance alone, 95 of 100 pairs have no mark at all. Where a spread is not "
        "known a difference is marked when one figure is three times the other, or when "
        "something was, or became, nothing.</p>");
    if (mr_report_data_differ(a, b, why, sizeof why)) {
        mr_markup_add(p->out, "<p class=\"warn\">");
        mr_markup_text(p->out, why);
        mr_markup_add(p->out, "</p>");
    }
}

int mr_report_compare(const struct mr_json *a, const char *name_a, const struct mr_json *b,
                      const char *name_b, const struct mr_report_opts *o, struct mr_markup *page,
                      struct mr_error *err)
{
    struct mr_study_results first = mr_study_results_of(a), second = mr_study_results_of(b);
    struct mr_pair p = {
        .results = {first.results, second.results}, .name = {name_a, name_b}, .o = o, .out = page};
    struct mr_section_row rows[MR_MAX_SECTIONS];
    unsigned n = mr_sections(o, rows);
    if (!mr_json_is_array(first.results) || !mr_json_is_array(second.results))
        return mr_fail(err, -EBADMSG, "these are not the results of two studies");
    begin_page(page, rows, n);
    top(&p, a, b);
    for (unsigned i = 0; i < n; i++)
        p.n_tested += n_tested(&p, &rows[i]);
    for (unsigned i = 0; i < n; i++) {
        if (rows[i].section->compare)
            compare(&p, &rows[i], NULL);
        for (const struct mr_measure *m = rows[i].section->measures; m && m->field; m++)
            compare(&p, &rows[i], m);
    }
    machines(&p, first.environment, second.environment);
    mr_page_end(page, second.version);
    if (p.code)
        return mr_fail(err, p.code, "a CSV file could not be written: %s", mr_errno_text(p.code));
    return mr_markup_ok(page) ? 0 : mr_fail(err, -ENOMEM, "no memory for the page");
}
