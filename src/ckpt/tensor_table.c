/* tensor_table.c - see tensor_table.h.
 *
 * Names are found by a hash table with open addressing, never more than half full: a model may have
 * tens of thousands of tensors, and each is looked up by its name.
 *
 * Sizes come from files, so every product is checked: a shape that does not fit in 64 bits is
 * refused before anybody allocates for it. */
#include "tensor_table.h"

#include "byte_hash.h"
#include "grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int mr_tensor_elements(unsigned n_dims, const uint64_t *dims, uint64_t *n)
{
    uint64_t product = 1;
    for (unsigned i = 0; i < n_dims; i++)
        if (__builtin_mul_overflow(product, dims[i], &product))
            return -EOVERFLOW;
    *n = product;
    return 0;
}

int mr_tensor_size(int dtype, unsigned n_dims, const uint64_t *dims, uint64_t *bytes)
{
    uint64_t n, bits, each = mr_dtype_bits(dtype);
    if (!each)
        return -ENOTSUP;
    int r = mr_tensor_elements(n_dims, dims, &n);
    if (r)
        return r;
    if (__builtin_mul_overflow(n, each, &bits))
        return -EOVERFLOW;
    if (bits % 8)
        return -EINVAL;
    *bytes = bits / 8;
    return 0;
}

void mr_tensor_table_init(struct mr_tensor_table *t)
{
    memset(t, 0, sizeof *t);
}

/* The place of a name, or the free one where it belongs. */
static size_t *place_of(const struct mr_tensor_table *t, const char *name)
{
    size_t at = mr_byte_hash(name, strlen(name)) & (t->n_places - 1);
    while (t->places[at] && strcmp(t->tensors[t->places[at] - 1].name, name))
        at = (at + 1) & (t->n_places - 1);
    return &t->places[at];
}

/* Tensor number i can be found from now on, unless an earlier one has its name. */
static void enter(struct mr_tensor_table *t, size_t i)
{
    size_t *place = place_of(t, t->tensors[i].name);
    if (!*place)
        *place = i + 1;
}

static void enter_all(struct mr_tensor_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        enter(t, i);
}

/* Room for the name of one more. */
static int grow_places(struct mr_tensor_table *t)
{
    if (t->n < t->n_places / 2)
        return 0;
    size_t n = t->n_places ? 2 * t->n_places : 32;
    size_t *places = calloc(n, sizeof *places);
    if (!places)
        return -ENOMEM;
    free(t->places);
    t->places = places;
    t->n_places = n;
    enter_all(t);
    return 0;
}

int mr_tensor_table_add(struct mr_tensor_table *t, const struct mr_tensor *tensor)
{
    size_t len = strnlen(tensor->name, MR_TENSOR_MAX_NAME + 1);
    if (!len || len > MR_TENSOR_MAX_NAME || tensor->n_dims > MR_TENSOR_MAX_DIMS)
        return -EINVAL;
    struct mr_tensor *grown = mr_grown(t->tensors, t->n, &t->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    t->tensors = grown;
    if (grow_places(t))
        return -ENOMEM;
    char *name = strndup(tensor->name, len);
    if (!name)
        return -ENOMEM;
    t->tensors[t->n] = *tensor;
    t->tensors[t->n].name = name;
    enter(t, t->n++);
    return 0;
}

void mr_tensor_table_sort_by(struct mr_tensor_table *t,
                             int (*compare)(const void *a, const void *b))
{
    if (!t->n)
        return;
    qsort(t->tensors, t->n, sizeof *t->tensors, compare);
    memset(t->places, 0, t->n_places * sizeof *t->places);
    enter_all(t);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct mr_tensor *)a)->name, ((const struct mr_tensor *)b)->name);
}

void mr_tensor_table_sort(struct mr_tensor_table *t)
{
    mr_tensor_table_sort_by(t, by_name);
}

struct mr_tensor *mr_tensor_table_find(const struct mr_tensor_table *t, const char *name)
{
    size_t i = t->n ? *place_of(t, name) : 0;
    return i ? &t->tensors[i - 1] : NULL;
}

void mr_tensor_table_fini(struct mr_tensor_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        free((char *)(uintptr_t)t->tensors[i].name);
    free(t->tensors);
    free(t->places);
    mr_tensor_table_init(t);
}
