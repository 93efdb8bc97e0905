/* The table of parameters, its memory and the initial weights; the team that fills it. */
#include "unit.h"

#include "big_memory.h"
#include "nn_small.h"
#include "params.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct mr_layer one_dense[] = {{.kind = MR_LAYER_DENSE,
                                             .name = "d",
                                             .weights = "w",
                                             .bias = "b",
                                             .n_out = 333,
                                             .bias_init = 0.5f}};
static const struct mr_net_spec spec = {"dense", 10, 10, 7, 1, one_dense};

static struct mr_params *made(uint64_t seed, unsigned threads)
{
    struct mr_params *p = NULL;
    struct mr_team *team = NULL;
    assert_int_equal(mr_params_new(&spec, &p, NULL), 0);
    assert_int_equal(mr_team_open(threads, &team), 0);
    mr_params_init(p, &spec, seed, team);
    mr_team_close(team);
    return p;
}

static void tensors_are_aligned_and_do_not_overlap(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_SMALL_NETS; i++) {
        struct mr_params *p = NULL;
        uint64_t end = 0, values = 0;
        assert_int_equal(mr_params_new(small_net(i), &p, NULL), 0);
        assert_int_equal((uintptr_t)p->weights % (2 << 20), 0);
        for (unsigned k = 0; k < p->n_tensors; k++) {
            const struct mr_param *t = &p->tensors[k];
            assert_true(t->offset >= end);
            assert_int_equal(t->offset % 16, 0);
            assert_ptr_equal(t->moment2, p->moments2 + t->offset);
            end = t->offset + t->n;
            values += t->n;
        }
        assert_true(end * sizeof(float) <= p->bytes);
        assert_int_equal(values, p->n_values);
        mr_params_free(p);
    }
}

/* Cut at two deviations, a normal distribution keeps 0.87963 of its deviation; 68.27% of it are
 * within one, of 95.45% that remain. */
static void weights_are_a_truncated_normal_distribution(void **state)
{
    struct mr_params *p = made(1, 1);
    const struct mr_param *t = &p->tensors[0];
    double n = (double)t->n, sum = 0, squares = 0, within = 0;
    (void)state;
    for (uint64_t i = 0; i < t->n; i++) {
        double w = t->weights[i] / 0.01;
        assert_true(fabs(w) <= 2.000001);
        sum += w;
        squares += w * w;
        within += fabs(w) < 1;
    }
    assert_true(fabs(sum / n) < 5 * 0.88 / sqrt(n));
    assert_true(fabs(sqrt(squares / n) - 0.87963) < 0.005);
    assert_true(fabs(within / n - 0.682689 / 0.954500) < 0.005);
    for (uint64_t i = 0; i < p->tensors[1].n; i++)
        assert_true(p->tensors[1].weights[i] == 0.5f);
    assert_true(p->beta1_power == 0.9f && p->beta2_power == 0.999f && p->n_updates == 0);
    mr_params_free(p);
}

static void weights_depend_on_the_seed_not_on_the_threads(void **state)
{
    struct mr_params *a = made(1, 1), *b = made(1, 3), *c = made(2, 1);
    (void)state;
    assert_memory_equal(a->weights, b->weights, a->bytes);
    assert_memory_not_equal(a->weights, c->weights, a->bytes);
    mr_params_free(a);
    mr_params_free(b);
    mr_params_free(c);
}

static void mark_part(void *arg, unsigned rank, unsigned n)
{
    unsigned char *seen = arg;
    uint64_t end = mr_team_share(1000, 7, rank + 1, n);
    for (uint64_t i = mr_team_share(1000, 7, rank, n); i < end; i++)
        seen[i]++;
}

static void a_team_does_each_part_once_again_and_again(void **state)
{
    unsigned char seen[1000] = {0};
    (void)state;
    for (unsigned threads = 1; threads < 6; threads++) {
        struct mr_team *team = NULL;
        assert_int_equal(mr_team_open(threads, &team), 0);
        for (unsigned round = 1; round <= 20; round++) {
            mr_team_run(team, mark_part, seen);
            for (unsigned i = 0; i < 1000; i++)
                assert_int_equal(seen[i], round);
        }
        mr_team_close(team);
        memset(seen, 0, sizeof seen);
    }
}

static void available_memory_is_a_sensible_number(void **state)
{
    (void)state;
    assert_true(mr_big_available() > 1 << 20);
    assert_null(mr_big_alloc(SIZE_MAX - 4096));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_aligned_and_do_not_overlap),
        cmocka_unit_test(weights_are_a_truncated_normal_distribution),
        cmocka_unit_test(weights_depend_on_the_seed_not_on_the_threads),
        cmocka_unit_test(a_team_does_each_part_once_again_and_again),
        cmocka_unit_test(available_memory_is_a_sensible_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
