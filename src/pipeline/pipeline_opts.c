/* pipeline_opts.c - what a pipeline is asked for: defaults, limits, and how many batches that is.
 */
#include "pipeline_state.h"

#include "errtext.h"

#include <errno.h>
#include <sched.h>

static unsigned online_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

void mr_pipeline_opts_complete(struct mr_pipeline_opts *o)
{
    o->threads = o->threads ? o->threads : online_cpus();
    o->io_depth = o->io_depth ? o->io_depth : 32;
    o->batch = o->batch ? o->batch : 64;
    o->prefetch = o->prefetch ? o->prefetch : 1;
    o->hold = o->hold ? o->hold : 1;
    o->window = o->window ? o->window : 1024;
    o->epochs = o->epochs ? o->epochs : 1;
    o->world = o->world ? o->world : 1;
    o->max_file_bytes = o->max_file_bytes ? o->max_file_bytes : (uint64_t)64 << 20;
    o->max_error_share = o->max_error_share == 0 ? 0.10 : o->max_error_share;
}

static int check_sizes(const struct mr_pipeline_opts *o, struct mr_error *err)
{
    const struct {
        const char *name;
        unsigned value, most;
    } sizes[] = {
        {"threads", o->threads, 4096},
        {"io_depth", o->io_depth, 4096},
        {"batch", o->batch, 1u << 24},
        {"prefetch", o->prefetch == MR_NONE ? 0 : o->prefetch, 65536},
        {"hold", o->hold, 65536},
    };
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value > sizes[i].most)
            return mr_fail(err, -EINVAL, "%s: %u is not from 1 to %u", sizes[i].name,
                           sizes[i].value, sizes[i].most);
    return 0;
}

int mr_pipeline_opts_check(const struct mr_pipeline_opts *o, struct mr_error *err)
{
    if (o->rank >= o->world)
        return mr_fail(err, -EINVAL, "shard %u/%u: ranks count from 0 to %u", o->rank, o->world,
                       o->world - 1);
    if (o->map && o->decode)
        return mr_fail(err, -EINVAL, "either decode or map, not both");
    if (o->decode && !mr_decoder_bytes(o->decode))
        return mr_fail(err, -EINVAL, "decode: the image's size or another option is out of range");
    if (!o->allocator.alloc != !o->allocator.free)
        return mr_fail(err, -EINVAL, "allocator: alloc and free belong together");
    if (o->n_fields && !o->map)
        return mr_fail(err, -EINVAL, "fields are declared, and there is no map to fill them");
    if (o->map && !o->map_bytes && !o->n_fields)
        return mr_fail(err, -EINVAL, "map_bytes must say how large a mapped sample is");
    if (o->map_without_bytes && !o->map)
        return mr_fail(err, -EINVAL, "map_without_bytes needs a map");
    return check_sizes(o, err);
}

/* Only where rounds are cut as they were can a run go on.  In a window shuffle that is a multiple
 * of a round; in the others any position is. */
static int check_start(const struct mr_pipeline_opts *o, uint64_t n_samples, struct mr_error *err)
{
    uint64_t round = (uint64_t)o->batch * o->world;
    if (o->start.samples > n_samples)
        return mr_fail(err, -EINVAL, "position: an epoch has %llu samples, not %llu",
                       (unsigned long long)n_samples, (unsigned long long)o->start.samples);
    if (o->shuffle == MR_SHUFFLE_WINDOW && o->start.samples % round)
        return mr_fail(err, -EINVAL,
                       "position: %llu samples are not whole batches of %u in each of %u shards; a "
                       "window shuffle goes on only with the batch, world and window it began with",
                       (unsigned long long)o->start.samples, o->batch, o->world);
    return 0;
}

/* How many sequences there are from the start on. */
static int count_sequences(struct mr_pipeline *p, struct mr_error *err)
{
    const struct mr_pipeline_opts *o = &p->o;
    uint64_t begun = o->start.samples / p->order.round, rest;
    p->n_start = p->order.start.n_batches - begun;
    if (o->start.epoch >= o->epochs)
        p->n_seq = 0;
    else if (__builtin_mul_overflow(p->order.cut.n_batches, o->epochs - o->start.epoch - 1,
                                    &rest) ||
             __builtin_add_overflow(p->n_start, rest, &p->n_seq))
        return mr_fail(err, -EOVERFLOW, "too many batches");
    if (o->batches && o->batches < p->n_seq)
        p->n_seq = o->batches;
    return 0;
}

int mr_pipeline_init_order(struct mr_pipeline *p, struct mr_error *err)
{
    const struct mr_pipeline_opts *o = &p->o;
    struct mr_order_opts order = {
        .n_samples = mr_dataset_size(p->data),
        .shuffle = o->shuffle,
        .window = o->window,
        .seed = o->seed,
        .batch = o->batch,
        .rank = o->rank,
        .world = o->world,
        .keep_last = o->keep_last,
        .start_epoch = o->start.epoch,
        .start_samples = o->start.samples,
    };
    if (!order.n_samples)
        return mr_fail(err, -ENODATA, "the data set is empty");
    int r = check_start(o, order.n_samples, err);
    if (r)
        return r;
    if (mr_order_init(&p->order, &order))
        return mr_fail(err, -ENOMEM, "no memory for a shuffle window of %u", o->window);
    if (!p->order.cut.n_batches)
        return mr_fail(err, -EINVAL,
                       "%llu samples do not fill one batch of %u for each of %u shards: take a "
                       "smaller batch or keep the last one",
                       (unsigned long long)order.n_samples, o->batch, o->world);
    return count_sequences(p, err);
}

void mr_pipeline_place_of(const struct mr_pipeline *p, uint64_t seq, uint64_t *epoch,
                          uint64_t *number)
{
    const struct mr_order *q = &p->order;
    if (seq < p->n_start) {
        *epoch = q->o.start_epoch;
        *number = q->o.start_samples / q->round + seq;
    } else {
        *epoch = q->o.start_epoch + 1 + (seq - p->n_start) / q->cut.n_batches;
        *number = (seq - p->n_start) % q->cut.n_batches;
    }
}
