/* size_split.c - see size_split.h.  Shares are kept added up, so that a draw is one comparison a
 * size.  Entries without a share get equal parts of what is left; what does not divide goes to the
 * last of them, so that the whole is always whole. */
#include "size_split.h"

#include "draw.h"
#include "errtext.h"

#include <errno.h>
#include <string.h>

#define MAX_BYTES (1u << 30)
#define NO_SHARE  UINT32_MAX

/* Digits at *p, at most `max`; *p moves behind them.  -1: none, or more than that. */
static int64_t digits(const char **p, uint64_t max)
{
    uint64_t v = 0;
    const char *start = *p;
    for (; **p >= '0' && **p <= '9'; ++*p) {
        v = v * 10 + (uint64_t)(**p - '0');
        if (v > max)
            return -1;
    }
    return *p == start ? -1 : (int64_t)v;
}

/* "64K": 0 when it is none. */
static uint32_t size_at(const char **p)
{
    int64_t v = digits(p, MAX_BYTES);
    unsigned shift = 0;
    if (**p == 'K' || **p == 'k')
        shift = 10;
    else if (**p == 'M' || **p == 'm')
        shift = 20;
    *p += shift != 0;
    return v <= 0 || v > MAX_BYTES >> shift ? 0 : (uint32_t)v << shift;
}

/* One "size", "size/" or "size/share". */
static int entry_at(const char **p, uint32_t *bytes, uint32_t *share)
{
    *bytes = size_at(p);
    *share = NO_SHARE;
    if (!*bytes)
        return -EINVAL;
    if (**p != '/')
        return 0;
    ++*p;
    if (!**p || **p == ':')
        return 0;
    int64_t percent = digits(p, 100);
    *share = (uint32_t)(percent < 0 ? 0 : percent) * 100;
    return percent < 0 ? -EINVAL : 0;
}

/* Give entries without a share theirs, and add up.  -EINVAL unless the whole comes out. */
static int add_up(struct mr_size_split *s)
{
    uint32_t given = 0, n_open = 0, sum = 0;
    for (unsigned i = 0; i < s->n; i++) {
        n_open += s->up_to[i] == NO_SHARE;
        given += s->up_to[i] == NO_SHARE ? 0 : s->up_to[i];
    }
    if (given > MR_SPLIT_WHOLE)
        return -EINVAL;
    uint32_t left = MR_SPLIT_WHOLE - given;
    for (unsigned i = 0; i < s->n; i++) {
        if (s->up_to[i] == NO_SHARE) {
            s->up_to[i] = left / n_open--;
            left -= s->up_to[i];
        }
        sum += s->up_to[i];
        s->up_to[i] = sum;
    }
    return sum == MR_SPLIT_WHOLE ? 0 : -EINVAL;
}

int mr_size_split_parse(const char *text, struct mr_size_split *out, struct mr_error *err)
{
    struct mr_size_split s = {0};
    const char *p = text;
    int more = 1;
    while (more) {
        if (s.n == MR_SPLIT_MAX)
            return mr_fail(err, -EINVAL, "'%s': at most %u sizes", text, MR_SPLIT_MAX);
        if (entry_at(&p, &s.bytes[s.n], &s.up_to[s.n]) || (*p && *p != ':'))
            return mr_fail(err, -EINVAL, "'%s': expected size/percent at '%s', as in 4K/40:64K/60",
                           text, p);
        s.n++;
        more = *p == ':';
        p += more;
    }
    if (add_up(&s))
        return mr_fail(err, -EINVAL, "'%s': the shares do not add up to 100%%", text);
    *out = s;
    return 0;
}

uint32_t mr_size_split_draw(const struct mr_size_split *s, uint64_t bits)
{
    uint32_t at = (uint32_t)mr_below(bits, MR_SPLIT_WHOLE);
    unsigned i = 0;
    while (at >= s->up_to[i])
        i++;
    return s->bytes[i];
}

uint32_t mr_size_split_min(const struct mr_size_split *s)
{
    uint32_t min = s->bytes[0];
    for (unsigned i = 1; i < s->n; i++)
        min = s->bytes[i] < min ? s->bytes[i] : min;
    return min;
}

uint32_t mr_size_split_max(const struct mr_size_split *s)
{
    uint32_t max = 0;
    for (unsigned i = 0; i < s->n; i++)
        max = s->bytes[i] > max ? s->bytes[i] : max;
    return max;
}

double mr_size_split_mean(const struct mr_size_split *s)
{
    double sum = 0;
    for (unsigned i = 0; i < s->n; i++)
        sum += (double)s->bytes[i] * (s->up_to[i] - (i ? s->up_to[i - 1] : 0));
    return sum / MR_SPLIT_WHOLE;
}
