/* pipeline_sized.h - what the calls of the ABI with sizes (pipeline_sized.c) stand on: the same
 * calls with structs of this library's own size. */
#ifndef MR_PIPELINE_SIZED_H
#define MR_PIPELINE_SIZED_H

#include <millrace/pipeline.h>

int mr_pipeline_make(struct mr_dataset *data, const struct mr_pipeline_opts *opts,
                     struct mr_pipeline **out, struct mr_error *err);
void mr_pipeline_all_stats(struct mr_pipeline *p, struct mr_pipeline_stats *out);

#endif
