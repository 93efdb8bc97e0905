/* places.c - see places.h.  Draws are functions of (run, operation), so operations can be made in
 * any order by any thread.
 *
 * Random reads are those of fio's bssplit without its map of blocks already read: each operation
 * draws its size by share of operations, and its place evenly among the multiples of the smallest
 * size at which it fits into the file. */
#include "places.h"

#include "draw.h"

void mr_place_in_order(const void *places, uint64_t i, uint64_t *offset, uint32_t *len)
{
    const struct mr_places *p = places;
    *len = p->split.bytes[0];
    *offset = i * *len;
}

void mr_place_at_random(const void *places, uint64_t i, uint64_t *offset, uint32_t *len)
{
    const struct mr_places *p = places;
    uint32_t unit = mr_size_split_min(&p->split);
    uint32_t n = mr_size_split_draw(&p->split, mr_draw(1, MR_DRAW_PLACE, p->run, i, 0));
    unit = unit > p->align ? unit : p->align;
    *len = (n + p->align - 1) / p->align * p->align;
    uint64_t n_places = (p->file_bytes - *len) / unit + 1;
    *offset = mr_below(mr_draw(1, MR_DRAW_PLACE, p->run, i, 1), n_places) * unit;
}
