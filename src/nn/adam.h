/* adam.h - one step of Adam over all parameters, as TensorFlow 1 computes it. */
#ifndef MR_ADAM_H
#define MR_ADAM_H

#include "params.h"

/* Instruction sets; all give the same bits. */
enum mr_adam_simd { MR_ADAM_BEST, MR_ADAM_SCALAR, MR_ADAM_AVX2, MR_ADAM_AVX512 };

struct mr_adam_opts { /* zero means default */
    float lr;         /* 0 = 0.001 */
    /* Called before tensor `index` changes, by each thread that is to change a part of it: the
     * place to wait for a snapshot that has not copied the tensor yet.  NULL = nothing to wait
     * for. */
    void (*before)(void *ctx, unsigned index);
    void *ctx;
    enum mr_adam_simd simd;
};

/* weights, moments and powers from the gradients.  -ENOTSUP: this processor has no such SIMD;
 * -EDOM: done, but a weight is now infinite or no number: training has diverged. */
int mr_adam_update(struct mr_params *p, const struct mr_adam_opts *opts, struct mr_team *team);

#endif
