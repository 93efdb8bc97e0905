/* Adam: against its definition in double, the same bits on every instruction set and with any
 * number of threads, and the call before a tensor changes. */
#include "unit.h"

#include "adam.h"
#include "draw.h"
#include "nn_small.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define N_STEPS 5

static float gradient_at(unsigned step, unsigned tensor, uint64_t i)
{
    double u = (double)(mr_draw(step, MR_DRAW_SYNTHETIC, tensor, i, 0) >> 40) / 16777216.0;
    return (float)((u - 0.5) * (i % 7 ? 1e-3 : 2)); /* large and small ones */
}

static struct mr_params *trained(enum mr_adam_simd simd, unsigned threads)
{
    struct mr_adam_opts opts = {.lr = 0.01f, .simd = simd};
    struct mr_params *p = NULL;
    struct mr_team *team = NULL;
    assert_int_equal(mr_params_new(small_net(0), &p, NULL), 0);
    assert_int_equal(mr_team_open(threads, &team), 0);
    mr_params_init(p, small_net(0), 1, team);
    for (unsigned s = 0; s < N_STEPS; s++) {
        for (unsigned t = 0; t < p->n_tensors; t++)
            for (uint64_t i = 0; i < p->tensors[t].n; i++)
                p->tensors[t].gradient[i] = gradient_at(s, t, i);
        int r = mr_adam_update(p, &opts, team);
        if (r == -ENOTSUP) {
            mr_params_free(p);
            p = NULL;
            break;
        }
        assert_int_equal(r, 0);
    }
    mr_team_close(team);
    return p;
}

static void steps_follow_the_definition(void **state)
{
    const double beta1 = 0.9f, beta2 = 0.999f; /* as f32 has them */
    struct mr_params *p = trained(MR_ADAM_BEST, 1), *start = NULL;
    (void)state;
    assert_int_equal(mr_params_new(small_net(0), &start, NULL), 0);
    mr_params_init(start, small_net(0), 1, NULL);
    for (unsigned t = 0; t < p->n_tensors; t++)
        for (uint64_t i = 0; i < p->tensors[t].n; i++) {
            double w = start->tensors[t].weights[i], m = 0, v = 0;
            for (unsigned s = 1; s <= N_STEPS; s++) {
                double g = gradient_at(s - 1, t, i);
                m = beta1 * m + (1 - beta1) * g;
                v = beta2 * v + (1 - beta2) * g * g;
                w -= 0.01 * sqrt(1 - pow(beta2, s)) / (1 - pow(beta1, s)) * m / (sqrt(v) + 1e-8);
            }
            /* f32 has 1 - beta2_power to four digits, and so has TensorFlow. */
            assert_true(fabs(p->tensors[t].weights[i] - w) < 5e-6 + 1e-6 * fabs(w));
            assert_true(fabs(p->tensors[t].moment1[i] - m) < 1e-5 * fabs(m) + 3e-7);
            assert_true(fabs(p->tensors[t].moment2[i] - v) < 1e-4 * fabs(v) + 1e-10);
        }
    assert_int_equal(p->n_updates, N_STEPS);
    assert_true(fabs(p->beta1_power - pow(0.9, N_STEPS + 1)) < 1e-6);
    assert_true(fabs(p->beta2_power - pow(0.999, N_STEPS + 1)) < 1e-6);
    mr_params_free(start);
    mr_params_free(p);
}

static void assert_same(const struct mr_params *a, const struct mr_params *b)
{
    assert_memory_equal(a->weights, b->weights, a->bytes);
    assert_memory_equal(a->moments1, b->moments1, a->bytes);
    assert_memory_equal(a->moments2, b->moments2, a->bytes);
}

static void every_instruction_set_and_thread_count_gives_the_same_bits(void **state)
{
    struct mr_params *scalar = trained(MR_ADAM_SCALAR, 1);
    (void)state;
    for (enum mr_adam_simd simd = MR_ADAM_BEST; simd <= MR_ADAM_AVX512; simd++)
        for (unsigned threads = 1; threads < 4; threads++) {
            struct mr_params *p = trained(simd, threads);
            if (!p)
                continue; /* this processor has it not */
            assert_same(scalar, p);
            mr_params_free(p);
        }
    mr_params_free(scalar);
}

static void what_is_not_finite_is_found_on_every_instruction_set(void **state)
{
    (void)state;
    for (enum mr_adam_simd simd = MR_ADAM_BEST; simd <= MR_ADAM_AVX512; simd++) {
        struct mr_adam_opts opts = {.simd = simd};
        struct mr_params *p = trained(simd, 1);
        if (!p)
            continue;
        p->tensors[3].gradient[1] = NAN;
        assert_int_equal(mr_adam_update(p, &opts, NULL), -EDOM);
        mr_params_free(p);
    }
}

struct watch {
    struct mr_params *p;
    const float *before;
    atomic_uint n_calls;
};

/* The first to ask finds the tensor as it was; a tensor's parts are changed after their asking. */
static void look(void *ctx, unsigned index)
{
    struct watch *w = ctx;
    const struct mr_param *t = &w->p->tensors[index];
    assert_memory_equal(t->weights, w->before + t->offset, t->n * sizeof(float));
    w->n_calls++;
}

static void nothing_changes_before_it_is_asked_for(void **state)
{
    struct mr_params *p = trained(MR_ADAM_BEST, 1);
    float *before = malloc(p->bytes);
    struct watch w = {p, before, 0};
    struct mr_adam_opts opts = {.before = look, .ctx = &w};
    (void)state;
    memcpy(before, p->weights, p->bytes);
    assert_int_equal(mr_adam_update(p, &opts, NULL), 0);
    assert_int_equal(w.n_calls, p->n_tensors);
    assert_memory_not_equal(before, p->weights, p->bytes);
    free(before);
    mr_params_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_follow_the_definition),
        cmocka_unit_test(every_instruction_set_and_thread_count_gives_the_same_bits),
        cmocka_unit_test(what_is_not_finite_is_found_on_every_instruction_set),
        cmocka_unit_test(nothing_changes_before_it_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
