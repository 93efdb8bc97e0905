/* values.c - see values.h.  Nothing is guessed: trailing text, signs and overflow are refused. */
#include "values.h"

#include "options.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Digits at the start of text; *end stands behind them. */
static int number(const char *text, uint64_t *out, const char **end)
{
    if (*text < '0' || *text > '9')
        return -1;
    char *stop;
    errno = 0;
    unsigned long long v = strtoull(text, &stop, 10);
    if (errno)
        return -1;
    *out = v;
    *end = stop;
    return 0;
}

int value_flag(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    (void)text;
    *(int *)field = 1;
    return 0;
}

int value_string(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    if (!*text)
        return -1;
    *(const char **)field = text;
    return 0;
}

int value_u64(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    uint64_t v;
    const char *end;
    if (number(text, &v, &end) || *end)
        return -1;
    *(uint64_t *)field = v;
    return 0;
}

int value_count(const struct option_row *row, const char *text, void *field)
{
    uint64_t v;
    if (value_u64(row, text, &v) || !v)
        return -1;
    *(uint64_t *)field = v;
    return 0;
}

int value_unsigned(const struct option_row *row, const char *text, void *field)
{
    uint64_t v;
    if (value_u64(row, text, &v) || v >= UINT_MAX)
        return -1;
    *(unsigned *)field = (unsigned)v;
    return 0;
}

static int up_to(const char *text, unsigned most, void *field)
{
    unsigned v;
    if (value_unsigned(NULL, text, &v) || v > most)
        return -1;
    *(unsigned *)field = v;
    return 0;
}

int value_prefetch(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    return up_to(text, 65536, field);
}

static int from_1_up_to(const char *text, unsigned most, void *field)
{
    unsigned v;
    if (up_to(text, most, &v) || !v)
        return -1;
    *(unsigned *)field = v;
    return 0;
}

int value_positive(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    return from_1_up_to(text, UINT_MAX - 1, field);
}

int value_batch(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    return from_1_up_to(text, 1u << 24, field);
}

int value_io_depth(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    return from_1_up_to(text, 4096, field);
}

int value_runs(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    return from_1_up_to(text, 1000, field);
}

int value_size(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    static const char units[] = "KMGT";
    uint64_t v;
    const char *end;
    if (number(text, &v, &end))
        return -1;
    if (*end) {
        const char *unit = strchr(units, *end);
        if (!unit || end[1])
            return -1;
        unsigned shift = 10 * (unsigned)(unit - units + 1);
        if (v > UINT64_MAX >> shift)
            return -1;
        v <<= shift;
    }
    if (!v)
        return -1;
    *(uint64_t *)field = v;
    return 0;
}

int value_duration(const struct option_row *row, const char *text, void *field)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
    char *end;
    (void)row;
    if (strspn(text, "0123456789.") == 0)
        return -1;
    double v = strtod(text, &end);
    if (end != text + strspn(text, "0123456789."))
        return -1; /* hexadecimal, exponents, two points */
    for (unsigned i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(end, units[i].name) && v * units[i].ns >= 1 && v * units[i].ns < 1e18) {
            *(uint64_t *)field = (uint64_t)(v * units[i].ns + 0.5);
            return 0;
        }
    return -1;
}

int value_interval(const struct option_row *row, const char *text, void *field)
{
    uint64_t ns;
    if (value_duration(row, text, &ns) || ns < 10000000u || ns > 3600000000000u)
        return -1;
    *(uint64_t *)field = ns;
    return 0;
}

int value_threads(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    struct unsigned_list list = {0};
    for (const char *p = text;; p++) {
        uint64_t v;
        if (list.n == MAX_THREAD_SWEEP || number(p, &v, &p) || !v || v > 4096)
            return -1;
        list.value[list.n++] = (unsigned)v;
        if (!*p)
            break;
        if (*p != ',')
            return -1;
    }
    *(struct unsigned_list *)field = list;
    return 0;
}

int value_shuffle(const struct option_row *row, const char *text, void *field)
{
    struct shuffle_choice *out = field;
    unsigned window;
    if (!strcmp(text, "global"))
        *out = (struct shuffle_choice){MR_SHUFFLE_GLOBAL, 0};
    else if (!strcmp(text, "none"))
        *out = (struct shuffle_choice){MR_SHUFFLE_NONE, 0};
    else if (!strncmp(text, "window:", 7) && !value_positive(row, text + 7, &window))
        *out = (struct shuffle_choice){MR_SHUFFLE_WINDOW, window};
    else
        return -1;
    return 0;
}

int value_shard(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    uint64_t rank, world;
    const char *p;
    if (number(text, &rank, &p) || *p != '/' || number(p + 1, &world, &p) || *p)
        return -1;
    if (!world || rank >= world || world > 1u << 24)
        return -1;
    *(struct shard_choice *)field = (struct shard_choice){(unsigned)rank, (unsigned)world};
    return 0;
}

int value_budget(const struct option_row *row, const char *text, void *field)
{
    struct error_budget *out = field;
    char *end;
    if (*text < '0' || *text > '9')
        return -1;
    double v = strtod(text, &end);
    if (end != text + strspn(text, "0123456789."))
        return -1; /* as above */
    if (!strcmp(end, "%") && v <= 100)
        *out = (struct error_budget){v > 0 ? v / 100 : -1, 0};
    else if (!*end && v == 0)
        *out = (struct error_budget){-1, 0};
    else
        return value_u64(row, text, &out->count);
    return 0;
}

int value_rate(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    char *end;
    if (*text < '0' || *text > '9')
        return -1;
    double v = strtod(text, &end);
    if (*end || !(v > 0) || v > 1e6)
        return -1;
    *(double *)field = v;
    return 0;
}

int value_choice(const struct option_row *row, const char *text, void *field)
{
    unsigned at = 0;
    for (const char *p = row->choices; *p; at++) {
        size_t n = strcspn(p, "|");
        if (strlen(text) == n && !strncmp(text, p, n)) {
            *(unsigned *)field = at;
            return 0;
        }
        p += n + (p[n] == '|');
    }
    return -1;
}

/* One number for all colours, or three; none below least. */
static int colours(const char *text, double least, struct colours *out)
{
    struct colours c;
    unsigned n = 0;
    for (;; text++) {
        size_t digits = strspn(text + (*text == '-'), "0123456789.") + (*text == '-');
        char *end;
        double v = strtod(text, &end);
        if (n == 3 || end == text || end != text + digits || v < least || v > 1e6)
            return -1;
        c.value[n++] = (float)v;
        text = end;
        if (*text != ',')
            break;
    }
    if (*text || n == 2)
        return -1;
    if (n == 1)
        c.value[1] = c.value[2] = c.value[0];
    *out = c;
    return 0;
}

int value_colours(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    return colours(text, -1e6, field);
}

int value_scales(const struct option_row *row, const char *text, void *field)
{
    (void)row;
    return colours(text, 1e-6, field);
}

int value_image_size(const struct option_row *row, const char *text, void *field)
{
    uint64_t width, height;
    const char *p;
    (void)row;
    if (number(text, &width, &p))
        return -1;
    height = width;
    if (*p == 'x' && number(p + 1, &height, &p))
        return -1;
    if (*p || !width || !height || width > 16384 || height > 16384)
        return -1;
    *(struct image_size *)field = (struct image_size){(unsigned)width, (unsigned)height};
    return 0;
}

const char *value_range(value_parser *parse)
{
    static const struct {
        value_parser *parse;
        const char *range;
    } ranges[] = {
        {value_string, "a text of at least one character"},
        {value_unsigned, "a whole number from 0 to 4294967294"},
        {value_positive, "a whole number from 1 to 4294967294"},
        {value_batch, "a whole number from 1 to 16777216"},
        {value_io_depth, "a whole number from 1 to 4096"},
        {value_prefetch, "a whole number from 0 to 65536"},
        {value_runs, "a whole number from 1 to 1000"},
        {value_u64, "a whole number from 0 to 18446744073709551615"},
        {value_count, "a whole number from 1 to 18446744073709551615"},
        {value_size, "a number of at least 1, with K, M, G or T for powers of 1024"},
        {value_threads, "a number from 1 to 4096, or up to 32 of them: 1,2,4"},
        {value_shuffle, "global, none, or window:N with N from 1 to 4294967294"},
        {value_shard, "R/W with W from 1 to 16777216 and R from 0 to W - 1"},
        {value_budget, "a whole number, or a share from 0% to 100%"},
        {value_duration, "a time above 0 with its unit: 10us, 1.5ms, 2s, 3m, 1h"},
        {value_interval, "a time from 10ms to 1h with its unit: 100ms, 0.5s"},
        {value_rate, "a number above 0, up to 1000000"},
        {value_colours, "a number from -1000000 to 1000000, or three: 0.48,0.45,0.4"},
        {value_scales, "a number from 0.000001 to 1000000, or three: 0.2,0.2,0.2"},
        {value_image_size, "a side from 1 to 16384, or two: 320x240"},
    };
    for (unsigned i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (ranges[i].parse == parse)
            return ranges[i].range;
    return NULL;
}
