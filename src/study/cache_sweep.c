/* cache_sweep.c - see cache_sweep.h.  A sample that cannot be opened is counted and passed over: a
 * data set with bad files is still to be measured. */
#include "cache_sweep.h"

#include "clock.h"
#include "order.h"
#include "sample_set.h"

#include <millrace/store.h>

#include <errno.h>
#include <stdlib.h>

#define DEFAULT_WINDOW 1024 /* the pipeline's */

/* What asking (an enum mr_cold, or -errno) or evicting has answered. */
static int count(struct mr_cache_sweep *s, int r, int evict, const struct mr_cache_state *before,
                 const struct mr_cache_state *after)
{
    if (r < 0) {
        s->n_failed++;
        return r;
    }
    s->files++;
    s->bytes += before->size_bytes;
    if (before->cached_bytes < 0)
        s->n_unknown++;
    else
        s->cached_before += (uint64_t)before->cached_bytes;
    if (evict) {
        s->n_unproven += r != MR_COLD_DATA;
        if (after->cached_bytes > 0)
            s->cached_after += (uint64_t)after->cached_bytes;
    }
    return 0;
}

int mr_cache_sweep_file(struct mr_cache_sweep *s, const char *path, int evict)
{
    struct mr_cache_state before, after = {0};
    int r =
        evict ? mr_cache_evict(path, &before, &after, NULL) : mr_cache_query(path, &before, NULL);
    return count(s, r, evict, &before, &after);
}

int mr_cache_sweep_sample(struct mr_cache_sweep *s, const struct mr_dataset *data, uint64_t i,
                          int evict)
{
    struct mr_cache_state before, after;
    int r = mr_dataset_cache(data, i, evict, &before, &after);
    return count(s, r, evict, &before, &after);
}

int mr_cache_sweep_data(struct mr_cache_sweep *s, const struct mr_dataset *data, int evict,
                        int (*should_stop)(void *ctx), void *ctx)
{
    for (uint64_t i = 0; i < mr_dataset_size(data); i++) {
        if (i % 256 == 0 && should_stop && should_stop(ctx))
            return -ECANCELED;
        mr_cache_sweep_sample(s, data, i, evict);
    }
    return 0;
}

int64_t mr_cache_sweep_batches(struct mr_cache_sweep *s, const struct mr_dataset *data,
                               const struct mr_pipeline_opts *pipe, uint64_t n_batches,
                               double box_s, int evict)
{
    struct mr_order order = {0};
    struct mr_order_opts how = {
        .n_samples = mr_dataset_size(data),
        .shuffle = pipe->shuffle,
        .window = pipe->window ? pipe->window : DEFAULT_WINDOW,
        .seed = pipe->seed,
        .batch = pipe->batch ? pipe->batch : 64,
        .rank = pipe->rank,
        .world = pipe->world ? pipe->world : 1,
        .keep_last = pipe->keep_last,
    };
    uint64_t *index = calloc(how.batch, sizeof *index), start = mr_clock_ns(), done = 0;
    int r = !index || !how.n_samples ? -ENOMEM : mr_order_init(&order, &how);
    for (; !r && done < n_batches && done < order.cut.n_batches; done++) {
        if (pipe->should_stop && pipe->should_stop(pipe->should_stop_ctx))
            r = -ECANCELED;
        if (box_s > 0 && done >= 2 && (double)(mr_clock_ns() - start) > box_s * 1e9)
            break;
        unsigned n = mr_order_batch(&order, 0, done, index);
        for (unsigned i = 0; i < n; i++)
            mr_cache_sweep_sample(s, data, index[i], evict);
    }
    mr_order_fini(&order);
    free(index);
    return r ? r : (int64_t)done;
}

int mr_cache_sweep_first(struct mr_cache_sweep *s, const struct mr_dataset *data,
                         const struct mr_pipeline_opts *pipe, uint64_t n, int evict)
{
    /* One shard's order is the same whatever the size of its batches. */
    struct mr_pipeline_opts one = *pipe;
    one.batch = one.world = 1;
    one.rank = 0;
    if (n >= mr_dataset_size(data))
        return mr_cache_sweep_data(s, data, evict, pipe->should_stop, pipe->should_stop_ctx);
    int64_t r = mr_cache_sweep_batches(s, data, &one, n, 0, evict);
    return r < 0 ? (int)r : 0;
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
