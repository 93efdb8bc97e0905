/* dtype.h - types of elements: of pixels, of a batch's fields, of saved arrays.
 *
 * The numbers are part of the ABI and never change; new types get new numbers.  Files have numbers
 * or names of their own, as their formats say. */
/* Example:
 *
 *     double values[3] = {0};
 *
 *     if (mr_dtype_size(MR_DT_F64) != sizeof values[0])
 *         return 1;
 *     printf("3 x %s: %zu bytes\n", mr_dtype_name(MR_DT_F64), 3 * mr_dtype_size(MR_DT_F64));
 */
#ifndef MILLRACE_DTYPE_H
#define MILLRACE_DTYPE_H

#include <millrace/api.h>

#ifdef __cplusplus
extern "C" {
#endif

enum mr_dtype {
    MR_DT_NONE = 0, /* no type; in options: the default */
    MR_DT_F32 = 1,
    MR_DT_F64 = 2,
    MR_DT_F16 = 3,
    MR_DT_BF16 = 4,
    MR_DT_U8 = 5,
    MR_DT_I8 = 6,
    MR_DT_U16 = 7,
    MR_DT_I16 = 8,
    MR_DT_U32 = 9,
    MR_DT_I32 = 10,
    MR_DT_U64 = 11,
    MR_DT_I64 = 12,
    MR_DT_BOOL = 13,   /* one byte, 0 or 1 */
    MR_DT_C64 = 14,    /* complex: two F32 */
    MR_DT_C128 = 15,   /* complex: two F64 */
    MR_DT_STRING = 16, /* bytes of any number; only in checkpoints of other programs */
    /* TensorFlow's quantized types. */
    MR_DT_QINT8 = 17,
    MR_DT_QUINT8 = 18,
    MR_DT_QINT16 = 19,
    MR_DT_QUINT16 = 20,
    MR_DT_QINT32 = 21,
    /* Floats of fewer than 16 bits, by exponent and mantissa. */
    MR_DT_F8_E5M2 = 22,
    MR_DT_F8_E4M3 = 23,
    MR_DT_F8_E8M0 = 24,
    MR_DT_F8_E4M3FNUZ = 25,
    MR_DT_F8_E5M2FNUZ = 26,
    MR_DT_F6_E2M3 = 27,
    MR_DT_F6_E3M2 = 28,
    MR_DT_F4 = 29,
};

/* NumPy's name where it has the type: "float32".  NULL: the number is no type. */
MR_API const char *mr_dtype_name(enum mr_dtype dtype);
/* Bits of an element; 0 for MR_DT_STRING and for a number that is no type. */
MR_API unsigned mr_dtype_bits(enum mr_dtype dtype);
/* Bytes of an element; 0 where an element is no whole number of bytes. */
MR_API size_t mr_dtype_size(enum mr_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
