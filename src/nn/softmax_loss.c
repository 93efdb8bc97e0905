/* softmax_loss.c - softmax cross entropy: the mean over the images of -log(softmax(z)[label]).
 *
 *     z [N, classes]    dz [N, classes] = (softmax(z) - one at the label) / n, empty images 0
 *
 * One thread in a fixed order: the loss is the number that runs are compared by.  Sums are double;
 * the largest logit is taken off first, so that nothing overflows.  A logit that is no number makes
 * the loss one as well. */
#include "layers.h"

#include <math.h>
#include <string.h>

struct softmax {
    struct tensor *logits, *gradient;
};

/* Loss of one image; *hit is 1 when no class has a larger logit than the label. */
static double one_image(const float *z, uint32_t label, unsigned n_classes, double share, float *dz,
                        int *hit)
{
    double sum = 0, largest = z[0];
    for (unsigned i = 1; i < n_classes; i++)
        largest = z[i] > largest ? z[i] : largest;
    for (unsigned i = 0; i < n_classes; i++)
        sum += exp(z[i] - largest);
    for (unsigned i = 0; i < n_classes; i++)
        dz[i] = (float)((exp(z[i] - largest) / sum - (i == label)) * share);
    *hit = z[label] >= largest;
    return log(sum) + largest - z[label];
}

static void run_softmax(struct graph *g, void *ctx)
{
    const struct softmax *s = ctx;
    const float *z = tensor_data(s->logits);
    float *dz = tensor_data(s->gradient);
    unsigned n_classes = (unsigned)s->logits->md.dims[1], n = g->now.n;
    double loss = 0;
    g->now.n_correct = 0;
    for (unsigned i = 0; i < n; i++) {
        int hit;
        loss += one_image(z + (size_t)i * n_classes, g->now.labels[i], n_classes, 1.0 / n,
                          dz + (size_t)i * n_classes, &hit);
        g->now.n_correct += (unsigned)hit;
    }
    memset(dz + (size_t)n * n_classes, 0, (size_t)(g->batch - n) * n_classes * sizeof *dz);
    g->now.loss = loss / n;
}

struct tensor *softmax_loss(struct graph *g, struct tensor *logits)
{
    struct softmax *s = graph_own(g, sizeof *s);
    if (!s)
        return &g->none;
    *s = (struct softmax){logits, graph_tensor(g, &logits->md, REGION_A)};
    graph_run_own(g, OPS_FORWARD, "softmax", "loss and gradient", run_softmax, s);
    return s->gradient;
}
