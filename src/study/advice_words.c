/* advice_words.c - see advice_words.h.
 *
 * A gain is said as it was measured, never as it was predicted.  A configuration that is not
 * recommended is named only as one that was tried. */
#include "advice_words.h"

#include "device.h"
#include "points.h"

#include <math.h>
#include <stdio.h>

#define FASTER 1.03 /* times: cores that became faster are mentioned from here on */

void mr_advice_text(const struct mr_advice_opts *o, const struct mr_advice *a, char *text,
                    size_t cap)
{
    const struct mr_setup *b = &a->best;
    int n = b->engine == MR_ENGINE_URING
                ? snprintf(text, cap, "--engine uring --io-depth %u --threads %u", b->io_depth,
                           b->threads)
                : snprintf(text, cap, "--threads %u", b->threads);
    if (b->prefetch != o->now.prefetch && n >= 0 && (size_t)n < cap)
        n += snprintf(text + n, cap - (size_t)n, " --prefetch %u", b->prefetch);
    if (a->on_tier && n >= 0 && (size_t)n < cap)
        snprintf(text + n, cap - (size_t)n, " --storage %s", mr_device_name(o->tier));
}

const char *mr_advice_standing_name(enum mr_advice_standing standing)
{
    static const char *const names[] = {"none", "recommended", "withdrawn", "no model"};
    return names[standing];
}

static const char *more_or_less(double difference)
{
    return difference < 0 ? "less" : "more";
}

/* The gain, as far as it is not that of faster cores. */
static void explain_change(const struct mr_findings *f, const struct mr_advice *a,
                           const char *change, char *text, size_t cap)
{
    double measured = a->measured.per_s, gain = 100 * mr_advice_gain(f, a);
    const char *head =
        a->on_tier ? "Storage as fast as an Optane drive (emulated) would help:" : "Use";
    if (a->measured.control > FASTER)
        snprintf(text, cap,
                 "%s %s: it measured %.0f images/s, and %.0f were measured before. The cores had "
                 "become %.2f times as fast by then; without that the gain is %.0f%%.",
                 head, change, measured, f->cold, a->measured.control, gain);
    else
        snprintf(text, cap, "%s %s: it measured %.0f images/s, %.0f%% more than the %.0f of now.",
                 head, change, measured, gain, f->cold);
}

static void explain_withdrawn(const struct mr_findings *f, const struct mr_advice *a,
                              const char *change, char *text, size_t cap)
{
    double measured = a->measured.per_s, off = measured / f->cold - 1;
    int n = snprintf(text, cap,
                     "No change is recommended: %s was tried and measured %.0f images/s, %.0f%% "
                     "%s than the %.0f of now",
                     change, measured, 100 * fabs(off), more_or_less(off), f->cold);
    if (n < 0 || (size_t)n >= cap)
        return;
    if (off > 0 && a->measured.control > FASTER)
        snprintf(text + n, cap - (size_t)n, ", on cores that had become %.2f times as fast.",
                 a->measured.control);
    else
        snprintf(text + n, cap - (size_t)n, ".");
}

static void explain(const struct mr_advice_opts *o, const struct mr_findings *f,
                    const struct mr_advice *a, char *text, size_t cap)
{
    char change[96];
    double off = a->now_per_s / f->cold - 1;
    mr_advice_text(o, a, change, sizeof change);
    switch (a->standing) {
    case MR_ADVICE_KEEP:
        snprintf(text, cap,
                 "The present configuration (%s) is as good as any here; what would help is %s.",
                 change,
                 f->fetched < f->cores / f->image_cpu_s ? "faster storage"
                                                        : "more cores, or smaller stored images");
        break;
    case MR_ADVICE_CHANGE:
        explain_change(f, a, change, text, cap);
        break;
    case MR_ADVICE_WITHDRAWN:
        explain_withdrawn(f, a, change, text, cap);
        break;
    case MR_ADVICE_NO_MODEL:
        snprintf(text, cap,
                 "No configuration is recommended: the model says %.0f images/s for the present "
                 "one, %.0f%% %s than the %.0f measured, so its predictions are not reliable.",
                 a->now_per_s, 100 * fabs(off), more_or_less(off), f->cold);
        break;
    }
}

struct mr_json *mr_advice_json(const struct mr_advice_opts *o, const struct mr_findings *f,
                               const struct mr_advice *a)
{
    char text[400], tried[96];
    mr_advice_text(o, a, tried, sizeof tried);
    explain(o, f, a, text, sizeof text);
    struct mr_recommendation r = {
        .text = text,
        .status = mr_advice_standing_name(a->standing),
        .change = a->standing == MR_ADVICE_CHANGE ? tried : NULL,
        .tried = tried,
        .now_per_s = f->cold,
        .predicted_per_s = a->predicted_per_s,
        .measured_per_s = a->measured.per_s,
        .now_images_per_s = f->cold,
        .now_predicted_images_per_s = a->now_per_s,
        .predicted_images_per_s = a->predicted_per_s,
        .measured_images_per_s = a->measured.per_s,
        .error = fabs(a->predicted_per_s / a->measured.per_s - 1),
        .emulated = a->on_tier,
        .cold = a->measured.cold,
        .late_share = a->on_tier ? a->measured.late_share : NAN,
    };
    return mr_recommendation_json(&r);
}
