/* png_filter.h - undo the filters of PNG rows. */
#ifndef MR_PNG_FILTER_H
#define MR_PNG_FILTER_H

#include <stddef.h>
#include <stdint.h>

#define MR_FILTER_LAST  4 /* filters are 0 to 4 */
#define MR_FILTER_SLACK 8 /* bytes after each row that may be read and written */

/* Turn a filtered row of n bytes into pixels, with the row above it (zeros above the first one).
 * `step` is the number of bytes a pixel has, 1 to 4, and divides n.  The three do not overlap.
 * 0, or -1 when there is no such filter. */
int mr_png_unfilter(unsigned filter, unsigned step, const uint8_t *in, const uint8_t *above,
                    uint8_t *out, size_t n);

#endif
