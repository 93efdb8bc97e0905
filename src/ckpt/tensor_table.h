/* tensor_table.h - named arrays: what a checkpoint holds, whatever its format.
 *
 * Both formats are read into such a table and written from one.  A table owns its names and its
 * array of tensors, never the tensors' data. */
#ifndef MR_TENSOR_TABLE_H
#define MR_TENSOR_TABLE_H

#include <millrace/checkpoint.h>

#include <stddef.h>
#include <stdint.h>

/* Of a name, without the final zero. */
#define MR_TENSOR_MAX_NAME 4096

struct mr_tensor {
    const char *name;
    int dtype; /* enum mr_dtype */
    unsigned n_dims;
    uint64_t dims[MR_TENSOR_MAX_DIMS]; /* row-major, the last one varies fastest */
    void *data;                        /* borrowed; NULL when the tensor is in a file only */
    uint64_t bytes;                    /* of the data, as in memory and in the file */
    uint64_t offset;                   /* where the data begins in its file (see the format) */
    uint32_t crc;                      /* crc32c of the data, not masked */
    uint32_t shard;                    /* which data file, on reading; 0 on writing */
    unsigned has_crc;                  /* crc is known: always, but for foreign safetensors */
};

struct mr_tensor_table {
    struct mr_tensor *tensors;
    size_t n, cap;
    size_t *places;  /* hash of a name -> its tensor's number + 1; 0: free */
    size_t n_places; /* a power of two, at least 2 n */
};

/* Bytes of an array: 0, -EOVERFLOW, -EINVAL when they are no whole number, or -ENOTSUP when the
 * type has no fixed size. */
int mr_tensor_size(int dtype, unsigned n_dims, const uint64_t *dims, uint64_t *bytes);
/* Elements: 0 or -EOVERFLOW. */
int mr_tensor_elements(unsigned n_dims, const uint64_t *dims, uint64_t *n);

void mr_tensor_table_init(struct mr_tensor_table *t);
/* Append a copy of *tensor, name included.  0, -ENOMEM, or -EINVAL: too many dimensions, or a name
 * that is empty or too long. */
int mr_tensor_table_add(struct mr_tensor_table *t, const struct mr_tensor *tensor);
/* Sort by name (unsigned bytes): the order of a TensorFlow index. */
void mr_tensor_table_sort(struct mr_tensor_table *t);
/* Sort as `compare` says, which gets two struct mr_tensor, as qsort has it. */
void mr_tensor_table_sort_by(struct mr_tensor_table *t,
                             int (*compare)(const void *a, const void *b));
/* Borrowed, NULL when there is none; of two with this name the first.  The time that it takes does
 * not grow with the table.  Every tensor has to have been added, and sorted, by the functions
 * above. */
struct mr_tensor *mr_tensor_table_find(const struct mr_tensor_table *t, const char *name);
void mr_tensor_table_fini(struct mr_tensor_table *t);

#endif
