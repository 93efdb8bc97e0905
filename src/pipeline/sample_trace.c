/* sample_trace.c - see sample_trace.h.
 *
 * Times are those that the statistics take anyway (struct mr_slot_cost): a trace costs no further
 * look at the clock, except around a callback and a worker's idleness.  Spans are stored when the
 * sample is finished, the outer one first.
 *
 *   Load        |---------------------------------------|
 *   Read        |-----------|
 *   Queue wait              |-----|                          uring: arrived, its worker is busy
 *   Decode                        |----------|
 *   Resize                                   |----------|
 *
 * Decoding and resizing take turns many times within an image; the trace shows each as one span of
 * its true length, decoding first.  When the file itself is the sample there is no Load: it would
 * repeat the Read.  Of a sample that was replaced, only its substitute is shown. */
#include "sample_trace.h"

#include <millrace/trace.h>

static void set_place(const struct mr_batch *b)
{
    mr_trace_context((uint32_t)b->epoch, (uint32_t)b->number);
}

void mr_sample_trace(const struct mr_pipeline *p, const struct mr_task *t)
{
    const struct mr_slot_cost *c = &t->batch->cost[t->slot];
    int has_file = !p->o.map_without_bytes;
    uint32_t id = t->index < MR_NONE ? (uint32_t)t->index : MR_NONE;
    uint64_t bytes = has_file ? c->file_bytes : 0;
    uint64_t map_at = p->pool->whole_files ? 0 : c->map_at;
    uint64_t resize_at = map_at + c->decode_ns;
    uint64_t map_end = p->decode ? resize_at + c->resize_ns : map_at + c->map_ns;
    if (p->o.untraced)
        return;
    set_place(&t->batch->pub);
    mr_trace_lane(t->lane);
    if (map_at) /* else loading is reading */
        mr_trace_span(MR_PHASE_LOAD, has_file ? c->read_at : map_at, map_end, bytes, id);
    if (has_file)
        mr_trace_span(MR_PHASE_READ, c->read_at, c->read_end, bytes, id);
    if (t->lane && map_at)
        mr_trace_span(MR_PHASE_QUEUE_WAIT, c->read_end, map_at, 0, id);
    if (map_at && p->decode) {
        mr_trace_span(MR_PHASE_DECODE, map_at, resize_at, bytes, id);
        mr_trace_span(MR_PHASE_RESIZE, resize_at, map_end, 0, id);
    } else if (map_at) {
        mr_trace_span(MR_PHASE_MAP, map_at, map_end, bytes, id);
    }
    mr_trace_lane(0);
}

void mr_idle_trace(const struct mr_pipeline *p, uint64_t begin_ns, uint64_t end_ns)
{
    if (p->o.untraced)
        return;
    mr_trace_span(MR_PHASE_IDLE, begin_ns, end_ns, 0, MR_NONE);
}

void mr_wait_trace(const struct mr_pipeline *p, const struct mr_batch *b, uint64_t begin_ns,
                   uint64_t end_ns)
{
    if (p->o.untraced)
        return;
    set_place(b);
    mr_trace_span(MR_PHASE_WAIT, begin_ns, end_ns, 0, MR_NONE);
}
