/* ckpt_name.c - see ckpt_name.h.  A temporary's checksum proves that this library made the name:
 * nobody else's file has it by accident, whatever it is called. */
#include "ckpt_name.h"

#include "ckpt_format.h"
#include "crc32c.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEMP_MARK   ".millrace-"
#define TEMP_ENDING ".tmp"
#define TEMP_LEN    (sizeof TEMP_MARK - 1 + 8 + 1 + 8 + sizeof TEMP_ENDING - 1)

int mr_ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

int mr_ckpt_prefix_is_valid(const char *prefix)
{
    size_t n = strlen(prefix);
    return n && n < MR_CKPT_MAX_PREFIX && !strchr(prefix, '/') && prefix[0] != '.' &&
           !mr_ends_in(prefix, MR_RESAVED);
}

void mr_ckpt_stem(const struct mr_ckpt_item *item, char out[MR_CKPT_MAX_NAME])
{
    snprintf(out, MR_CKPT_MAX_NAME, "%s%s-%" PRIu64, item->prefix, item->resaved ? MR_RESAVED : "",
             item->step);
}

void mr_ckpt_head_name(const struct mr_ckpt_item *item, char out[MR_CKPT_MAX_NAME])
{
    mr_ckpt_stem(item, out);
    size_t n = strlen(out);
    snprintf(out + n, MR_CKPT_MAX_NAME - n, "%s", mr_ckpt_format_row(item->format)->ending);
}

int mr_ckpt_format_of(const char *name, size_t *stem_len)
{
    const struct mr_ckpt_format *row;
    for (unsigned i = 0; (row = mr_ckpt_format_row(i)); i++)
        if (mr_ends_in(name, row->ending)) {
            *stem_len = strlen(name) - strlen(row->ending);
            return (int)i;
        }
    return -1;
}

/* PREFIX-STEP: digits without leading zeros that fit, and a prefix before the '-'. */
static int parse_stem(const char *name, size_t end, size_t *prefix_len, uint64_t *step)
{
    size_t at = end;
    while (at && name[at - 1] >= '0' && name[at - 1] <= '9')
        at--;
    if (at == end || at < 2 || name[at - 1] != '-' || (name[at] == '0' && end - at > 1))
        return 0;
    uint64_t value = 0;
    for (size_t i = at; i < end; i++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(name[i] - '0'), &value) || value > INT64_MAX)
            return 0;
    *prefix_len = at - 1;
    *step = value;
    return 1;
}

int mr_ckpt_name_parse(const char *name, struct mr_ckpt_item *out)
{
    static const size_t again = sizeof MR_RESAVED - 1;
    struct mr_ckpt_item item = {0};
    size_t stem, n;
    int format = mr_ckpt_format_of(name, &stem);
    if (format < 0 || strlen(name) >= MR_CKPT_MAX_NAME || !parse_stem(name, stem, &n, &item.step))
        return 0;
    item.format = (enum mr_checkpoint_format)format;
    item.resaved = n > again && !memcmp(name + n - again, MR_RESAVED, again);
    n -= item.resaved ? again : 0;
    if (n >= sizeof item.prefix)
        return 0;
    memcpy(item.prefix, name, n);
    *out = item;
    return 1;
}

static uint32_t seal(const char *name, size_t len, uint32_t token)
{
    static const char what[] = "a temporary file of millrace: ";
    uint8_t t[4] = {(uint8_t)token, (uint8_t)(token >> 8), (uint8_t)(token >> 16),
                    (uint8_t)(token >> 24)};
    uint32_t crc = mr_crc32c(mr_crc32c(0, what, sizeof what - 1), t, sizeof t);
    return mr_crc32c(crc, name, len);
}

int mr_ckpt_temp_name(char out[MR_CKPT_MAX_NAME], const char *name, uint32_t token)
{
    size_t n = strlen(name);
    if (n + TEMP_LEN >= MR_CKPT_MAX_NAME)
        return -ENAMETOOLONG;
    memcpy(out, name, n);
    sprintf(out + n, TEMP_MARK "%08" PRIx32 "-%08" PRIx32 TEMP_ENDING, token, seal(name, n, token));
    return 0;
}

int mr_ckpt_temp_parse(const char *temp, char name[MR_CKPT_MAX_NAME], uint32_t *token)
{
    char again[MR_CKPT_MAX_NAME], was[MR_CKPT_MAX_NAME];
    uint32_t t;
    size_t len = strlen(temp);
    if (len <= TEMP_LEN || len >= MR_CKPT_MAX_NAME)
        return 0;
    memcpy(was, temp, len - TEMP_LEN);
    was[len - TEMP_LEN] = 0;
    if (sscanf(temp + len - TEMP_LEN, TEMP_MARK "%8" SCNx32 "-", &t) != 1 ||
        mr_ckpt_temp_name(again, was, t) || strcmp(again, temp))
        return 0;
    if (name)
        strcpy(name, was);
    if (token)
        *token = t;
    return 1;
}
