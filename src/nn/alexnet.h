/* alexnet.h - the study's network, without groups, for 224 x 224 x 3 images. */
#ifndef MR_ALEXNET_H
#define MR_ALEXNET_H

#include "net_spec.h"

#define MR_ALEXNET_MAX_LAYERS 24

struct mr_alexnet {
    struct mr_net_spec spec; /* points into `layers` */
    struct mr_layer layers[MR_ALEXNET_MAX_LAYERS];
};

struct mr_alexnet_opts {    /* zero means default */
    unsigned n_classes;     /* 0 = 102, Caltech-101 with its background */
    int without_lrn;        /* for comparisons */
    enum mr_conv_plan plan; /* of all convolutions, for comparisons */
};

/* Fill *a, which must not move while its spec is in use. */
void mr_alexnet_init(struct mr_alexnet *a, const struct mr_alexnet_opts *opts);

#endif
