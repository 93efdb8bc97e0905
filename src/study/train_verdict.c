/* train_verdict.c - see train_verdict.h. */
#include "train_verdict.h"

#include "device.h"

#define DEFAULT_IO_DEPTH 32 /* the pipeline's */

void mr_train_judge(const struct mr_train_opts *o, const struct mr_train_result *r,
                    struct mr_verdict *out)
{
    const struct mr_pipeline_opts *p = &o->pipe;
    const struct mr_pipeline_stats *s = &r->stats;
    int uring = p->engine == MR_ENGINE_URING;
    struct mr_verdict_input in = {
        .seconds = r->seconds,
        .input_wait_s = r->input_wait_s,
        .first_fill_s = r->first_fill_s,
        .checkpoint_stall_s = r->checkpoint_stall_s,
        .checkpoints_hold = o->checkpoint && o->checkpoint->mode != MR_CHECKPOINT_LAZY,
        .checkpoints_drain = o->checkpoint && o->checkpoint->drain_dir,
        .steps = r->steps,
        .samples = s->samples,
        .bytes = s->delivered_bytes,
        .workers = r->cores.map_workers,
        .cores = r->cores.n,
        .batch = p->batch,
        .prefetch = p->prefetch == MR_NONE ? 0
                    : p->prefetch          ? p->prefetch
                                           : 1,
        .depth = r->cores.map_workers,
        .read_s = s->read_s,
        .map_s = s->decode_s + s->resize_s,
        .reads_hold_workers = !uring,
    };
    if (uring)
        in.depth = p->io_depth ? p->io_depth : DEFAULT_IO_DEPTH;
    if (p->storage && s->samples)
        in.ceiling_bytes_per_s = mr_verdict_ceiling(
            mr_device_profile_of(p->storage), (double)s->delivered_bytes / (double)s->samples);
    mr_verdict_judge(&in, out);
}
