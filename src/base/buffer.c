/* buffer.c - anonymous mappings that grow by mremap.
 *
 * File buffers start at a size that most files fit in and grow for the few that do not.  mremap
 * moves page tables instead of bytes and keeps the pages that were touched, which matters: on
 * many machines the first touch of a page costs more than copying it.
 *
 * Large buffers ask for huge pages, and begin where one may begin.  That halves the cost of first
 * touch and spares the TLB.  For direct I/O it matters more: memory in huge pages is of a piece, so
 * that a request needs one segment, where ordinary pages need one each and a device's limit of
 * segments may split the request (docs/baseline.md).
 *
 * ThreadSanitizer does not see mremap: where one thread's buffer has left, another's may come to
 * lie, and the two would count as a race.  In its builds a growing buffer is copied.
 *
 * Invariant: cap is 0 or a multiple of the page size, and [data, data + cap) is mapped. */
#include "buffer.h"
#include "sanitizers.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_round(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (size + page - 1) & ~(page - 1);
}

static void *map_at(uintptr_t hint, size_t cap)
{
    return mmap((void *)hint, cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* A large mapping begins at a multiple of MR_HUGE_BYTES.  Where the kernel does not align it, a
 * larger mapping finds room for an aligned one.  Should another thread take that room first, the
 * result is unaligned but valid. */
static void *map(size_t cap)
{
    void *data = map_at(0, cap);
    if (data == MAP_FAILED || cap < MR_HUGE_BYTES || (uintptr_t)data % MR_HUGE_BYTES == 0)
        return data;
    void *wide = map_at(0, cap + MR_HUGE_BYTES);
    if (wide == MAP_FAILED)
        return data;
    munmap(data, cap);
    munmap(wide, cap + MR_HUGE_BYTES);
    return map_at(((uintptr_t)wide + MR_HUGE_BYTES - 1) & ~(MR_HUGE_BYTES - 1), cap);
}

static void *grow(const struct mr_buffer *b, size_t cap)
{
    if (!MR_TSAN)
        return mremap(b->data, b->cap, cap, MREMAP_MAYMOVE);
    void *data = map(cap);
    if (data == MAP_FAILED)
        return data;
    memcpy(data, b->data, b->cap);
    munmap(b->data, b->cap);
    return data;
}

int mr_buffer_reserve(struct mr_buffer *b, size_t size)
{
    if (size <= b->cap)
        return 0;
    if (size > SIZE_MAX / 4)
        return -ENOMEM;
    /* Grow by half at least, so that slowly growing demands do not remap each time. */
    size_t cap = size;
    if (b->cap && cap < b->cap + b->cap / 2)
        cap = b->cap + b->cap / 2;
    cap = page_round(cap);
    void *data = b->data ? grow(b, cap) : map(cap);
    if (data == MAP_FAILED)
        return -ENOMEM;
    if (cap >= MR_HUGE_BYTES)
        madvise(data, cap, MADV_HUGEPAGE);
    b->data = data;
    b->cap = cap;
    return 0;
}

void mr_buffer_ordinary(struct mr_buffer *b)
{
    if (b->cap)
        madvise(b->data, b->cap, MADV_NOHUGEPAGE);
}

void mr_buffer_prefault(struct mr_buffer *b)
{
    if (!b->cap)
        return;
#ifdef MADV_POPULATE_WRITE
    if (madvise(b->data, b->cap, MADV_POPULATE_WRITE) == 0)
        return;
#endif
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < b->cap; i += page)
        ((volatile uint8_t *)b->data)[i] = 0;
}

void mr_buffer_fini(struct mr_buffer *b)
{
    if (b->data)
        munmap(b->data, b->cap);
    b->data = NULL;
    b->cap = 0;
}
