/* view_rates.c - see view_rates.h. */
#include "view_rates.h"

#include "scale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const struct mr_key mr_rate_keys[] = {
    {MR_FIELD(read_point, storage), MR_KEY_STORAGE},
    {MR_FIELD(read_point, engine), .after = " engine"},
    {MR_FIELD(read_point, threads), .after = " thread", .plural = 1},
    {0}};

/* Speed-up from the fewest to the most threads on one storage and engine; NaN when not there. */
static double speed_up(const struct mr_view *v, const char *storage, const char *engine)
{
    double few = INFINITY, many = 0, at_few = NAN, at_many = NAN;
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        struct mr_read_point p = mr_read_point_of(mr_view_point(v, i));
        if (!mr_is_text(p.storage, storage) || !mr_is_text(p.engine, engine))
            continue;
        if (p.threads < few) {
            few = p.threads;
            at_few = p.images_per_s;
        }
        if (p.threads > many) {
            many = p.threads;
            at_many = p.images_per_s;
        }
    }
    return at_many / at_few;
}

/* "hdd (emulated) 2.30 times, ..." */
static void tell_speed_ups(struct mr_view *v)
{
    static const char *const storages[] = {"disk", "hdd", "ssd", "optane", "lustre"};
    char list[300] = "", name[64];
    for (unsigned i = 0; i < sizeof storages / sizeof *storages; i++) {
        double times = speed_up(v, storages[i], "threads");
        size_t at = strlen(list);
        if (isfinite(times))
            snprintf(list + at, sizeof list - at, "%s%s %.2f", at ? ", " : "",
                     mr_storage_words(storages[i], i > 0, name, sizeof name), fmin(times, 1e6));
    }
    if (list[0])
        mr_view_finding(v, "From the fewest to the most threads it gets so many times as fast: %s.",
                        list);
}

/* "threads", and what a thread of the ring is: it has several reads under way. */
static void threads_label(const struct mr_view *v, char *buf, size_t cap)
{
    snprintf(buf, cap, "threads");
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        struct mr_read_point p = mr_read_point_of(mr_view_point(v, i));
        double reads = p.io_depth / p.threads;
        if (mr_is_text(p.engine, "uring") && reads > 0 && reads < 1e6) {
            snprintf(buf, cap, "threads (uring: %.3g reads under way for each)", reads);
            return;
        }
    }
}

void mr_show_rates(struct mr_view *v, const char *id, const char *title)
{
    char x_label[80];
    struct mr_chart c = {.plot = {.kind = MR_PLOT_LINES,
                                  .id = id,
                                  .title = title,
                                  .x_label = x_label,
                                  .y_label = "images/s",
                                  .log_x = 1,
                                  .log_y = 1,
                                  .summary = "Lines of images per second over the number of "
                                             "threads, one for each storage and engine."}};
    char name[64];
    threads_label(v, x_label, sizeof x_label);
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        struct mr_read_point p = mr_read_point_of(mr_view_point(v, i));
        double lo, hi;
        mr_view_storage(v, i, name, sizeof name);
        struct mr_series *s = mr_chart_series(&c, "%s, %s", name, p.engine ? p.engine : "");
        if (s) { /* a colour for each storage */
            s->colour = mr_chart_name(&c, "%s", name) % MR_PLOT_COLOURS;
            s->dashed = mr_is_text(p.engine, "uring");
        }
        mr_list_range(p.runs, &lo, &hi);
        mr_chart_add(&c, s, (struct mr_point){p.threads, p.images_per_s, lo, hi});
    }
    mr_view_plot(v, &c);
    tell_speed_ups(v);
}

const char *mr_rate_way(const struct mr_read_point *p, char *buf, size_t cap)
{
    snprintf(buf, cap, "%s, %.0f thread%s", p->engine ? p->engine : "-",
             isfinite(p->threads) ? p->threads : 0, p->threads == 1 ? "" : "s");
    return buf;
}

/* The point of the same storage as point i that reaches most of its baseline; the first of them
 * when that is not known of any. */
static unsigned best_share(const struct mr_view *v, unsigned i)
{
    const char *storage = mr_view_any(v, i).storage;
    unsigned best = mr_view_n(v);
    double most = NAN;
    for (unsigned k = 0; storage && k < mr_view_n(v); k++) {
        struct mr_read_point p = mr_read_point_of(mr_view_point(v, k));
        if (!mr_is_text(p.storage, storage))
            continue;
        if (best == mr_view_n(v) || (isfinite(p.baseline_share) && !(most >= p.baseline_share))) {
            best = k;
            most = p.baseline_share;
        }
    }
    return storage ? best : i;
}

/* A baseline that files were read faster than is no limit.  A little more than all of it is noise.
 */
static int exceeds(double share)
{
    return share > 1.05;
}

static void tell_share(struct mr_view *v, const struct mr_read_point *p, const char *way)
{
    double mb = p->mb_per_s, share = p->baseline_share;
    char rate[32], raw[32];
    if (!exceeds(share))
        mr_view_finding(v,
                        "The best way here (%s) reaches %.0f%% of what the device delivers at "
                        "random with ImageNet's sizes.",
                        way, 100 * fmin(share, 1));
    else
        mr_view_finding(v,
                        "The best way here (%s) reads %s MB/s, more than the %s of the baseline at "
                        "random with ImageNet's sizes: that was not the device's limit.",
                        way, mr_number_text(mb, rate, sizeof rate),
                        mr_number_text(mb / share, raw, sizeof raw));
}

/* One row a storage: the way that comes nearest to its limit. */
void mr_show_shares(struct mr_view *v)
{
    char name[64], way[64], text[32];
    mr_markup_add(
        v->out,
        "<h3>%% of the baseline reached</h3><div class=\"scroll\"><table><thead>"
        "<tr><th>storage</th><th class=\"text\">best way</th><th>MB/s</th><th>%% of its random "
        "baseline</th></tr></thead><tbody>");
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        if (best_share(v, i) != i)
            continue; /* another point speaks for this storage */
        struct mr_read_point p = mr_read_point_of(mr_view_point(v, i));
        double share = p.baseline_share;
        mr_rate_way(&p, way, sizeof way);
        mr_markup_add(v->out, "<tr><td>");
        mr_markup_text(v->out, mr_view_storage(v, i, name, sizeof name));
        mr_markup_add(v->out, "</td><td class=\"text\">");
        mr_markup_text(v->out, isfinite(share) ? way : "-");
        mr_markup_add(v->out, "</td><td>%s</td><td>",
                      isfinite(share) ? mr_number_text(p.mb_per_s, text, sizeof text) : "-");
        if (isfinite(share) && exceeds(share))
            mr_markup_add(v->out, "more than the baseline</td></tr>");
        else if (isfinite(share))
            mr_markup_add(v->out, "%.0f</td></tr>", 100 * fmax(fmin(share, 1), -1e4));
        else
            mr_markup_add(v->out, "no baseline</td></tr>");
        if (share > 0 && !p.emulated)
            tell_share(v, &p, way);
    }
    mr_markup_add(v->out, "</tbody></table></div>");
}
