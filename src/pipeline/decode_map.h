/* decode_map.h - the pipeline's own map: image files to pixels, one decoder per worker. */
#ifndef MR_DECODE_MAP_H
#define MR_DECODE_MAP_H

#include <millrace/image.h>

#include "batch_pool.h"

struct mr_decode_map;

int mr_decode_map_new(const struct mr_decoder_opts *opts, unsigned n_workers,
                      struct mr_decode_map **out, struct mr_error *err);
void mr_decode_map_free(struct mr_decode_map *m);

/* Decode into the slot and add to its cost; 0 or -errno. */
int mr_decode_map_run(struct mr_decode_map *m, unsigned worker, const uint8_t *bytes, size_t len,
                      uint64_t key, void *slot, struct mr_slot_cost *cost);
/* Words for this worker's last failure. */
const char *mr_decode_map_error(const struct mr_decode_map *m, unsigned worker);

#endif
