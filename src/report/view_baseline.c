/* view_baseline.c - raw limits: each storage with each pattern. */
#include "section.h"

#include "scale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The point of a storage and a pattern; one without figures when there is none. */
static struct mr_baseline_point limit_of(const struct mr_view *v, const char *storage,
                                         const char *pattern)
{
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        struct mr_baseline_point p = mr_baseline_point_of(mr_view_point(v, i));
        if (mr_is_text(p.storage, storage) && mr_is_text(p.pattern, pattern))
            return p;
    }
    return mr_baseline_point_of(NULL);
}

/* This disk in a sentence, and how near the emulated ones come to Table I. */
static void tell_limits(struct mr_view *v)
{
    static const struct {
        const char *storage;
        double read, write; /* of Table I, MB/s */
    } table[] = {
        {"hdd", 163, 133}, {"ssd", 281, 195}, {"optane", 1603, 512}, {"lustre", 1969, 992}};
    struct mr_baseline_point seq = limit_of(v, "disk", "seq");
    unsigned n = 0;
    char a[32], b[32], c[32];
    double off = 0;
    if (seq.pattern)
        mr_view_finding(
            v,
            "This disk: %s / %s MB/s (read / write) in order, %s MB/s at random with ImageNet's "
            "sizes.",
            mr_number_text(seq.read_mb_per_s, a, sizeof a),
            mr_number_text(seq.write_mb_per_s, b, sizeof b),
            mr_number_text(limit_of(v, "disk", "random-imagenet").read_mb_per_s, c, sizeof c));
    for (unsigned k = 0; k < sizeof table / sizeof *table; k++) {
        struct mr_baseline_point p = limit_of(v, table[k].storage, "seq");
        double read = p.read_mb_per_s / table[k].read - 1,
               write = p.write_mb_per_s / table[k].write - 1;
        if (!isfinite(read + write))
            continue;
        n++;
        off = fmax(off, fmax(fabs(read), fabs(write)));
    }
    if (n)
        mr_view_finding(
            v,
            "The emulated devices (%u of 4) come within %.1f%% of the study's table, to "
            "which they were calibrated.",
            n, fmin(100 * off, 1e6));
}

static void limit_row(struct mr_view *v, const struct mr_baseline_point *p)
{
    struct mr_latency_us latency = mr_latency_us_of(p->latency_us);
    const double columns[] = {p->read_mb_per_s, p->write_mb_per_s, p->iops, latency.p50,
                              latency.p99};
    size_t n_runs = p->runs ? mr_json_len(p->runs) : 0;
    char text[64];
    mr_markup_add(v->out, "<tr><td>");
    mr_markup_text(v->out, mr_storage_words(p->storage, p->emulated, text, sizeof text));
    mr_markup_add(v->out, "</td><td class=\"text\">");
    mr_markup_text(v->out, p->pattern ? mr_pattern_words(p->pattern) : "-");
    for (unsigned k = 0; k < sizeof columns / sizeof *columns; k++)
        mr_markup_add(v->out, "</td><td>%s", mr_number_text(columns[k], text, sizeof text));
    if (n_runs > 1)
        mr_markup_add(v->out, "</td><td>%zu, ±%.1f%%</td></tr>", n_runs,
                      50 * fmin(mr_list_spread(p->runs, MR_ONE_RUN), 1e4));
    else
        mr_markup_add(v->out, "</td><td>one run</td></tr>");
}

static void show(struct mr_view *v)
{
    struct mr_chart c = {.plot = {.kind = MR_PLOT_BARS,
                                  .id = "baseline",
                                  .title = "Sequential bandwidth",
                                  .x_label = "storage",
                                  .y_label = "MB/s",
                                  .summary = "Bars of sequential read and write bandwidth for each "
                                             "storage."}};
    char name[64];
    struct mr_series *reads = mr_chart_series(&c, "read"), *writes = mr_chart_series(&c, "write");
    mr_markup_add(v->out, "<div class=\"scroll\"><table><thead><tr><th>storage</th><th "
                          "class=\"text\">pattern</th><th>read MB/s</th><th>write MB/s</th>"
                          "<th>operations/s</th><th>latency, median µs</th><th>latency, 99%% "
                          "within µs</th><th>runs</th></tr></thead><tbody>");
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        struct mr_baseline_point p = mr_baseline_point_of(mr_view_point(v, i));
        limit_row(v, &p);
        if (mr_is_text(p.pattern, "seq")) {
            unsigned at =
                mr_chart_name(&c, "%s", mr_storage_words(p.storage, p.emulated, name, sizeof name));
            double lo, hi;
            mr_list_range(p.runs, &lo, &hi);
            mr_chart_put(&c, reads, at, p.read_mb_per_s, lo, hi);
            mr_list_range(p.write_runs, &lo, &hi);
            mr_chart_put(&c, writes, at, p.write_mb_per_s, lo, hi);
        }
    }
    mr_markup_add(v->out, "</tbody></table></div>");
    mr_view_plot(v, &c);
    tell_limits(v);
}

static const struct mr_key keys[] = {{MR_FIELD(baseline_point, storage), MR_KEY_STORAGE},
                                     {MR_FIELD(baseline_point, pattern), MR_KEY_PATTERN},
                                     {0}};

static const struct mr_measure measures[] = {{.id = "baseline",
                                              .title = "Raw limits: read",
                                              .link = "Limits",
                                              .field = MR_FIELD(baseline_point, read_mb_per_s),
                                              .unit = "MB/s",
                                              .keys = keys,
                                              .each = MR_FIELD(baseline_point, runs)},
                                             {.id = "baseline-written",
                                              .title = "Raw limits: written",
                                              .field = MR_FIELD(baseline_point, write_mb_per_s),
                                              .unit = "MB/s",
                                              .keys = keys,
                                              .each = MR_FIELD(baseline_point, write_runs)},
                                             {0}};

const struct mr_section mr_section_baseline = {
    .title = "Raw limits",
    .link = "Limits",
    .question = "What can the storage do, without any pipeline?",
    .study = "HDD 163 / 133 MB/s (read / write), SSD 281 / 195, Optane 1603 / 512, Lustre 1969 / "
             "992.",
    .repeats = {MR_REF_CHIEN, "Table I", "raw bandwidth of the storages", "millrace baseline DIR"},
    .emulated = MR_ORIGIN_CALIBRATED,
    .show = show,
    .each = MR_FIELD(baseline_point, runs),
    .measures = measures,
};
