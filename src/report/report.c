/* report.c - the page of a study: headline, tiles, a section an experiment, the machine. */
#include "report.h"

#include "errtext.h"
#include "machine_rows.h"
#include "page.h"
#include "references.h"
#include "scale.h"
#include "section.h"
#include "verdict_words.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check(const struct mr_json *root, struct mr_error *err)
{
    struct mr_study_results r = mr_study_results_of(root);
    if (mr_is_text(r.command, "study") && mr_json_is_array(r.results))
        return 0;
    return mr_fail(err, -EBADMSG, "these are not the results of a study");
}

static void paragraph(struct mr_markup *out, const char *class, const char *text)
{
    mr_markup_add(out, "<p class=\"%s\">", class);
    mr_markup_text(out, text);
    mr_markup_add(out, "</p>");
}

/* ---- the top ---- */

static void tile(struct mr_markup *out, double value, const char *unit, const char *what)
{
    char text[32];
    if (!isfinite(value))
        return;
    mr_markup_add(out, "<div class=\"tile\"><b>%s %s</b><span>",
                  mr_number_text(value, text, sizeof text), unit);
    mr_markup_text(out, what);
    mr_markup_add(out, "</span></div>");
}

/* The result of one of our experiments; NULL when it is not there. */
static const struct mr_json *result_of(const struct mr_json *root, enum mr_experiment_number e)
{
    return mr_result_find(mr_study_results_of(root).results, mr_experiment_name(e));
}

/* The largest `field` among points of the real storage; of all patterns where `pattern` is NULL. */
static double best_of(const struct mr_json *root, enum mr_experiment_number experiment,
                      const struct mr_result_field *field, const char *pattern)
{
    const struct mr_json *e = result_of(root, experiment);
    double best = NAN;
    for (size_t i = 0; i < mr_result_n_points(e); i++) {
        const struct mr_json *point = mr_result_point(e, i);
        double x = mr_field_number(field, point);
        if (mr_any_point_of(point).emulated ||
            (pattern && !mr_is_text(mr_baseline_point_of(point).pattern, pattern)))
            continue;
        if (isfinite(x) && !(best >= x))
            best = x;
    }
    return best;
}

struct share {
    double percent; /* to one decimal: more would claim what nobody measured; NaN: none */
    char where[64]; /* "this disk" or "hdd (emulated)" */
};

/* What checkpoints of that mode cost on the real storage; on the first emulated one if there is no
 * such point. */
static struct share stall_of(const struct mr_json *root, const char *mode)
{
    const struct mr_json *e = result_of(root, MR_EXPERIMENT_checkpoint);
    struct share found = {.percent = NAN};
    for (size_t i = 0; i < mr_result_n_points(e); i++) {
        struct mr_checkpoint_point p = mr_checkpoint_point_of(mr_result_point(e, i));
        if (!mr_is_text(p.mode, mode) || (p.emulated && isfinite(found.percent)))
            continue;
        found.percent = round(1000 * p.share) / 10;
        mr_storage_words(p.storage, p.emulated, found.where, sizeof found.where);
        if (!p.emulated)
            break;
    }
    return found;
}

/* Was every cold read of the real storage proven to be one? */
static int is_proven(const struct mr_json *root)
{
    const struct mr_json *e = result_of(root, MR_EXPERIMENT_read);
    for (size_t i = 0; i < mr_result_n_points(e); i++) {
        struct mr_any_point p = mr_any_point_of(mr_result_point(e, i));
        if (!p.emulated && (!p.cold || !strcmp(p.cold, "unproven")))
            return 0;
    }
    return 1;
}

static struct mr_verdict_point verdict_of(const struct mr_json *root)
{
    return mr_verdict_point_of(mr_result_point(result_of(root, MR_EXPERIMENT_verdict), 0));
}

static const char *headline(const struct mr_verdict_point *verdict, char buf[MR_HEADLINE])
{
    const char *text = mr_verdict_text(verdict, buf, MR_HEADLINE);
    return text ? text : "No verdict: the experiments it rests on are missing.";
}

/* "host vm, Intel ..., 2 processors, ext4 on vda, 2026-11-16T06:56:20Z" */
static void tell_machine(const struct mr_json *root, struct mr_markup *out)
{
    static const char *const before[] = {"host ", "", "", "", "on ", ""};
    static const char *const path[] = {"host",           "cpu", "cpus", "storage.file_system",
                                       "storage.device", "time"};
    const struct mr_json *e = mr_study_results_of(root).environment;
    char number[32];
    int n = 0;
    for (unsigned i = 0; i < sizeof path / sizeof *path; i++) {
        const struct mr_json *j = mr_json_at(e, path[i]);
        const char *text = mr_json_text(j);
        double x = j && !text ? mr_json_number(j) : NAN;
        if (!text && !(x > 0))
            continue;
        mr_markup_add(out, n++ ? i == 4 ? " %s" : ", %s" : "<p class=\"meta\">%s", before[i]);
        mr_markup_text(out, text ? text : mr_number_text(x, number, sizeof number));
        if (!text)
            mr_markup_add(out, " processor%s", x == 1 ? "" : "s");
    }
    if (n)
        mr_markup_add(out, "</p>");
}

/* When an experiment was measured, if an earlier call of the study did; else NULL. */
static const char *earlier_time(const struct mr_json *root, const struct mr_json *e)
{
    const char *began = mr_study_results_of(root).started_at;
    const char *at = mr_field_text(MR_FIELD(result_origin, measured_at), e);
    return began && at && strcmp(at, began) < 0 ? at : NULL;
}

/* The machine's line has the time of the page; here is that of figures which are older. */
static void tell_earlier(const struct mr_json *root, struct mr_markup *out)
{
    const struct mr_json *list = mr_study_results_of(root).results;
    const char *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < mr_json_len(list); i++) {
        const char *at = earlier_time(root, mr_json_item(list, i));
        n += at != NULL;
        if (at && (!first || strcmp(at, first) < 0))
            first = at;
    }
    if (!n)
        return;
    mr_markup_add(out, "<p class=\"meta\">%zu of %zu experiments were measured earlier, from ", n,
                  mr_json_len(list));
    mr_markup_text(out, first);
    mr_markup_add(out, " on; their sections say when.</p>");
}

/* "Quick study of 2,048 images in photos" */
static void tell_data(const struct mr_json *root, struct mr_markup *out)
{
    struct mr_study_results r = mr_study_results_of(root);
    struct mr_study_data_set data = mr_study_data_set_of(r.data);
    char text[32];
    mr_markup_add(out, "<p class=\"meta\">");
    mr_markup_add(out, "%s", !r.mode ? "A" : strcmp(r.mode, "full") ? "Quick" : "Full");
    mr_markup_add(out, " study of %s images in ", mr_number_text(data.images, text, sizeof text));
    mr_markup_text(out, data.path ? data.path : "generated data");
    if (data.generated)
        mr_markup_add(out, " (generated)");
    if (data.wanted > data.images && data.images > 0)
        mr_markup_add(out, "; %s were to be made, and the disk has no room for more",
                      mr_number_text(data.wanted, text, sizeof text));
    mr_markup_add(out, "</p>");
}

static void top(const struct mr_json *root, struct mr_markup *out)
{
    struct mr_verdict_point verdict = verdict_of(root);
    char words[MR_HEADLINE];
    mr_markup_add(out, "<h1>What storage costs training on this machine</h1>");
    mr_markup_add(out, "<section class=\"verdict ");
    mr_markup_text(out, verdict.rating);
    mr_markup_add(out, "\" id=\"top\">");
    paragraph(out, "lead", headline(&verdict, words));
    if (mr_verdict_is_old(&verdict))
        paragraph(out, "warn", MR_OLD_ADVICE);
    tell_data(root, out);
    tell_machine(root, out);
    tell_earlier(root, out);
    mr_markup_add(out, "</section><div class=\"tiles\">");
    tile(out, best_of(root, MR_EXPERIMENT_baseline, MR_FIELD(baseline_point, read_mb_per_s), "seq"),
         "MB/s", "sequential read");
    tile(out,
         best_of(root, MR_EXPERIMENT_baseline, MR_FIELD(baseline_point, read_mb_per_s),
                 "random-imagenet"),
         "MB/s", "random read, ImageNet's sizes");
    tile(out, best_of(root, MR_EXPERIMENT_read, MR_FIELD(read_point, images_per_s), NULL), "/s",
         is_proven(root) ? "files read, cold" : "files read, cold unproven");
    tile(out, best_of(root, MR_EXPERIMENT_decode, MR_FIELD(decode_point, images_per_s), NULL), "/s",
         "images decoded");
    struct share lazy = stall_of(root, "lazy");
    char lost[128];
    snprintf(lost, sizeof lost, "of a run lost to lazy checkpoints, %s", lazy.where);
    tile(out, lazy.percent, "%", lost);
    mr_markup_add(out, "</div>");
}

/* ---- sections ---- */

static void chips(unsigned origins, struct mr_markup *out)
{
    static const char *const class[] = {"real", "predicted", "calibrated"};
    static const char *const words[] = {"measured here", "predicted under emulated devices",
                                        "emulated device calibrated to the study"};
    for (unsigned i = 0; i < 3; i++)
        if (origins & 1u << i)
            mr_markup_add(out, "<span class=\"chip %s\">%s</span>", class[i], words[i]);
}

static void text_list(const struct mr_json *list, const char *tag, const char *class,
                      struct mr_markup *out)
{
    for (unsigned i = 0; list && i < mr_json_len(list); i++) {
        mr_markup_add(out, "<%s class=\"%s\">", tag, class);
        mr_markup_text(out, mr_json_text(mr_json_item(list, i)));
        mr_markup_add(out, "</%s>", tag);
    }
}

static void how_measured(struct mr_view *v)
{
    struct mr_result r = mr_result_of(v->e);
    struct mr_markup *out = v->out;
    char text[32];
    mr_markup_add(out, "<details><summary>How it was measured</summary>");
    if (isfinite(r.seconds))
        mr_markup_add(out, "<p>It took %s s.</p>", mr_number_text(r.seconds, text, sizeof text));
    mr_view_method(v);
    text_list(r.commands, "pre", "", out);
    mr_markup_add(out, "</details>");
}

/* "Chien et al. 2018, Figure 5": where the experiment comes from. */
static void beside_heading(const struct mr_repeats *r, struct mr_markup *out)
{
    if (r->figure)
        mr_markup_add(out, "%s, %s", mr_references[r->of].name, r->figure);
    else
        mr_markup_add(out, "The studies");
}

static void section(const struct mr_section_row *row, const struct mr_json *root,
                    const struct mr_report_opts *o, struct mr_markup *out, int *code)
{
    const struct mr_section *x = row->section;
    const struct mr_json *e = mr_result_find(mr_study_results_of(root).results, row->name);
    struct mr_view v = {.e = e, .section = x, .out = out, .o = o};
    struct mr_result r = mr_result_of(e);
    mr_markup_add(out, "<section id=\"%s\"><h2>%s</h2><p class=\"meta\">%s</p>", row->name,
                  x->title, x->question);
    const char *missing = e ? r.missing : "This experiment was not run.";
    const char *earlier = earlier_time(root, e);
    if (earlier) {
        mr_markup_add(out, "<p class=\"meta\">Measured before this study was continued: ");
        mr_markup_text(out, earlier);
        mr_markup_add(out, ".</p>");
    }
    if (missing) {
        mr_markup_add(out, "<p><span class=\"chip missing\">missing</span> ");
        mr_markup_text(out, missing);
        mr_markup_add(out, "</p>");
    }
    if (e && mr_view_n(&v)) {
        mr_markup_add(out, "<p>");
        chips(mr_view_origins(&v), out);
        mr_markup_add(out, "</p>");
        x->show(&v);
        mr_markup_add(out, "<div class=\"beside\"><div><h3>");
        beside_heading(&x->repeats, out);
        mr_markup_add(out, "</h3>");
        mr_markup_text(out, x->study);
        mr_markup_add(out, "</div><div><h3>Here</h3>%s</div></div>",
                      v.here.data ? v.here.data : "<p>See the figures above.</p>");
        mr_markup_fini(&v.here);
    }
    if (e) {
        text_list(r.warnings, "p", "warn", out);
        how_measured(&v);
    }
    mr_markup_add(out, "</section>\n");
    if (v.code && !*code)
        *code = v.code;
}

static void machine(const struct mr_json *root, struct mr_markup *out)
{
    const struct mr_json *e = mr_study_results_of(root).environment;
    mr_markup_add(out, "<section id=\"machine\"><h2>The machine</h2>");
    if (mr_json_is_object(e)) {
        mr_markup_add(out, "<div class=\"scroll\"><table><tbody>");
        mr_machine_rows(out, e, NULL);
        mr_markup_add(out, "</tbody></table></div></section>\n");
    } else {
        mr_markup_add(out, "<p>Not recorded.</p></section>\n");
    }
}

/* The studies, and which figure is which section here. */
static void references(const struct mr_section_row *rows, unsigned n_rows, struct mr_markup *out)
{
    mr_markup_add(out, "<section id=\"studies\"><h2>The studies</h2><ul>");
    for (unsigned i = 0; i < MR_N_REFERENCES; i++) {
        const struct mr_reference *r = &mr_references[i];
        mr_markup_add(out, "<li>");
        mr_markup_text(out, r->authors);
        mr_markup_add(out, ": <cite>");
        mr_markup_text(out, r->title);
        mr_markup_add(out, "</cite>. ");
        mr_markup_text(out, r->published);
        mr_markup_add(out, ". ");
        mr_markup_text(out, r->where);
        mr_markup_add(out, ".</li>");
    }
    mr_markup_add(out, "</ul><div class=\"scroll\"><table><thead><tr><th>Figure</th>"
                       "<th>Experiment</th><th>Command</th></tr></thead><tbody>");
    for (unsigned i = 0; i < n_rows; i++) {
        const struct mr_repeats *f = &rows[i].section->repeats;
        if (!f->figure)
            continue;
        mr_markup_add(out,
                      "<tr><td>%s, %s: %s</td><td><a href=\"#%s\">%s</a></td>"
                      "<td><code>millrace study --only %s</code> or <code>%s</code></td></tr>",
                      mr_references[f->of].name, f->figure, f->shows, rows[i].name, rows[i].name,
                      rows[i].name, f->by_hand);
    }
    mr_markup_add(out, "</tbody></table></div></section>\n");
}

int mr_report_render(const struct mr_json *root, const struct mr_report_opts *o,
                     struct mr_markup *page, struct mr_error *err)
{
    struct mr_section_row rows[MR_MAX_SECTIONS];
    struct mr_page_link links[MR_MAX_SECTIONS + 2];
    unsigned n = mr_sections(o, rows);
    int code = check(root, err);
    if (code)
        return code;
    for (unsigned i = 0; i < n; i++)
        links[i] = (struct mr_page_link){rows[i].name, rows[i].section->link};
    links[n] = (struct mr_page_link){"machine", "Machine"};
    links[n + 1] = (struct mr_page_link){"studies", "Studies"};
    mr_page_begin(page, "millrace study", links, n + 2);
    top(root, page);
    for (unsigned i = 0; i < n; i++)
        section(&rows[i], root, o, page, &code);
    machine(root, page);
    references(rows, n, page);
    mr_page_end(page, mr_study_results_of(root).version);
    if (code)
        return mr_fail(err, code, "a CSV file could not be written: %s", mr_errno_text(code));
    return mr_markup_ok(page) ? 0 : mr_fail(err, -ENOMEM, "no memory for the page");
}

/* Words of the results in the text for a terminal. */
static void line(struct mr_markup *text, const char *words, const char *after)
{
    mr_markup_plain(text, words);
    mr_markup_add(text, "%s", after);
}

/* What to change, with what was predicted and what was measured then. */
static void advice_lines(const struct mr_verdict_point *verdict, struct mr_markup *text)
{
    struct mr_advice_shown advice[2];
    char buf[MR_HEADLINE];
    mr_verdict_advice(verdict, advice);
    if (mr_verdict_is_old(verdict))
        line(text, MR_OLD_ADVICE, "\n");
    for (unsigned i = 0; i < 2; i++) {
        const struct mr_advice_shown *a = &advice[i];
        int is_new = a->text && !strstr(headline(verdict, buf), a->text);
        if (!a->text || (!is_new && !a->tried))
            continue;
        if (is_new)
            line(text, a->text, a->tried ? " " : "");
        if (a->tried) {
            line(text, "Predicted for ", "");
            line(text, a->tried, "");
            mr_markup_add(text, ": %.0f images/s, measured: %.0f.", a->predicted, a->measured);
        }
        mr_markup_add(text, "\n");
    }
}

int mr_report_summary(const struct mr_json *root, struct mr_markup *text, struct mr_error *err)
{
    const struct {
        enum mr_experiment_number experiment;
        const struct mr_result_field *field;
        const char *pattern, *what, *unit;
    } rows[] = {
        {MR_EXPERIMENT_baseline, MR_FIELD(baseline_point, read_mb_per_s), "seq", "sequential read",
         "MB/s"},
        {MR_EXPERIMENT_baseline, MR_FIELD(baseline_point, write_mb_per_s), "seq",
         "sequential write", "MB/s"},
        {MR_EXPERIMENT_baseline, MR_FIELD(baseline_point, read_mb_per_s), "random-imagenet",
         "random read, ImageNet's sizes", "MB/s"},
        {MR_EXPERIMENT_read, MR_FIELD(read_point, images_per_s), NULL,
         is_proven(root) ? "files read, cold, best" : "files read, cold unproven", "/s"},
        {MR_EXPERIMENT_decode, MR_FIELD(decode_point, images_per_s), NULL, "images decoded, best",
         "/s"},
    };
    char number[32], words[MR_HEADLINE];
    int code = check(root, err);
    if (code)
        return code;
    struct mr_verdict_point verdict = verdict_of(root);
    line(text, headline(&verdict, words), "\n");
    advice_lines(&verdict, text);
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        double x = best_of(root, rows[i].experiment, rows[i].field, rows[i].pattern);
        if (isfinite(x))
            mr_markup_add(text, "  %-30s %12s %s\n", rows[i].what,
                          mr_number_text(x, number, sizeof number), rows[i].unit);
    }
    for (unsigned i = 0; i < 2; i++) {
        const char *mode = i ? "lazy" : "sync";
        struct share lost = stall_of(root, mode);
        if (isfinite(lost.percent)) {
            mr_markup_add(text, "  run lost to checkpoints, %-4s  %12.1f %%  (", mode,
                          lost.percent);
            line(text, lost.where, ")\n");
        }
    }
    return mr_markup_ok(text) ? 0 : mr_fail(err, -ENOMEM, "no memory");
}
