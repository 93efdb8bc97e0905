/* Every fallible call while a network is opened fails once: a clean error, and nothing is left. */
#include "unit.h"

#include "faults.h"
#include "net.h"
#include "nn_small.h"

#include <errno.h>
#include <stdlib.h>

#include <dnnl.h>

/* oneDNN's own failures: the n-th primitive, descriptor or memory object cannot be made. */
static uint64_t n_library, library_at;
static int64_t n_live;

static int library_fails(void)
{
    return ++n_library == library_at;
}

dnnl_status_t __real_dnnl_primitive_create(dnnl_primitive_t *, const_dnnl_primitive_desc_t);
dnnl_status_t __wrap_dnnl_primitive_create(dnnl_primitive_t *, const_dnnl_primitive_desc_t);
dnnl_status_t __real_dnnl_primitive_destroy(dnnl_primitive_t);
dnnl_status_t __wrap_dnnl_primitive_destroy(dnnl_primitive_t);
dnnl_status_t __real_dnnl_memory_create(dnnl_memory_t *, const dnnl_memory_desc_t *, dnnl_engine_t,
                                        void *);
dnnl_status_t __wrap_dnnl_memory_create(dnnl_memory_t *, const dnnl_memory_desc_t *, dnnl_engine_t,
                                        void *);
dnnl_status_t __real_dnnl_memory_destroy(dnnl_memory_t);
dnnl_status_t __wrap_dnnl_memory_destroy(dnnl_memory_t);

dnnl_status_t __wrap_dnnl_primitive_create(dnnl_primitive_t *out, const_dnnl_primitive_desc_t pd)
{
    if (library_fails())
        return dnnl_out_of_memory;
    n_live++;
    return __real_dnnl_primitive_create(out, pd);
}

dnnl_status_t __wrap_dnnl_primitive_destroy(dnnl_primitive_t p)
{
    n_live--;
    return __real_dnnl_primitive_destroy(p);
}

dnnl_status_t __wrap_dnnl_memory_create(dnnl_memory_t *out, const dnnl_memory_desc_t *md,
                                        dnnl_engine_t engine, void *data)
{
    if (library_fails())
        return dnnl_out_of_memory;
    n_live++;
    return __real_dnnl_memory_create(out, md, engine, data);
}

dnnl_status_t __wrap_dnnl_memory_destroy(dnnl_memory_t m)
{
    n_live--;
    return __real_dnnl_memory_destroy(m);
}

/* Open and use it; an error must have words. */
static int attempt(unsigned which)
{
    struct mr_net_opts opts = {.batch = 2, .threads = under_tsan() ? 1 : 2, .seed = 1};
    struct mr_error err = {0};
    struct mr_net *net = NULL;
    int r = mr_net_open(small_net(which), &opts, &net, &err);
    if (r) {
        assert_null(net);
        assert_true(r == -ENOMEM || r == -EAGAIN || r == -ENOTSUP);
        assert_int_equal(err.code, r);
        assert_true(err.text[0] != 0);
    }
    mr_net_close(net);
    return r;
}

static void our_own_calls_may_fail(void **state)
{
    (void)state;
    for (unsigned which = 0; which < N_SMALL_NETS; which += 4) {
        int64_t before = faults_live();
        int failed = 1;
        for (uint64_t at = 1; failed; at++) {
            faults_begin(FAULT_FAIL, at);
            int r = attempt(which);
            failed = faults_end();
            assert_true(failed ? r < 0 : r == 0);
            assert_int_equal(faults_live(), before);
            assert_int_equal(n_live, 0);
        }
    }
}

static void the_librarys_calls_may_fail(void **state)
{
    int64_t before = faults_live();
    (void)state;
    for (library_at = 1;; library_at++) {
        n_library = 0;
        int r = attempt(4);
        assert_int_equal(n_live, 0);
        assert_int_equal(faults_live(), before);
        if (n_library < library_at)
            break;
        assert_int_equal(r, -ENOMEM);
    }
    assert_true(library_at > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_own_calls_may_fail),
        cmocka_unit_test(the_librarys_calls_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
