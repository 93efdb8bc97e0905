/* markup.c - see markup.h. */
#include "markup.h"

#include "utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int grow(struct mr_markup *m, size_t more)
{
    if (m->failed)
        return -1;
    if (m->len + more + 1 <= m->cap)
        return 0;
    size_t cap = m->cap ? 2 * m->cap : 4096;
    while (cap < m->len + more + 1)
        cap *= 2;
    char *data = realloc(m->data, cap);
    if (!data) {
        m->failed = 1;
        return -1;
    }
    m->data = data;
    m->cap = cap;
    return 0;
}

static void put(struct mr_markup *m, const char *s, size_t n)
{
    if (grow(m, n))
        return;
    memcpy(m->data + m->len, s, n);
    m->len += n;
    m->data[m->len] = 0;
}

void mr_markup_add(struct mr_markup *m, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n >= 0 && !grow(m, (size_t)n)) {
        vsnprintf(m->data + m->len, (size_t)n + 1, fmt, again);
        m->len += (size_t)n;
    }
    va_end(again);
}

static const char *entity(char c)
{
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return (unsigned char)c < 0x20 && c != '\n' ? " " : NULL;
    }
}

void mr_markup_text(struct mr_markup *m, const char *text)
{
    for (const char *s = text ? text : ""; *s;) {
        size_t n = mr_utf8_length(s);
        const char *e = n == 1 ? entity(*s) : n ? NULL : "?";
        if (e)
            put(m, e, strlen(e));
        else
            put(m, s, n);
        s += n ? n : 1;
    }
}

void mr_markup_plain(struct mr_markup *m, const char *text)
{
    char piece[MR_PRINTABLE];
    for (size_t n = strlen(text), used; n; text += used, n -= used) {
        used = mr_printable(text, n, piece);
        put(m, piece, strlen(piece));
    }
}

void mr_markup_csv(struct mr_markup *m, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        put(m, text, strlen(text));
        return;
    }
    put(m, "\"", 1);
    for (; *text; text++) {
        if (*text == '"')
            put(m, "\"", 1);
        put(m, text, 1);
    }
    put(m, "\"", 1);
}

void mr_markup_fini(struct mr_markup *m)
{
    free(m->data);
    *m = (struct mr_markup){0};
}
