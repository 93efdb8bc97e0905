/* accelerator.h - where a step is computed: on the CPU, or nowhere, for as long as an accelerator
 * would take.
 *
 * Lifetime: open -> step* -> close.  One thread. */
#ifndef MR_ACCELERATOR_H
#define MR_ACCELERATOR_H

#include <millrace/pipeline.h>

#include "accelerator_spec.h"

struct mr_accelerator;
struct mr_params;

/* Part of what training changes; a checkpoint holds all of them. */
struct mr_state_tensor {
    const char *name;
    unsigned n_dims;
    uint64_t dims[4];
    float *data;
    size_t bytes;
};

struct mr_accelerator_opts {
    struct mr_accelerator_spec spec;
    unsigned batch, image_size, n_classes;
    unsigned compute_threads; /* CPU only; 0 = one per core */
    uint64_t seed;
    double learning_rate;
    int with_state; /* emulated: hold the network's whole state and change it at every update */
};

/* Whom a step tells what it does; members may be NULL. */
struct mr_step_hooks {
    void (*before_write)(void *ctx, unsigned tensor); /* before state[tensor] is changed */
    int (*should_stop)(void *ctx); /* asked a few times a second while nothing is computed */
    void *ctx;
};

struct mr_step_outcome {
    double loss; /* mean over the images; NaN where nothing is computed */
    unsigned n_correct, n_images;
    uint64_t forward_ns, backward_ns, update_ns;
};

int mr_accelerator_open(const struct mr_accelerator_opts *o, struct mr_accelerator **out,
                        struct mr_error *err);
void mr_accelerator_close(struct mr_accelerator *a);

/* One training step number `step` (from 1) on `n` batches: forward, backward, update.
 * -ECANCELED when `should_stop` said so. */
int mr_accelerator_step(struct mr_accelerator *a, struct mr_batch *const *batches, unsigned n,
                        uint64_t step, const struct mr_step_hooks *hooks,
                        struct mr_step_outcome *out, struct mr_error *err);
/* Only forward, without dropout: how many images are recognised.  -ENOTSUP when emulated. */
int mr_accelerator_evaluate(struct mr_accelerator *a, const struct mr_batch *batch,
                            unsigned *n_correct, struct mr_error *err);
/* What a checkpoint has to hold; *n = 0 when there is no state. */
const struct mr_state_tensor *mr_accelerator_state(struct mr_accelerator *a, unsigned *n);

/* Adam's running powers; 0 when there is no state. */
void mr_accelerator_powers(const struct mr_accelerator *a, float *beta1, float *beta2);
/* After the state was restored: it holds n updates. */
void mr_accelerator_set_progress(struct mr_accelerator *a, uint64_t step, float beta1, float beta2);

/* An implementation. */
struct mr_accelerator_ops {
    int (*step)(struct mr_accelerator *a, struct mr_batch *const *batches, unsigned n,
                uint64_t step, const struct mr_step_hooks *hooks, struct mr_step_outcome *out,
                struct mr_error *err);
    int (*evaluate)(struct mr_accelerator *a, const struct mr_batch *batch, unsigned *n_correct,
                    struct mr_error *err);
    void (*close)(struct mr_accelerator *a);
};

struct mr_accelerator {
    const struct mr_accelerator_ops *ops;
    struct mr_accelerator_opts o;
    struct mr_params *params; /* what `state` lists, borrowed or owned by the implementation */
    struct mr_state_tensor *state;
    unsigned n_state;
};

int mr_emulated_open(const struct mr_accelerator_opts *o, struct mr_accelerator **out,
                     struct mr_error *err);
int mr_cpu_open(const struct mr_accelerator_opts *o, struct mr_accelerator **out,
                struct mr_error *err);

#endif
