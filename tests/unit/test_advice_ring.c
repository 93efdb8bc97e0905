/* test_advice_ring.c - the advice where io_uring is refused and what is tried instead fails, too:
 * the reason that is given is the last one's. */
#include "unit.h"

#include "advice.h"
#include "errtext.h"
#include "microbench.h"
#include "train_set.h"

#include <errno.h>
#include <string.h>

int __wrap_mr_microbench_run(const struct mr_bench_opts *o, struct mr_bench_result *out,
                             struct mr_error *err);

/* The wrapped function has no context. */
static unsigned n_ring, n_threads;

int __wrap_mr_microbench_run(const struct mr_bench_opts *o, struct mr_bench_result *out,
                             struct mr_error *err)
{
    *out = (struct mr_bench_result){.pipe = o->pipe};
    if (o->pipe.engine == MR_ENGINE_URING) {
        n_ring++;
        return mr_fail(err, -ENOTSUP, "no ring here");
    }
    n_threads++;
    return mr_fail(err, -EIO, "the disk is broken");
}

static void the_second_failure_gives_its_own_reason(void **state)
{
    static const struct mr_decoder_opts decode = {.width = 8, .height = 8};
    struct mr_advice_opts o = {.data = train_set_new(*state, "set", 8, 2),
                               .decode = &decode,
                               .now = {.threads = 1, .batch = 4, .prefetch = 1},
                               .scratch = ((struct tempdir *)*state)->path,
                               .runs = 1,
                               .box_s = 0.01};
    struct mr_findings f = {.cores = 2, /* a read takes 10 ms, however many are under way */
                            .image_cpu_s = 1e-4,
                            .read_cpu_s = 1e-5,
                            .file_bytes = 14e3,
                            .curve = {6, {1, 2, 4, 8, 16, 32}, {100, 200, 400, 800, 1600, 3200}}};
    struct mr_advice a = {.now_per_s = -1};
    struct mr_error err = {0};
    assert_int_equal(mr_advice_prove(&o, &f, &a, &err), -EIO);
    assert_true(n_ring && n_threads);
    assert_int_equal(err.code, -EIO);
    assert_non_null(strstr(err.text, "the disk is broken"));
    assert_null(strstr(err.text, "ring"));
    assert_true(a.now_per_s == -1); /* written on success only */
    mr_dataset_unref(o.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(the_second_failure_gives_its_own_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
