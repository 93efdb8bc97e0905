/* dtype.c - the types of elements as one table, so that a new one is one row. */
#include <millrace/dtype.h>

/* Row number = enum mr_dtype. */
static const struct {
    const char *name;
    unsigned bits;
} types[] = {
    [MR_DT_F32] = {"float32", 32},
    [MR_DT_F64] = {"float64", 64},
    [MR_DT_F16] = {"float16", 16},
    [MR_DT_BF16] = {"bfloat16", 16},
    [MR_DT_U8] = {"uint8", 8},
    [MR_DT_I8] = {"int8", 8},
    [MR_DT_U16] = {"uint16", 16},
    [MR_DT_I16] = {"int16", 16},
    [MR_DT_U32] = {"uint32", 32},
    [MR_DT_I32] = {"int32", 32},
    [MR_DT_U64] = {"uint64", 64},
    [MR_DT_I64] = {"int64", 64},
    [MR_DT_BOOL] = {"bool", 8},
    [MR_DT_C64] = {"complex64", 64},
    [MR_DT_C128] = {"complex128", 128},
    [MR_DT_STRING] = {"string", 0},
    [MR_DT_QINT8] = {"qint8", 8},
    [MR_DT_QUINT8] = {"quint8", 8},
    [MR_DT_QINT16] = {"qint16", 16},
    [MR_DT_QUINT16] = {"quint16", 16},
    [MR_DT_QINT32] = {"qint32", 32},
    [MR_DT_F8_E5M2] = {"float8_e5m2", 8},
    [MR_DT_F8_E4M3] = {"float8_e4m3", 8},
    [MR_DT_F8_E8M0] = {"float8_e8m0", 8},
    [MR_DT_F8_E4M3FNUZ] = {"float8_e4m3fnuz", 8},
    [MR_DT_F8_E5M2FNUZ] = {"float8_e5m2fnuz", 8},
    [MR_DT_F6_E2M3] = {"float6_e2m3", 6},
    [MR_DT_F6_E3M2] = {"float6_e3m2", 6},
    [MR_DT_F4] = {"float4", 4},
};
#define N_TYPES (sizeof types / sizeof *types)

const char *mr_dtype_name(enum mr_dtype dtype)
{
    return (size_t)dtype < N_TYPES ? types[dtype].name : NULL;
}

unsigned mr_dtype_bits(enum mr_dtype dtype)
{
    return (size_t)dtype < N_TYPES ? types[dtype].bits : 0;
}

size_t mr_dtype_size(enum mr_dtype dtype)
{
    unsigned bits = mr_dtype_bits(dtype);
    return bits % 8 ? 0 : bits / 8;
}
