/* grow.c - see grow.h. */
#include "grow.h"

#include <stdint.h>
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
