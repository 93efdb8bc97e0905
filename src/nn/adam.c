/* adam.c - Adam, TensorFlow's variant:
 *
 *     rate = lr * sqrt(1 - beta2_power) / (1 - beta1_power)
 *     m += (g - m) * (1 - beta1)
 *     v += (g * g - v) * (1 - beta2)
 *     w -= m * rate / (sqrt(v) + epsilon)
 *
 * Four streams are read and three written: memory is the limit, so products and sums are not fused,
 * and every instruction set gives the same bits.  A thread has the same share of every tensor.
 * Loops run over whole groups of 16 values: the gaps behind a tensor hold zeros, which stay zeros
 * (0 / (0 + epsilon)).
 *
 * A weight that is no number would go unnoticed in the loss, because ReLU turns it into 0; memory
 * being the limit, looking at every new weight is free. */
#include "adam.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#define BETA1   0.9f
#define BETA2   0.999f
#define EPSILON 1e-8f
#define GROUP   16

/* Returns 0, or NaN when a new weight is infinite or no number: the sum of w * 0. */
typedef float adam_fn(float *w, float *m, float *v, const float *g, uint64_t n, float rate);

static float adam_scalar(float *w, float *m, float *v, const float *g, uint64_t n, float rate)
{
    float odd = 0;
    for (uint64_t i = 0; i < n; i++) {
        m[i] += (g[i] - m[i]) * (1 - BETA1);
        v[i] += (g[i] * g[i] - v[i]) * (1 - BETA2);
        w[i] -= m[i] * rate / (sqrtf(v[i]) + EPSILON);
        odd += w[i] * 0;
    }
    return odd;
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static float sum_of(__m256 v)
{
    float part[8], sum = 0;
    _mm256_storeu_ps(part, v);
    for (int i = 0; i < 8; i++)
        sum += part[i];
    return sum;
}

__attribute__((target("avx2"))) static float adam_avx2(float *w, float *m, float *v, const float *g,
                                                       uint64_t n, float rate)
{
    const __m256 c1 = _mm256_set1_ps(1 - BETA1), c2 = _mm256_set1_ps(1 - BETA2);
    const __m256 r = _mm256_set1_ps(rate), eps = _mm256_set1_ps(EPSILON);
    __m256 odd = _mm256_setzero_ps();
    for (uint64_t i = 0; i < n; i += 8) {
        __m256 vg = _mm256_loadu_ps(g + i), vm = _mm256_loadu_ps(m + i);
        __m256 vv = _mm256_loadu_ps(v + i), vw = _mm256_loadu_ps(w + i);
        vm = _mm256_add_ps(vm, _mm256_mul_ps(_mm256_sub_ps(vg, vm), c1));
        vv = _mm256_add_ps(vv, _mm256_mul_ps(_mm256_sub_ps(_mm256_mul_ps(vg, vg), vv), c2));
        __m256 down = _mm256_add_ps(_mm256_sqrt_ps(vv), eps);
        vw = _mm256_sub_ps(vw, _mm256_div_ps(_mm256_mul_ps(vm, r), down));
        _mm256_storeu_ps(m + i, vm);
        _mm256_storeu_ps(v + i, vv);
        _mm256_storeu_ps(w + i, vw);
        odd = _mm256_add_ps(odd, _mm256_mul_ps(vw, _mm256_setzero_ps()));
    }
    return sum_of(odd);
}

__attribute__((target("avx512f"))) static float adam_avx512(float *w, float *m, float *v,
                                                            const float *g, uint64_t n, float rate)
{
    const __m512 c1 = _mm512_set1_ps(1 - BETA1), c2 = _mm512_set1_ps(1 - BETA2);
    const __m512 r = _mm512_set1_ps(rate), eps = _mm512_set1_ps(EPSILON);
    __m512 odd = _mm512_setzero_ps();
    for (uint64_t i = 0; i < n; i += 16) {
        __m512 vg = _mm512_loadu_ps(g + i), vm = _mm512_loadu_ps(m + i);
        __m512 vv = _mm512_loadu_ps(v + i), vw = _mm512_loadu_ps(w + i);
        vm = _mm512_add_ps(vm, _mm512_mul_ps(_mm512_sub_ps(vg, vm), c1));
        vv = _mm512_add_ps(vv, _mm512_mul_ps(_mm512_sub_ps(_mm512_mul_ps(vg, vg), vv), c2));
        __m512 down = _mm512_add_ps(_mm512_sqrt_ps(vv), eps);
        vw = _mm512_sub_ps(vw, _mm512_div_ps(_mm512_mul_ps(vm, r), down));
        _mm512_storeu_ps(m + i, vm);
        _mm512_storeu_ps(v + i, vv);
        _mm512_storeu_ps(w + i, vw);
        odd = _mm512_add_ps(odd, _mm512_mul_ps(vw, _mm512_setzero_ps()));
    }
    return _mm512_reduce_add_ps(odd);
}

static adam_fn *pick(enum mr_adam_simd simd)
{
    int avx2 = __builtin_cpu_supports("avx2"), avx512 = __builtin_cpu_supports("avx512f");
    switch (simd) {
    case MR_ADAM_BEST:
        return avx512 ? adam_avx512 : avx2 ? adam_avx2 : adam_scalar;
    case MR_ADAM_SCALAR:
        return adam_scalar;
    case MR_ADAM_AVX2:
        return avx2 ? adam_avx2 : NULL;
    case MR_ADAM_AVX512:
        return avx512 ? adam_avx512 : NULL;
    }
    return NULL;
}
#else
static adam_fn *pick(enum mr_adam_simd simd)
{
    return simd == MR_ADAM_BEST || simd == MR_ADAM_SCALAR ? adam_scalar : NULL;
}
#endif

struct step {
    struct mr_params *params;
    const struct mr_adam_opts *opts;
    adam_fn *fn;
    float rate;
    atomic_int diverged;
};

static void update_part(void *arg, unsigned rank, unsigned n)
{
    struct step *s = arg;
    for (unsigned k = 0; k < s->params->n_tensors; k++) {
        const struct mr_param *t = &s->params->tensors[k];
        uint64_t whole = (t->n + GROUP - 1) / GROUP * GROUP;
        uint64_t at = mr_team_share(whole, GROUP, rank, n);
        uint64_t end = mr_team_share(whole, GROUP, rank + 1, n);
        if (at == end)
            continue;
        if (s->opts->before)
            s->opts->before(s->opts->ctx, k);
        float odd = s->fn(t->weights + at, t->moment1 + at, t->moment2 + at, t->gradient + at,
                          end - at, s->rate);
        if (odd != 0)
            atomic_store(&s->diverged, 1);
    }
}

int mr_adam_update(struct mr_params *p, const struct mr_adam_opts *opts, struct mr_team *team)
{
    static const struct mr_adam_opts defaults;
    if (!opts)
        opts = &defaults;
    float lr = opts->lr ? opts->lr : 0.001f;
    struct step s = {.params = p, .opts = opts, .fn = pick(opts->simd)};
    if (!s.fn)
        return -ENOTSUP;
    s.rate = lr * sqrtf(1 - p->beta2_power) / (1 - p->beta1_power);
    mr_team_run(team, update_part, &s);
    p->beta1_power *= BETA1;
    p->beta2_power *= BETA2;
    p->n_updates++;
    return atomic_load(&s.diverged) ? -EDOM : 0;
}
