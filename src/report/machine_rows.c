/* machine_rows.c - see machine_rows.h.  The members of the first come in their order, then those
 * that only the second has. */
#include "machine_rows.h"

#include "scale.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct walk {
    struct mr_markup *out;
    const struct mr_json *other; /* the same member of the other machine */
    char prefix[128];            /* "storage, " */
    int n_machines;
    int second; /* over the second machine: only what the first has not */
};

static void value(struct mr_markup *out, const struct mr_json *j)
{
    const char *text = mr_json_text(j);
    double x = j ? mr_json_number(j) : NAN;
    char number[32];
    char *formatted = text || !j || isfinite(x) ? NULL : mr_json_format(j);
    mr_markup_text(out, text          ? text
                        : isfinite(x) ? mr_number_text(x, number, sizeof number)
                        : formatted   ? formatted
                                      : "-");
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
    const struct mr_json *theirs = w->other ? mr_json_member(w->other, key) : NULL;
    char name[256];
    snprintf(name, sizeof name, "%s%s", w->prefix, key);
    for (char *s = strchr(name, '_'); s; s = strchr(s, '_'))
        *s = ' ';
    if (mr_json_is_object(mine) && (!theirs || mr_json_is_object(theirs))) {
        struct walk below = *w;
        snprintf(below.prefix, sizeof below.prefix, "%.120s, ", name);
        below.other = theirs;
        return mr_json_each(mine, member, &below);
    }
    if (w->second && theirs)
        return 0;
    mr_markup_add(w->out, "<tr><td>");
    mr_markup_text(w->out, name);
    for (int k = 0; k < w->n_machines; k++) {
        mr_markup_add(w->out, "</td><td class=\"text%s\">",
                      w->n_machines < 2 || is_same(mine, theirs) ? "" : " differs");
        value(w->out, k == w->second ? mine : theirs);
    }
    mr_markup_add(w->out, "</td></tr>");
    return 0;
}

void mr_machine_rows(struct mr_markup *out, const struct mr_json *a, const struct mr_json *b)
{
    int n = b ? 2 : 1;
    struct walk first = {.out = out, .other = b, .n_machines = n},
                second = {.out = out, .other = a, .n_machines = n, .second = 1};
    if (mr_json_is_object(a))
        mr_json_each(a, member, &first);
    if (mr_json_is_object(b))
        mr_json_each(b, member, &second);
}
