/* ckpt_name.c - see ckpt_name.h.  A temporary's checksum proves that this library made the name:
 * nobody else's file has it by accident, whatever it is called. */
#include "ckpt_name.h"

#include "crc32c.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEMP_MARK   ".millrace-"
#define TEMP_ENDING ".tmp"
#define TEMP_LEN    (sizeof TEMP_MARK - 1 + 8 + 1 + 8 + sizeof TEMP_ENDING - 1)

static const char *const endings[MR_N_PARTS] = {
    [MR_PART_INDEX] = ".index",
    [MR_PART_DATA] = ".data-00000-of-00001",
    [MR_PART_DATA_AGAIN] = ".data-00001-of-00002",
    [MR_PART_META] = ".meta",
    [MR_PART_SAFETENSORS] = ".safetensors",
};

int mr_ckpt_prefix_is_valid(const char *prefix)
{
    size_t n = strlen(prefix);
    return n && n < MR_CKPT_MAX_PREFIX && !strchr(prefix, '/') && prefix[0] != '.';
}

void mr_ckpt_name(char out[MR_CKPT_MAX_NAME], const char *prefix, uint64_t step,
                  enum mr_ckpt_part part)
{
    snprintf(out, MR_CKPT_MAX_NAME, "%s-%" PRIu64 "%s", prefix, step, endings[part]);
}

static int ends_with(const char *name, size_t len, const char *ending)
{
    size_t n = strlen(ending);
    return len > n && !memcmp(name + len - n, ending, n);
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

int mr_ckpt_name_parse(const char *name, size_t *prefix_len, uint64_t *step,
                       enum mr_checkpoint_format *format)
{
    size_t len = strlen(name);
    int tf = ends_with(name, len, endings[MR_PART_INDEX]);
    const char *ending = endings[tf ? MR_PART_INDEX : MR_PART_SAFETENSORS];
    if (len >= MR_CKPT_MAX_NAME || !ends_with(name, len, ending) ||
        !parse_stem(name, len - strlen(ending), prefix_len, step))
        return 0;
    *format = tf ? MR_CHECKPOINT_TF : MR_CHECKPOINT_SAFETENSORS;
    return 1;
}

/* Five digits, as TensorFlow writes them. */
static int parse_five(const char *at, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 5; i++) {
        if (at[i] < '0' || at[i] > '9')
            return 0;
        *out = *out * 10 + (uint32_t)(at[i] - '0');
    }
    return 1;
}

enum mr_ckpt_stem mr_ckpt_stem_parse(const char *name, char stem[MR_CKPT_MAX_NAME], uint32_t *shard,
                                     uint32_t *n_shards)
{
    size_t len = strlen(name), end = strlen(endings[MR_PART_DATA]);
    const char *data = len > end ? name + len - end : NULL;
    enum mr_ckpt_stem kind = MR_STEM_NONE;
    if (len >= MR_CKPT_MAX_NAME)
        return kind;
    if (ends_with(name, len, endings[MR_PART_INDEX])) {
        kind = MR_STEM_INDEX;
        end = strlen(endings[MR_PART_INDEX]);
    } else if (data && !memcmp(data, ".data-", 6) && !memcmp(data + 11, "-of-", 4) &&
               parse_five(data + 6, shard) && parse_five(data + 15, n_shards)) {
        kind = MR_STEM_DATA;
    } else {
        return kind;
    }
    memcpy(stem, name, len - end);
    stem[len - end] = 0;
    return kind;
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
