/* buffer.h - page-backed memory that grows without losing what it holds. */
#ifndef MR_BUFFER_H
#define MR_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#define MR_HUGE_BYTES ((size_t)2 << 20) /* of a huge page */

struct mr_buffer {
    uint8_t *data; /* page-aligned; NULL when cap is 0 */
    size_t cap;
};

/* Make room for at least `size` bytes; the contents stay, the address may change.  From 2 MiB on,
 * in huge pages if the system has some.  0, or -ENOMEM with the buffer as it was. */
int mr_buffer_reserve(struct mr_buffer *b, size_t size);
/* In ordinary pages all the same; before anything is written to it. */
void mr_buffer_ordinary(struct mr_buffer *b);
/* Have the kernel map every page now, so that nobody pays for it in a measured loop. */
void mr_buffer_prefault(struct mr_buffer *b);
void mr_buffer_fini(struct mr_buffer *b);

#endif
