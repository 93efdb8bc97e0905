/* grow.h - arrays that grow. */
#ifndef MR_GROW_H
#define MR_GROW_H

#include <stddef.h>
#include <stdint.h>

/* An array that doubles.  It has *cap elements of `each` bytes, `n` of them in use, with room for
 * one more: itself, or moved, with *cap set.  NULL: no memory, and all is as it was. */
void *mr_grown(void *array, size_t n, size_t *cap, size_t each);

/* Room for `need` elements of `each` bytes in *array, which has room for *cap: grows by half, as
 * large tables should.  0 or -ENOMEM, and then all is as it was. */
int mr_grow_to(void **array, uint64_t *cap, uint64_t need, size_t each);

#endif
