/* batch_pool.c - memory of the batches.
 *
 *   with a map:      slab = | slot 0 | slot 1 | ... |       map_bytes each, no gap: one tensor
 *   without a map:   slab = | slot 0 | slot 1 | ... |       FILE_SLOT each, and a file that is
 *                                                            larger has a buffer of its own in
 * big[]
 *
 * Slabs are touched when the pool is made: first touch is slow, and a measured loop must not pay
 * for it.  A big buffer stays with its slot for the next large file, unless it is so large that
 * keeping one in every slot would multiply: then it is freed when the batch comes back.
 *
 * Lock: pool->mu guards the free list, reference counts and a batch's notes.  It is not held while
 * memory is allocated or touched. */
#include "batch_pool.h"

#include "errtext.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_SLOT   ((size_t)256 << 10) /* most photos fit */
#define FILE_BUDGET ((size_t)256 << 20) /* all slabs together, unless slots became too small */
#define SMALLEST    ((size_t)16 << 10)
#define BIG_TO_KEEP ((size_t)4 << 20)

void mr_batch_pool_count(struct mr_batch_pool *pool, size_t before, size_t after)
{
    if (before == after)
        return;
    size_t now = atomic_fetch_add(&pool->memory, after - before) + (after - before);
    size_t peak = atomic_load(&pool->memory_peak);
    while (now > peak && !atomic_compare_exchange_weak(&pool->memory_peak, &peak, now))
        ;
}

static void pool_free(struct mr_batch_pool *pool)
{
    for (unsigned i = 0; pool->all && i < pool->n; i++) {
        struct mr_work_batch *b = &pool->all[i];
        for (unsigned s = 0; b->big && s < pool->batch; s++)
            mr_buffer_fini(&b->big[s]);
        mr_buffer_fini(&b->slab);
        free(b->big);
        free(b->bad);
        free(b->index);
        free(b->read_ns);
        free(b->pub.samples);
    }
    free(pool->all);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mu);
    free(pool);
}

static int init_batch(struct mr_batch_pool *pool, struct mr_work_batch *b)
{
    size_t slab_bytes;
    b->pool = pool;
    b->index = calloc(pool->batch, sizeof *b->index);
    b->read_ns = calloc(pool->batch, sizeof *b->read_ns);
    b->pub.samples = calloc(pool->batch, sizeof *b->pub.samples);
    b->big = pool->whole_files ? calloc(pool->batch, sizeof *b->big) : NULL;
    if (!b->index || !b->read_ns || !b->pub.samples || (pool->whole_files && !b->big))
        return -ENOMEM;
    if (__builtin_mul_overflow(pool->slot_bytes, pool->batch, &slab_bytes) ||
        mr_buffer_reserve(&b->slab, slab_bytes))
        return -ENOMEM;
    mr_buffer_prefault(&b->slab);
    mr_batch_pool_count(pool, 0, b->slab.cap);
    if (!pool->whole_files) {
        b->pub.data = b->slab.data;
        b->pub.sample_bytes = pool->slot_bytes;
    }
    b->next_free = pool->free;
    pool->free = b;
    return 0;
}

static size_t file_slot_bytes(unsigned n, unsigned batch)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t share = FILE_BUDGET / ((size_t)n * batch) / page * page;
    return share > FILE_SLOT ? FILE_SLOT : share < SMALLEST ? SMALLEST : share;
}

int mr_batch_pool_new(unsigned n, unsigned batch, size_t map_bytes, struct mr_batch_pool **out,
                      struct mr_error *err)
{
    struct mr_batch_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return mr_fail(err, -ENOMEM, "no memory");
    pthread_mutex_init(&pool->mu, NULL);
    pthread_cond_init(&pool->work, NULL);
    pool->refs = 1;
    pool->n = n;
    pool->batch = batch;
    pool->whole_files = !map_bytes;
    pool->slot_bytes = map_bytes ? map_bytes : file_slot_bytes(n, batch);
    pool->all = calloc(n, sizeof *pool->all);
    int r = pool->all ? 0 : -ENOMEM;
    for (unsigned i = 0; !r && i < n; i++)
        r = init_batch(pool, &pool->all[i]);
    if (r) {
        mr_fail(err, r, "no memory for %u batches of %u slots of %zu bytes", n, batch,
                pool->slot_bytes);
        pool_free(pool);
        return r;
    }
    *out = pool;
    return 0;
}

void mr_batch_pool_unref(struct mr_batch_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->mu);
    unsigned left = --pool->refs;
    pthread_mutex_unlock(&pool->mu);
    if (!left)
        pool_free(pool);
}

struct mr_work_batch *mr_batch_pool_take(struct mr_batch_pool *pool)
{
    struct mr_work_batch *b = pool->free;
    if (b) {
        pool->free = b->next_free;
        b->ready = b->failed = 0;
        b->n_bad = 0;
    }
    return b;
}

void mr_batch_pool_give(struct mr_batch_pool *pool, struct mr_work_batch *b)
{
    b->next_free = pool->free;
    pool->free = b;
}

uint8_t *mr_slot_room(struct mr_work_batch *b, unsigned slot, size_t size, const uint8_t *from,
                      size_t keep, size_t *cap)
{
    struct mr_batch_pool *pool = b->pool;
    uint8_t *small = b->slab.data + slot * pool->slot_bytes;
    struct mr_buffer *big = &b->big[slot];
    if (size <= pool->slot_bytes) {
        *cap = pool->slot_bytes;
        return small;
    }
    size_t before = big->cap;
    int carried = keep && from == big->data;
    if (mr_buffer_reserve(big, size))
        return NULL;
    mr_batch_pool_count(pool, before, big->cap);
    if (keep && !carried)
        memcpy(big->data, from, keep);
    *cap = big->cap;
    return big->data;
}

static void drop_huge_buffers(struct mr_work_batch *b)
{
    struct mr_batch_pool *pool = b->pool;
    for (unsigned s = 0; b->big && s < pool->batch; s++)
        if (b->big[s].cap > BIG_TO_KEEP) {
            mr_batch_pool_count(pool, b->big[s].cap, 0);
            mr_buffer_fini(&b->big[s]);
        }
}

struct mr_batch *mr_batch_ref(struct mr_batch *pub)
{
    atomic_fetch_add(&((struct mr_work_batch *)pub)->refs, 1);
    return pub;
}

void mr_batch_unref(struct mr_batch *pub)
{
    struct mr_work_batch *b = (struct mr_work_batch *)pub;
    if (!b || atomic_fetch_sub(&b->refs, 1) != 1)
        return;
    struct mr_batch_pool *pool = b->pool;
    drop_huge_buffers(b);
    pthread_mutex_lock(&pool->mu);
    mr_batch_pool_give(pool, b);
    pool->n_out--;
    unsigned left = --pool->refs;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mu);
    if (!left)
        pool_free(pool);
}
