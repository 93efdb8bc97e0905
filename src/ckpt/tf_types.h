/* tf_types.h - TensorFlow's numbers for types (DataType of types.proto), as its files have them. */
#ifndef MR_TF_TYPES_H
#define MR_TF_TYPES_H

#include <stdint.h>

/* TensorFlow's number of an enum mr_dtype; 0: it has no such type. */
unsigned mr_tf_type(int dtype);
/* The enum mr_dtype of TensorFlow's number; MR_DT_NONE: unknown. */
int mr_tf_type_of(uint64_t number);

#endif
