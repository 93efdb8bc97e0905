/* test_markup.c - text for pages and tables: whatever comes in, what goes out is well formed. */
#include "markup.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_text(const char *in, const char *out)
{
    struct mr_markup m = {0};
    mr_markup_add(&m, "[");
    mr_markup_text(&m, in);
    mr_markup_add(&m, "]");
    assert_true(mr_markup_ok(&m));
    char *want = NULL;
    assert_true(asprintf(&want, "[%s]", out) > 0);
    assert_string_equal(m.data, want);
    assert_int_equal(m.len, strlen(want));
    free(want);
    mr_markup_fini(&m);
}

static void characters_of_markup_become_entities(void **state)
{
    (void)state;
    expect_text("a<b>&\"c'", "a&lt;b&gt;&amp;&quot;c&#39;");
    expect_text("&amp;", "&amp;amp;");
    expect_text("", "");
    expect_text(NULL, "");
}

static void control_characters_become_spaces(void **state)
{
    (void)state;
    expect_text("a\x01\x1f\tb\nc", "a   b\nc");
}

static void what_is_no_utf8_becomes_question_marks(void **state)
{
    (void)state;
    expect_text("\xc3\xa9\xe2\x80\xa6\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x80\xa6\xf0\x9f\x98\x80");
    expect_text("\xff\xfe", "??");
    expect_text("\xc3", "?");
    expect_text("\xc3<", "?&lt;"); /* the second byte is looked at, and kept */
    expect_text("\xe2\x80", "??");
    expect_text("\x80x", "?x");
    expect_text("\xc0\xaf", "??");           /* overlong */
    expect_text("\xe0\x80\xaf", "???");      /* overlong */
    expect_text("\xed\xa0\x80", "???");      /* half of a surrogate pair */
    expect_text("\xf4\x90\x80\x80", "????"); /* beyond the last character */
    expect_text("\xf0\x80\x80\xaf", "????");
}

static void expect_csv(const char *in, const char *out)
{
    struct mr_markup m = {0};
    mr_markup_csv(&m, in);
    assert_string_equal(m.data, out);
    mr_markup_fini(&m);
}

static void fields_of_csv_are_quoted_when_they_must_be(void **state)
{
    (void)state;
    expect_csv("plain text", "plain text");
    expect_csv("a,b", "\"a,b\"");
    expect_csv("say \"x\"", "\"say \"\"x\"\"\"");
    expect_csv("two\nlines", "\"two\nlines\"");
    expect_csv("cr\r", "\"cr\r\"");
}

static void long_text_is_kept_whole(void **state)
{
    (void)state;
    struct mr_markup m = {0};
    char *lots = malloc(100001);
    assert_non_null(lots);
    memset(lots, 'x', 100000);
    lots[100000] = 0;
    for (unsigned i = 0; i < 20; i++) {
        mr_markup_add(&m, "%s", lots);
        mr_markup_text(&m, "<");
    }
    assert_true(mr_markup_ok(&m));
    assert_int_equal(m.len, 20 * 100004);
    assert_int_equal(strlen(m.data), m.len);
    free(lots);
    mr_markup_fini(&m);
    assert_null(m.data);
    mr_markup_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_of_markup_become_entities),
        cmocka_unit_test(control_characters_become_spaces),
        cmocka_unit_test(what_is_no_utf8_becomes_question_marks),
        cmocka_unit_test(fields_of_csv_are_quoted_when_they_must_be),
        cmocka_unit_test(long_text_is_kept_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
