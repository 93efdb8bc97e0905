/* The reference network's gradients against finite differences of its loss, in double. */
#include "unit.h"

#include "draw.h"
#include "nn_reference.h"
#include "nn_small.h"

#include <math.h>
#include <stdlib.h>

#define BATCH 3
#define STEP  1e-6

static double loss_with(struct reference *r, const struct mr_net_input *in, double *weight,
                        double value)
{
    double was = *weight;
    *weight = value;
    reference_forward(r, in);
    *weight = was;
    return r->loss;
}

/* A few weights of each tensor, chosen by draws.  A kink (ReLU, pool) between the two points would
 * spoil a difference; the two one-sided ones then disagree and the weight is passed over. */
static void check_net(const struct mr_net_spec *spec)
{
    struct reference *r = reference_new(spec, BATCH, 5);
    struct small_batch b = small_batch_new(spec, BATCH, 9);
    struct mr_params *p = NULL;
    unsigned n_checked = 0;
    assert_int_equal(mr_params_new(spec, &p, NULL), 0);
    small_weights(p, 2);
    reference_load(r, p);
    reference_forward(r, &b.in);
    reference_backward(r, &b.in);
    for (unsigned i = 0; i < r->n_tensors; i++)
        for (unsigned k = 0; k < 6; k++) {
            uint64_t at = mr_below(mr_draw(1, MR_DRAW_SYNTHETIC, i, k, 0), r->sizes[i]);
            double *w = &r->weights[i][at], slope = r->gradients[i][at];
            double here = loss_with(r, &b.in, w, *w);
            double up = (loss_with(r, &b.in, w, *w + STEP) - here) / STEP;
            double down = (here - loss_with(r, &b.in, w, *w - STEP)) / STEP;
            if (fabs(up - down) > 1e-3 * (fabs(up) + fabs(down)) + 1e-7)
                continue;
            n_checked++;
            if (fabs((up + down) / 2 - slope) > 1e-5 * fabs(slope) + 1e-8)
                fail_msg("%s, tensor %u, weight %lu: %g by difference, %g by gradient", spec->name,
                         i, at, (up + down) / 2, slope);
        }
    assert_true(n_checked >= 4 * r->n_tensors);
    mr_params_free(p);
    small_batch_free(&b);
    reference_free(r);
}

static void gradients_equal_finite_differences(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_SMALL_NETS; i++)
        check_net(small_net(i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_equal_finite_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
