/* grow.c - see grow.h. */
#include "grow.h"

#include <errno.h>
#include <stdlib.h>

void *mr_grown(void *array, size_t n, size_t *cap, size_t each)
{
    if (n < *cap)
        return array;
    size_t more = *cap ? 2 * *cap : 16;
    if (more > SIZE_MAX / 2 / each)
        return NULL;
    void *p = realloc(array, more * each);
    if (p)
        *cap = more;
    return p;
}

int mr_grow_to(void **array, uint64_t *cap, uint64_t need, size_t each)
{
    if (need <= *cap)
        return 0;
    uint64_t want = *cap + *cap / 2 + 1024;
    if (want < need)
        want = need;
    size_t bytes;
    if (__builtin_mul_overflow(want, each, &bytes))
        return -ENOMEM;
    void *p = realloc(*array, bytes);
    if (!p)
        return -ENOMEM;
    *array = p;
    *cap = want;
    return 0;
}
