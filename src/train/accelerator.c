/* accelerator.c - the choice between the implementations, and what they share. */
#include "accelerator.h"

#include "params.h"

int mr_accelerator_open(const struct mr_accelerator_opts *o, struct mr_accelerator **out,
                        struct mr_error *err)
{
    return o->spec.kind == MR_ON_CPU ? mr_cpu_open(o, out, err) : mr_emulated_open(o, out, err);
}

void mr_accelerator_close(struct mr_accelerator *a)
{
    if (a)
        a->ops->close(a);
}

int mr_accelerator_step(struct mr_accelerator *a, struct mr_batch *const *batches, unsigned n,
                        uint64_t step, const struct mr_step_hooks *hooks,
                        struct mr_step_outcome *out, struct mr_error *err)
{
    return a->ops->step(a, batches, n, step, hooks, out, err);
}

int mr_accelerator_evaluate(struct mr_accelerator *a, const struct mr_batch *batch,
                            unsigned *n_correct, struct mr_error *err)
{
    return a->ops->evaluate(a, batch, n_correct, err);
}

const struct mr_state_tensor *mr_accelerator_state(struct mr_accelerator *a, unsigned *n)
{
    *n = a->n_state;
    return a->state;
}

void mr_accelerator_powers(const struct mr_accelerator *a, float *beta1, float *beta2)
{
    *beta1 = a->params ? a->params->beta1_power : 0;
    *beta2 = a->params ? a->params->beta2_power : 0;
}

void mr_accelerator_set_progress(struct mr_accelerator *a, uint64_t step, float beta1, float beta2)
{
    if (!a->params)
        return;
    a->params->n_updates = step;
    a->params->beta1_power = beta1;
    a->params->beta2_power = beta2;
}
