/* rows.c - see rows.h.  Doubling: a table of n rows has moved log n times. */
#include "rows.h"

#include <limits.h>
#include <stdlib.h>

void *mr_rows_reserve(void *rows, unsigned n, unsigned *cap, size_t row_bytes)
{
    unsigned more = *cap ? 2 * *cap : 16;
    if (n < *cap)
        return rows;
    if (*cap > UINT_MAX / 2 || more > (size_t)-1 / row_bytes)
        return NULL;
    void *p = realloc(rows, more * row_bytes);
    if (p)
        *cap = more;
    return p;
}
