/* json_scan.c - see json_scan.h.
 *
 * Lenient where writers of traces are: a comma too many is passed over.  Values are not nested by
 * recursion; skipping one counts brackets, and a kind of bracket that does not fit is an error. */
#include "json_scan.h"

#include <string.h>

#define MAX_DEPTH 512

static void skip_space(struct mr_json_scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t'))
        s->at++;
}

char mr_scan_peek(struct mr_json_scan *s)
{
    skip_space(s);
    return s->at < s->end ? *s->at : 0;
}

static int expect(struct mr_json_scan *s, char c)
{
    if (mr_scan_peek(s) != c || s->at == s->end)
        return -1;
    s->at++;
    return 1;
}

int mr_scan_enter(struct mr_json_scan *s, char open)
{
    s->fresh = 1;
    return expect(s, open);
}

/* Pass over the comma between two values, or the bracket after the last. */
static int go_on(struct mr_json_scan *s, char close)
{
    int commas = 0;
    while (mr_scan_peek(s) == ',') {
        s->at++;
        commas++;
    }
    char c = mr_scan_peek(s);
    if (!c)
        return -1;
    if (c == close) {
        s->at++;
        s->fresh = 0;
        return 0;
    }
    if (!commas && !s->fresh)
        return -1;
    s->fresh = 0;
    return 1;
}

int mr_scan_item(struct mr_json_scan *s)
{
    return go_on(s, ']');
}

int mr_scan_key(struct mr_json_scan *s, char *key, size_t cap)
{
    size_t len;
    int r = go_on(s, '}');
    if (r != 1)
        return r;
    if (mr_scan_peek(s) != '"' || mr_scan_text(s, key, cap, &len) < 0)
        return -1;
    return expect(s, ':');
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

struct text { /* grows up to its capacity and drops the rest */
    char *buf;
    size_t len, cap;
};

static void put(struct text *t, const char *p, size_t n)
{
    size_t room = t->cap - 1 - t->len;
    n = n < room ? n : room;
    memcpy(t->buf + t->len, p, n);
    t->len += n;
}

static void put_code(struct text *t, uint32_t c)
{
    char u[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; c >>= 6)
        u[i] = (char)(0x80 | (c & 0x3f));
    u[0] = (char)(lead[n] | c);
    put(t, u, n);
}

/* The four digits behind \u; -1 when they are not there. */
static int32_t four_digits(const struct mr_json_scan *s, const char *p)
{
    int32_t v = 0;
    if (s->end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int d = hex(p[i]);
        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

static int unicode(struct mr_json_scan *s, struct text *t)
{
    int32_t c = four_digits(s, s->at), low;
    if (c < 0)
        return -1;
    s->at += 4;
    if (c >= 0xd800 && c < 0xdc00 && s->end - s->at >= 6 && s->at[0] == '\\' && s->at[1] == 'u' &&
        (low = four_digits(s, s->at + 2)) >= 0xdc00 && low < 0xe000) {
        s->at += 6;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    } else if (c >= 0xd800 && c < 0xe000) {
        c = 0xfffd; /* half a pair */
    }
    put_code(t, c ? (uint32_t)c : 0xfffd);
    return 1;
}

static int escape(struct mr_json_scan *s, struct text *t)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (s->at == s->end)
        return -1;
    char c = *s->at++;
    if (c == 'u')
        return unicode(s, t);
    const char *p = memchr(from, c, sizeof from - 1);
    if (!p) {
        s->at--;
        return -1;
    }
    put(t, &to[p - from], 1);
    return 1;
}

static int string(struct mr_json_scan *s, struct text *t)
{
    s->at++;
    while (s->at < s->end) {
        const char *from = s->at;
        while (s->at < s->end && *s->at != '"' && *s->at != '\\')
            s->at++;
        put(t, from, (size_t)(s->at - from));
        if (s->at == s->end)
            return -1;
        if (*s->at++ == '"')
            return 1;
        if (escape(s, t) < 0)
            return -1;
    }
    return -1;
}

static int is_plain(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '+' || c == '.';
}

int mr_scan_text(struct mr_json_scan *s, char *buf, size_t cap, size_t *len)
{
    struct text t = {buf, 0, cap};
    char c = mr_scan_peek(s);
    const char *from = s->at;
    int r = 1;
    if (c == '"') {
        r = string(s, &t);
    } else {
        while (s->at < s->end && is_plain(*s->at))
            s->at++;
        if (s->at == from || s->at == s->end) /* nothing, or perhaps more was to come */
            return -1;
        put(&t, from, (size_t)(s->at - from));
    }
    buf[t.len] = 0;
    *len = t.len;
    return r;
}

int mr_scan_skip(struct mr_json_scan *s)
{
    char open[MAX_DEPTH], nothing[1];
    unsigned depth = 0;
    size_t len;
    do {
        char c = mr_scan_peek(s);
        if (c == '{' || c == '[') {
            if (depth == MAX_DEPTH)
                return -1;
            open[depth++] = c;
            s->at++;
        } else if (c == '}' || c == ']') {
            if (!depth || open[depth - 1] != (c == '}' ? '{' : '['))
                return -1;
            depth--;
            s->at++;
        } else if (depth && (c == ',' || c == ':')) {
            s->at++;
        } else if (mr_scan_text(s, nothing, sizeof nothing, &len) < 0) {
            return -1;
        }
    } while (depth);
    return 1;
}

int mr_decimal(const char *text, size_t len, int digits, int64_t *out)
{
    const char *p = text, *end = text + len;
    int negative = 0, seen = 0, point = 0, exponent = 0;
    int64_t v = 0;
    if (p < end && (*p == '-' || *p == '+'))
        negative = *p++ == '-';
    /* Digits that would stand behind the last one wanted are passed over, others are counted in. */
    int scale = digits;
    for (; p < end && ((*p >= '0' && *p <= '9') || (*p == '.' && !point)); p++) {
        if (*p == '.') {
            point = 1;
            continue;
        }
        seen = 1;
        if (point && scale <= 0)
            continue;
        if (__builtin_mul_overflow(v, (int64_t)10, &v) ||
            __builtin_add_overflow(v, (int64_t)(*p - '0'), &v))
            return -1;
        scale -= point;
    }
    if (seen && p < end && (*p == 'e' || *p == 'E')) {
        int sign = 1, any = 0;
        if (++p < end && (*p == '-' || *p == '+'))
            sign = *p++ == '-' ? -1 : 1;
        for (; p < end && *p >= '0' && *p <= '9' && exponent < 1000; p++, any = 1)
            exponent = exponent * 10 + (*p - '0');
        if (!any)
            return -1;
        scale += sign * exponent;
    }
    if (!seen || p != end)
        return -1;
    for (; scale > 0 && v; scale--)
        if (__builtin_mul_overflow(v, (int64_t)10, &v))
            return -1;
    for (; scale < 0 && v; scale++)
        v /= 10;
    *out = negative ? -v : v;
    return 0;
}
