/* ckpt_name.c - see ckpt_name.h.  A temporary's checksum proves that this library made the name:
 * nobody else's file has it by accident, whatever it is called. */
#include "ckpt_name.h"

#include "crc32c.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEMP_MARK   ".millrace-"
#define TEMP_ENDING ".tmp"
#define TEMP_LEN    (sizeof TEMP_MARK - 1 + 8 + sizeof TEMP_ENDING - 1)

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
            __builtin_add_overflow(value, (uint64_t)(name[i] - '0'), &value))
            return 0;
    *prefix_len = at - 1;
    *step = value;
    return 1;
}

int mr_ckpt_part_parse(const char *name, char prefix[MR_CKPT_MAX_NAME], uint64_t *step)
{
    size_t len = strlen(name), n;
    if (len >= MR_CKPT_MAX_NAME)
        return -1;
    for (int part = 0; part < MR_N_PARTS; part++)
        if (ends_with(name, len, endings[part]) &&
            parse_stem(name, len - strlen(endings[part]), &n, step)) {
            memcpy(prefix, name, n);
            prefix[n] = 0;
            return part;
        }
    return -1;
}

int mr_ckpt_name_parse(const char *name, size_t *prefix_len, uint64_t *step,
                       enum mr_checkpoint_format *format)
{
    char prefix[MR_CKPT_MAX_NAME];
    int part = mr_ckpt_part_parse(name, prefix, step);
    if (part != MR_PART_INDEX && part != MR_PART_SAFETENSORS)
        return 0;
    *prefix_len = strlen(prefix);
    *format = part == MR_PART_INDEX ? MR_CHECKPOINT_TF : MR_CHECKPOINT_SAFETENSORS;
    return 1;
}

static uint32_t seal(const char *name, size_t len)
{
    static const char what[] = "a temporary file of millrace: ";
    return mr_crc32c(mr_crc32c(0, what, sizeof what - 1), name, len);
}

void mr_ckpt_temp_name(char out[MR_CKPT_MAX_NAME], const char *name)
{
    size_t n = strlen(name);
    snprintf(out, MR_CKPT_MAX_NAME, "%.*s" TEMP_MARK "%08" PRIx32 TEMP_ENDING,
             (int)(MR_CKPT_MAX_NAME - 1 - TEMP_LEN), name, seal(name, n));
}

int mr_ckpt_temp_parse(const char *temp, char name[MR_CKPT_MAX_NAME])
{
    char again[MR_CKPT_MAX_NAME], was[MR_CKPT_MAX_NAME];
    size_t len = strlen(temp);
    if (len <= TEMP_LEN || len >= MR_CKPT_MAX_NAME)
        return 0;
    memcpy(was, temp, len - TEMP_LEN);
    was[len - TEMP_LEN] = 0;
    mr_ckpt_temp_name(again, was);
    if (strcmp(again, temp))
        return 0;
    if (name)
        strcpy(name, was);
    return 1;
}
