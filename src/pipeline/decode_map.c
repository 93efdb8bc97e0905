/* decode_map.c - see decode_map.h.  Decoders keep buffers between images and belong to one thread,
 * so each worker has its own; there is nothing to lock. */
#include "decode_map.h"

#include "errtext.h"

#include <errno.h>
#include <stdlib.h>

struct mr_decode_map {
    unsigned n;
    struct mr_decoder *decoder[]; /* [n] */
};

int mr_decode_map_new(const struct mr_decoder_opts *opts, unsigned n_workers,
                      struct mr_decode_map **out, struct mr_error *err)
{
    struct mr_decode_map *m = calloc(1, sizeof *m + n_workers * sizeof *m->decoder);
    int r = m ? 0 : -ENOMEM;
    for (; !r && m->n < n_workers; m->n++)
        r = mr_decoder_new(opts, &m->decoder[m->n], err);
    if (!r) {
        *out = m;
        return 0;
    }
    mr_decode_map_free(m);
    return mr_fail(err, r, "no memory");
}

void mr_decode_map_free(struct mr_decode_map *m)
{
    for (unsigned i = 0; m && i < m->n; i++)
        mr_decoder_free(m->decoder[i]);
    free(m);
}

int mr_decode_map_run(struct mr_decode_map *m, unsigned worker, const uint8_t *bytes, size_t len,
                      uint64_t key, void *slot, struct mr_slot_cost *cost)
{
    struct mr_decoder_stats stats;
    int r = mr_decoder_run(m->decoder[worker], bytes, len, key, slot);
    mr_decoder_get_stats(m->decoder[worker], &stats);
    cost->map_at = stats.begin_ns;
    cost->decode_ns = stats.decode_ns;
    cost->resize_ns = stats.resize_ns;
    cost->path = (unsigned)stats.path;
    return r;
}

const char *mr_decode_map_error(const struct mr_decode_map *m, unsigned worker)
{
    return mr_decoder_error(m->decoder[worker]);
}
