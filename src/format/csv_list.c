/* csv_list.c - parse `path,label` lines.
 *
 *     cat/0001.jpg,3              relative to the list's own folder
 *     /data/x.jpg,4               absolute
 *     "odd, ""quoted"".jpg",1     RFC 4180 quoting; a quoted field may hold commas and newlines
 *     lonely.jpg                  label 0
 *     cat/0002.jpg,cat            class names: numbered in alphabetical order, as folders are
 *
 * Labels of a list are all numbers (none is 0) or all names, which begin with a letter.  The
 * separator is ';' when the first line has one and no comma outside of quotes.  Lines end in LF,
 * CRLF or the end of the file; blank lines are skipped; a byte-order mark and a heading such as
 * `path,label` are allowed at the top; spaces around a label do not count.  Everything else
 * is refused with the number of the line on which the record begins: a list that is half understood
 * would train on wrong labels. */
#include "csv_list.h"

#include "blob_store.h"
#include "buffer.h"
#include "class_table.h"
#include "errtext.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum labels { LABELS_NONE, LABELS_NUMBERS, LABELS_NAMES };

struct parser {
    const char *p, *end;
    char separator;
    enum labels labels;  /* of the records so far */
    uint64_t unlabelled; /* the line of one without; 0: there is none */
    struct mr_class_table classes;
    uint64_t line;   /* where p stands */
    uint64_t record; /* line on which the record begins; the one that errors name */
    const char *base, *list_name;
    size_t base_len;
    struct mr_entries *out;
    struct mr_error *err;
    char unquoted[2][PATH_MAX]; /* text of a quoted path, of a quoted label */
    char joined[PATH_MAX];
};

struct field {
    const char *s;
    size_t len;
};

static int refuse(struct parser *c, const char *what)
{
    return mr_fail(c->err, -EBADMSG, "%s: line %llu: %s", c->list_name,
                   (unsigned long long)c->record, what);
}

static int at_line_end(const struct parser *c)
{
    return c->p == c->end || *c->p == '\n';
}

/* A quoted field; c->p stands behind the opening quote.  Its text goes to `buf`. */
static int quoted_field(struct parser *c, char buf[PATH_MAX], struct field *out)
{
    size_t n = 0;
    for (;;) {
        if (c->p == c->end)
            return refuse(c, "a quoted field is not closed");
        char ch = *c->p++;
        if (ch == '"') {
            if (c->p == c->end || *c->p != '"')
                break;
            c->p++;
        } else if (ch == '\n') {
            c->line++;
        }
        if (n == PATH_MAX)
            return refuse(c, "a quoted field is too long");
        buf[n++] = ch;
    }
    if (c->end - c->p >= 1 && *c->p == '\r' && (c->p + 1 == c->end || c->p[1] == '\n'))
        c->p++;
    if (!at_line_end(c) && *c->p != c->separator)
        return refuse(c, "text follows a closing quote");
    *out = (struct field){buf, n};
    return 0;
}

/* A plain field ends before the separator or the end of the line. */
static struct field plain_field(struct parser *c)
{
    const char *start = c->p;
    while (!at_line_end(c) && *c->p != c->separator)
        c->p++;
    const char *stop = c->p;
    if (stop > start && stop[-1] == '\r' && at_line_end(c))
        stop--;
    return (struct field){start, (size_t)(stop - start)};
}

static int is_space(char ch)
{
    return ch == ' ' || ch == '\t';
}

static struct field trim(struct field f)
{
    while (f.len && is_space(f.s[0]))
        f.s++, f.len--;
    while (f.len && is_space(f.s[f.len - 1]))
        f.len--;
    return f;
}

/* The second field, without spaces around it or inside its quotes. */
static int label_field(struct parser *c, struct field *out)
{
    while (!at_line_end(c) && is_space(*c->p))
        c->p++;
    int r = 0;
    if (!at_line_end(c) && *c->p == '"') {
        c->p++;
        r = quoted_field(c, c->unquoted[1], out);
    } else {
        *out = plain_field(c);
    }
    if (!r)
        *out = trim(*out);
    return r;
}

static int parse_number(struct parser *c, struct field f, uint32_t *out)
{
    uint64_t v = 0;
    if (c->labels == LABELS_NAMES)
        return refuse(c, "the label is a number, and those before are names");
    for (size_t i = 0; i < f.len; i++) {
        if (f.s[i] < '0' || f.s[i] > '9')
            return refuse(c, "the label is not a whole number from 0, nor a class name, which "
                             "begins with a letter");
        v = v * 10 + (uint64_t)(f.s[i] - '0');
        if (v > INT32_MAX)
            return refuse(c, "the label is larger than 2147483647");
    }
    c->labels = LABELS_NUMBERS;
    *out = (uint32_t)v;
    return 0;
}

/* Letters of other scripts are bytes from 0x80 on. */
static int is_name(struct field f)
{
    unsigned char first = f.len ? (unsigned char)f.s[0] : 0;
    for (size_t i = 0; i < f.len; i++)
        if ((unsigned char)f.s[i] < 0x20 || f.s[i] == 0x7f)
            return 0;
    return (first | 0x20) >= 'a' && ((first | 0x20) <= 'z' || first >= 0x80);
}

static int parse_name(struct parser *c, struct field f, uint32_t *out)
{
    if (c->labels == LABELS_NUMBERS)
        return refuse(c, "the label is not a whole number from 0, as those before are");
    if (c->unlabelled)
        return refuse(c, "the label is a name, and a line before has none");
    int64_t number = mr_class_table_add(&c->classes, f.s, f.len);
    if (number < 0)
        return mr_fail(c->err, -ENOMEM, "%s: no memory for the list", c->list_name);
    c->labels = LABELS_NAMES;
    *out = (uint32_t)number;
    return 0;
}

static int parse_label(struct parser *c, struct field f, uint32_t *out)
{
    if (f.len)
        return is_name(f) ? parse_name(c, f, out) : parse_number(c, f, out);
    if (c->labels == LABELS_NAMES)
        return refuse(c, "the label is missing, and those before are names");
    c->unlabelled = c->record;
    *out = 0;
    return 0;
}

static int is_one_of(struct field f, const char *const *words)
{
    for (; *words; words++)
        if (strlen(*words) == f.len && !strncasecmp(f.s, *words, f.len))
            return 1;
    return 0;
}

static int is_heading(const struct parser *c, struct field path, struct field label)
{
    static const char *const paths[] = {"path", "file", "filename", "file_name", "image", NULL};
    static const char *const labels[] = {"label", "class", "category", "target", NULL};
    return !c->out->n && is_one_of(label, labels) && is_one_of(path, paths);
}

static int add(struct parser *c, struct field path, uint32_t label)
{
    if (!path.len)
        return refuse(c, "the path is empty");
    if (memchr(path.s, 0, path.len))
        return refuse(c, "the path contains a zero byte");
    size_t base_len = path.s[0] == '/' ? 0 : c->base_len;
    if (base_len + path.len >= PATH_MAX)
        return refuse(c, "the path is too long");
    const char *slash = memrchr(path.s, '/', path.len);
    size_t dir_len = slash ? (size_t)(slash + 1 - path.s) : 0;
    if (dir_len == path.len)
        return refuse(c, "the path ends in '/'");
    memcpy(c->joined, c->base, base_len);
    memcpy(c->joined + base_len, path.s, dir_len);
    int64_t dir = mr_entries_dir(c->out, c->joined, base_len + dir_len);
    if (dir < 0 ||
        mr_entries_add(c->out, (uint32_t)dir, path.s + dir_len, path.len - dir_len, label))
        return mr_fail(c->err, -ENOMEM, "%s: no memory for the list", c->list_name);
    return 0;
}

/* One record, c->p at its first byte; afterwards at the first byte of the next. */
static int parse_record(struct parser *c)
{
    struct field path, label = {"", 0};
    uint32_t value = 0;
    int r = 0, quoted = *c->p == '"';
    c->record = c->line;
    if (quoted) {
        c->p++;
        r = quoted_field(c, c->unquoted[0], &path);
    } else {
        path = plain_field(c);
    }
    int blank = !r && !quoted && at_line_end(c) && !trim(path).len;
    if (!r && !at_line_end(c)) {
        c->p++;
        r = label_field(c, &label);
        if (!r && !at_line_end(c))
            r = refuse(c, "more than two fields (a path with the separator in it needs quotes)");
    }
    if (!r && !blank && !is_heading(c, path, label)) {
        r = parse_label(c, label, &value);
        if (!r)
            r = add(c, path, value);
    }
    if (!r && c->p < c->end)
        c->p++;
    c->line++;
    return r;
}

/* ';' when the first line that is not blank has one, and no comma, outside of quotes. */
static char find_separator(const char *p, const char *end)
{
    char found = ',';
    int quoted = 0, text = 0;
    for (; p < end && (quoted || !text || *p != '\n'); p++) {
        quoted ^= *p == '"';
        text |= !is_space(*p) && *p != '\r' && *p != '\n';
        if (!quoted && *p == ',')
            return ',';
        if (!quoted && *p == ';')
            found = ';';
    }
    return found;
}

int mr_csv_list_parse(const char *text, size_t len, const char *base, const char *list_name,
                      struct mr_entries *out, struct mr_error *err)
{
    struct parser *c = calloc(1, sizeof *c);
    if (!c)
        return mr_fail(err, -ENOMEM, "%s: no memory", list_name);
    c->p = text;
    c->end = text + len;
    c->line = 1;
    c->base = base;
    c->base_len = strlen(base);
    c->list_name = list_name;
    c->out = out;
    c->err = err;
    if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        c->p += 3;
    c->separator = find_separator(c->p, c->end);
    int r = 0;
    while (!r && c->p < c->end)
        r = parse_record(c);
    if (!r && c->labels == LABELS_NAMES && mr_class_table_finish(&c->classes, out))
        r = mr_fail(err, -ENOMEM, "%s: no memory for the list", list_name);
    out->unlabelled = c->labels == LABELS_NONE;
    mr_class_table_fini(&c->classes);
    free(c);
    if (!r && !out->n)
        r = mr_fail(err, -ENODATA, "%s: the list names no samples", list_name);
    return r;
}

int mr_csv_list_load(struct mr_store *store, const char *path, struct mr_entries *out,
                     struct mr_error *err)
{
    struct mr_buffer text = {0};
    char *base = NULL;
    size_t len = 0;
    int r = mr_store_load(store, path, SIZE_MAX / 4, &text, &len);
    if (r) {
        mr_fail(err, r, "%s: %s", path,
                r == -ENODATA  ? "the list is empty, or changed while it was read"
                : r == -EINVAL ? "not a regular file"
                               : mr_errno_text(r));
        goto done;
    }
    const char *slash = strrchr(path, '/');
    base = strndup(path, slash ? (size_t)(slash + 1 - path) : 0);
    r = base ? mr_csv_list_parse((const char *)text.data, len, base, path, out, err)
             : mr_fail(err, -ENOMEM, "%s: no memory", path);
done:
    free(base);
    mr_buffer_fini(&text);
    return r;
}
