/* net.h - a network that trains on the processor: forward, backward, update.
 *
 *     mr_net_open(&spec, &opts, &net, &err)
 *     for each step:
 *         mr_net_forward(net, &input, &result, &err)     loss and hits of this batch
 *         mr_net_backward(net)                           gradients into mr_net_params(net)
 *         mr_net_update(net, &adam)                      weights
 *     mr_net_close(net)
 *
 * Lifetime: open -> calls -> close.  One thread at a time.  The three calls are separate so that
 * each can be timed, and so that a checkpoint can be copied during the first two, which only read
 * the weights.  Same seed, same input and one compute thread give the same bits in every run; what
 * a step leaves out (dropout) is a function of seed and step, so that a resumed run is the same. */
#ifndef MR_NET_H
#define MR_NET_H

#include "adam.h"
#include "net_spec.h"
#include "params.h"

struct mr_net;

struct mr_net_opts {    /* zero means default */
    unsigned batch;     /* images at most at a time; 0 = 64 */
    unsigned threads;   /* 0 = OMP_NUM_THREADS, or all processors */
    uint64_t seed;      /* of initial weights and dropout */
    uint64_t max_bytes; /* refuse to take more memory; 0 = what is available now */
};

struct mr_net_input {
    unsigned n;             /* images, 1 .. batch */
    const float *images;    /* [n, height, width, channels], borrowed during the call */
    const uint32_t *labels; /* [n], each below the number of classes */
    uint64_t step;          /* key of the dropout */
    int evaluate;           /* no dropout; backward may not follow */
};

struct mr_net_result {
    double loss;        /* mean cross entropy */
    unsigned n_correct; /* images whose label has the largest logit */
};

/* 1 when this build has oneDNN. */
int mr_net_available(void);

/* Build all primitives, take all memory, draw the weights.  Borrows nothing but the strings in
 * `spec`.  -ENOTSUP: oneDNN is missing, or has only slow reference code for a layer; -ENOMEM: says
 * how many bytes are needed. */
int mr_net_open(const struct mr_net_spec *spec, const struct mr_net_opts *opts, struct mr_net **out,
                struct mr_error *err);
/* The bytes that mr_net_open would take: parameters, activations and work space. */
int mr_net_bytes_needed(const struct mr_net_spec *spec, const struct mr_net_opts *opts,
                        uint64_t *out, struct mr_error *err);
/* Fills *out; reads the weights only.  -EINVAL: a label beyond the classes, n out of range;
 * -EDOM: the loss is not a finite number. */
int mr_net_forward(struct mr_net *net, const struct mr_net_input *in, struct mr_net_result *out,
                   struct mr_error *err);
/* Gradients of the last forward, each tensor written anew.  -EINVAL without one for training. */
int mr_net_backward(struct mr_net *net);
/* One step of Adam on all threads; -EDOM: a weight is no longer a number. */
int mr_net_update(struct mr_net *net, const struct mr_adam_opts *opts);
void mr_net_close(struct mr_net *net);

struct mr_params *mr_net_params(struct mr_net *net); /* owned by the net */
struct mr_team *mr_net_team(struct mr_net *net);     /* its threads, for other work in between */
unsigned mr_net_threads(const struct mr_net *net);
unsigned mr_net_batch(const struct mr_net *net);
uint64_t mr_net_bytes(const struct mr_net *net);
/* [n, classes] of the last forward. */
const float *mr_net_logits(const struct mr_net *net);

/* What forward and backward consist of, in order, to be timed one by one. */
struct mr_net_op {
    const char *name; /* "conv2 forward" */
    const char *code; /* oneDNN's name of the implementation, or "own" */
    int backward;
    double flop;
};
unsigned mr_net_n_ops(const struct mr_net *net);
void mr_net_op(const struct mr_net *net, unsigned i, struct mr_net_op *out);
int mr_net_run_op(struct mr_net *net, unsigned i);

#endif
