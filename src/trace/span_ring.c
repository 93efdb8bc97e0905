/* span_ring.c - see span_ring.h.
 *
 * head and tail only grow; head - tail is what is inside, at most mask + 1.  An event is written
 * before head is stored with release order and read after head is loaded with acquire order; in the
 * other direction tail gives the slots back in the same way.  The two counters stand in different
 * cache lines, and the producer looks at the consumer's only when the ring seems full. */
#include "span_ring.h"

#include <errno.h>
#include <sys/mman.h>

int mr_span_ring_init(struct mr_span_ring *r, size_t n)
{
    size_t cap = 16, bytes;
    while (cap < n && cap <= SIZE_MAX / 4)
        cap *= 2;
    if (__builtin_mul_overflow(cap, sizeof *r->slot, &bytes))
        return -ENOMEM;
    /* First touch is slow on many machines; it is paid here and not while spans are taken. */
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
                    -1, 0);
    if (at == MAP_FAILED)
        return -ENOMEM;
    r->slot = at;
    r->mask = cap - 1;
    r->seen_tail = 0;
    atomic_store(&r->head, 0);
    atomic_store(&r->tail, 0);
    atomic_store(&r->dropped, 0);
    return 0;
}

void mr_span_ring_fini(struct mr_span_ring *r)
{
    if (r->slot)
        munmap(r->slot, (r->mask + 1) * sizeof *r->slot);
    r->slot = NULL;
    r->mask = 0;
}

size_t mr_span_ring_peek(struct mr_span_ring *r, size_t max, const struct mr_event **first)
{
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    uint64_t n = atomic_load_explicit(&r->head, memory_order_acquire) - tail;
    uint64_t to_end = r->mask + 1 - (tail & r->mask);
    n = n > to_end ? to_end : n;
    *first = &r->slot[tail & r->mask];
    return n > max ? max : (size_t)n;
}

void mr_span_ring_took(struct mr_span_ring *r, size_t n)
{
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    atomic_store_explicit(&r->tail, tail + n, memory_order_release);
}

void mr_span_ring_clear(struct mr_span_ring *r)
{
    atomic_store_explicit(&r->tail, atomic_load_explicit(&r->head, memory_order_acquire),
                          memory_order_release);
}
