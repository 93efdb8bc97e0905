/* view_method.c - how an experiment's figures came about, from its points: what was cold and
 * whether that is proven, how often it was measured, and how far the runs, or the steps or
 * checkpoints of a run, lie apart. */
#include "section.h"

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
        const char *cold = mr_view_any(v, i).cold;
        n += cold && (!strcmp(cold, a) || !strcmp(cold, b));
    }
    return n;
}

static void tell_cold(const struct mr_view *v, struct mr_markup *out)
{
    unsigned proven = n_cold(v, "data", "data+metadata"), doubtful = n_cold(v, "unproven", "");
    unsigned emulated = 0;
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        struct mr_any_point p = mr_view_any(v, i);
        emulated += p.emulated && p.storage;
    }
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
static void tell_several(const struct mr_view *v, enum mr_one one, struct mr_markup *out)
{
    const char *word = mr_one_word(one);
    double largest = 0;
    unsigned several = 0, fewest = 0, most = 0;
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        unsigned n = mr_view_n_each(v, i);
        if (n < 2 || mr_view_one(v, i) != one)
            continue;
        double spread = mr_list_spread(mr_view_each(v, i), one);
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
        mr_markup_add(out, " of %u %ss each; ", most, word);
    else
        mr_markup_add(out, " of %u to %u %ss; ", fewest, most, word);
    if (fewest >= MR_VIEW_MANY && one != MR_ONE_RUN)
        mr_markup_add(out, "the middle half of a point's %ss lies within at most %.1f%%.</p>", word,
                      100 * largest);
    else
        mr_markup_add(out,
                      "between the slowest and the fastest %s of a point lie at most %.1f%% of "
                      "their middle.</p>",
                      word, 100 * largest);
}

/* Those of a single one.  A point that has an empty list is of none: a run without checkpoints. */
static void tell_single(const struct mr_view *v, enum mr_one one, struct mr_markup *out)
{
    unsigned once = 0;
    for (unsigned i = 0; i < mr_view_n(v); i++)
        once += mr_view_n_each(v, i) == !!mr_view_each(v, i) && mr_view_one(v, i) == one;
    if (once) {
        mr_markup_add(out, "<p>Spread: ");
        plural(out, once, "point");
        mr_markup_add(out, " of one %s: no spread is known.</p>", mr_one_word(one));
    }
}

static void tell_spread(const struct mr_view *v, struct mr_markup *out)
{
    if (v->section->medians) {
        struct mr_medians m = mr_medians_of(mr_view_point(v, 0));
        double n = m.rounds > 0 ? m.rounds : m.runs;
        if (n > 1 && n < 1e6)
            mr_markup_add(out, "<p>Spread: the pipeline's rates are medians of %.0f runs each", n);
        else
            mr_markup_add(out, "<p>Spread: the pipeline's rates are medians of several runs");
        mr_markup_add(out, "; how far these lie apart was not kept.</p>");
        return;
    }
    for (enum mr_one one = 0; one < MR_N_ONES; one++) {
        tell_several(v, one, out);
        tell_single(v, one, out);
    }
}

/* "Steps of a run: 2 to 3." for a number that points have; nothing when none has it. */
static void tell_size(const struct mr_view *v, const struct mr_result_field *field, double unit,
                      const char *what, struct mr_markup *out)
{
    double least = INFINITY, most = 0;
    char a[32], b[32];
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        double x = mr_field_number(field, mr_view_point(v, i)) / unit;
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

void mr_view_method(struct mr_view *v)
{
    if (mr_view_n(v)) {
        tell_size(v, MR_FIELD(any_point, steps), 1, "Steps of a run", v->out);
        tell_size(v, MR_FIELD(any_point, images), 1, "Images drawn in a run", v->out);
        tell_size(v, MR_FIELD(any_point, file_bytes), 1 << 20, "Size of the file, MiB", v->out);
        tell_cold(v, v->out);
        tell_spread(v, v->out);
    }
}
