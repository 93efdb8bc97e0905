/* proc_text.c - see proc_text.h.
 *
 * The kernel makes the text of such a file when it is read at offset 0, and hands out about a page
 * at a time; reading on at the next offset continues the same text.  pread instead of open, read,
 * close halves what a sample costs. */
#include "proc_text.h"

#include "open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_BYTES 16384
#define MAX_BYTES   (64u << 20)

void mr_text_fini(struct mr_text *t)
{
    free(t->buf);
    *t = (struct mr_text){0};
}

int mr_proc_open(const char *root, const char *name)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", root, name) >= sizeof path)
        return -ENAMETOOLONG;
    return mr_open_file(path, O_RDONLY, 0);
}

static int grow(struct mr_text *t)
{
    size_t cap = t->cap ? 2 * t->cap : FIRST_BYTES;
    if (cap > MAX_BYTES)
        return -EFBIG;
    char *buf = realloc(t->buf, cap);
    if (!buf)
        return -ENOMEM;
    t->buf = buf;
    t->cap = cap;
    return 0;
}

int mr_proc_read(int fd, struct mr_text *t)
{
    t->len = 0;
    for (;;) {
        int r = t->len + 1 >= t->cap ? grow(t) : 0;
        if (r)
            return r;
        ssize_t n = pread(fd, t->buf + t->len, t->cap - t->len - 1, (off_t)t->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        t->len += (size_t)n;
        t->buf[t->len] = 0;
        if (!n)
            return 0;
    }
}

static int is_blank(char c)
{
    return c == ' ' || c == '\t';
}

int mr_scan_u64(const char **p, uint64_t *out)
{
    const char *s = *p;
    uint64_t v = 0;
    while (is_blank(*s))
        s++;
    const char *digits = s;
    for (; *s >= '0' && *s <= '9'; s++)
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
            return -1;
    if (s == digits || (*s && *s != '\n' && !is_blank(*s)))
        return -1;
    *p = s;
    *out = v;
    return 0;
}

int mr_scan_word(const char **p, char stop, char *out, size_t cap)
{
    const char *s = *p;
    size_t n = 0;
    while (is_blank(*s))
        s++;
    while (s[n] && s[n] != '\n' && s[n] != stop && !is_blank(s[n]))
        n++;
    if (!n || n >= cap)
        return -1;
    memcpy(out, s, n);
    out[n] = 0;
    *p = s + n;
    return 0;
}

const char *mr_next_line(const char *p)
{
    p = strchrnul(p, '\n');
    return *p ? p + 1 : p;
}

int mr_scan_literal(const char **p, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(*p, word, n))
        return 0;
    *p += n;
    return 1;
}
