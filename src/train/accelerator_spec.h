/* accelerator_spec.h - what --device says: the CPU, or an accelerator that is emulated.
 *
 *     cpu
 *     emulated:0.5            half a second a step
 *     emulated:0.1+0.002      0.1 s a step and 2 ms an image
 *     emulated:resnet50-a100  a published workload: its batch, its seconds
 *     emulated:resnet50-h100x8   eight of them, so eight batches a step */
#ifndef MR_ACCELERATOR_SPEC_H
#define MR_ACCELERATOR_SPEC_H

#include <millrace/api.h>

enum mr_accelerator_kind {
    MR_ON_CPU,
    MR_EMULATED,
};

struct mr_accelerator_spec {
    enum mr_accelerator_kind kind;
    double step_s;      /* fixed part of a step */
    double image_s;     /* and what each image of it adds */
    unsigned n;         /* accelerators: batches in a step, at least 1 */
    unsigned own_batch; /* batch of a published workload, 0 = any */
    double minimum_au;  /* what the benchmark that published it asks for, 0 = nothing */
    char name[40];      /* as it was given */
};

/* -EINVAL with the list of names in err. */
int mr_accelerator_spec_parse(const char *text, struct mr_accelerator_spec *out,
                              struct mr_error *err);

/* Seconds that a step with batches of `batch` images takes on an emulated accelerator.  A published
 * workload's seconds scale with the batch. */
double mr_accelerator_spec_seconds(const struct mr_accelerator_spec *spec, unsigned batch);

#endif
