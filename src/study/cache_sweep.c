/* cache_sweep.c - see cache_sweep.h.  A file that cannot be opened is counted and passed over: a
 * data set with bad files is still to be measured. */
#include "cache_sweep.h"

#include "order.h"

#include <millrace/store.h>

#include <errno.h>
#include <limits.h>

#define AT_ONCE        64
#define DEFAULT_WINDOW 1024 /* the pipeline's */

int mr_cache_sweep_file(struct mr_cache_sweep *s, const char *path, int evict)
{
    struct mr_cache_state before, after;
    int r = evict ? mr_cache_evict(path, &before, &after) : mr_cache_query(path, &before);
    if (r < 0) {
        s->n_failed++;
        return r;
    }
    s->files++;
    s->bytes += before.size_bytes;
    if (before.cached_bytes < 0)
        s->n_unknown++;
    else
        s->cached_before += (uint64_t)before.cached_bytes;
    if (evict) {
        s->n_unproven += r != MR_COLD_DATA;
        if (after.cached_bytes > 0)
            s->cached_after += (uint64_t)after.cached_bytes;
    }
    return 0;
}

static void sweep_sample(struct mr_cache_sweep *s, const struct mr_dataset *data, uint64_t i,
                         int evict)
{
    char path[PATH_MAX];
    if (mr_dataset_path(data, i, path, sizeof path) < 0)
        s->n_failed++;
    else
        mr_cache_sweep_file(s, path, evict);
}

int mr_cache_sweep_data(struct mr_cache_sweep *s, const struct mr_dataset *data, int evict,
                        int (*should_stop)(void *ctx), void *ctx)
{
    for (uint64_t i = 0; i < mr_dataset_size(data); i++) {
        if (i % 256 == 0 && should_stop && should_stop(ctx))
            return -ECANCELED;
        sweep_sample(s, data, i, evict);
    }
    return 0;
}

int mr_cache_sweep_first(struct mr_cache_sweep *s, const struct mr_dataset *data,
                         const struct mr_pipeline_opts *pipe, uint64_t n, int evict)
{
    /* One shard's order is the same whatever the size of its batches. */
    struct mr_order_opts o = {.n_samples = mr_dataset_size(data),
                              .shuffle = pipe->shuffle,
                              .window = pipe->window ? pipe->window : DEFAULT_WINDOW,
                              .seed = pipe->seed,
                              .batch = AT_ONCE,
                              .world = 1,
                              .keep_last = 1};
    struct mr_order order;
    uint64_t index[AT_ONCE];
    if (n >= o.n_samples)
        return mr_cache_sweep_data(s, data, evict, pipe->should_stop, pipe->should_stop_ctx);
    int r = mr_order_init(&order, &o);
    for (uint64_t i = 0; !r && i < n; i++) {
        if (i % AT_ONCE == 0) {
            mr_order_batch(&order, 0, i / AT_ONCE, index);
            if (pipe->should_stop && pipe->should_stop(pipe->should_stop_ctx))
                r = -ECANCELED;
        }
        if (!r)
            sweep_sample(s, data, index[i % AT_ONCE], evict);
    }
    mr_order_fini(&order);
    return r;
}

void mr_cache_sweep_merge(struct mr_cache_sweep *into, const struct mr_cache_sweep *from)
{
    into->files += from->files;
    into->bytes += from->bytes;
    into->cached_before += from->cached_before;
    into->cached_after += from->cached_after;
    into->n_unknown += from->n_unknown;
    into->n_unproven += from->n_unproven;
    into->n_failed += from->n_failed;
}

int64_t mr_cache_sweep_cached(const struct mr_cache_sweep *s)
{
    return s->n_unknown ? -1 : (int64_t)s->cached_before;
}
