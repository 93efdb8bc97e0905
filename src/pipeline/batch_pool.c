/* batch_pool.c - memory of the batches.
 *
 *   with a map:      slab   = the fields, each one tensor     batch_layout.h
 *   without a map:   leaves = | file | file | ..| file |..|   about LEAF bytes each, handed out as
 *                                                             files are begun
 *
 * Leaves belong to no batch.  One that needs more takes the leaf that was given back last, so the
 * second half of a batch lies where the one before lay that the consumer has just let go.  A
 * consumer that is never behind thus sees little more memory than one batch takes, whatever the
 * pool has, and the CPU's caches see no more either: copying a cached file to where nobody has been
 * for long takes longer than all that the pipeline adds to it.
 *
 * Files lie close together for the same reason.  One whose size was not known when it was begun has
 * the room of most files; if that is far too much, it is moved when it is there, and the next such
 * file of the batch gets the room.  One for which the batch's leaves have no room left
 * has a buffer of its own in big[].
 *
 * Memory is touched when the pool is made: first touch is slow, and a measured loop must not pay
 * for it.  Of the leaves that holds for TOUCHED bytes; those beyond are handed out only when no
 * other is free, and so touched only if the files need them: what a pool takes is TOUCHED, or in
 * proportion to the bytes of its files.  For the same reason the memory of large files goes round:
 * a batch that comes back leaves it as spare for whichever slot needs it next, except what is so
 * large or so much that keeping it would be waste.
 *
 * Lock: pool->mu guards the free lists, reference counts and a batch's notes.  It is not held while
 * memory is allocated or touched.  The room of leaves is handed out by an atomic counter; a slot's
 * own fields (place, big, cost) belong to the worker that fills it. */
#include "batch_pool.h"

#include "clock.h"
#include "errtext.h"
#include "whole_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_SLOT   ((size_t)256 << 10) /* most photos fit, even when their size is not known */
#define FILE_BUDGET ((size_t)256 << 20) /* all leaves together, unless slots became too small */
#define TOUCHED     ((size_t)64 << 20)  /* of them, at opening */
#define LEAF        ((size_t)2 << 20)
#define SMALLEST    ((size_t)16 << 10)
#define LOOSE       4 /* times a file's size: a room that is as large is for another one */
#define BIG_TO_KEEP ((size_t)16 << 20)
#define MOST_SPARE  ((size_t)256 << 20)
#define MOST_LOOKS  64  /* for spare memory, with the lock held */
#define TRIES       128 /* of the lock, some tens of nanoseconds apart */

void mr_batch_pool_count(struct mr_batch_pool *pool, size_t before, size_t after)
{
    if (before == after)
        return;
    size_t now = atomic_fetch_add(&pool->memory, after - before) + (after - before);
    size_t peak = atomic_load(&pool->memory_peak);
    while (now > peak && !atomic_compare_exchange_weak(&pool->memory_peak, &peak, now))
        ;
}

static void free_big(struct mr_batch_pool *pool, struct mr_big_file *big)
{
    if (!big)
        return;
    mr_batch_pool_count(pool, big->buf.cap, 0);
    mr_batch_memory_fini(&pool->allocator, &big->buf);
    free(big);
}

static void pool_free(struct mr_batch_pool *pool)
{
    while (pool->spare) {
        struct mr_big_file *big = pool->spare;
        pool->spare = big->next;
        free_big(pool, big);
    }
    for (unsigned i = 0; pool->all && i < pool->n; i++) {
        struct mr_work_batch *b = &pool->all[i];
        for (unsigned s = 0; b->big && s < pool->batch; s++)
            free_big(pool, b->big[s]);
        mr_batch_memory_fini(&pool->allocator, &b->slab);
        free(b->field);
        free(b->leaf);
        free(b->big);
        free(b->place);
        free(b->bad);
        free(b->index);
        free(b->cost);
        free(b->pub.samples);
    }
    mr_batch_memory_fini(&pool->allocator, &pool->leaves);
    free(pool->free_leaf);
    free(pool->all);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mu);
    free(pool);
}

static int init_slab(struct mr_batch_pool *pool, struct mr_work_batch *b)
{
    const struct mr_batch_layout *l = &pool->layout;
    b->field = calloc(l->n, sizeof *b->field);
    if (!b->field || mr_batch_memory_reserve(&pool->allocator, &b->slab, l->slab_bytes))
        return -ENOMEM;
    mr_batch_memory_touch(&pool->allocator, &b->slab);
    mr_batch_pool_count(pool, 0, b->slab.cap);
    mr_batch_layout_set(l, b->slab.data, b->field);
    b->label = b->field[l->n - 1].data;
    b->pub.data = l->sample_bytes ? b->slab.data : NULL;
    b->pub.sample_bytes = l->sample_bytes;
    b->pub.fields = b->field;
    b->pub.n_fields = l->n;
    return 0;
}

static int init_batch(struct mr_batch_pool *pool, struct mr_work_batch *b)
{
    b->pool = pool;
    b->index = calloc(pool->batch, sizeof *b->index);
    b->cost = calloc(pool->batch, sizeof *b->cost);
    b->pub.samples = calloc(pool->batch, sizeof *b->pub.samples);
    if (!b->index || !b->cost || !b->pub.samples)
        return -ENOMEM;
    if (pool->whole_files) {
        b->leaf = calloc(pool->leaves_each, sizeof *b->leaf);
        b->big = calloc(pool->batch, sizeof *b->big);
        b->place = calloc(pool->batch, sizeof *b->place);
        if (!b->leaf || !b->big || !b->place)
            return -ENOMEM;
    }
    if (init_slab(pool, b))
        return -ENOMEM;
    b->next_free = pool->free;
    pool->free = b;
    return 0;
}

/* Leaves for all batches, each a whole number of slots. */
static int init_leaves(struct mr_batch_pool *pool)
{
    size_t slots = LEAF / pool->slot_bytes, bytes, n;
    slots = slots > pool->batch ? pool->batch : slots;
    pool->leaf_bytes = slots * pool->slot_bytes;
    pool->leaves_each = (unsigned)((pool->batch + slots - 1) / slots);
    if (__builtin_mul_overflow((size_t)pool->leaves_each, pool->n, &n) ||
        __builtin_mul_overflow(n, pool->leaf_bytes, &bytes))
        return -ENOMEM;
    pool->free_leaf = calloc(n, sizeof *pool->free_leaf);
    if (!pool->free_leaf || mr_batch_memory_reserve(&pool->allocator, &pool->leaves, bytes))
        return -ENOMEM;
    size_t n_touched = TOUCHED / pool->leaf_bytes;
    n_touched = n_touched < n ? n_touched : n;
    struct mr_buffer touched = {pool->leaves.data, n_touched * pool->leaf_bytes};
    mr_batch_memory_touch(&pool->allocator, &touched);
    mr_batch_pool_count(pool, 0, touched.cap);
    for (size_t i = 0; i < n; i++)
        pool->free_leaf[n - 1 - i] = pool->leaves.data + i * pool->leaf_bytes;
    pool->n_free_leaves = (unsigned)n;
    pool->n_fresh = (unsigned)(n - n_touched);
    return 0;
}

static size_t file_slot_bytes(unsigned n, unsigned batch)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t share = FILE_BUDGET / ((size_t)n * batch) / page * page;
    return share > FILE_SLOT ? FILE_SLOT : share < SMALLEST ? SMALLEST : share;
}

/* The lock is held for microseconds, while a batch is opened: trying for as long is cheaper than to
 * sleep and be woken. */
void mr_batch_pool_lock(struct mr_batch_pool *pool)
{
    for (unsigned i = 0; i < TRIES; i++) {
        if (!pthread_mutex_trylock(&pool->mu))
            return;
        mr_clock_pause();
    }
    pthread_mutex_lock(&pool->mu);
}

int mr_batch_pool_new(unsigned n, const struct mr_pipeline_opts *o, struct mr_batch_pool **out,
                      struct mr_error *err)
{
    struct mr_batch_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return mr_fail(err, -ENOMEM, "no memory");
    int r = mr_batch_layout_init(&pool->layout, o, err);
    if (r) {
        free(pool);
        return r;
    }
    unsigned batch = o->batch;
    size_t sample_bytes = pool->layout.sample_bytes;
    pthread_mutex_init(&pool->mu, NULL);
    pthread_cond_init(&pool->work, NULL);
    pool->refs = 1;
    pool->pid = getpid();
    pool->allocator = o->allocator;
    pool->n = n;
    pool->batch = batch;
    pool->whole_files = !sample_bytes;
    pool->align = o->direct ? MR_DIRECT_ALIGN : MR_CACHE_LINES;
    pool->slot_bytes = sample_bytes ? sample_bytes : file_slot_bytes(n, batch);
    pool->all = aligned_alloc(MR_CACHE_LINES, n * sizeof *pool->all);
    r = pool->all ? 0 : -ENOMEM;
    if (!r)
        memset(pool->all, 0, n * sizeof *pool->all);
    if (!r && pool->whole_files)
        r = init_leaves(pool);
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
        atomic_store_explicit(&b->used, 0, memory_order_relaxed);
        if (b->place)
            memset(b->place, 0, pool->batch * sizeof *b->place);
    }
    return b;
}

void mr_batch_pool_give(struct mr_batch_pool *pool, struct mr_work_batch *b)
{
    unsigned n = atomic_exchange_explicit(&b->n_leaves, 0, memory_order_relaxed);
    for (unsigned i = 0; i < n; i++) /* the one that was written last is the first to be taken */
        pool->free_leaf[pool->n_free_leaves++] = b->leaf[i];
    b->next_free = pool->free;
    pool->free = b;
}

/* The spare memory that fits: the first that is large enough and not twice as large, or else, of
 * the first few, the smallest that is large enough or the largest. */
static struct mr_big_file *take_spare(struct mr_batch_pool *pool, size_t size)
{
    struct mr_big_file **best = NULL;
    pthread_mutex_lock(&pool->mu);
    unsigned n = 0;
    for (struct mr_big_file **at = &pool->spare; *at && n < MOST_LOOKS; at = &(*at)->next, n++) {
        size_t cap = (*at)->buf.cap, best_cap = best ? (*best)->buf.cap : 0;
        int better = best_cap < size ? cap > best_cap : cap >= size && cap < best_cap;
        if (!best || better)
            best = at;
        if (cap >= size && cap / 2 < size)
            break;
    }
    struct mr_big_file *big = best ? *best : NULL;
    if (big) {
        *best = big->next;
        pool->spare_bytes -= big->buf.cap;
    }
    pthread_mutex_unlock(&pool->mu);
    return big ? big : calloc(1, sizeof *big);
}

/* Let the batch have leaf number i; 0 when it may not, or when there is none. */
static int add_leaf(struct mr_work_batch *b, size_t i)
{
    struct mr_batch_pool *pool = b->pool;
    mr_batch_pool_lock(pool);
    unsigned n = atomic_load_explicit(&b->n_leaves, memory_order_relaxed);
    if (n == i && n < pool->leaves_each && pool->n_free_leaves) {
        b->leaf[n++] = pool->free_leaf[--pool->n_free_leaves];
        if (pool->n_free_leaves < pool->n_fresh) {
            pool->n_fresh = pool->n_free_leaves;
            mr_batch_pool_count(pool, 0, pool->leaf_bytes);
        }
        atomic_store_explicit(&b->n_leaves, n, memory_order_release);
    }
    pthread_mutex_unlock(&pool->mu);
    return i < n;
}

static size_t rounded(const struct mr_batch_pool *pool, size_t size)
{
    return (size + pool->align - 1) & ~(pool->align - 1);
}

static uint8_t *address_of(const struct mr_work_batch *b, const struct mr_slot_place *place)
{
    size_t leaf = b->pool->leaf_bytes;
    return b->leaf[place->at / leaf] + place->at % leaf;
}

/* The next `size` bytes that lie in one leaf; 0 when there is no such room left. */
static int take_place(struct mr_work_batch *b, size_t size, struct mr_slot_place *out)
{
    size_t at = atomic_load_explicit(&b->used, memory_order_relaxed), leaf = b->pool->leaf_bytes;
    size_t cap = rounded(b->pool, size), from;
    if (size > leaf || cap > leaf)
        return 0;
    do {
        size_t left = leaf - at % leaf; /* that of the leaf begun, or a whole one */
        from = left < cap ? at + left : at;
        if (from / leaf >= atomic_load_explicit(&b->n_leaves, memory_order_acquire) &&
            !add_leaf(b, from / leaf))
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(&b->used, &at, from + cap, memory_order_relaxed,
                                                    memory_order_relaxed));
    *out = (struct mr_slot_place){from, cap};
    return 1;
}

uint8_t *mr_slot_room(struct mr_work_batch *b, unsigned slot, size_t size, const uint8_t *from,
                      size_t keep, size_t *cap)
{
    struct mr_batch_pool *pool = b->pool;
    struct mr_slot_place *place = &b->place[slot];
    if (size <= place->cap || (!keep && take_place(b, size, place))) {
        *cap = place->cap;
        return address_of(b, place);
    }
    if (!b->big[slot])
        b->big[slot] = take_spare(pool, size);
    struct mr_big_file *big = b->big[slot];
    if (!big)
        return NULL;
    size_t before = big->buf.cap;
    int carried = keep && from == big->buf.data;
    if (mr_batch_memory_reserve(&pool->allocator, &big->buf, size))
        return NULL;
    mr_batch_pool_count(pool, before, big->buf.cap);
    if (keep && !carried)
        memcpy(big->buf.data, from, keep);
    *cap = big->buf.cap;
    return big->buf.data;
}

uint8_t *mr_slot_pack(struct mr_work_batch *b, unsigned slot, const uint8_t *file, size_t len,
                      struct mr_slot_place *spare)
{
    struct mr_slot_place *place = &b->place[slot], packed;
    if (LOOSE * rounded(b->pool, len) > place->cap || file != address_of(b, place) ||
        !take_place(b, len, &packed))
        return NULL;
    uint8_t *at = address_of(b, &packed);
    memcpy(at, file, len);
    *spare = *place;
    *place = packed;
    return at;
}

int mr_slot_lend(struct mr_work_batch *b, unsigned slot, const struct mr_slot_place *room)
{
    if (b->place[slot].cap)
        return 0;
    b->place[slot] = *room;
    return 1;
}

/* What large files used becomes spare, or is freed. */
static void give_big_back(struct mr_work_batch *b)
{
    struct mr_batch_pool *pool = b->pool;
    for (unsigned s = 0; b->big && s < pool->batch; s++) {
        struct mr_big_file *big = b->big[s];
        if (!big)
            continue;
        b->big[s] = NULL;
        pthread_mutex_lock(&pool->mu);
        int keep = big->buf.cap <= BIG_TO_KEEP && pool->spare_bytes + big->buf.cap <= MOST_SPARE;
        if (keep) {
            big->next = pool->spare;
            pool->spare = big;
            pool->spare_bytes += big->buf.cap;
        }
        pthread_mutex_unlock(&pool->mu);
        if (!keep)
            free_big(pool, big);
    }
}

size_t mr_batch_pool_bytes(struct mr_batch_pool *pool)
{
    pthread_mutex_lock(&pool->mu);
    size_t n_used = (size_t)pool->leaves_each * pool->n - pool->n_fresh;
    pthread_mutex_unlock(&pool->mu);
    size_t sum = n_used * pool->leaf_bytes;
    for (unsigned i = 0; i < pool->n; i++)
        sum += pool->all[i].slab.cap;
    return sum;
}

const struct mr_field *mr_batch_field(const struct mr_batch *b, const char *name)
{
    for (unsigned i = 0; i < b->n_fields; i++)
        if (!strcmp(b->fields[i].name, name))
            return &b->fields[i];
    return NULL;
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
    if (pool->pid != getpid())
        return; /* a child's copy: the lock may be held for ever, and the memory goes with it */
    give_big_back(b);
    mr_batch_pool_lock(pool);
    mr_batch_pool_give(pool, b);
    pool->n_out--;
    unsigned left = --pool->refs;
    pthread_mutex_unlock(&pool->mu);
    if (!left)
        pool_free(pool);
}
