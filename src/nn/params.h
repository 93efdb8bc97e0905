/* params.h - what a network learns: weights, gradients and Adam's two moments, by name.
 *
 * Four allocations of the same layout, aligned to 2 MiB and touched; a tensor stands at the same
 * offset in each, aligned to 64 bytes.  Gaps between tensors are zero and stay zero.  Layouts are
 * TensorFlow's: convolutions [height, width, in, out], dense layers [in, out], biases [out].  This
 * is the master copy, and what a checkpoint holds:
 *
 *     NAME         weights           beta1_power   beta1_power
 *     NAME/Adam    moment 1          beta2_power   beta2_power
 *     NAME/Adam_1  moment 2          global_step   n_updates
 *
 * Whoever restores writes the weights and moments in place, and the three numbers. */
#ifndef MR_PARAMS_H
#define MR_PARAMS_H

#include "thread_team.h"
#include "net_spec.h"

struct mr_param {
    const char *name; /* borrowed from the spec */
    unsigned n_dims;
    uint64_t dims[4];
    uint64_t n;                                    /* values */
    uint64_t offset;                               /* in values, in each allocation */
    float *weights, *gradient, *moment1, *moment2; /* n each, readable up to a multiple of 16 */
};

struct mr_params {
    unsigned n_tensors;
    struct mr_param *tensors; /* weights, then bias, layer by layer */
    uint64_t n_values;        /* without the gaps */
    uint64_t bytes;           /* of one allocation */
    float *weights, *gradients, *moments1, *moments2;
    float beta1_power, beta2_power; /* beta^(n_updates + 1), as TensorFlow keeps them */
    uint64_t n_updates;
};

/* The table and the memory, which the kernel does not provide before it is touched. */
int mr_params_new(const struct mr_net_spec *spec, struct mr_params **out, struct mr_error *err);
/* Touch all memory; weights from a normal distribution of deviation 0.01 cut off at two deviations,
 * biases as the layers say, moments 0.  A function of the seed, whatever the number of threads. */
void mr_params_init(struct mr_params *p, const struct mr_net_spec *spec, uint64_t seed,
                    struct mr_team *team);
void mr_params_free(struct mr_params *p);

#endif
