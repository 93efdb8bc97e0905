/* safetensors_types.h - what the reader and the writer of safetensors headers share. */
#ifndef MR_SAFETENSORS_TYPES_H
#define MR_SAFETENSORS_TYPES_H

#include "tensor_table.h"

/* Keys in `__metadata__`. */
#define MR_ST_VERSION    "millrace"
#define MR_ST_HEADER_CRC "header_crc32c"
#define MR_ST_CRC        "crc32c:" /* + name: the crc of a tensor's data, 8 hex digits */
#define MR_ST_TYPE       "type:" /* + name: "NUMBER:d,d,d" (TensorFlow's) of a tensor stored as bytes */

/* The rank is the place in the format's order of types.  -1, NULL when there is none. */
int mr_st_rank(int dtype);
const char *mr_st_type_name(int dtype);
int mr_st_type_number(const char *name);

/* The header's crc, its own eight digits taken as '0'; they are at *digits.  0, or -EBADMSG when
 * there are none. */
int mr_st_header_crc(const uint8_t *header, size_t len, size_t *digits, uint32_t *crc);

#endif
