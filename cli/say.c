/* say.c - see say.h.  Walks the format; a string is written here, any other conversion is handed to
 * fprintf with its own part of the format. */
#include "say.h"

#include "utf8.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct conversion {
    char flags[8];
    int width, precision; /* -1: none */
    char length[3];       /* "", "l", "ll", "z", ... */
    char kind;
};

static int number(const char **p)
{
    int n = 0;
    for (; **p >= '0' && **p <= '9'; ++*p)
        n = n * 10 + (**p - '0');
    return n;
}

/* The conversion behind the % at p; returns what follows.  Takes the arguments of its stars. */
static const char *parse(const char *p, va_list *args, struct conversion *c)
{
    size_t n = strspn(p, "-+ #0"), m;
    *c = (struct conversion){.width = -1, .precision = -1};
    memcpy(c->flags, p, n < sizeof c->flags ? n : sizeof c->flags - 1);
    p += n;
    if (*p == '*')
        c->width = va_arg(*args, int), p++; /* not below 0 */
    else if (*p >= '0' && *p <= '9')
        c->width = number(&p);
    if (*p == '.') {
        p++;
        if (*p == '*')
            c->precision = va_arg(*args, int), p++;
        else
            c->precision = number(&p);
    }
    m = strspn(p, "hljzt");
    memcpy(c->length, p, m < sizeof c->length ? m : sizeof c->length - 1);
    p += m;
    c->kind = *p;
    return p + 1;
}

/* Write at most `room` columns of the n bytes at s; only count when `to` is NULL. */
static size_t put(FILE *to, const char *s, size_t n, size_t room)
{
    char piece[MR_PRINTABLE];
    size_t columns = 0;
    while (n) {
        size_t used = mr_printable(s, n, piece);
        size_t wide = piece[0] == '\\' && used * 4 == strlen(piece) ? strlen(piece) : 1;
        if (columns + wide > room)
            break;
        if (to)
            fputs(piece, to);
        columns += wide;
        s += used;
        n -= used;
    }
    return columns;
}

static void put_string(FILE *to, const char *s, const struct conversion *c)
{
    s = s ? s : "(null)";
    size_t n = c->precision >= 0 ? strnlen(s, (size_t)c->precision) : strlen(s);
    size_t room = c->precision >= 0 && c->width >= 0 ? (size_t)c->precision : SIZE_MAX;
    size_t columns = put(NULL, s, n, room);
    int pad = c->width > 0 && (size_t)c->width > columns ? c->width - (int)columns : 0;
    int left = strchr(c->flags, '-') != NULL;
    if (!left)
        fprintf(to, "%*s", pad, "");
    put(to, s, n, room);
    if (left)
        fprintf(to, "%*s", pad, "");
}

/* fprintf of one conversion; the format is put together from one that the compiler has checked. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void put_whole(FILE *to, const char *format, const struct conversion *c, va_list *args)
{
    if (c->kind == 'c')
        fprintf(to, format, va_arg(*args, int));
    else if (c->kind == 'p')
        fprintf(to, format, va_arg(*args, void *));
    else if (!strcmp(c->length, "ll"))
        fprintf(to, format, va_arg(*args, long long));
    else if (c->length[0] == 'l')
        fprintf(to, format, va_arg(*args, long));
    else if (c->length[0] == 'z' || c->length[0] == 't')
        fprintf(to, format, va_arg(*args, size_t));
    else if (c->length[0] == 'j')
        fprintf(to, format, va_arg(*args, intmax_t));
    else
        fprintf(to, format, va_arg(*args, int));
}

static void put_other(FILE *to, const struct conversion *c, va_list *args)
{
    char format[64], *p = format;
    p += sprintf(p, "%%%s", c->flags);
    if (c->width != -1)
        p += sprintf(p, "%d", c->width);
    if (c->precision >= 0)
        p += sprintf(p, ".%d", c->precision);
    sprintf(p, "%s%c", c->length, c->kind);
    if (strchr("aAeEfFgG", c->kind))
        fprintf(to, format, va_arg(*args, double));
    else
        put_whole(to, format, c, args);
}
#pragma GCC diagnostic pop

static void format_to(FILE *to, const char *format, va_list args)
{
    va_list rest;
    va_copy(rest, args);
    while (*format) {
        size_t n = strcspn(format, "%");
        fwrite(format, 1, n, to);
        format += n;
        if (!*format)
            break;
        struct conversion c;
        format = parse(format + 1, &rest, &c);
        assert(c.kind && strchr("diouxXcpsaAeEfFgG%", c.kind));
        if (c.kind == '%')
            fputc('%', to);
        else if (c.kind == 's')
            put_string(to, va_arg(rest, const char *), &c);
        else
            put_other(to, &c, &rest);
    }
    va_end(rest);
}

/* A message goes out in one piece, also to a stream without a buffer. */
void say_args(FILE *to, const char *format, va_list args)
{
    char *text = NULL;
    size_t len = 0;
    FILE *memory = open_memstream(&text, &len);
    format_to(memory ? memory : to, format, args);
    if (memory && !fclose(memory))
        fwrite(text, 1, len, to);
    free(text);
}

void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say_args(stdout, format, args);
    va_end(args);
}

void say_to(FILE *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say_args(to, format, args);
    va_end(args);
}

void say_lines(const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        say("%.*s", (int)n, text);
        text += n;
        if (*text)
            say("\n"), text++;
    }
}
