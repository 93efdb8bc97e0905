/* compare_studies.c - two studies side by side.
 *
 * Points are matched by what identifies them (storage, engine, threads, ...); of each one figure is
 * compared: a number, or the mean of a series over time.  A difference counts when it is larger
 * than both points' own spread, and than 5%.  What only one of the studies has is listed. */
#include "report.h"

#include "errtext.h"
#include "page.h"
#include "scale.h"
#include "view.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOISE 0.05

static const struct measure {
    const char *experiment, *id; /* of the section and the CSV file: "compare-ID" */
    const char *title, *field, *unit;
    int less_is_better, either; /* either: a difference is neither better nor worse */
    const char *keys[4];        /* what identifies a point */
} measures[] = {
    {"baseline", "baseline", "Raw limits", "read_mb_per_s", "MB/s", 0, 0, {"storage", "pattern"}},
    {"read",
     "read",
     "Reading files",
     "images_per_s",
     "files/s",
     0,
     0,
     {"storage", "engine", "threads"}},
    {"decode",
     "decode",
     "Decoding",
     "images_per_s",
     "images/s",
     0,
     0,
     {"storage", "engine", "threads"}},
    {"overlap",
     "overlap",
     "Training with input",
     "step_s",
     "s a step",
     1,
     0,
     {"storage", "prefetch", "threads", "synthetic"}},
    {"batch", "batch", "Batch size", "s_per_image", "s an image", 1, 0, {"device", "batch"}},
    {"activity",
     "activity",
     "Activity: read",
     "read_mb_per_s",
     "MB/s on average",
     0,
     1,
     {"variant", "storage"}},
    {"activity",
     "activity-written",
     "Activity: written",
     "write_mb_per_s",
     "MB/s on average",
     0,
     1,
     {"variant", "storage"}},
    {"checkpoint",
     "checkpoint",
     "Checkpoints",
     "stall_s",
     "s of stall a checkpoint",
     1,
     0,
     {"mode", "storage", "drain"}},
    {"phases",
     "phases",
     "Phases",
     "read_share_of_train",
     "reading / training",
     1,
     0,
     {"storage", "shuffle"}},
};

struct pair { /* what both sides of a comparison have */
    const struct mr_json *root[2];
    const char *name[2];
    const struct mr_report_opts *o;
    struct mr_markup *out;
    int code; /* what on_csv returned */
};

/* "hdd (emulated), threads, 8" */
static void key_of(const struct mr_view *v, unsigned i, const struct measure *m, char *buf,
                   size_t cap)
{
    buf[0] = 0;
    for (unsigned k = 0; k < 4 && m->keys[k]; k++) {
        char words[64];
        const char *text = mr_view_text(v, i, m->keys[k]);
        if (text && (!strcmp(m->keys[k], "storage") || !strcmp(m->keys[k], "drain")))
            text = mr_storage_words(text, mr_view_flag(v, i, "emulated"), words, sizeof words);
        double x = mr_view_number(v, i, m->keys[k]);
        size_t at = strlen(buf);
        if (text)
            snprintf(buf + at, cap - at, "%s%s", at ? ", " : "", text);
        else if (isfinite(x))
            snprintf(buf + at, cap - at, "%s%s %g", at ? ", " : "", m->keys[k], x);
        else if (mr_view_flag(v, i, m->keys[k]))
            snprintf(buf + at, cap - at, "%s%s", at ? ", " : "", m->keys[k]);
    }
}

static double spread_of(const struct mr_view *v, unsigned i)
{
    double spread = mr_view_run_spread(v, i);
    return isfinite(spread) ? spread : 0;
}

/* The figure of point i: a number, or the mean of several. */
static double figure_of(const struct mr_view *v, unsigned i, const struct measure *m)
{
    const struct mr_json *value = mr_view_at(v, i, m->field);
    if (!strcmp(m->field, "stall_s"))
        return mr_view_stall(v, i);
    if (!mr_json_is_array(value))
        return mr_view_number(v, i, m->field);
    double sum = 0, n = 0;
    for (size_t k = 0; k < mr_json_len(value); k++) {
        double x = mr_json_number(mr_json_item(value, k));
        sum += isfinite(x) ? x : 0;
        n += isfinite(x);
    }
    return n > 0 ? sum / n : NAN;
}

/* The point of `v` that is identified by the same words; -1 when there is none. */
static int find(const struct mr_view *v, const struct measure *m, const char *key)
{
    char other[128];
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        key_of(v, i, m, other, sizeof other);
        if (!strcmp(key, other))
            return (int)i;
    }
    return -1;
}

static void row(const struct measure *m, const char *key, double a, double b, double noise,
                struct mr_markup *out)
{
    char ta[32], tb[32];
    double change = b / a - 1;
    int counts = fabs(change) > fmax(noise, NOISE);
    const char *class = !counts                             ? ""
                        : m->either                         ? "differs"
                        : (change > 0) != m->less_is_better ? "better"
                                                            : "worse";
    mr_markup_add(out, "<tr><td>");
    mr_markup_text(out, key);
    mr_markup_add(out, "</td><td>%s</td><td>%s</td><td class=\"%s\">%+.1f%%%s</td></tr>",
                  mr_number_text(a, ta, sizeof ta), mr_number_text(b, tb, sizeof tb), class,
                  100 * change, counts ? change > 0 ? " ▲" : " ▼" : "");
}

static void heads(const struct pair *p, const char *what, const char *last)
{
    mr_markup_add(p->out, "<div class=\"scroll\"><table><thead><tr><th>%s", what);
    for (unsigned k = 0; k < 2; k++) {
        mr_markup_add(p->out, "</th><th>");
        mr_markup_text(p->out, p->name[k]);
    }
    mr_markup_add(p->out, "%s%s</th></tr></thead><tbody>", last[0] ? "</th><th>" : "", last);
}

/* Points of study `k` that the other one does not have. */
static void only_in(const struct pair *p, unsigned k, const struct mr_view v[2],
                    const struct measure *m)
{
    unsigned n = 0;
    char key[128];
    for (unsigned i = 0; i < mr_view_n(&v[k]); i++) {
        key_of(&v[k], i, m, key, sizeof key);
        if (find(&v[1 - k], m, key) >= 0 || !isfinite(figure_of(&v[k], i, m)))
            continue;
        if (!n++) {
            mr_markup_add(p->out, "<p class=\"only\">Only in ");
            mr_markup_text(p->out, p->name[k]);
            mr_markup_add(p->out, ": ");
        } else {
            mr_markup_add(p->out, "; ");
        }
        mr_markup_text(p->out, key);
    }
    if (n)
        mr_markup_add(p->out, ".</p>");
}

/* 1 when both have the experiment; else the page says who has not. */
static int both_have(const struct pair *p, const struct mr_view v[2])
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

static void compare_points(struct pair *p, struct mr_view v[2], const struct measure *m)
{
    char id[64], key[128];
    struct mr_chart c = {.plot = {.kind = MR_PLOT_BARS,
                                  .id = id,
                                  .title = m->title,
                                  .x_label = "what was measured",
                                  .y_label = m->unit,
                                  .log_y = !m->less_is_better && !m->either,
                                  .summary = "Bars of both studies side by side."}};
    struct mr_series *sa = mr_chart_series(&c, "%s", p->name[0]),
                     *sb = mr_chart_series(&c, "%s ", p->name[1]);
    struct mr_markup table = {0};
    snprintf(id, sizeof id, "compare-%s", m->id);
    for (unsigned i = 0; i < mr_view_n(&v[0]); i++) {
        double x = figure_of(&v[0], i, m);
        key_of(&v[0], i, m, key, sizeof key);
        int k = find(&v[1], m, key);
        double y = k < 0 ? NAN : figure_of(&v[1], (unsigned)k, m);
        if (!(x > 0) || !isfinite(y / x))
            continue;
        row(m, key, x, y, fmax(spread_of(&v[0], i), spread_of(&v[1], (unsigned)k)), &table);
        unsigned at = mr_chart_name(&c, "%s", key);
        mr_chart_put(&c, sa, at, x, 0, 0);
        mr_chart_put(&c, sb, at, y, 0, 0);
    }
    if (table.len) {
        mr_view_plot(&v[0], &c);
        heads(p, m->unit, "difference");
        mr_markup_add(p->out, "%s</tbody></table></div>", table.data);
    } else {
        mr_chart_fini(&c);
        mr_markup_add(p->out, "<p>Nothing that both have measured alike.</p>");
    }
    mr_markup_fini(&table);
    for (unsigned k = 0; k < 2; k++)
        only_in(p, k, v, m);
}

static void compare(struct pair *p, const struct measure *m)
{
    struct mr_view v[2];
    for (unsigned k = 0; k < 2; k++)
        v[k] = (struct mr_view){
            .e = mr_view_find(p->root[k], m->experiment), .out = p->out, .o = p->o};
    mr_markup_add(p->out, "<section id=\"%s\"><h2>%s</h2>", m->id, m->title);
    if (both_have(p, v))
        compare_points(p, v, m);
    mr_markup_add(p->out, "</section>\n");
    if (v[0].code && !p->code)
        p->code = v[0].code;
}

/* Both headlines, and what a step consists of. */
static void verdicts(struct pair *p)
{
    static const struct measure parts[] = {
        {.field = "fetch_s", .title = "fetch, s a step", .less_is_better = 1},
        {.field = "decode_s", .title = "decode, s a step", .less_is_better = 1},
        {.field = "hand_over_s", .title = "hand-over, s a step", .less_is_better = 1},
        {.field = "compute_s", .title = "compute, s a step", .less_is_better = 1},
        {.field = "image_cpu_s", .title = "CPU, s an image", .less_is_better = 1},
    };
    struct mr_view v[2];
    mr_markup_add(p->out, "<section id=\"verdict\"><h2>Verdict</h2>");
    for (unsigned k = 0; k < 2; k++)
        v[k] = (struct mr_view){.e = mr_view_find(p->root[k], "verdict"), .out = p->out};
    if (both_have(p, v)) {
        mr_markup_add(p->out, "<div class=\"beside\">");
        for (unsigned k = 0; k < 2; k++) {
            const char *text = mr_view_text(&v[k], 0, "text");
            const char *advice = mr_view_text(&v[k], 0, "recommendation.text");
            mr_markup_add(p->out, "<div><h3>");
            mr_markup_text(p->out, p->name[k]);
            mr_markup_add(p->out, "</h3><p>");
            mr_markup_text(p->out, text ? text : "No verdict.");
            mr_markup_add(p->out, "</p><p>");
            mr_markup_text(p->out, advice ? advice : "");
            mr_markup_add(p->out, "</p></div>");
        }
        mr_markup_add(p->out, "</div>");
        heads(p, "", "difference");
        for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++) {
            double x = mr_view_number(&v[0], 0, parts[i].field),
                   y = mr_view_number(&v[1], 0, parts[i].field);
            if (x > 0 && isfinite(y / x))
                row(&parts[i], parts[i].title, x, y, 0, p->out);
        }
        mr_markup_add(p->out, "</tbody></table></div>");
    }
    mr_markup_add(p->out, "</section>\n");
}

/* ---- the machines ---- */

struct walk { /* over the members of one environment, beside the other's */
    const struct pair *p;
    const struct mr_json *other;
    const char *prefix; /* "storage." */
    int second;         /* of the second study: only what the first has not */
};

static void value(struct mr_markup *out, const struct mr_json *j)
{
    const char *text = mr_json_text(j);
    char *formatted = text || !j ? NULL : mr_json_format(j);
    mr_markup_text(out, text ? text : formatted ? formatted : "-");
    free(formatted);
}

static int is_same(const struct mr_json *a, const struct mr_json *b)
{
    char *x = a ? mr_json_format(a) : NULL, *y = b ? mr_json_format(b) : NULL;
    int same = x && y && !strcmp(x, y);
    free(x);
    free(y);
    return same;
}

static int member(void *ctx, const char *key, const struct mr_json *mine)
{
    const struct walk *w = ctx;
    struct mr_markup *out = w->p->out;
    const struct mr_json *theirs = mr_json_member(w->other, key);
    char name[128];
    snprintf(name, sizeof name, "%s%s", w->prefix, key);
    if (mr_json_is_object(mine) && (!theirs || mr_json_is_object(theirs))) {
        struct walk below = *w;
        size_t len = strlen(name);
        snprintf(name + len, sizeof name - len, ".");
        below.other = theirs;
        below.prefix = name;
        return mr_json_each(mine, member, &below);
    }
    if (w->second && theirs)
        return 0;
    mr_markup_add(out, "<tr><td>");
    mr_markup_text(out, name);
    for (int k = 0; k < 2; k++) {
        mr_markup_add(out, "</td><td%s>", is_same(mine, theirs) ? "" : " class=\"differs\"");
        value(out, k == w->second ? mine : theirs);
    }
    mr_markup_add(out, "</td></tr>");
    return 0;
}

static void machines(struct pair *p)
{
    const struct mr_json *e[2];
    mr_markup_add(p->out, "<section id=\"machine\"><h2>The machines</h2>");
    heads(p, "", "");
    for (int k = 0; k < 2; k++) {
        e[0] = mr_json_at(p->root[k], "environment");
        e[1] = mr_json_at(p->root[1 - k], "environment");
        struct walk w = {.p = p, .other = e[1], .prefix = "", .second = k};
        if (mr_json_is_object(e[0]))
            mr_json_each(e[0], member, &w);
    }
    mr_markup_add(p->out, "</tbody></table></div></section>\n");
}

int mr_report_compare(const struct mr_json *a, const char *name_a, const struct mr_json *b,
                      const char *name_b, const struct mr_report_opts *o, struct mr_markup *page,
                      struct mr_error *err)
{
    enum { N = sizeof measures / sizeof *measures };
    struct pair p = {.root = {a, b}, .name = {name_a, name_b}, .o = o, .out = page};
    struct mr_page_link links[N + 2] = {{"verdict", "Verdict"}};
    if (!mr_json_is_array(mr_json_at(a, "results")) || !mr_json_is_array(mr_json_at(b, "results")))
        return mr_fail(err, -EBADMSG, "these are not the results of two studies");
    for (unsigned i = 0; i < N; i++)
        links[i + 1] = (struct mr_page_link){measures[i].id, measures[i].title};
    links[N + 1] = (struct mr_page_link){"machine", "Machines"};
    mr_page_begin(page, "millrace: two studies", links, N + 2);
    mr_markup_add(page, "<h1>");
    mr_markup_text(page, name_a);
    mr_markup_add(page, " and ");
    mr_markup_text(page, name_b);
    mr_markup_add(page,
                  "</h1><p class=\"lead\">Differences larger than the measurements' own spread "
                  "(and than 5%%) are marked.</p>");
    verdicts(&p);
    for (unsigned i = 0; i < N; i++)
        compare(&p, &measures[i]);
    machines(&p);
    mr_page_end(page, mr_json_text(mr_json_at(b, "version")));
    if (p.code)
        return mr_fail(err, p.code, "a CSV file could not be written: %s", mr_errno_text(p.code));
    return mr_markup_ok(page) ? 0 : mr_fail(err, -ENOMEM, "no memory for the page");
}
