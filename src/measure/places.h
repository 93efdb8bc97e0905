/* places.h - where operation number i of a pattern reads or writes, and how much. */
#ifndef MR_PLACES_H
#define MR_PLACES_H

#include "size_split.h"

struct mr_places {
    uint64_t file_bytes;
    uint32_t align; /* of places and sizes at least: what direct I/O wants */
    uint64_t run;   /* another run, other random places */
    struct mr_size_split split;
};

/* Both fit as mr_raw_job.place, with a struct mr_places as context. */

/* One after the other, each of the first size of the split; the file is a multiple of it long. */
void mr_place_in_order(const void *places, uint64_t i, uint64_t *offset, uint32_t *len);
/* Sizes by their shares, places even over the file: fio's bssplit with norandommap. */
void mr_place_at_random(const void *places, uint64_t i, uint64_t *offset, uint32_t *len);

#endif
