/* rows.h - a table that grows: room for one more row. */
#ifndef MR_ROWS_H
#define MR_ROWS_H

#include <stddef.h>

/* `rows` itself, or where it is now with a larger *cap; NULL without memory, and nothing changed.
 */
void *mr_rows_reserve(void *rows, unsigned n, unsigned *cap, size_t row_bytes);

#endif
