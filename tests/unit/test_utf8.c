/* test_utf8.c - what may go to a terminal, compared with the rule spelled out code by code. */
#include "unit.h"

#include "utf8.h"

#include <stdio.h>
#include <string.h>

static size_t encode(uint32_t c, char *s)
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; c >>= 6)
        s[i] = (char)(0x80 | (c & 0x3f));
    s[0] = (char)(lead[n] | c);
    s[n] = 0;
    return n;
}

static int is_hidden(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

static void every_character_is_itself_or_its_bytes(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 0x110000; c++) {
        char s[5], want[MR_PRINTABLE] = "", piece[MR_PRINTABLE];
        size_t n = encode(c, s);
        if (c >= 0xd800 && c < 0xe000) { /* half of a pair */
            assert_int_equal(mr_utf8_length(s), 0);
            continue;
        }
        assert_int_equal(mr_utf8_length(s), n);
        for (size_t i = 0; i < n && is_hidden(c); i++)
            sprintf(want + 4 * i, "\\x%02x", (unsigned char)s[i]);
        assert_int_equal(mr_printable(s, n, piece), n);
        assert_string_equal(piece, is_hidden(c) ? want : s);
    }
}

static void bytes_that_are_no_text_are_shown_one_by_one(void **state)
{
    static const char *const bad[] = {
        "\x80",         "\xbf",         "\xc0\x80",     "\xc1\xbf", "\xc3",     "\xc3(", "\xe2\x82",
        "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf", "\xf4\x90", "\xf5\x80", "\xff",  "\xfe"};
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
        char piece[MR_PRINTABLE], want[8];
        snprintf(want, sizeof want, "\\x%02x", (unsigned char)bad[i][0]);
        assert_int_equal(mr_utf8_length(bad[i]), 0);
        assert_int_equal(mr_printable(bad[i], strlen(bad[i]), piece), 1);
        assert_string_equal(piece, want);
    }
}

static void a_character_that_is_cut_is_no_character(void **state)
{
    char piece[MR_PRINTABLE];
    (void)state;
    assert_int_equal(mr_printable("\xc3\xa9", 1, piece), 1);
    assert_string_equal(piece, "\\xc3");
    assert_int_equal(mr_printable("\xc3\xa9", 2, piece), 2);
    assert_string_equal(piece, "\xc3\xa9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_character_is_itself_or_its_bytes),
        cmocka_unit_test(bytes_that_are_no_text_are_shown_one_by_one),
        cmocka_unit_test(a_character_that_is_cut_is_no_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
