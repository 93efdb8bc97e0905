/* compare_studies.c - two studies side by side.
 *
 * Points are matched by what identifies them (storage, engine, threads, ...); of each one figure is
 * compared: a number, or the mean of a series over time.  A difference counts when it is larger
 * than 5% and than noise explains.  The noise is known from the spread of several runs, or within a
 * run of its steps or checkpoints.  So many figures are compared that some would stray by chance:
 * each has its share of the 5% of pages of identical studies that may have a mark.  Identical
 * studies hardly ever differ by three times, whatever their noise: there a lower bar is enough.
 *
 * Of a figure that was measured once nobody knows the spread: then a difference counts when one is
 * three times the other, or when something was nothing before, or is nothing now.  What only one of
 * the studies has is listed. */
#include "report.h"

#include "errtext.h"
#include "machine_rows.h"
#include "page.h"
#include "scale.h"
#include "significance.h"
#include "verdict_words.h"
#include "view.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST  0.05 /* a smaller difference is none */
#define CHANCE 0.05 /* that a page of two identical studies has a mark */
#define ALONE  3.0  /* times: a difference of figures whose spread is not known */
#define LARGE  0.01 /* chance of a difference of as many times, in one figure */

enum better { MORE, LESS, NEITHER };

static const struct measure {
    const char *experiment, *id; /* of the section and the CSV file: "compare-ID" */
    const char *title, *link;    /* link: a word for the bar of links; NULL: none */
    const char *field, *unit;
    enum better better;
    double least;        /* a smaller difference is none */
    const char *keys[4]; /* what identifies a point */
    const char *each;    /* the list that its spread is that of, NULL = "runs", */
    const char *of;      /* and what an item of it is of, NULL = "run" */
    const char *alone;   /* what stands for a spread that is not known, NULL = "one run" */
} measures[] = {
    {"baseline", "baseline", "Raw limits: read", "Limits", "read_mb_per_s", "MB/s",
     .keys = {"storage", "pattern"}},
    {"baseline", "baseline-written", "Raw limits: written", NULL, "write_mb_per_s", "MB/s",
     .keys = {"storage", "pattern"}, .each = "write_runs"},
    {"read", "read", "Reading files", "Read", "images_per_s", "files/s",
     .keys = {"storage", "engine", "threads"}},
    {"decode", "decode", "Decoding", "Decode", "images_per_s", "images/s",
     .keys = {"storage", "engine", "threads"}},
    {"overlap", "overlap", "Training with input", "Overlap", "step_s", "s a step", LESS,
     .keys = {"storage", "prefetch", "threads", "synthetic"}, .each = "each_step_s", .of = "step"},
    {"batch", "batch", "Batch size", "Batch", "s_per_image", "s an image", LESS,
     .keys = {"device", "batch"}, .each = "each_s_per_image", .of = "step"},
    {"activity", "activity", "Activity: read", "Activity", "read_mb_per_s", "MB/s on average",
     NEITHER, .least = 1, .keys = {"variant", "storage"}, .each = "each_read_mb_per_s",
     .of = "step"},
    {"activity", "activity-written", "Activity: written", NULL, "write_mb_per_s", "MB/s on average",
     NEITHER, .least = 1, .keys = {"variant", "storage"}, .each = "each_write_mb_per_s",
     .of = "step"},
    {"checkpoint", "checkpoint", "Checkpoints", "Checkpoints", "stall_s", "s of stall a checkpoint",
     LESS, .least = 0.05, .keys = {"mode", "storage", "drain"}, .each = "each_stall_s",
     .of = "checkpoint"},
    {"phases", "phases", "Phases", "Phases", "read_share_of_train", "reading / training", LESS,
     .keys = {"storage", "shuffle"}, .each = "each_read_share", .of = "step"},
};

/* The verdict's rates are medians whose runs are not kept.  Decoding of cached images was measured
 * again with the proof. */
#define MEDIANS    "medians of several runs"
#define CONTROLLED .each = "control", .alone = MEDIANS
#define N_SINGLE   3 /* of them, whose noise is known */

struct pair { /* what both sides of a comparison have */
    const struct mr_json *root[2];
    const char *name[2];
    const struct mr_report_opts *o;
    struct mr_markup *out;
    int code;          /* what on_csv returned */
    unsigned n_tested; /* figures of the page whose noise is known */
};

/* What one member says about a point, as people say it; "" when it says nothing. */
static const char *key_words(const struct mr_view *v, unsigned i, const char *key, char *buf,
                             size_t cap)
{
    const char *text = mr_view_text(v, i, key);
    double x = mr_view_number(v, i, key);
    int emulated = mr_view_flag(v, i, "emulated");
    char storage[64];
    buf[0] = 0;
    if (text && !strcmp(key, "storage"))
        mr_storage_words(text, emulated, buf, cap);
    else if (text && !strcmp(key, "drain"))
        snprintf(buf, cap, "then %s", mr_storage_words(text, emulated, storage, sizeof storage));
    else if (text && !strcmp(key, "engine"))
        snprintf(buf, cap, "%s engine", text);
    else if (text && !strcmp(key, "shuffle"))
        snprintf(buf, cap, "shuffle %s", text);
    else if (text && !strcmp(key, "pattern"))
        snprintf(buf, cap, "%s", mr_pattern_words(text));
    else if (text)
        snprintf(buf, cap, "%s", text);
    else if (isfinite(x) && !strcmp(key, "threads"))
        snprintf(buf, cap, "%g thread%s", x, x == 1 ? "" : "s");
    else if (isfinite(x))
        snprintf(buf, cap, "%s %g", key, x);
    else if (mr_view_flag(v, i, key))
        snprintf(buf, cap, "%s", !strcmp(key, "synthetic") ? "no input" : key);
    return buf;
}

/* "hdd (emulated), threads engine, 8 threads" */
static void key_of(const struct mr_view *v, unsigned i, const struct measure *m, char *buf,
                   size_t cap)
{
    char words[128];
    buf[0] = 0;
    for (unsigned k = 0; k < 4 && m->keys[k]; k++) {
        size_t at = strlen(buf);
        if (key_words(v, i, m->keys[k], words, sizeof words)[0])
            snprintf(buf + at, cap - at, "%s%s", at ? ", " : "", words);
    }
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
    char other[256];
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        key_of(v, i, m, other, sizeof other);
        if (!strcmp(key, other))
            return (int)i;
    }
    return -1;
}

struct figures { /* of one thing in both studies */
    double x[2];
    double spread[2];         /* NaN: not known */
    const char *alone;        /* why not, in words */
    struct mr_noise noise[2]; /* where the spread is known */
    struct mr_noise alike;    /* of others that should be as noisy */
    double zero_p[2];         /* where the spread is known: the chance that such a figure is 0 */
};

/* The numbers of a list, to be freed; NULL when there are none, or no memory, which the page knows.
 */
static double *values_of(const struct mr_view *v, unsigned i, const char *list, unsigned *n)
{
    const struct mr_json *each = mr_view_at(v, i, list);
    size_t len = mr_json_is_array(each) ? mr_json_len(each) : 0;
    double *x = len ? calloc(len, sizeof *x) : NULL;
    *n = 0;
    if (len && !x)
        v->out->failed = 1;
    for (unsigned k = 0; x && k < len; k++)
        if (isfinite(mr_item(each, k)))
            x[(*n)++] = mr_item(each, k);
    return x;
}

/* How likely it is that a point with such a list has none of what is measured: not at all where
 * each of its values is more than `least`. */
static double zero_p_of(const struct mr_view *v, unsigned i, const char *list, double least)
{
    unsigned n, above = 0;
    double *x = values_of(v, i, list, &n), p = x ? mr_zero_p(x, n) : 1;
    for (unsigned k = 0; k < n; k++)
        above += x[k] > least;
    free(x);
    return n > 1 && above == n ? 0 : p;
}

/* What a list of runs, steps or checkpoints says about the noise of its point. */
static struct mr_noise noise_of(const struct mr_view *v, unsigned i, const char *list)
{
    struct mr_noise noise = {0};
    unsigned n;
    double *x = values_of(v, i, list, &n);
    if (x)
        noise = strncmp(list, "each_", 5) ? mr_noise_of_runs(x, n) : mr_noise_of_steps(x, n);
    free(x);
    return noise;
}

/* Of the figure in both studies; NaN where there was one of what it is of. */
static void add_spreads(const struct mr_view v[2], const unsigned point[2], const struct measure *m,
                        struct figures *f, char *words, size_t cap)
{
    const char *list = m->each ? m->each : "runs";
    snprintf(words, cap, "one %s", m->of ? m->of : "run");
    f->alone = words;
    for (unsigned k = 0; k < 2; k++) {
        f->spread[k] = mr_view_list_spread(&v[k], point[k], list);
        f->noise[k] = noise_of(&v[k], point[k], list);
        f->zero_p[k] = zero_p_of(&v[k], point[k], list, m->least);
        if (m->each && !mr_view_at(&v[k], point[k], list))
            f->alone = "not known";
    }
}

static int is_known(const struct figures *f)
{
    return isfinite(f->spread[0] + f->spread[1]);
}

/* Is the figure of study `k` more than noise around 0?  One whose spread is not known counts. */
static int is_above_0(const struct figures *f, unsigned k, unsigned n_tested)
{
    return !isfinite(f->spread[k]) || f->zero_p[k] * n_tested < CHANCE || f->zero_p[k] < LARGE;
}

/* Is the difference more than noise, where so many figures are compared? */
static int counts(const struct measure *m, const struct figures *f, unsigned n_tested)
{
    double a = f->x[0], b = f->x[1];
    if (!(fabs(b - a) > m->least) || !is_above_0(f, b > a, n_tested))
        return 0;
    if (a == 0 || b == 0) /* which have no logarithm */
        return 1;
    double times = fmax(a, b) / fmin(a, b); /* whichever of the studies comes first */
    if (!is_known(f))
        return times >= ALONE;
    double p = mr_difference_p(a, b, f->noise, &f->alike);
    return times - 1 > LEAST && (p * n_tested < CHANCE || (times >= ALONE && p < LARGE));
}

static void difference(const struct pair *p, const struct measure *m, const struct figures *f,
                       struct mr_markup *out)
{
    double a = f->x[0], b = f->x[1];
    int more = b > a, mark = counts(m, f, p->n_tested);
    const char *word = !mark                         ? ""
                       : m->better == NEITHER        ? "differs"
                       : more == (m->better == MORE) ? "better"
                                                     : "worse";
    mr_markup_add(out, "<td class=\"%s\">", word);
    if (a > 0)
        mr_markup_add(out, "%+.1f%%", fmin(100 * (b / a - 1), 1e6));
    else
        mr_markup_add(out, b > 0 ? "from 0" : "same");
    if (mark)
        mr_markup_add(out, " %s %s", more ? "▲" : "▼", word);
    mr_markup_add(out, "</td>");
}

static void row(const struct pair *p, const struct measure *m, const char *key,
                const struct figures *f, struct mr_markup *out)
{
    char text[32];
    mr_markup_add(out, "<tr><td>");
    mr_markup_text(out, key);
    mr_markup_add(out, "</td>");
    difference(p, m, f, out);
    for (unsigned k = 0; k < 2; k++)
        mr_markup_add(out, "<td>%s</td>", mr_number_text(f->x[k], text, sizeof text));
    if (is_known(f))
        mr_markup_add(out, "<td>%.1f%%, %.1f%%</td></tr>", 100 * fmin(f->spread[0], 1e4),
                      100 * fmin(f->spread[1], 1e4));
    else
        mr_markup_add(out, "<td>%s</td></tr>", f->alone);
}

static void names(const struct pair *p)
{
    for (unsigned k = 0; k < 2; k++) {
        mr_markup_add(p->out, "</th><th>");
        mr_markup_text(p->out, p->name[k]);
    }
}

/* `of`: what lies apart by the spread, NULL when that is not the same in all rows. */
static void begin_table(const struct pair *p, const char *what, const char *of)
{
    mr_markup_add(p->out, "<div class=\"scroll\"><table><thead><tr><th>%s</th><th>difference",
                  what);
    names(p);
    mr_markup_add(p->out, "</th><th>spread%s%s%s</th></tr></thead><tbody>", of ? " of " : "",
                  of ? of : "", of ? "s" : "");
}

/* Points of study `k` that the other one does not have. */
static void only_in(const struct pair *p, unsigned k, const struct mr_view v[2],
                    const struct measure *m)
{
    unsigned n = 0;
    char key[256];
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

/* A point that both studies have. */
struct match {
    unsigned point[2];
    char kind[128]; /* its storage or device: points of one kind should be much as noisy */
    char alone[32]; /* room for f.alone */
    struct figures f;
};

/* 1 when point `i` of the first study is in both, and has figures. */
static int match(const struct mr_view v[2], const struct measure *m, unsigned i, struct match *out)
{
    char key[256];
    key_of(&v[0], i, m, key, sizeof key);
    int other = find(&v[1], m, key);
    if (other < 0)
        return 0;
    *out = (struct match){.point = {i, (unsigned)other}};
    for (unsigned k = 0; k < 2; k++)
        out->f.x[k] = figure_of(&v[k], out->point[k], m);
    const double *x = out->f.x;
    if (!(x[0] >= 0 && x[1] >= 0 && x[0] + x[1] > 0 && isfinite(x[0] + x[1])))
        return 0;
    int on_storage = mr_view_text(&v[0], i, "storage") != NULL;
    key_words(&v[0], i, on_storage ? "storage" : m->keys[0], out->kind, sizeof out->kind);
    add_spreads(v, out->point, m, &out->f, out->alone, sizeof out->alone);
    return 1;
}

/* For each, what the others of its kind say about noise. */
static void add_alike(struct match *list, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < n; k++)
            if (k != i && !strcmp(list[i].kind, list[k].kind))
                for (unsigned of = 0; of < 2; of++)
                    mr_noise_add(&list[i].f.alike, &list[k].f.noise[of]);
}

/* All of them, to be freed; NULL when there are none, or no memory, which the page knows. */
static struct match *matches(const struct pair *p, const struct mr_view v[2],
                             const struct measure *m, unsigned *n)
{
    *n = 0;
    if (!mr_view_n(&v[0]))
        return NULL;
    struct match *list = calloc(mr_view_n(&v[0]), sizeof *list);
    if (!list)
        p->out->failed = 1;
    for (unsigned i = 0; list && i < mr_view_n(&v[0]); i++)
        *n += (unsigned)match(v, m, i, &list[*n]);
    add_alike(list, *n);
    return list;
}

static void view_both(const struct pair *p, const struct measure *m, struct mr_view v[2])
{
    for (unsigned k = 0; k < 2; k++)
        v[k] = (struct mr_view){
            .e = mr_view_find(p->root[k], m->experiment), .out = p->out, .o = p->o};
}

/* Figures of all tables whose noise is known. */
static unsigned count_tested(const struct pair *p)
{
    unsigned n_tested = 0;
    for (unsigned i = 0; i < sizeof measures / sizeof *measures; i++) {
        struct mr_view v[2];
        unsigned n;
        view_both(p, &measures[i], v);
        struct match *list = matches(p, v, &measures[i], &n);
        for (unsigned k = 0; k < n; k++)
            n_tested += (unsigned)is_known(&list[k].f);
        free(list);
    }
    return n_tested;
}

static void compare_points(struct pair *p, struct mr_view v[2], const struct measure *m)
{
    char id[64], title[96], key[256];
    unsigned n;
    struct mr_chart c = {
        .plot = {.kind = MR_PLOT_DOTS,
                 .id = id,
                 .title = title,
                 .x_label = "what was measured",
                 .y_label = m->unit,
                 .log_y = m->better == MORE,
                 .summary = "A row for each point, with a dot for each of the studies."}};
    struct mr_series *series[] = {mr_chart_series(&c, "%s", p->name[0]),
                                  mr_chart_series(&c, "%s ", p->name[1])};
    struct mr_markup table = {0};
    struct match *list = matches(p, v, m, &n);
    snprintf(id, sizeof id, "compare-%s", m->id);
    snprintf(title, sizeof title, "Point by point, %s", m->unit);
    for (unsigned i = 0; i < n; i++) {
        key_of(&v[0], list[i].point[0], m, key, sizeof key);
        row(p, m, key, &list[i].f, &table);
        unsigned at = mr_chart_name(&c, "%s", key);
        for (unsigned k = 0; k < 2; k++)
            mr_chart_put(&c, series[k], at, list[i].f.x[k], 0, 0);
    }
    free(list);
    if (table.len) {
        mr_view_plot(&v[0], &c);
        begin_table(p, m->unit, m->of ? m->of : "run");
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
    view_both(p, m, v);
    mr_markup_add(p->out, "<section id=\"%s\"><h2>%s</h2>", m->id, m->title);
    if (both_have(p, v))
        compare_points(p, v, m);
    mr_markup_add(p->out, "</section>\n");
    if (v[0].code && !p->code)
        p->code = v[0].code;
}

/* The runs that say how far apart those of the verdict's rate may have been, which are not kept:
 * the same was done for Decoding, on the real storage with a worker a core.  The other points on it
 * are alike. */
static void add_decoding(const struct pair *p, double cores, unsigned k, struct figures *f)
{
    struct mr_view v = {.e = mr_view_find(p->root[k], "decode"), .out = p->out};
    for (unsigned i = 0; v.e && i < mr_view_n(&v); i++) {
        const char *storage = mr_view_text(&v, i, "storage"),
                   *engine = mr_view_text(&v, i, "engine");
        if (!storage || !engine || strcmp(storage, "disk"))
            continue;
        struct mr_noise noise = noise_of(&v, i, "runs");
        if (strcmp(engine, "threads") || mr_view_number(&v, i, "threads") != cores) {
            mr_noise_add(&f->alike, &noise);
            continue;
        }
        f->noise[k] = noise;
        f->spread[k] = mr_view_list_spread(&v, i, "runs");
    }
}

/* One figure of points 0.  Its spread is not known, but where `each` says how it can be: by a
 * `control`, which is 1 where two measurements agree, or by the `runs` of Decoding. */
static void single(struct pair *p, const struct mr_view v[2], const struct measure *m,
                   const char *field)
{
    struct figures f = {.x = {mr_view_number(&v[0], 0, field), mr_view_number(&v[1], 0, field)},
                        .spread = {NAN, NAN},
                        .alone = m->alone ? m->alone : "one run"};
    for (unsigned k = 0; m->each && k < 2; k++)
        if (!strcmp(m->each, "control")) {
            double control = mr_view_number(&v[k], 0, "control");
            f.noise[k] = mr_noise_of_two(control);
            f.spread[k] = fabs(control - 1);
            if (f.x[1 - k] == 0)
                f.zero_p[k] = mr_student_p(M_SQRT2 / f.spread[k], 1);
        } else {
            add_decoding(p, mr_view_number(&v[k], 0, "cores"), k, &f);
        }
    if (f.x[0] >= 0 && f.x[1] >= 0 && isfinite(f.x[0] + f.x[1]))
        row(p, m, m->title, &f, p->out);
}

/* How many accelerators of each kind are fed. */
static void compare_sizing(struct pair *p, const struct mr_view v[2])
{
    const struct mr_json *list = mr_view_at(&v[0], 0, "sizing");
    char path[64], title[96];
    for (size_t i = 0; list && i < mr_json_len(list); i++) {
        const char *name = mr_json_text(mr_json_at(mr_json_item(list, i), "accelerator"));
        snprintf(path, sizeof path, "sizing.%zu.accelerator", i);
        const char *other = mr_view_text(&v[1], 0, path);
        if (!name || !other || strcmp(name, other))
            continue;
        snprintf(title, sizeof title, "%s fed", name);
        snprintf(path, sizeof path, "sizing.%zu.feeds", i);
        single(p, v, &(struct measure){.title = title, .least = 1, .alone = MEDIANS}, path);
    }
}

/* Half of the files are no larger, to a power of two; NaN when there is no histogram. */
static double median_bytes(const struct mr_view *v)
{
    const struct mr_json *bins = mr_view_at(v, 0, "histogram");
    double all = 0, sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; mr_json_is_array(bins) && i < mr_json_len(bins); i++) {
            const struct mr_json *bin = mr_json_item(bins, i);
            double n = mr_json_number(mr_json_at(bin, "n"));
            n = n > 0 ? n : 0;
            if (!pass)
                all += n;
            else if ((sum += n) >= all / 2 && all > 0)
                return mr_json_number(mr_json_at(bin, "to_bytes"));
        }
    return NAN;
}

static void median_size(struct pair *p, const struct mr_view v[2])
{
    struct figures f = {.x = {median_bytes(&v[0]) / 1024, median_bytes(&v[1]) / 1024},
                        .spread = {NAN, NAN},
                        .alone = "counted"};
    if (f.x[0] > 0 && f.x[1] > 0)
        row(p, &(struct measure){.better = NEITHER}, "median file, KiB at most", &f, p->out);
}

static const char *advice_text(const struct mr_view *v, const char *which)
{
    return mr_json_text(mr_json_at(mr_verdict_advice(v, which), "text"));
}

/* Both headlines, what a step consists of, and what is fed. */
static void verdicts(struct pair *p)
{
    static const struct measure parts[] = {
        {.field = "rates.cold",
         .title = "images/s delivered, cold",
         .each = "runs",
         .alone = MEDIANS},
        {.field = "fetch_s", .title = "fetch, s a step", .better = LESS, .alone = MEDIANS},
        {.field = "decode_s", .title = "decode, s a step", .better = LESS, CONTROLLED},
        {.field = "hand_over_s", .title = "hand-over, s a step", .better = LESS, .alone = MEDIANS},
        {.field = "compute_s", .title = "compute, s a step", .better = LESS, .alone = "one run"},
        {.field = "image_cpu_s", .title = "CPU, s an image", .better = LESS, CONTROLLED},
    };
    struct mr_view v[2];
    mr_markup_add(p->out, "<section id=\"verdict\"><h2>Verdict</h2>");
    for (unsigned k = 0; k < 2; k++)
        v[k] = (struct mr_view){.e = mr_view_find(p->root[k], "verdict"), .out = p->out};
    if (both_have(p, v)) {
        mr_markup_add(p->out, "<div class=\"beside\">");
        for (unsigned k = 0; k < 2; k++) {
            char buf[MR_HEADLINE];
            const char *text = mr_verdict_text(&v[k], buf, sizeof buf);
            const char *advice = advice_text(&v[k], "recommendation");
            const char *smaller = advice_text(&v[k], "smaller_images");
            if (mr_verdict_is_old(&v[k]))
                advice = MR_OLD_ADVICE;
            mr_markup_add(p->out, "<div><h3 class=\"name\">");
            mr_markup_text(p->out, p->name[k]);
            mr_markup_add(p->out, "</h3><p>");
            mr_markup_text(p->out, text ? text : "No verdict.");
            mr_markup_add(p->out, "</p><p>");
            if (advice && !(text && strstr(text, advice))) /* the first words end in it */
                mr_markup_text(p->out, advice);
            mr_markup_add(p->out, "</p><p>");
            mr_markup_text(p->out, smaller ? smaller : "");
            mr_markup_add(p->out, "</p></div>");
        }
        mr_markup_add(p->out, "</div>");
        begin_table(p, "", NULL);
        for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
            single(p, v, &parts[i], parts[i].field);
        compare_sizing(p, v);
        mr_markup_add(p->out, "</tbody></table></div>");
    }
    mr_markup_add(p->out, "</section>\n");
}

/* Sizes of the files, and the requests of the first device that was watched. */
static void compare_files(struct pair *p)
{
    static const struct measure parts[] = {
        {.field = "samples",
         .title = "files in the data set",
         .better = NEITHER,
         .alone = "counted"},
        {.field = "requests.0.read_kb", .title = "KB a request", .better = NEITHER},
        {.field = "requests.0.wait_ms", .title = "ms that a request takes", .better = LESS},
        {.field = "requests.0.queue", .title = "requests under way", .better = NEITHER},
        {.field = "requests.0.util",
         .title = "% of the time that the device is busy",
         .better = NEITHER},
    };
    struct mr_view v[2];
    mr_markup_add(p->out, "<section id=\"files\"><h2>Files and requests</h2>");
    for (unsigned k = 0; k < 2; k++)
        v[k] = (struct mr_view){.e = mr_view_find(p->root[k], "files"), .out = p->out};
    if (both_have(p, v)) {
        begin_table(p, "", NULL);
        median_size(p, v);
        for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
            single(p, v, &parts[i], parts[i].field);
        mr_markup_add(p->out, "</tbody></table></div>");
    }
    mr_markup_add(p->out, "</section>\n");
}

static void machines(struct pair *p)
{
    mr_markup_add(p->out,
                  "<section id=\"machine\"><h2>The machines</h2><div class=\"scroll\"><table>"
                  "<thead><tr><th>");
    names(p);
    mr_markup_add(p->out, "</th></tr></thead><tbody>");
    mr_machine_rows(p->out, mr_json_at(p->root[0], "environment"),
                    mr_json_at(p->root[1], "environment"));
    mr_markup_add(p->out, "</tbody></table></div></section>\n");
}

int mr_report_compare(const struct mr_json *a, const char *name_a, const struct mr_json *b,
                      const char *name_b, const struct mr_report_opts *o, struct mr_markup *page,
                      struct mr_error *err)
{
    enum { N = sizeof measures / sizeof *measures };
    struct pair p = {.root = {a, b}, .name = {name_a, name_b}, .o = o, .out = page};
    struct mr_page_link links[N + 3] = {{"verdict", "Verdict"}};
    unsigned n = 1;
    if (!mr_json_is_array(mr_json_at(a, "results")) || !mr_json_is_array(mr_json_at(b, "results")))
        return mr_fail(err, -EBADMSG, "these are not the results of two studies");
    for (unsigned i = 0; i < N; i++)
        if (measures[i].link)
            links[n++] = (struct mr_page_link){measures[i].id, measures[i].link};
    links[n++] = (struct mr_page_link){"files", "Files"};
    links[n++] = (struct mr_page_link){"machine", "Machines"};
    mr_page_begin(page, "millrace: two studies", links, n);
    mr_markup_add(page, "<h1>");
    mr_markup_text(page, name_a);
    mr_markup_add(page, " and ");
    mr_markup_text(page, name_b);
    mr_markup_add(
        page, "</h1><p class=\"lead\">A difference is marked when it is larger than 5%% and larger "
              "than the spread of runs, steps or checkpoints explains: where identical studies "
              "differ by chance alone, 95 of 100 pairs have no mark at all. Where a spread is not "
              "known a difference is marked when one figure is three times the other, or when "
              "something was, or became, nothing.</p>");
    char why[MR_REPORT_WHY];
    if (mr_report_data_differ(a, b, why, sizeof why)) {
        mr_markup_add(page, "<p class=\"warn\">");
        mr_markup_text(page, why);
        mr_markup_add(page, "</p>");
    }
    p.n_tested = N_SINGLE + count_tested(&p);
    verdicts(&p);
    for (unsigned i = 0; i < N; i++)
        compare(&p, &measures[i]);
    compare_files(&p);
    machines(&p);
    mr_page_end(page, mr_json_text(mr_json_at(b, "version")));
    if (p.code)
        return mr_fail(err, p.code, "a CSV file could not be written: %s", mr_errno_text(p.code));
    return mr_markup_ok(page) ? 0 : mr_fail(err, -ENOMEM, "no memory for the page");
}
