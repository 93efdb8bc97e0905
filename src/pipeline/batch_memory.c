/* batch_memory.c - see batch_memory.h. */
#include "batch_memory.h"

#include <errno.h>
#include <string.h>

#define ALIGN ((size_t)4096) /* what direct I/O wants, and vectors of any processor */

int mr_batch_memory_reserve(const struct mr_allocator *a, struct mr_buffer *b, size_t size)
{
    if (!a->alloc)
        return mr_buffer_reserve(b, size);
    if (size <= b->cap)
        return 0;
    if (size > SIZE_MAX - ALIGN)
        return -ENOMEM;
    size_t cap = (size + ALIGN - 1) & ~(ALIGN - 1);
    void *data = a->alloc(a->ctx, cap, ALIGN);
    if (!data)
        return -ENOMEM;
    if (b->cap) {
        memcpy(data, b->data, b->cap);
        a->free(a->ctx, b->data, b->cap);
    }
    *b = (struct mr_buffer){data, cap};
    return 0;
}

void mr_batch_memory_touch(const struct mr_allocator *a, struct mr_buffer *b)
{
    if (!a->alloc)
        mr_buffer_prefault(b);
}

void mr_batch_memory_fini(const struct mr_allocator *a, struct mr_buffer *b)
{
    if (!a->alloc)
        mr_buffer_fini(b);
    else if (b->cap)
        a->free(a->ctx, b->data, b->cap);
    *b = (struct mr_buffer){0};
}
