/* safetensors_types.c - see safetensors_types.h. */
#include "safetensors_types.h"

#include "crc32c.h"

#include <errno.h>
#include <string.h>

/* In the format's order; a file has the later ones first. */
static const struct {
    int dtype;
    const char *name;
} types[] = {
    {MR_DT_BOOL, "BOOL"},
    {MR_DT_F4, "F4"},
    {MR_DT_F6_E2M3, "F6_E2M3"},
    {MR_DT_F6_E3M2, "F6_E3M2"},
    {MR_DT_U8, "U8"},
    {MR_DT_I8, "I8"},
    {MR_DT_F8_E5M2, "F8_E5M2"},
    {MR_DT_F8_E4M3, "F8_E4M3"},
    {MR_DT_F8_E8M0, "F8_E8M0"},
    {MR_DT_F8_E4M3FNUZ, "F8_E4M3FNUZ"},
    {MR_DT_F8_E5M2FNUZ, "F8_E5M2FNUZ"},
    {MR_DT_I16, "I16"},
    {MR_DT_U16, "U16"},
    {MR_DT_F16, "F16"},
    {MR_DT_BF16, "BF16"},
    {MR_DT_I32, "I32"},
    {MR_DT_U32, "U32"},
    {MR_DT_F32, "F32"},
    {MR_DT_C64, "C64"},
    {MR_DT_F64, "F64"},
    {MR_DT_I64, "I64"},
    {MR_DT_U64, "U64"},
};
#define N_TYPES ((int)(sizeof types / sizeof *types))

int mr_st_rank(int dtype)
{
    for (int i = 0; i < N_TYPES; i++)
        if (types[i].dtype == dtype)
            return i;
    return -1;
}

const char *mr_st_type_name(int dtype)
{
    int i = mr_st_rank(dtype);
    return i < 0 ? NULL : types[i].name;
}

int mr_st_type_number(const char *name)
{
    for (int i = 0; i < N_TYPES; i++)
        if (!strcmp(types[i].name, name))
            return types[i].dtype;
    return -1;
}

/* A quote inside a JSON string is written \", so these characters can only be a member. */
int mr_st_header_crc(const uint8_t *header, size_t len, size_t *digits, uint32_t *crc)
{
    static const char member[] = "\"" MR_ST_HEADER_CRC "\":\"";
    const size_t n = sizeof member - 1;
    const uint8_t *found = memmem(header, len, member, n);
    if (!found || len - (size_t)(found - header) < n + 8)
        return -EBADMSG;
    size_t at = (size_t)(found - header) + n;
    uint32_t c = mr_crc32c(0, header, at);
    c = mr_crc32c(c, "00000000", 8);
    *crc = mr_crc32c(c, header + at + 8, len - at - 8);
    *digits = at;
    return 0;
}
