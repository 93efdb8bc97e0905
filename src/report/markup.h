/* markup.h - text that grows, and the escaping that HTML and SVG need.
 *
 * Lifetime: {0} -> add* -> take or fini.  Running out of memory is remembered, not reported at each
 * call: mr_markup_ok tells at the end. */
#ifndef MR_MARKUP_H
#define MR_MARKUP_H

#include <stddef.h>

struct mr_markup { /* all zero = empty */
    char *data;    /* closed by NUL once something was added */
    size_t len, cap;
    int failed;
};

/* As printf; nothing is escaped. */
void mr_markup_add(struct mr_markup *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Text as content or attribute value: < > & " ' become entities, control characters spaces, bytes
 * that are no UTF-8 question marks. */
void mr_markup_text(struct mr_markup *m, const char *text);
/* Text for a terminal: control characters and bytes that are no UTF-8 become \xNN. */
void mr_markup_plain(struct mr_markup *m, const char *text);
/* A field of a CSV line, quoted when it must be. */
void mr_markup_csv(struct mr_markup *m, const char *text);
static inline int mr_markup_ok(const struct mr_markup *m)
{
    return !m->failed;
}
void mr_markup_fini(struct mr_markup *m);

#endif
