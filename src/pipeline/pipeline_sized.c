/* pipeline_sized.c - options and statistics of a pipeline, of whatever size the caller has them. */
#include "pipeline_sized.h"

#include "sized.h"

int mr_pipeline_open_sized(struct mr_dataset *data, const struct mr_pipeline_opts *opts,
                           size_t opts_size, size_t decode_size, struct mr_pipeline **out,
                           struct mr_error *err)
{
    struct mr_pipeline_opts o;
    struct mr_decoder_opts decode;
    int r = mr_take_sized(&o, sizeof o, opts, opts_size, "mr_pipeline_opts", err);
    if (!r && o.decode) {
        r = mr_take_sized(&decode, sizeof decode, o.decode, decode_size, "mr_decoder_opts", err);
        o.decode = &decode;
    }
    return r ? r : mr_pipeline_make(data, &o, out, err);
}

void mr_pipeline_get_stats_sized(struct mr_pipeline *p, struct mr_pipeline_stats *out, size_t size)
{
    struct mr_pipeline_stats s;
    mr_pipeline_all_stats(p, &s);
    mr_give_sized(out, size, &s, sizeof s);
}
