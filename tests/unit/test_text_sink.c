/* test_text_sink.c - numbers are what printf makes of them, and records are whole or not there. */
#include "unit.h"

#include "text_sink.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check_number(uint64_t v)
{
    char ours[40], want[40];
    *mr_put_u64(ours, v) = 0;
    snprintf(want, sizeof want, "%" PRIu64, v);
    assert_string_equal(ours, want);
    *mr_put_thousandths(ours, v) = 0;
    snprintf(want, sizeof want, "%" PRIu64 ".%03u", v / 1000, (unsigned)(v % 1000));
    assert_string_equal(ours, want);
}

static void numbers_are_those_of_printf(void **state)
{
    (void)state;
    for (uint64_t v = 0; v < 12000; v++)
        check_number(v);
    for (uint64_t ten = 10; ten <= UINT64_MAX / 10; ten *= 10)
        for (uint64_t v = ten - 2; v < ten + 3; v++)
            check_number(v);
    for (unsigned bit = 0; bit < 64; bit++)
        for (uint64_t d = 0; d < 3; d++)
            check_number(((uint64_t)1 << bit) - 1 + d);
    check_number(10000000000000000000u);
    check_number(9999999999999999999u);
    check_number(UINT64_MAX);
}

static char *read_back(const char *path, size_t *len)
{
    static char text[1 << 20];
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    ssize_t n = read(fd, text, sizeof text);
    assert_true(n >= 0 && n < (ssize_t)sizeof text);
    close(fd);
    *len = (size_t)n;
    return text;
}

static void the_longest_path_fits_behind_any_record(void **state)
{
    struct tempdir *t = *state;
    struct mr_text_sink s;
    char path[4096];
    size_t want = 0, len;
    memset(path, 1, sizeof path - 1); /* six bytes each */
    path[sizeof path - 1] = 0;
    const char *file = tempdir_path(t, "sink");
    assert_int_equal(mr_text_sink_init(&s, open(file, O_WRONLY | O_CREAT, 0600)), 0);
    for (unsigned i = 0; i < 500; i++) {
        size_t before = s.len;
        mr_sink_to(&s, mr_put_u64(mr_sink_at(&s), i));
        if (i % 25 == 0)
            mr_sink_json_string(&s, path);
        for (unsigned k = 0; k < i; k++)
            mr_sink_text(&s, ".");
        mr_sink_text(&s, "\n");
        want += s.len - before;
        mr_sink_end_record(&s, 1);
    }
    assert_int_equal(mr_text_sink_close(&s), 0);
    assert_int_equal(s.n_written, 500);
    assert_int_equal(s.n_lost, 0);
    char *p = read_back(file, &len);
    assert_int_equal(len, want);
    for (unsigned i = 0; i < 500; i++) {
        assert_int_equal(strtoul(p, &p, 10), i);
        if (i % 25 == 0)
            p += 2 + 6 * (sizeof path - 1);
        assert_int_equal(strspn(p, "."), i);
        p += i;
        assert_int_equal(*p++, '\n');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_printf),
        WITH_TEMPDIR(the_longest_path_fits_behind_any_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
