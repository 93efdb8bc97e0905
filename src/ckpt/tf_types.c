/* tf_types.c - see tf_types.h.  Files on disk depend on these numbers, so they are written here and
 * not taken from enum mr_dtype. */
#include "tf_types.h"

#include <millrace/dtype.h>

/* Row number = TensorFlow's; zero where there is no type of ours. */
static const uint8_t types[] = {
    [1] = MR_DT_F32,     [2] = MR_DT_F64,      [3] = MR_DT_I32,      [4] = MR_DT_U8,
    [5] = MR_DT_I16,     [6] = MR_DT_I8,       [7] = MR_DT_STRING,   [8] = MR_DT_C64,
    [9] = MR_DT_I64,     [10] = MR_DT_BOOL,    [11] = MR_DT_QINT8,   [12] = MR_DT_QUINT8,
    [13] = MR_DT_QINT32, [14] = MR_DT_BF16,    [15] = MR_DT_QINT16,  [16] = MR_DT_QUINT16,
    [17] = MR_DT_U16,    [18] = MR_DT_C128,    [19] = MR_DT_F16,     [22] = MR_DT_U32,
    [23] = MR_DT_U64,    [24] = MR_DT_F8_E5M2, [25] = MR_DT_F8_E4M3,
};
#define N_TYPES (sizeof types / sizeof *types)

unsigned mr_tf_type(int dtype)
{
    for (unsigned number = 1; number < N_TYPES; number++)
        if (types[number] && types[number] == dtype)
            return number;
    return 0;
}

int mr_tf_type_of(uint64_t number)
{
    return number < N_TYPES ? types[number] : MR_DT_NONE;
}
