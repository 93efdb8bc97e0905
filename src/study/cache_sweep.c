/* cache_sweep.c - see cache_sweep.h.  A file that cannot be opened is counted and passed over: a
 * data set with bad files is still to be measured. */
#include "cache_sweep.h"

#include <millrace/store.h>

#include <errno.h>
#include <limits.h>

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

int mr_cache_sweep_data(struct mr_cache_sweep *s, const struct mr_dataset *data, int evict,
                        int (*should_stop)(void *ctx), void *ctx)
{
    char path[PATH_MAX];
    for (uint64_t i = 0; i < mr_dataset_size(data); i++) {
        if (i % 256 == 0 && should_stop && should_stop(ctx))
            return -ECANCELED;
        if (mr_dataset_path(data, i, path, sizeof path) < 0)
            s->n_failed++;
        else
            mr_cache_sweep_file(s, path, evict);
    }
    return 0;
}

int64_t mr_cache_sweep_cached(const struct mr_cache_sweep *s)
{
    return s->n_unknown ? -1 : (int64_t)s->cached_before;
}
