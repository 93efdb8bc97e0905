/* test_say.c - say() is printf, but for what strings bring with them. */
#include "unit.h"

#include "say.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static char *said;
static size_t said_len;

__attribute__((format(printf, 1, 2))) static const char *hear(const char *format, ...)
{
    va_list args;
    free(said);
    FILE *f = open_memstream(&said, &said_len);
    va_start(args, format);
    say_args(f, format, args);
    va_end(args);
    fclose(f);
    return said;
}

#define SAME(...)                                                                                  \
    do {                                                                                           \
        char want[512];                                                                            \
        snprintf(want, sizeof want, __VA_ARGS__);                                                  \
        assert_string_equal(hear(__VA_ARGS__), want);                                              \
    } while (0)

static void numbers_are_those_of_printf(void **state)
{
    (void)state;
    SAME("%d %5d %-5d| %05d %+d %% %c", INT_MIN, 42, 42, 42, 42, 'x');
    SAME("%u %llu %zu %lu %lld", UINT_MAX, ULLONG_MAX, SIZE_MAX, ULONG_MAX, LLONG_MIN);
    SAME("%x %08x %016llx", 255u, 255u, 0x1234567890abcdefull);
    SAME("%f %.0f %6.1f%% %9.2f %.9g %*.*f", 1.5, 2.5, 99.95, -3.125, 1e-7, 8, 3, 2.0 / 3);
    SAME("%7u %10.0f %6.1f%% %8s %8.0f %9.2f  %26s %8llu  %s%s\n", 8u, 1234.5, 0.4, "2.00x", 99.9,
         12.25, "1/2/3", 7ull, "cold", "");
    SAME("nothing");
    SAME("%s", "");
}

static void strings_are_those_of_printf(void **state)
{
    (void)state;
    SAME("[%s] [%10s] [%-10s] [%3s]", "plain", "right", "left", "longer");
    SAME("[%.3s] [%10.3s] [%-*.*s] [%.*s]", "abcdef", "abcdef", 6, 2, "abcdef", 4, "abcdef");
}

static void what_is_no_text_for_a_terminal_is_shown_as_bytes(void **state)
{
    (void)state;
    assert_string_equal(hear("\033[K%s\n", "a\033[31m\nforged: b\r\t\x7f"),
                        "\033[Ka\\x1b[31m\\x0aforged: b\\x0d\\x09\\x7f\n");
    assert_string_equal(hear("%s", "\xc2\x9b"
                                   "1m \xff Gr\xc3\xbc\xc3\x9f"
                                   "e \xe6\x97\xa5"),
                        "\\xc2\\x9b1m \\xff Gr\xc3\xbc\xc3\x9f"
                        "e \xe6\x97\xa5");
    assert_string_equal(hear("%s", "\\x1b is a name"), "\\x1b is a name");
}

static void columns_are_characters(void **state)
{
    (void)state;
    assert_string_equal(hear("[%4s] [%-4s]", "\xc3\xbc", "\xc3\xbc"),
                        "[   \xc3\xbc] [\xc3\xbc   ]");
    assert_string_equal(hear("[%6s]", "\n"), "[  \\x0a]");
    assert_string_equal(hear("[%-6.6s]", "\n\n\n"), "[\\x0a  ]"); /* no half of an escape */
    assert_string_equal(hear("[%.2s]", "\n\n\n"), "[\\x0a\\x0a]");
    assert_string_equal(hear("[%.1s]", "\xc3\xbc"), "[\\xc3]");
}

static void a_string_that_is_not_closed_is_read_to_its_length(void **state)
{
    char *part = malloc(3);
    (void)state;
    memcpy(part, "ab\xc3", 3); /* ASan watches what follows */
    assert_string_equal(hear("%.*s", 3, part), "ab\\xc3");
    free(part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_printf),
        cmocka_unit_test(strings_are_those_of_printf),
        cmocka_unit_test(what_is_no_text_for_a_terminal_is_shown_as_bytes),
        cmocka_unit_test(columns_are_characters),
        cmocka_unit_test(a_string_that_is_not_closed_is_read_to_its_length),
    };
    int status = cmocka_run_group_tests(tests, NULL, NULL);
    free(said);
    return status;
}
