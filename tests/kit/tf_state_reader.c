/* tf_state_reader.c - see tf_state_reader.h.
 *
 *   model_checkpoint_path: "model.ckpt-100"
 *   all_model_checkpoint_paths: "model.ckpt-80"
 *   all_model_checkpoint_paths: "model.ckpt-100"
 *
 * Protocol buffers as text: a field's name, a colon, a value that is a quoted string (or several,
 * to be joined) or a bare word.  Comments run from # to the end of the line; fields may be
 * separated by a comma or semicolon.  Fields of other names are passed over; messages in braces do
 * not occur in this file and are refused. */
#include "tf_state_reader.h"

#include "bytes.h"
#include "errtext.h"
#include "grow.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    const char *at, *end, *name;
    unsigned line;
    struct mr_error *err;
};

static int bad(const struct parser *p, const char *what)
{
    return mr_fail(p->err, -EBADMSG, "%s, line %u: %s", p->name, p->line, what);
}

static void skip_space(struct parser *p)
{
    for (; p->at < p->end; p->at++) {
        if (*p->at == '#')
            while (p->at + 1 < p->end && p->at[1] != '\n')
                p->at++;
        else if (*p->at == '\n')
            p->line++;
        else if (!isspace((unsigned char)*p->at))
            return;
    }
}

static int word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-' || c == '+';
}

static size_t word(struct parser *p, const char **begin)
{
    *begin = p->at;
    while (p->at < p->end && word_char(*p->at))
        p->at++;
    return (size_t)(p->at - *begin);
}

static int digit_of(char c, int base)
{
    int v = isdigit((unsigned char)c)    ? c - '0'
            : isxdigit((unsigned char)c) ? (c | 32) - 'a' + 10
                                         : 99;
    return v < base ? v : -1;
}

/* Up to `max` digits of an escape. */
static int number(struct parser *p, int base, int max, uint8_t *out)
{
    int v = 0, n = 0;
    for (; n < max && p->at < p->end && digit_of(*p->at, base) >= 0; n++)
        v = v * base + digit_of(*p->at++, base);
    if (!n || v > 255)
        return bad(p, "a bad escape");
    *out = (uint8_t)v;
    return 0;
}

static int escape(struct parser *p, uint8_t *out)
{
    static const char from[] = "abfnrtv\\'\"?", to[] = "\a\b\f\n\r\t\v\\'\"?";
    if (p->at == p->end)
        return bad(p, "a string does not end");
    if (digit_of(*p->at, 8) >= 0)
        return number(p, 8, 3, out);
    char c = *p->at++;
    if (c == 'x' || c == 'X')
        return number(p, 16, 2, out);
    const char *found = c ? strchr(from, c) : NULL;
    if (!found)
        return bad(p, "a bad escape");
    *out = (uint8_t)to[found - from];
    return 0;
}

/* One quoted string; what it says is appended. */
static int quoted(struct parser *p, struct mr_bytes *out)
{
    char quote = *p->at++;
    while (p->at < p->end && *p->at != quote) {
        uint8_t c = (uint8_t)*p->at++;
        if (c == '\n')
            return bad(p, "a string does not end");
        if (c == '\\') {
            int r = escape(p, &c);
            if (r)
                return r;
        }
        mr_bytes_add_u8(out, c);
    }
    if (p->at == p->end)
        return bad(p, "a string does not end");
    p->at++;
    return 0;
}

/* Strings side by side make one; *is_text says whether the value was text. */
static int value(struct parser *p, struct mr_bytes *out, int *is_text)
{
    const char *unused;
    *is_text = 0;
    for (;;) {
        skip_space(p);
        if (p->at == p->end || (*p->at != '"' && *p->at != '\''))
            break;
        *is_text = 1;
        int r = quoted(p, out);
        if (r)
            return r;
    }
    return *is_text || word(p, &unused) ? 0 : bad(p, "a value is missing");
}

/* No component of a name that stays below its folder is "..". */
static int stays_inside(const char *path)
{
    while (*path) {
        size_t n = strcspn(path, "/");
        if (n == 2 && path[0] == '.' && path[1] == '.')
            return 0;
        path += n + (path[n] == '/');
    }
    return 1;
}

/* The name by which we take a path: *out is new, or NULL when it is refused. */
static int local_name(const struct mr_bytes *path, char **out)
{
    *out = NULL;
    if (!path->len || memchr(path->data, 0, path->len))
        return 0;
    char *text = strndup((const char *)path->data, path->len);
    if (!text)
        return -ENOMEM;
    const char *slash = strrchr(text, '/'), *name = text[0] == '/' ? slash + 1 : text;
    const char *last = slash ? slash + 1 : text;
    if (*last && strcmp(last, ".") && stays_inside(name)) {
        *out = strdup(name);
        if (!*out) {
            free(text);
            return -ENOMEM;
        }
    }
    free(text);
    return 0;
}

static int add_path(struct mr_tf_state *s, char *name)
{
    char **grown = mr_grown(s->all, s->n, &s->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    s->all = grown;
    s->all[s->n++] = name;
    return 0;
}

static int take(struct parser *p, struct mr_tf_state *s, const char *field, size_t len,
                const struct mr_bytes *text)
{
    static const char latest[] = "model_checkpoint_path", all[] = "all_model_checkpoint_paths";
    int is_latest = len == sizeof latest - 1 && !memcmp(field, latest, len);
    if (!is_latest && (len != sizeof all - 1 || memcmp(field, all, len)))
        return 0;
    if (!is_latest && s->n == MR_STATE_MAX_PATHS)
        return bad(p, "too many checkpoints");
    char *name;
    int r = text->error ? text->error : local_name(text, &name);
    if (!r && !name)
        s->n_refused++;
    else if (!r && is_latest) {
        free(s->latest);
        s->latest = name;
    } else if (!r && (r = add_path(s, name)))
        free(name);
    return r ? mr_fail(p->err, r, "%s: no memory", p->name) : 0;
}

static int parse_field(struct parser *p, struct mr_tf_state *s, struct mr_bytes *text)
{
    const char *field;
    int is_text;
    size_t len = word(p, &field);
    if (!len)
        return bad(p, "a field's name is missing");
    skip_space(p);
    if (p->at == p->end || *p->at++ != ':')
        return bad(p, "':' is missing");
    text->len = 0;
    int r = value(p, text, &is_text);
    if (!r && is_text)
        r = take(p, s, field, len, text);
    skip_space(p);
    if (p->at < p->end && (*p->at == ',' || *p->at == ';'))
        p->at++;
    skip_space(p);
    return r;
}

int mr_tf_state_parse(const char *name, const char *text, size_t len, struct mr_tf_state *out,
                      struct mr_error *err)
{
    struct parser p = {text, len ? text + len : text, name, 1, err};
    struct mr_tf_state s = {0};
    struct mr_bytes value_text;
    int r = 0;
    mr_bytes_init(&value_text);
    skip_space(&p);
    while (!r && p.at < p.end)
        r = parse_field(&p, &s, &value_text);
    mr_bytes_fini(&value_text);
    if (r)
        mr_tf_state_fini(&s);
    else
        *out = s;
    return r;
}

void mr_tf_state_fini(struct mr_tf_state *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->all[i]);
    free(s->all);
    free(s->latest);
    memset(s, 0, sizeof *s);
}
