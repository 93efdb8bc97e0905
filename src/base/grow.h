/* grow.h - arrays that grow by doubling. */
#ifndef MR_GROW_H
#define MR_GROW_H

#include <stddef.h>

/* An array of *cap elements of `each` bytes, `n` of them in use, with room for one more: itself, or
 * moved, with *cap set.  NULL: no memory, and all is as it was. */
void *mr_grown(void *array, size_t n, size_t *cap, size_t each);

#endif
