/* test_errtext.c - the first error stays, long texts are cut, and the clock goes forward. */
#include "errtext.h"

#include "clock.h"
#include "unit.h"

#include <errno.h>
#include <string.h>

static void the_first_error_stays(void **state)
{
    struct mr_error err = {0};
    assert_int_equal(mr_fail(&err, -ENOENT, "%s: line %d", "list", 7), -ENOENT);
    assert_int_equal(mr_fail(&err, -EIO, "later"), -EIO);
    assert_int_equal(err.code, -ENOENT);
    assert_string_equal(err.text, "list: line 7");
}

static void nobody_has_to_listen(void **state)
{
    assert_int_equal(mr_fail(NULL, -EIO, "unheard"), -EIO);
}

static void a_long_text_is_cut_and_closed(void **state)
{
    char path[3000];
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = 0;
    struct mr_error err = {0};
    mr_fail(&err, -ENAMETOOLONG, "%s", path);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

static void errors_have_words(void **state)
{
    assert_string_equal(mr_errno_text(-ENOENT), "No such file or directory");
    assert_string_equal(mr_errno_text(ENOENT), "No such file or directory");
    assert_string_equal(mr_errno_text(-99999), "unknown error");
}

static void the_version_is_known(void **state)
{
    assert_string_equal(mr_version(), MR_VERSION);
}

static void clocks_go_forward(void **state)
{
    uint64_t t = mr_clock_ns(), cpu = mr_clock_process_cpu_ns();
    for (int i = 0; i < 1000; i++) {
        uint64_t t2 = mr_clock_ns(), cpu2 = mr_clock_process_cpu_ns();
        assert_true(t2 >= t && cpu2 >= cpu);
        t = t2;
        cpu = cpu2;
    }
    assert_true(t > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_error_stays),         cmocka_unit_test(nobody_has_to_listen),
        cmocka_unit_test(a_long_text_is_cut_and_closed), cmocka_unit_test(errors_have_words),
        cmocka_unit_test(the_version_is_known),          cmocka_unit_test(clocks_go_forward),
    };
    return cmocka_run_group_tests_name("errtext", tests, NULL, NULL);
}
