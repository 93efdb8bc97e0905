/* view_files.c - sizes of the files, and the requests that reading them made. */
#include "section.h"

#include "scale.h"

#include <math.h>

/* The two neighbouring bins of the histogram that hold most. */
static void tell_common_sizes(struct mr_view *v, const struct mr_json *bins)
{
    double all = 0, most = 0, to = 0, before = 0;
    for (size_t i = 0; mr_json_is_array(bins) && i < mr_json_len(bins); i++) {
        struct mr_size_bin bin = mr_size_bin_of(mr_json_item(bins, i));
        double n = bin.n >= 0 && bin.n < 1e15 ? bin.n : 0;
        all += n;
        if (n + before > most) {
            most = n + before;
            to = bin.to_bytes;
        }
        before = n;
    }
    if (all > 0 && to > 0 && to < 1e15)
        mr_view_finding(v, "%.0f%% of the files have more than %.0f and at most %.0f KiB.",
                        100 * most / all, to / 4096, to / 1024);
}

static void show_requests(struct mr_view *v, const struct mr_json *requests)
{
    char text[32], more[32], busy[32];
    if (!requests || !mr_json_len(requests))
        return;
    mr_markup_add(
        v->out,
        "<h3>Requests at the device while reading</h3><div class=\"scroll\"><table>"
        "<thead><tr><th>device</th><th>KB a request</th><th>ms a request takes</th>"
        "<th>requests under way</th><th>ms of service</th><th>busy %%</th></tr></thead><tbody>");
    for (unsigned i = 0; i < mr_json_len(requests); i++) {
        struct mr_device_requests r = mr_device_requests_of(mr_json_item(requests, i));
        const double columns[] = {r.read_kb, r.wait_ms, r.queue, r.svc_ms, r.util};
        mr_markup_add(v->out, "<tr><td>");
        mr_markup_text(v->out, r.device);
        for (unsigned k = 0; k < sizeof columns / sizeof *columns; k++)
            mr_markup_add(v->out, "</td><td>%s", mr_number_text(columns[k], text, sizeof text));
        mr_markup_add(v->out, "</td></tr>");
    }
    mr_markup_add(v->out, "</tbody></table></div>");
    struct mr_device_requests first = mr_device_requests_of(mr_json_item(requests, 0));
    if (isfinite(first.read_kb + first.queue + first.util))
        mr_view_finding(v,
                        "While they were read the device had requests of %s KB, %s under way on "
                        "average, and was busy %s%% of the time.",
                        mr_number_text(first.read_kb, text, sizeof text),
                        mr_number_text(first.queue, more, sizeof more),
                        mr_number_text(first.util, busy, sizeof busy));
}

static void show(struct mr_view *v)
{
    struct mr_chart c = {.plot = {.kind = MR_PLOT_BARS,
                                  .id = "files",
                                  .title = "Sizes of the files",
                                  .x_label = "file size up to, KiB",
                                  .y_label = "files",
                                  .touching = 1,
                                  .summary = "Histogram of file sizes in powers of two."}};
    struct mr_files_point p = mr_files_point_of(mr_view_point(v, 0));
    struct mr_series *s = mr_chart_series(&c, "files");
    char text[32], all[32];
    for (unsigned i = 0; mr_json_is_array(p.histogram) && i < mr_json_len(p.histogram); i++) {
        struct mr_size_bin bin = mr_size_bin_of(mr_json_item(p.histogram, i));
        unsigned at =
            mr_chart_name(&c, "%s", mr_number_text(bin.to_bytes / 1024, text, sizeof text));
        mr_chart_put(&c, s, at, bin.n, 0, 0);
    }
    mr_view_plot(v, &c);
    tell_common_sizes(v, p.histogram);
    if (p.looked_at < p.samples)
        mr_view_finding(v, "%s of the %s files were looked at, chosen at random.",
                        mr_number_text(p.looked_at, text, sizeof text),
                        mr_number_text(p.samples, all, sizeof all));
    if (p.images_read < p.samples)
        mr_view_finding(v, "The device was watched while %s of them were read.",
                        mr_number_text(p.images_read, text, sizeof text));
    show_requests(v, p.requests);
}

/* Half of the files are no larger, to a power of two; NaN when there is no histogram. */
static double median_bytes(const struct mr_json *bins)
{
    double all = 0, sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; mr_json_is_array(bins) && i < mr_json_len(bins); i++) {
            struct mr_size_bin bin = mr_size_bin_of(mr_json_item(bins, i));
            double n = bin.n > 0 ? bin.n : 0;
            if (!pass)
                all += n;
            else if ((sum += n) >= all / 2 && all > 0)
                return bin.to_bytes;
        }
    return NAN;
}

/* Sizes of the files, and the requests of the first device that was watched. */
static void compare(struct mr_pair *p, const struct mr_view v[2])
{
    static const struct mr_measure counted = {.better = MR_NEITHER}, slower = {.better = MR_LESS};
    struct mr_files_point f[2];
    struct mr_device_requests r[2];
    for (unsigned k = 0; k < 2; k++) {
        f[k] = mr_files_point_of(mr_view_point(&v[k], 0));
        r[k] = mr_device_requests_of(
            mr_json_is_array(f[k].requests) ? mr_json_item(f[k].requests, 0) : NULL);
    }
    double median[2] = {median_bytes(f[0].histogram) / 1024, median_bytes(f[1].histogram) / 1024};
    mr_compare_begin(p, "", NULL);
    if (median[0] > 0 && median[1] > 0)
        mr_compare_row(p, &counted, "median file, KiB at most",
                       mr_figures_of(median[0], median[1], "counted"));
    mr_compare_row(p, &counted, "files in the data set",
                   mr_figures_of(f[0].samples, f[1].samples, "counted"));
    mr_compare_row(p, &counted, "KB a request",
                   mr_figures_of(r[0].read_kb, r[1].read_kb, "one run"));
    mr_compare_row(p, &slower, "ms that a request takes",
                   mr_figures_of(r[0].wait_ms, r[1].wait_ms, "one run"));
    mr_compare_row(p, &counted, "requests under way",
                   mr_figures_of(r[0].queue, r[1].queue, "one run"));
    mr_compare_row(p, &counted, "% of the time that the device is busy",
                   mr_figures_of(r[0].util, r[1].util, "one run"));
    mr_compare_end(p);
}

const struct mr_section mr_section_files = {
    .title = "Files and requests",
    .link = "Files",
    .question = "What do the files look like to the device?",
    .study = "80% of ImageNet's files are in the 64 and 128 KB bins; requests of 113 KB, queues of "
             "431 to 810.",
    .repeats = {MR_REF_NELSON, "file sizes and requests", "what files look like to the device",
                "millrace inspect DIR"},
    .emulated = MR_ORIGIN_PREDICTED,
    .show = show,
    .compare = compare,
};
