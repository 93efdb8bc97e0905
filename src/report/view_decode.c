/* view_decode.c - reading, decoding and resizing, and where the workers' time goes. */
#include "view_rates.h"

#include <math.h>
#include <stdio.h>

/* Where the time of a worker for one image goes, in ms; in all, what it holds an image. */
struct held {
    double decode, resize, rest, wait;
};

/* Decoding and resizing are timed by the clock, which runs on while a worker waits for a core: of
 * these times no more is CPU time than the process has used.  The rest of what is held is waiting.
 */
static struct held where_time_goes(const struct mr_read_point *p)
{
    double d = 1e3 * p->decode_s_per_image;
    double r = 1e3 * p->resize_s_per_image;
    double held = 1e3 * p->threads / p->images_per_s;
    double cpu = fmin(1e3 * p->cpu_s_per_image, held);
    if (!(d >= 0 && r >= 0 && cpu >= 0 && isfinite(d + r + held)))
        return (struct held){NAN, NAN, NAN, NAN};
    double part = d + r > cpu ? cpu / (d + r) : 1;
    return (struct held){part * d, part * r, fmax(cpu - part * (d + r), 0), held - cpu};
}

static void show(struct mr_view *v)
{
    struct mr_chart c = {.plot = {.kind = MR_PLOT_STACK,
                                  .id = "decode-cpu",
                                  .title = "Where the workers' time for an image goes",
                                  .x_label = "engine and threads, on this disk",
                                  .y_label = "ms of a worker an image",
                                  .summary =
                                      "Stacked bars, as high as a worker holds an image: CPU "
                                      "time for decoding, resizing and all the rest, and "
                                      "waiting."}};
    char name[64], waits[64] = "";
    double largest = 0;
    mr_show_rates(v, "decode", "Reading, decoding and resizing");
    mr_show_shares(v);
    struct mr_series *decode = mr_chart_series(&c, "decode"),
                     *resize = mr_chart_series(&c, "resize"),
                     *rest = mr_chart_series(&c, "other CPU time"),
                     *wait = mr_chart_series(&c, "waiting for storage or a core");
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        struct mr_read_point p = mr_read_point_of(mr_view_point(v, i));
        if (p.emulated)
            continue;
        struct held h = where_time_goes(&p);
        unsigned at = mr_chart_name(&c, "%s", mr_rate_way(&p, name, sizeof name));
        mr_chart_put(&c, decode, at, h.decode, 0, 0);
        mr_chart_put(&c, resize, at, h.resize, 0, 0);
        mr_chart_put(&c, rest, at, h.rest, 0, 0);
        mr_chart_put(&c, wait, at, h.wait, 0, 0);
        double held = h.decode + h.resize + h.rest + h.wait;
        if (held > 0 && h.wait > largest * held) {
            largest = h.wait / held;
            snprintf(waits, sizeof waits, "%s", name);
        }
    }
    mr_view_plot(v, &c);
    if (largest > 0)
        mr_view_finding(v, "Workers wait most with %s: %.0f%% of their time.", waits,
                        100 * largest);
}

static const struct mr_measure measures[] = {{.id = "decode",
                                              .title = "Decoding",
                                              .link = "Decode",
                                              .field = MR_FIELD(read_point, images_per_s),
                                              .unit = "images/s",
                                              .keys = mr_rate_keys,
                                              .each = MR_FIELD(read_point, runs)},
                                             {0}};

const struct mr_section mr_section_decode = {
    .title = "Decoding",
    .link = "Decode",
    .question = "What is left when images are decoded and resized?",
    .study = "The pipeline with decoding stayed far below the device's bandwidth: the CPU was the "
             "limit. In a later profile 51% of the cycles were decoding and 14% resizing.",
    .repeats = {MR_REF_CHIEN, "Figure 4", "reading and decoding over threads",
                "millrace bench --data DIR --map decode --threads 1,2,4,8 --cold"},
    .emulated = MR_ORIGIN_PREDICTED,
    .show = show,
    .each = MR_FIELD(decode_point, runs),
    .measures = measures,
};
