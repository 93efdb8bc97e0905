/* test_uring_absent.c - in a build without liburing the uring engine is refused with the reason and
 * the way out. */
#include "unit.h"

#include "photo_set.h"
#include "raw_ring.h"
#include "uring_reader.h"

#include <errno.h>
#include <string.h>

static void a_reader_and_a_raw_ring_are_refused(void **state)
{
    struct mr_uring_reader *r = NULL;
    struct mr_raw_ring *raw = NULL;
    struct mr_error err = {0};
    (void)state;
    assert_int_equal(mr_uring_reader_open(4, 0, &r, &err), -ENOTSUP);
    assert_null(r);
    assert_string_equal(err.text, "io_uring: this build has no liburing; use the threads engine");
    err = (struct mr_error){0};
    assert_int_equal(mr_raw_ring_open(4, &raw, &err), -ENOTSUP);
    assert_null(raw);
    assert_non_null(strstr(err.text, "no liburing"));
}

static void a_pipeline_by_io_uring_is_refused_with_the_way_out(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 4);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct mr_pipeline_opts o = {.engine = MR_ENGINE_URING, .batch = 2};
    struct mr_pipeline *p = NULL;
    struct mr_error err = {0};
    assert_int_equal(mr_pipeline_open(d, &o, &p, &err), -ENOTSUP);
    assert_null(p);
    assert_non_null(strstr(err.text, "use the threads engine"));
    int r;
    o.engine = MR_ENGINE_THREADS;
    photo_set_hash(d, &o, &r);
    assert_int_equal(r, 0);
    mr_dataset_unref(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_and_a_raw_ring_are_refused),
        WITH_TEMPDIR(a_pipeline_by_io_uring_is_refused_with_the_way_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
