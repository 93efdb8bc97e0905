/* device_profile.c - profiles of emulated devices: the built-in ones, the parser, the writer.
 *
 * A profile is lines of `key = value`; blank lines and lines that begin with '#' are skipped, the
 * order is free, a key may stand once.  A number is digits with an optional fraction, no sign and
 * no exponent, and becomes a whole number of its unit's smallest part: "133.14" MB/s is 133,140,000
 * bytes/s.  One table of keys serves parser, writer and range checks, so they cannot disagree; and
 * the built-in profiles are texts that go through the same parser, so that each can be saved,
 * changed and loaded. */
#include "device_profile.h"

#include "errtext.h"
#include "new_file.h"

#include <millrace/store.h>

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(name) offsetof(struct mr_device_profile, name)

/* A number's key.  `decimals`: how many digits behind the point the unit has. */
struct number_key {
    const char *key;
    size_t offset;
    unsigned decimals;
    uint64_t min, max, absent; /* in the smallest unit; absent 0 with min > 0: it is required */
};

#define HOUR_NS 3600000000000u

static const struct number_key numbers[] = {
    {"read_mb_per_s", FIELD(read_bytes_per_s), 6, 1000, 1000000000000000u, 0},
    {"write_mb_per_s", FIELD(write_bytes_per_s), 6, 1000, 1000000000000000u, 0},
    {"read_latency_us", FIELD(read_latency_ns), 3, 0, HOUR_NS, 0},
    {"write_latency_us", FIELD(write_latency_ns), 3, 0, HOUR_NS, 0},
    {"sync_us", FIELD(sync_ns), 3, 0, HOUR_NS, 0},
    {"metadata_us", FIELD(metadata_ns), 3, 0, HOUR_NS, 0},
    {"metadata_parallel", FIELD(metadata_parallel), 0, 0, 1000000, 0},
    {"seek_us", FIELD(seek_ns), 3, 0, HOUR_NS, 0},
    {"seek_shrink", FIELD(seek_shrink), 3, 0, 1000, 0},
    {"queue_depth", FIELD(queue_depth), 0, 1, MR_PROFILE_MAX_QUEUE, 32},
    {"targets", FIELD(targets), 0, 1, MR_PROFILE_MAX_TARGETS, 1},
    {"stripe_bytes", FIELD(stripe_bytes), 0, 4096, (uint64_t)1 << 40, 1 << 20},
};
#define N_NUMBERS (sizeof numbers / sizeof *numbers)

/* Bits of "this key was there". */
#define SEEN_NAME       (1u << N_NUMBERS)
#define SEEN_CALIBRATED (2u << N_NUMBERS)

static const struct {
    const char *name, *text;
} builtin[] = {
    {"hdd", "# One disk with a seek that a queue shortens.\n"
            "name = hdd\n"
            "calibrated = Chien et al. 2018: Table I (163.00 / 133.14 MB/s); read-only scaling over"
            " 1, 2, 4, 8 threads on 112 KB files 1 : 1.65 : 1.95 : 2.3; sync: typical\n"
            "read_mb_per_s = 163\n"
            "write_mb_per_s = 133.14\n"
            "read_latency_us = 100\n"
            "write_latency_us = 100\n"
            "sync_us = 12000\n"
            "metadata_us = 2180\n"
            "metadata_parallel = 4\n"
            "seek_us = 5030\n"
            "seek_shrink = 0.28\n"},
    {"ssd", "# A SATA SSD: no seek.\n"
            "name = ssd\n"
            "calibrated = Chien et al. 2018: Table I (280.55 / 195.05 MB/s); reading 112 KB files "
            "nearly doubles from 1 to 2 threads; latencies, sync: typical\n"
            "read_mb_per_s = 280.55\n"
            "write_mb_per_s = 195.05\n"
            "read_latency_us = 100\n"
            "write_latency_us = 60\n"
            "sync_us = 1500\n"
            "metadata_us = 700\n"
            "metadata_parallel = 32\n"},
    {"optane", "# An NVMe device of the 3D XPoint kind: very short latency.\n"
               "name = optane\n"
               "calibrated = Chien et al. 2018: Table I (1603.06 / 511.78 MB/s); reading 112 KB "
               "files nearly doubles from 1 to 2 threads; latencies, sync: typical\n"
               "read_mb_per_s = 1603.06\n"
               "write_mb_per_s = 511.78\n"
               "read_latency_us = 12\n"
               "write_latency_us = 12\n"
               "sync_us = 100\n"
               "metadata_us = 300\n"
               "metadata_parallel = 32\n"},
    {"lustre", "# A parallel file system: four object storage targets, a metadata server.\n"
               "name = lustre\n"
               "calibrated = Chien et al. 2018: Table I (1968.618 / 991.914 MB/s); read-only "
               "scaling on 112 KB files 7.8 at 8 threads; latencies, sync: typical\n"
               "read_mb_per_s = 1968.618\n"
               "write_mb_per_s = 991.914\n"
               "read_latency_us = 400\n"
               "write_latency_us = 400\n"
               "sync_us = 5000\n"
               "metadata_us = 2200\n"
               "metadata_parallel = 16\n"
               "targets = 4\n"
               "stripe_bytes = 1048576\n"},
};
#define N_BUILTIN (sizeof builtin / sizeof *builtin)

const char *mr_device_profile_builtin(unsigned i, const char **text)
{
    if (i >= N_BUILTIN)
        return NULL;
    if (text)
        *text = builtin[i].text;
    return builtin[i].name;
}

static uint64_t *field(struct mr_device_profile *p, const struct number_key *k)
{
    return (uint64_t *)((char *)p + k->offset);
}

static uint64_t value_of(const struct mr_device_profile *p, const struct number_key *k)
{
    return *(const uint64_t *)((const char *)p + k->offset);
}

/* ---- reading ---- */

struct parser {
    const char *file;
    unsigned line;
    unsigned seen; /* bits of keys */
    struct mr_device_profile p;
    struct mr_error *err;
};

/* A stretch of text that is not closed by NUL. */
struct span {
    const char *at;
    size_t len;
};

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct span trim(const char *at, const char *end)
{
    while (at < end && is_blank(*at))
        at++;
    while (end > at && is_blank(end[-1]))
        end--;
    return (struct span){at, (size_t)(end - at)};
}

/* For messages: at most this much of the file's text, and nothing that a terminal obeys. */
static const char *shown(struct span s, char buf[static 48])
{
    size_t n = s.len < 40 ? s.len : 40;
    for (size_t i = 0; i < n; i++)
        buf[i] = s.at[i] >= ' ' && s.at[i] < 127 ? s.at[i] : '?';
    strcpy(buf + n, s.len > n ? "..." : "");
    return buf;
}

/* v * 10 + digit, refused beyond 10^18. */
static int append_digit(uint64_t *v, char c)
{
    if (*v > (uint64_t)100000000000000000)
        return -1;
    *v = *v * 10 + (uint64_t)(c - '0');
    return 0;
}

/* Digits, a point, up to `decimals` digits: the value in units of 10^-decimals. */
static int parse_number(struct span s, unsigned decimals, uint64_t *out)
{
    uint64_t v = 0;
    size_t i = 0;
    unsigned n_fraction = 0;
    for (; i < s.len && s.at[i] >= '0' && s.at[i] <= '9'; i++)
        if (append_digit(&v, s.at[i]))
            return -1;
    if (!i)
        return -1;
    if (i < s.len && s.at[i] == '.' && decimals) {
        size_t point = i++;
        for (; i < s.len && s.at[i] >= '0' && s.at[i] <= '9'; i++)
            if (++n_fraction > decimals || append_digit(&v, s.at[i]))
                return -1;
        if (i == point + 1)
            return -1;
    }
    if (i != s.len)
        return -1;
    for (; n_fraction < decimals; n_fraction++)
        if (append_digit(&v, '0'))
            return -1;
    *out = v;
    return 0;
}

/* "133.14" of 133140000 with 6 decimals. */
static const char *number_text(uint64_t v, unsigned decimals, char buf[static 32])
{
    uint64_t unit = 1;
    for (unsigned i = 0; i < decimals; i++)
        unit *= 10;
    int n = snprintf(buf, 32, "%llu", (unsigned long long)(v / unit));
    if (v % unit) {
        n += snprintf(buf + n, 32 - (size_t)n, ".%0*llu", (int)decimals,
                      (unsigned long long)(v % unit));
        while (buf[n - 1] == '0')
            buf[--n] = 0;
    }
    return buf;
}

static int range_error(const struct number_key *k, const char *where, const char *value,
                       struct mr_error *err)
{
    char min[32], max[32], digits[40] = "";
    if (k->decimals)
        snprintf(digits, sizeof digits, " with up to %u decimals", k->decimals);
    return mr_fail(err, -EINVAL, "%s: %s is '%s'; it must be a number from %s to %s%s", where,
                   k->key, value, number_text(k->min, k->decimals, min),
                   number_text(k->max, k->decimals, max), digits);
}

static const char *place(const struct parser *p, char buf[static 300])
{
    snprintf(buf, 300, "%.240s, line %u", p->file, p->line);
    return buf;
}

static int name_is_good(struct span s)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    for (size_t i = 0; i < s.len; i++)
        if (!s.at[i] || !strchr(allowed, s.at[i]))
            return 0;
    return s.len > 0 && s.len < sizeof((struct mr_device_profile *)0)->name;
}

static int remark_is_good(struct span s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.at[i] < ' ' || s.at[i] > '~')
            return 0;
    return s.len < sizeof((struct mr_device_profile *)0)->calibrated;
}

static int set_text(struct parser *p, struct span key, struct span value)
{
    char where[300], said[48];
    int is_name = key.len == 4;
    if (is_name ? !name_is_good(value) : !remark_is_good(value))
        return mr_fail(p->err, -EINVAL, "%s: %s is '%s'; it must be %s", place(p, where),
                       is_name ? "name" : "calibrated", shown(value, said),
                       is_name ? "1 to 31 letters, digits or . _ -"
                               : "at most 239 plain ASCII characters");
    memcpy(is_name ? p->p.name : p->p.calibrated, value.at, value.len);
    return 0;
}

static int set_number(struct parser *p, const struct number_key *k, struct span value)
{
    char where[300], said[48];
    uint64_t v;
    if (parse_number(value, k->decimals, &v) || v < k->min || v > k->max)
        return range_error(k, place(p, where), shown(value, said), p->err);
    *field(&p->p, k) = v;
    return 0;
}

static int key_is(struct span key, const char *name)
{
    return key.len == strlen(name) && !memcmp(key.at, name, key.len);
}

static int set_key(struct parser *p, struct span key, struct span value)
{
    char where[300], said[48];
    unsigned k = 0, bit = 0;
    while (k < N_NUMBERS && !key_is(key, numbers[k].key))
        k++;
    if (k < N_NUMBERS)
        bit = 1u << k;
    else if (key_is(key, "name"))
        bit = SEEN_NAME;
    else if (key_is(key, "calibrated"))
        bit = SEEN_CALIBRATED;
    if (!bit)
        return mr_fail(p->err, -EINVAL, "%s: there is no key '%s' (docs/devices.md lists them)",
                       place(p, where), shown(key, said));
    if (p->seen & bit)
        return mr_fail(p->err, -EINVAL, "%s: %s is there twice", place(p, where), shown(key, said));
    p->seen |= bit;
    return k < N_NUMBERS ? set_number(p, &numbers[k], value) : set_text(p, key, value);
}

static int parse_line(struct parser *p, const char *at, const char *end)
{
    char where[300], said[48];
    struct span line = trim(at, end);
    if (!line.len || line.at[0] == '#')
        return 0;
    const char *equals = memchr(line.at, '=', line.len);
    if (!equals)
        return mr_fail(p->err, -EINVAL, "%s: '%s' is not of the form 'key = value'",
                       place(p, where), shown(line, said));
    return set_key(p, trim(line.at, equals), trim(equals + 1, line.at + line.len));
}

/* All lines are read: is something missing? */
static int complete(const struct parser *p)
{
    if (!(p->seen & SEEN_NAME))
        return mr_fail(p->err, -EINVAL, "%s: there is no line 'name = ...'", p->file);
    for (unsigned k = 0; k < N_NUMBERS; k++)
        if (!(p->seen & 1u << k) && numbers[k].min && !numbers[k].absent)
            return mr_fail(p->err, -EINVAL, "%s: there is no line '%s = ...'", p->file,
                           numbers[k].key);
    return 0;
}

int mr_device_profile_parse(const char *text, size_t len, const char *file,
                            struct mr_device_profile *out, struct mr_error *err)
{
    struct parser p = {.file = file, .err = err};
    for (unsigned k = 0; k < N_NUMBERS; k++)
        *field(&p.p, &numbers[k]) = numbers[k].absent;
    if (len > MR_PROFILE_MAX_BYTES)
        return mr_fail(err, -EFBIG, "%s: a profile has at most %zu bytes", file,
                       MR_PROFILE_MAX_BYTES);
    const char *at = text, *end = text + len;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        p.line++;
        int code = parse_line(&p, at, stop);
        if (code)
            return code;
        at = newline ? newline + 1 : end;
    }
    int code = complete(&p);
    if (!code)
        *out = p.p;
    return code;
}

/* "hdd, ssd, optane, lustre" */
static const char *builtin_names(char buf[static 128])
{
    size_t n = 0;
    for (unsigned i = 0; i < N_BUILTIN && n < 128; i++)
        n += (size_t)snprintf(buf + n, 128 - n, "%s%s", i ? ", " : "", builtin[i].name);
    return buf;
}

static int load_file(const char *path, struct mr_device_profile *out, struct mr_error *err)
{
    char names[128], *text = malloc(MR_PROFILE_MAX_BYTES);
    size_t len = 0;
    if (!text)
        return mr_fail(err, -ENOMEM, "%s: no memory to read it", path);
    int code = mr_file_read(path, text, MR_PROFILE_MAX_BYTES, &len, NULL);
    if (code == -ENOENT)
        mr_fail(err, code, "%.200s: no such profile: neither built in (%s) nor a file", path,
                builtin_names(names));
    else if (code == -EFBIG)
        mr_fail(err, code, "%.200s: too large for a profile (at most %zu bytes)", path,
                MR_PROFILE_MAX_BYTES);
    else if (code)
        mr_fail(err, code, "%.200s: cannot read the profile: %s", path,
                code == -ENODATA ? "it is empty" : mr_errno_text(code));
    else
        code = mr_device_profile_parse(text, len, path, out, err);
    free(text);
    return code;
}

int mr_device_profile_load(const char *name_or_file, struct mr_device_profile *out,
                           struct mr_error *err)
{
    for (unsigned i = 0; i < N_BUILTIN; i++)
        if (!strcmp(name_or_file, builtin[i].name))
            return mr_device_profile_parse(builtin[i].text, strlen(builtin[i].text),
                                           builtin[i].name, out, err);
    return load_file(name_or_file, out, err);
}

/* ---- writing ---- */

static int check(const struct mr_device_profile *p, struct mr_error *err)
{
    struct span name = {p->name, strnlen(p->name, sizeof p->name)};
    struct span remark = {p->calibrated, strnlen(p->calibrated, sizeof p->calibrated)};
    if (!name_is_good(name) || !remark_is_good(remark))
        return mr_fail(err, -EINVAL, "a profile's name or what it was calibrated to is not text");
    for (unsigned k = 0; k < N_NUMBERS; k++) {
        uint64_t v = value_of(p, &numbers[k]);
        char value[32];
        if (v < numbers[k].min || v > numbers[k].max)
            return range_error(&numbers[k], p->name, number_text(v, numbers[k].decimals, value),
                               err);
    }
    return 0;
}

int mr_device_profile_format(const struct mr_device_profile *p, char *buf, size_t cap,
                             struct mr_error *err)
{
    char value[32];
    int code = check(p, err);
    if (code)
        return code;
    size_t n = (size_t)snprintf(buf, cap,
                                "# A storage device for millrace\n"
                                "name = %s\n",
                                p->name);
    if (p->calibrated[0] && n < cap)
        n += (size_t)snprintf(buf + n, cap - n, "calibrated = %s\n", p->calibrated);
    for (unsigned k = 0; k < N_NUMBERS && n < cap; k++)
        n += (size_t)snprintf(buf + n, cap - n, "%s = %s\n", numbers[k].key,
                              number_text(value_of(p, &numbers[k]), numbers[k].decimals, value));
    if (n >= cap)
        return mr_fail(err, -ENOSPC, "a profile does not fit into %zu bytes", cap);
    return (int)n;
}

int mr_device_profile_save(const struct mr_device_profile *p, const char *path,
                           struct mr_error *err)
{
    char text[MR_PROFILE_MAX_BYTES];
    int len = mr_device_profile_format(p, text, sizeof text, err);
    if (len < 0)
        return len;
    int code = mr_new_file_put(path, text, (size_t)len);
    return code ? mr_fail(err, code, "%.400s: cannot write it: %s", path, mr_errno_text(code)) : 0;
}
