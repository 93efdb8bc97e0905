/* test_studied_disk.c - the device that holds the data counts, and no other; where it is not known,
 * no byte counts twice. */
#include "studied_disk.h"

#include "unit.h"

#include <string.h>

static const struct mr_disk rows[] = {
    {.name = "vda"},   {.name = "vda1", .partition = 1},
    {.name = "vdb"},   {.name = "dm-0"},
    {.name = "loop0"}, {.name = "md127"},
    {.name = "sdc"},   {.name = "zram0"},
};

/* The rows that count, as letters: the first is 'a'. */
static const char *counted(const char *name)
{
    static char text[ARRAY_LEN(rows) + 1];
    struct mr_studied_disk d;
    size_t n = 0;
    strcpy(d.name, name);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (mr_studied_disk_has(&d, &rows[i]))
            text[n++] = (char)('a' + i);
    text[n] = 0;
    return text;
}

static void only_the_device_that_holds_the_data_counts(void **state)
{
    (void)state;
    assert_string_equal(counted("vda"), "a");
    assert_string_equal(counted("vda1"), "b");
    assert_string_equal(counted("dm-0"), "d");
    assert_string_equal(counted("loop0"), "e");
    assert_string_equal(counted("gone"), "");
}

static void without_a_name_devices_made_of_others_do_not_count(void **state)
{
    (void)state;
    assert_string_equal(counted(""), "acg");
}

static void a_file_system_without_a_device_has_no_name(void **state)
{
    struct mr_studied_disk d = {.name = "old"};
    (void)state;
    mr_studied_disk_find(&d, "/proc");
    assert_string_equal(d.name, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_device_that_holds_the_data_counts),
        cmocka_unit_test(without_a_name_devices_made_of_others_do_not_count),
        cmocka_unit_test(a_file_system_without_a_device_has_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
