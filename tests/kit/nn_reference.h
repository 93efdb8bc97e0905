/* nn_reference.h - a network computed the plain way, in double precision: what src/nn is compared
 * with.  Layouts are NHWC and TensorFlow's; loops follow the definitions. */
#ifndef MR_TEST_NN_REFERENCE_H
#define MR_TEST_NN_REFERENCE_H

#include "net.h"

struct reference {
    const struct mr_net_spec *spec;
    unsigned batch; /* images computed; the dropout of image i does not depend on it */
    uint64_t seed;
    struct mr_shape *shapes; /* after each layer */
    unsigned n_tensors;
    uint64_t *sizes;               /* values of each parameter tensor */
    double **weights, **gradients; /* by tensor: weights, bias, layer by layer */
    double **values, **slopes;     /* [0] the images, [i + 1] after layer i; and d loss / d them */
    double loss;
    unsigned n_correct;
};

struct reference *reference_new(const struct mr_net_spec *spec, unsigned batch, uint64_t seed);
void reference_free(struct reference *r);
/* Take the weights of a network. */
void reference_load(struct reference *r, const struct mr_params *p);
void reference_forward(struct reference *r, const struct mr_net_input *in);
void reference_backward(struct reference *r, const struct mr_net_input *in);

#endif
