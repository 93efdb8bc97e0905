/* span_ring.c - see span_ring.h.
 *
 *   event      0 ..... 255 | 256 ... 511 | 512 ... 767 | 768 ...         numbered without end
 *   used[]         0       |      1      |      0      |    1            in which block it is
 *
 * head and tail only grow; head - tail is what is inside.  An event is written before head is
 * stored with release order and read after head is loaded with acquire order; in the other
 * direction tail gives whole blocks back in the same way.  The two counters are in different
 * cache lines, and the producer looks at the consumer's only when it needs a block.
 *
 * The first touch of memory is slow, a microsecond a page and more, so memory is not gone through
 * in a circle: the producer takes the block that came back last.  A ring of 65,536 events that is
 * emptied in time stays within the first few of its 256 blocks.
 *
 * used[n % n_blocks] is written before head passes the block's first event, and written again only
 * when tail has passed its last: the consumer never reads it while it changes. */
#include "span_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define BLOCK_SHIFT 8
#define MIN_BLOCKS  8
#define WAKE_SHARE  8
#define WAKE_EVENTS 2048 /* or sooner: few enough to stay in a cache */

int mr_span_ring_init(struct mr_span_ring *r, size_t n)
{
    unsigned shift = 1;
    size_t cap = MIN_BLOCKS << shift, bytes;
    while (cap < n && cap <= SIZE_MAX / 4)
        cap *= 2;
    while (shift < BLOCK_SHIFT && cap >> shift > MIN_BLOCKS)
        shift++;
    size_t n_blocks = cap >> shift;
    if (n_blocks > UINT32_MAX / 2 || __builtin_mul_overflow(cap, sizeof *r->slot, &bytes))
        return -ENOMEM;
    uint32_t *blocks = malloc(2 * n_blocks * sizeof *blocks);
    if (!blocks)
        return -ENOMEM;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        free(blocks);
        return -ENOMEM;
    }
    r->slot = at;
    r->shift = shift;
    r->n_blocks = r->n_free = (uint32_t)n_blocks;
    r->used = blocks;
    r->free = blocks + n_blocks;
    for (uint32_t i = 0; i < r->n_free; i++)
        r->free[i] = r->n_free - 1 - i;
    r->room_end = r->n_back = 0;
    r->wake_mask = (cap / WAKE_SHARE < WAKE_EVENTS ? cap / WAKE_SHARE : WAKE_EVENTS) - 1;
    atomic_store(&r->head, 0);
    atomic_store(&r->tail, 0);
    atomic_store(&r->dropped, 0);
    return 0;
}

void mr_span_ring_fini(struct mr_span_ring *r)
{
    if (r->slot)
        munmap(r->slot, ((size_t)r->n_blocks << r->shift) * sizeof *r->slot);
    free(r->used);
    r->slot = NULL;
    r->used = r->free = NULL;
    r->n_blocks = 0;
}

int mr_span_ring_more(struct mr_span_ring *r)
{
    uint64_t n_done = atomic_load_explicit(&r->tail, memory_order_acquire) >> r->shift;
    for (; r->n_back < n_done; r->n_back++)
        r->free[r->n_free++] = r->used[r->n_back & (r->n_blocks - 1)];
    if (!r->n_free) {
        uint64_t n = atomic_load_explicit(&r->dropped, memory_order_relaxed);
        atomic_store_explicit(&r->dropped, n + 1, memory_order_relaxed);
        return 0;
    }
    uint32_t block = r->free[--r->n_free];
    r->used[(r->room_end >> r->shift) & (r->n_blocks - 1)] = block;
    r->block = &r->slot[(size_t)block << r->shift];
    r->room_end += (uint64_t)1 << r->shift;
    return 1;
}

size_t mr_span_ring_peek(struct mr_span_ring *r, size_t max, const struct mr_event **first)
{
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    uint64_t n = atomic_load_explicit(&r->head, memory_order_acquire) - tail;
    if (!n)
        return 0;
    uint64_t in_block = tail & ((1u << r->shift) - 1), to_end = (1u << r->shift) - in_block;
    uint32_t block = r->used[(tail >> r->shift) & (r->n_blocks - 1)];
    n = n > to_end ? to_end : n;
    *first = &r->slot[((size_t)block << r->shift) + in_block];
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
