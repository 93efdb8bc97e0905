/* nn_small.h - small networks that together use every kind of layer and every way to compute it,
 * and data to feed them. */
#ifndef MR_TEST_NN_SMALL_H
#define MR_TEST_NN_SMALL_H

#include "net.h"

/* 1 when the program was built with ASan, TSan or the like: large shapes take too long. */
int under_sanitizer(void);
/* OpenMP's runtime is not instrumented, so oneDNN may have one thread only under TSan. */
int under_tsan(void);

#define N_SMALL_NETS 7
const struct mr_net_spec *small_net(unsigned i);
/* 0 for the one that insists on Winograd's way where the processor has no AVX-512: oneDNN has no
 * code for it there. */
int small_net_runs(unsigned i);

/* Weights large enough to matter and biases that differ, by keyed draws. */
void small_weights(struct mr_params *p, uint64_t seed);

/* Made-up images in 0 .. 1 and labels; free both. */
struct small_batch {
    float *images;
    uint32_t *labels;
    struct mr_net_input in;
};
struct small_batch small_batch_new(const struct mr_net_spec *spec, unsigned n, uint64_t seed);
void small_batch_free(struct small_batch *b);

/* |a - b| / |b| */
double relative_error(const float *a, const double *b, uint64_t n);

#endif
