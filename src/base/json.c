/* json.c - see json.h.
 *
 * Paths on Unix are bytes, JSON strings are Unicode.  A string that is not valid UTF-8 is stored
 * with each offending byte as U+FFFD, so that a strangely named file cannot break a result. */
#include "json.h"

#include "utf8.h"
#include "write_all.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

static json_t *raw(const struct mr_json *v)
{
    return (json_t *)(uintptr_t)v;
}

static struct mr_json *face(json_t *v)
{
    return (struct mr_json *)v;
}

struct mr_json *mr_json_object(void)
{
    return face(json_object());
}

struct mr_json *mr_json_array(void)
{
    return face(json_array());
}

struct mr_json *mr_json_int(int64_t v)
{
    return face(json_integer(v));
}

struct mr_json *mr_json_real(double v)
{
    return face(isfinite(v) ? json_real(v) : json_null());
}

struct mr_json *mr_json_bool(int v)
{
    return face(json_boolean(v));
}

struct mr_json *mr_json_null(void)
{
    return face(json_null());
}

struct mr_json *mr_json_string(const char *s)
{
    if (!s)
        return mr_json_null();
    json_t *v = json_string(s);
    if (v)
        return face(v);
    char *clean = malloc(3 * strlen(s) + 1), *out = clean;
    if (!clean)
        return NULL;
    for (const char *p = s; *p;) {
        size_t n = mr_utf8_length(p);
        memcpy(out, n ? p : "\xef\xbf\xbd", n ? n : 3);
        out += n ? n : 3;
        p += n ? n : 1;
    }
    *out = 0;
    v = json_string(clean);
    free(clean);
    return face(v);
}

void mr_json_set(struct mr_json *object, const char *key, struct mr_json *value)
{
    json_object_set_new(raw(object), key, raw(value));
}

void mr_json_append(struct mr_json *array, struct mr_json *value)
{
    json_array_append_new(raw(array), raw(value));
}

void mr_json_free(struct mr_json *root)
{
    json_decref(raw(root));
}

/* Bytes up to the next DEL or C1 control, which jansson leaves as they are: JSON may have them, but
 * the text may go to a terminal. */
static size_t harmless(const char *p)
{
    size_t n = 0;
    for (; p[n] && p[n] != 0x7f; n++)
        if ((unsigned char)p[n] == 0xc2 && (unsigned char)p[n + 1] < 0xa0)
            break;
    return n;
}

static int write_text(int fd, const char *text)
{
    for (;;) {
        size_t n = harmless(text);
        int r = mr_write_all(fd, text, n);
        text += n;
        if (r || !*text)
            return r;
        char escape[8];
        int wide = *text != 0x7f;
        snprintf(escape, sizeof escape, "\\u%04x", (unsigned char)text[wide]);
        r = mr_write_all(fd, escape, 6);
        if (r)
            return r;
        text += 1 + wide;
    }
}

int mr_json_write(const struct mr_json *root, int fd)
{
    char *text = json_dumps(raw(root), JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    if (!text)
        return -ENOMEM;
    int r = write_text(fd, text);
    if (!r)
        r = mr_write_all(fd, "\n", 1);
    free(text);
    return r;
}

struct mr_json *mr_json_parse(const char *text, size_t len)
{
    return face(json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL));
}

const struct mr_json *mr_json_at(const struct mr_json *root, const char *path)
{
    const json_t *v = raw(root);
    while (v && *path) {
        char key[64];
        size_t n = strcspn(path, ".");
        if (n >= sizeof key)
            return NULL;
        memcpy(key, path, n);
        key[n] = 0;
        if (!json_is_array(v))
            v = json_object_get(v, key);
        else if (n && strspn(key, "0123456789") == n)
            v = json_array_get(v, strtoul(key, NULL, 10));
        else
            v = NULL;
        path += n + (path[n] == '.');
    }
    return face((json_t *)(uintptr_t)v);
}

size_t mr_json_len(const struct mr_json *array)
{
    return json_array_size(raw(array));
}

double mr_json_number(const struct mr_json *v)
{
    return json_is_number(raw(v)) ? json_number_value(raw(v)) : NAN;
}

const char *mr_json_text(const struct mr_json *v)
{
    return json_string_value(raw(v));
}

int mr_json_is_null(const struct mr_json *v)
{
    return json_is_null(raw(v));
}

int mr_json_is_object(const struct mr_json *v)
{
    return json_is_object(raw(v));
}

int mr_json_is_array(const struct mr_json *v)
{
    return json_is_array(raw(v));
}

int mr_json_integer(const struct mr_json *v, int64_t *out)
{
    if (!json_is_integer(raw(v)))
        return -EINVAL;
    *out = json_integer_value(raw(v));
    return 0;
}

const struct mr_json *mr_json_member(const struct mr_json *object, const char *key)
{
    return face(json_object_get(raw(object), key));
}

const struct mr_json *mr_json_item(const struct mr_json *array, size_t i)
{
    return face(json_array_get(raw(array), i));
}

int mr_json_each(const struct mr_json *object,
                 int (*each)(void *ctx, const char *key, const struct mr_json *value), void *ctx)
{
    int r = 0;
    for (void *at = json_object_iter(raw(object)); at && !r;
         at = json_object_iter_next(raw(object), at))
        r = each(ctx, json_object_iter_key(at), face(json_object_iter_value(at)));
    return r;
}

int mr_json_is_utf8(const char *text)
{
    for (const char *p = text; *p;) {
        size_t n = mr_utf8_length(p);
        if (!n)
            return 0;
        p += n;
    }
    return 1;
}

int mr_json_is_true(const struct mr_json *v)
{
    return json_is_true(raw(v));
}

struct mr_json *mr_json_copy(const struct mr_json *v)
{
    return v ? face(json_deep_copy(raw(v))) : NULL;
}

char *mr_json_format(const struct mr_json *v)
{
    return v ? json_dumps(raw(v), JSON_INDENT(2) | JSON_ENCODE_ANY) : NULL;
}
