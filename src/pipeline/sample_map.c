/* sample_map.c - from a sample's bytes to its slot: payload, then decoding or a callback. */
#include "pipeline_state.h"

#include "clock.h"

#include <millrace/trace.h>

static int run_callback(struct mr_worker *w, const struct mr_task *t, const struct mr_payload *in,
                        uint64_t key, uint8_t *slot)
{
    struct mr_pipeline *p = w->p;
    const struct mr_batch_layout *l = &p->pool->layout;
    struct mr_slot_cost *cost = &t->batch->cost[t->slot];
    void *field[MR_MAX_FIELDS];
    for (unsigned i = 0; i + 1 < l->n; i++)
        field[i] = t->batch->slab.data + l->at[i] + t->slot * l->bytes[i];
    struct mr_map_input input = {
        .bytes = in->bytes,
        .len = in->len,
        .index = t->index,
        .key = key,
        .label = in->label,
        .worker = w->number,
        .field = field,
    };
    cost->map_at = mr_trace_now();
    int r = p->o.map(p->o.map_ctx, &input, slot);
    if (cost->map_at)
        cost->map_ns = mr_clock_ns() - cost->map_at;
    return r < 0 ? r : 0;
}

int mr_sample_map(struct mr_worker *w, struct mr_task *t, const uint8_t *bytes, size_t n,
                  uint8_t **data, size_t *len, enum mr_stage *stage)
{
    struct mr_pipeline *p = w->p;
    struct mr_work_batch *b = t->batch;
    struct mr_payload in;
    *stage = MR_STAGE_RECORD;
    int r = mr_dataset_payload(p->data, t->index, bytes, n, &in);
    if (r)
        return r;
    t->label = in.label;
    if (p->pool->whole_files) {
        *data = (uint8_t *)in.bytes; /* within `bytes`, which is the slot's own room */
        *len = in.len;
        return 0;
    }
    *stage = MR_STAGE_MAP;
    *data = b->slab.data + t->slot * p->pool->slot_bytes;
    *len = p->pool->slot_bytes;
    uint64_t key = mr_order_key(&p->order, b->pub.epoch, b->pub.number, t->slot);
    return p->decode ? mr_decode_map_run(p->decode, w->number, in.bytes, in.len, key, *data,
                                         &b->cost[t->slot])
                     : run_callback(w, t, &in, key, *data);
}

const char *mr_sample_map_error(const struct mr_worker *w)
{
    return w->p->decode ? mr_decode_map_error(w->p->decode, w->number) : "";
}
