/* view_method.c - how an experiment's figures came about, from its points: what was cold and
 * whether that is proven, how often it was measured, and how far the runs, or the steps or
 * checkpoints of a run, lie apart. */
#include "view_parts.h"

#include "scale.h"

#include <math.h>
#include <string.h>

static void plural(struct mr_markup *out, unsigned n, const char *what)
{
    mr_markup_add(out, "%u %s%s", n, what, n == 1 ? "" : "s");
}

/* Points whose `cold` is one of these words. */
static unsigned n_cold(const struct mr_view *v, const char *a, const char *b)
{
    unsigned n = 0;
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        const char *cold = mr_view_text(v, i, "cold");
        n += cold && (!strcmp(cold, a) || !strcmp(cold, b));
    }
    return n;
}

static void tell_cold(const struct mr_view *v, struct mr_markup *out)
{
    unsigned proven = n_cold(v, "data", "data+metadata"), doubtful = n_cold(v, "unproven", "");
    unsigned emulated = 0;
    for (unsigned i = 0; i < mr_view_n(v); i++)
        emulated += mr_view_flag(v, i, "emulated") && mr_view_text(v, i, "storage");
    if (proven) {
        mr_markup_add(out, "<p>Cache: ");
        plural(out, proven, "point");
        mr_markup_add(out, " read cold, and proven so: after eviction the kernel counted no cached "
                           "byte of the files before each run.</p>");
    }
    if (doubtful) {
        mr_markup_add(out, "<p>Cache: ");
        plural(out, doubtful, "point");
        mr_markup_add(out, " read after eviction, but that nothing was cached is unproven.</p>");
    }
    if (emulated) {
        mr_markup_add(out, "<p>Cache: ");
        plural(out, emulated, "point");
        mr_markup_add(out, " on emulated devices, which charge every byte, cached or not.</p>");
    }
}

/* The points that are of several runs, or steps, or checkpoints; `one` says of which. */
static void tell_several(const struct mr_view *v, const char *one, struct mr_markup *out)
{
    double largest = 0;
    unsigned several = 0, fewest = 0, most = 0;
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        const char *of, *list = mr_view_each(v, i, &of);
        unsigned n = mr_view_n_each(v, i);
        if (n < 2 || strcmp(of, one))
            continue;
        double spread = mr_view_list_spread(v, i, list);
        fewest = several && fewest < n ? fewest : n;
        most = most > n ? most : n;
        several++;
        largest = isfinite(spread) ? fmax(largest, fmin(spread, 1e4)) : largest;
    }
    if (!several)
        return;
    mr_markup_add(out, "<p>Spread: ");
    plural(out, several, "point");
    if (fewest == most)
        mr_markup_add(out, " of %u %ss each; ", most, one);
    else
        mr_markup_add(out, " of %u to %u %ss; ", fewest, most, one);
    if (fewest >= MR_VIEW_MANY && strcmp(one, "run"))
        mr_markup_add(out, "the middle half of a point's %ss lies within at most %.1f%%.</p>", one,
                      100 * largest);
    else
        mr_markup_add(out,
                      "between the slowest and the fastest %s of a point lie at most %.1f%% of "
                      "their middle.</p>",
                      one, 100 * largest);
}

/* Those of a single one.  A point that has an empty list is of none: a run without checkpoints. */
static void tell_single(const struct mr_view *v, const char *one, struct mr_markup *out)
{
    unsigned once = 0;
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        const char *of, *list = mr_view_each(v, i, &of);
        once += mr_view_n_each(v, i) == !!list && !strcmp(of, one);
    }
    if (once) {
        mr_markup_add(out, "<p>Spread: ");
        plural(out, once, "point");
        mr_markup_add(out, " of one %s: no spread is known.</p>", one);
    }
}

static void tell_spread(const struct mr_view *v, struct mr_markup *out)
{
    static const char *const ones[] = {"run", "step", "checkpoint"};
    const char *of;
    if (mr_view_at(v, 0, "rates") && !mr_view_each(v, 0, &of)) { /* the verdict's one point */
        double n = mr_view_number(v, 0, "rounds");
        n = n > 0 ? n : mr_view_number(v, 0, "runs");
        if (n > 1 && n < 1e6)
            mr_markup_add(out, "<p>Spread: the pipeline's rates are medians of %.0f runs each", n);
        else
            mr_markup_add(out, "<p>Spread: the pipeline's rates are medians of several runs");
        mr_markup_add(out, "; how far these lie apart was not kept.</p>");
        return;
    }
    for (unsigned k = 0; k < sizeof ones / sizeof *ones; k++) {
        tell_several(v, ones[k], out);
        tell_single(v, ones[k], out);
    }
}

/* "Steps of a run: 2 to 3." for a number that points have; nothing when none has it. */
static void tell_size(const struct mr_view *v, const char *field, double unit, const char *what,
                      struct mr_markup *out)
{
    double least = INFINITY, most = 0;
    char a[32], b[32];
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        double x = mr_view_number(v, i, field) / unit;
        if (!(x > 0) || !isfinite(x))
            continue;
        least = fmin(least, x);
        most = fmax(most, x);
    }
    if (!(most > 0))
        return;
    mr_markup_add(out, "<p>%s: %s", what, mr_number_text(least, a, sizeof a));
    if (most > least)
        mr_markup_add(out, " to %s", mr_number_text(most, b, sizeof b));
    mr_markup_add(out, ".</p>");
}

void mr_show_method(struct mr_view *v)
{
    if (mr_view_n(v)) {
        tell_size(v, "steps", 1, "Steps of a run", v->out);
        tell_size(v, "images", 1, "Images drawn in a run", v->out);
        tell_size(v, "file_bytes", 1 << 20, "Size of the file, MiB", v->out);
        tell_cold(v, v->out);
        tell_spread(v, v->out);
    }
}
