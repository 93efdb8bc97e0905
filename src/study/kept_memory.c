/* kept_memory.c - see kept_memory.h.  A list of blocks; one that is free and has the size that is
 * asked for is taken.  The same pipeline asks for the same sizes.
 *
 * Lock: k->mu guards the list. */
#include "kept_memory.h"

#include "buffer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define TOUCHED ((size_t)64 << 20) /* of a new block, as the pipeline does with its own memory */

struct block {
    struct mr_buffer memory;
    size_t size; /* that was asked for */
    int is_used;
    struct block *next;
};

struct mr_kept_memory {
    pthread_mutex_t mu;
    struct block *first;
};

int mr_kept_memory_new(struct mr_kept_memory **out)
{
    struct mr_kept_memory *k = calloc(1, sizeof *k);
    if (!k)
        return -ENOMEM;
    pthread_mutex_init(&k->mu, NULL);
    *out = k;
    return 0;
}

void mr_kept_memory_free(struct mr_kept_memory *k)
{
    while (k && k->first) {
        struct block *b = k->first;
        k->first = b->next;
        mr_buffer_fini(&b->memory);
        free(b);
    }
    if (k)
        pthread_mutex_destroy(&k->mu);
    free(k);
}

/* With the lock held. */
static void *take(struct mr_kept_memory *k, size_t size)
{
    for (struct block *b = k->first; b; b = b->next)
        if (!b->is_used && b->size == size) {
            b->is_used = 1;
            return b->memory.data;
        }
    return NULL;
}

static void *make(struct mr_kept_memory *k, size_t size)
{
    struct block *b = calloc(1, sizeof *b);
    if (!b || mr_buffer_reserve(&b->memory, size)) {
        free(b);
        return NULL;
    }
    struct mr_buffer touched = {b->memory.data, size < TOUCHED ? size : TOUCHED};
    mr_buffer_prefault(&touched);
    b->size = size;
    b->is_used = 1;
    pthread_mutex_lock(&k->mu);
    b->next = k->first;
    k->first = b;
    pthread_mutex_unlock(&k->mu);
    return b->memory.data;
}

static void *alloc(void *ctx, size_t size, size_t alignment)
{
    struct mr_kept_memory *k = ctx;
    (void)alignment; /* pages */
    pthread_mutex_lock(&k->mu);
    void *memory = take(k, size);
    pthread_mutex_unlock(&k->mu);
    return memory ? memory : make(k, size);
}

static void give_back(void *ctx, void *memory, size_t size)
{
    struct mr_kept_memory *k = ctx;
    (void)size;
    pthread_mutex_lock(&k->mu);
    for (struct block *b = k->first; b; b = b->next)
        if (b->memory.data == memory)
            b->is_used = 0;
    pthread_mutex_unlock(&k->mu);
}

struct mr_allocator mr_kept_memory_allocator(struct mr_kept_memory *k)
{
    return (struct mr_allocator){alloc, give_back, k};
}
