/* test_json.c - what is built, written and parsed again is the same. */
#include "json.h"

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Write to a file, read it back as text. */
static size_t written(struct tempdir *t, const struct mr_json *v, char *text, size_t cap)
{
    int fd = open(tempdir_path(t, "out.json"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(mr_json_write(v, fd), 0);
    ssize_t n = pread(fd, text, cap - 1, 0);
    assert_true(n > 0);
    text[n] = 0;
    close(fd);
    return (size_t)n;
}

static struct mr_json *again(struct tempdir *t, const struct mr_json *v)
{
    char text[4096];
    size_t len = written(t, v, text, sizeof text);
    struct mr_json *back = mr_json_parse(text, len);
    assert_non_null(back);
    return back;
}

static void a_document_survives_the_round_trip(void **state)
{
    struct mr_json *root = mr_json_object(), *list = mr_json_array(), *row = mr_json_object();
    mr_json_set(root, "command", mr_json_string("bench"));
    mr_json_set(root, "nothing", mr_json_null());
    mr_json_set(root, "yes", mr_json_bool(1));
    mr_json_set(root, "results", list);
    mr_json_append(list, row);
    mr_json_append(list, mr_json_real(0.125));
    mr_json_set(row, "threads", mr_json_int(8));
    mr_json_set(row, "least", mr_json_int(INT64_MIN / 2));

    struct mr_json *back = again(*state, root);
    assert_string_equal(mr_json_text(mr_json_at(back, "command")), "bench");
    assert_true(mr_json_is_null(mr_json_at(back, "nothing")));
    assert_false(mr_json_is_null(mr_json_at(back, "yes")));
    assert_int_equal(mr_json_len(mr_json_at(back, "results")), 2);
    assert_true(mr_json_number(mr_json_at(back, "results.0.threads")) == 8);
    assert_true(mr_json_number(mr_json_at(back, "results.0.least")) == (double)(INT64_MIN / 2));
    assert_true(mr_json_number(mr_json_at(back, "results.1")) == 0.125);
    mr_json_free(root);
    mr_json_free(back);
}

static void text_is_known_to_the_byte(void **state)
{
    char text[256];
    struct mr_json *root = mr_json_object(), *list = mr_json_array();
    mr_json_set(root, "b", mr_json_string("a \"quote\", a \\, a \n, a \x01"));
    mr_json_set(root, "a", list);
    mr_json_append(list, mr_json_real(1));
    mr_json_append(list, mr_json_real(1.5e-7));
    mr_json_append(list, mr_json_bool(0));
    written(*state, root, text, sizeof text);
    assert_string_equal(text, "{\n"
                              "  \"b\": \"a \\\"quote\\\", a \\\\, a \\n, a \\u0001\",\n"
                              "  \"a\": [\n"
                              "    1.0,\n"
                              "    1.5e-7,\n"
                              "    false\n"
                              "  ]\n"
                              "}\n");
    mr_json_free(root);
}

static void what_is_not_there_is_null(void **state)
{
    static const char text[] = "{\"a\": [1, {\"b\": \"x\"}], \"n\": 3}";
    struct mr_json *v = mr_json_parse(text, strlen(text));
    assert_non_null(v);
    static const char *const paths[] = {
        "x", "a.2", "a.-1", "a.1.c", "n.0", "a.1.b.0", "a.x", "a.1x", "a.99999999999999999999999"};
    for (size_t k = 0; k < ARRAY_LEN(paths); k++)
        if (mr_json_at(v, paths[k]))
            fail_msg("%s is found", paths[k]);
    assert_null(mr_json_at(NULL, "a"));
    assert_ptr_equal(mr_json_at(v, ""), v);
    assert_true(isnan(mr_json_number(mr_json_at(v, "a"))));
    assert_true(isnan(mr_json_number(NULL)));
    assert_null(mr_json_text(mr_json_at(v, "n")));
    assert_null(mr_json_text(NULL));
    assert_int_equal(mr_json_len(mr_json_at(v, "n")), 0);
    assert_int_equal(mr_json_len(NULL), 0);
    assert_false(mr_json_is_null(NULL));
    mr_json_free(v);
}

static void a_number_without_value_becomes_null(void **state)
{
    struct mr_json *root = mr_json_array();
    mr_json_append(root, mr_json_real(NAN));
    mr_json_append(root, mr_json_real(INFINITY));
    mr_json_append(root, mr_json_string(NULL));
    struct mr_json *back = again(*state, root);
    for (int i = 0; i < 3; i++)
        assert_true(mr_json_is_null(mr_json_at(back, (const char *[]){"0", "1", "2"}[i])));
    mr_json_free(root);
    mr_json_free(back);
}

static void a_path_that_is_no_utf8_is_made_readable(void **state)
{
#define BAD "\xef\xbf\xbd"
    static const char *const cases[][2] = {
        {"plain.jpg", "plain.jpg"},
        {"gr\xc3\xbc\xc3\x9f.jpg", "gr\xc3\xbc\xc3\x9f.jpg"},
        {"\xf0\x9f\x90\x88/cat", "\xf0\x9f\x90\x88/cat"},
        {"latin\xfc.jpg", "latin" BAD ".jpg"},
        {"cut\xc3", "cut" BAD},
        {"cut\xe2\x82", "cut" BAD BAD},
        {"\xf0\x9f\x90", BAD BAD BAD},
        {"\x80\xbf", BAD BAD},
        {"over\xc0\xaflong", "over" BAD BAD "long"},
        {"over\xe0\x80\xaflong", "over" BAD BAD BAD "long"},
        {"half\xed\xa0\x80of a pair", "half" BAD BAD BAD "of a pair"},
        {"beyond\xf4\x90\x80\x80", "beyond" BAD BAD BAD BAD},
        {"\xff\xfe\xc3\xbc", BAD BAD "\xc3\xbc"},
        {"", ""},
    };
    for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
        struct mr_json *root = mr_json_array();
        mr_json_append(root, mr_json_string(cases[k][0]));
        struct mr_json *back = again(*state, root);
        assert_string_equal(mr_json_text(mr_json_at(back, "0")), cases[k][1]);
        mr_json_free(root);
        mr_json_free(back);
    }
}

static void every_pair_of_bytes_can_be_written(void **state)
{
    struct mr_json *root = mr_json_array();
    for (int a = 1; a < 256; a++)
        for (int b = 1; b < 256; b += 3)
            mr_json_append(root, mr_json_string((char[]){(char)a, (char)b, 0}));
    assert_int_equal(mr_json_len(root), 255 * 85);
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    assert_int_equal(mr_json_write(root, fd), 0);
    close(fd);
    mr_json_free(root);
}

static void text_that_is_no_json_is_refused(void **state)
{
    static const char *const cases[] = {
        "", "{", "{} x", "[1,]", "{'a':1}", "{\"a\": nan}", "{\"a\":1,\"a\":2}", "[\"\xff\"]"};
    for (size_t k = 0; k < ARRAY_LEN(cases); k++)
        assert_null(mr_json_parse(cases[k], strlen(cases[k])));
}

static int note_key(void *ctx, const char *key, const struct mr_json *value)
{
    int64_t v;
    strcat(ctx, key);
    return mr_json_integer(value, &v) ? -1 : (int)v;
}

static void members_are_visited_in_the_order_of_the_text(void **state)
{
    static const char text[] = "{\"b.c\":0,\"a\":0,\"list\":7,\"never\":0}";
    char keys[64] = "";
    struct mr_json *v = mr_json_parse(text, sizeof text - 1);
    assert_int_equal(mr_json_each(v, note_key, keys), 7);
    assert_string_equal(keys, "b.calist");
    assert_non_null(mr_json_member(v, "b.c"));
    assert_null(mr_json_member(v, "b"));
    assert_true(mr_json_is_object(v) && !mr_json_is_array(v));
    mr_json_free(v);
}

static void only_whole_numbers_are_integers(void **state)
{
    static const char text[] = "[9223372036854775807, 1.0, \"1\", -5]";
    struct mr_json *v = mr_json_parse(text, sizeof text - 1);
    int64_t n = 1;
    assert_int_equal(mr_json_integer(mr_json_item(v, 0), &n), 0);
    assert_true(n == INT64_MAX);
    assert_int_equal(mr_json_integer(mr_json_item(v, 1), &n), -EINVAL);
    assert_int_equal(mr_json_integer(mr_json_item(v, 2), &n), -EINVAL);
    assert_int_equal(mr_json_integer(mr_json_item(v, 3), &n), 0);
    assert_int_equal(n, -5);
    assert_null(mr_json_item(v, 4));
    mr_json_free(v);
    assert_null(mr_json_parse("[9223372036854775808]", 21));
}

static void a_name_twice_and_bytes_that_are_no_utf8_are_refused(void **state)
{
    assert_null(mr_json_parse("{\"a\":1,\"a\":2}", 13));
    assert_null(
        mr_json_parse("{\"a\":1,\"\\u0061\":2}", 18)); /* the same name, written otherwise */
    assert_null(mr_json_parse("[\"\xff\"]", 5));
    assert_true(mr_json_is_utf8("\xc3\xa4 \xf0\x9f\x98\x80"));
    assert_false(mr_json_is_utf8("\xc3"));
    assert_false(mr_json_is_utf8("\xed\xa0\x80"));
}

static void a_write_error_is_reported(void **state)
{
    struct mr_json *root = mr_json_object();
    assert_int_equal(mr_json_write(root, -1), -EBADF);
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        assert_int_equal(mr_json_write(root, fd), -ENOSPC);
        close(fd);
    }
    mr_json_free(root);
    mr_json_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(a_document_survives_the_round_trip),
        WITH_TEMPDIR(text_is_known_to_the_byte),
        cmocka_unit_test(what_is_not_there_is_null),
        WITH_TEMPDIR(a_number_without_value_becomes_null),
        WITH_TEMPDIR(a_path_that_is_no_utf8_is_made_readable),
        cmocka_unit_test(every_pair_of_bytes_can_be_written),
        cmocka_unit_test(text_that_is_no_json_is_refused),
        cmocka_unit_test(members_are_visited_in_the_order_of_the_text),
        cmocka_unit_test(only_whole_numbers_are_integers),
        cmocka_unit_test(a_name_twice_and_bytes_that_are_no_utf8_are_refused),
        cmocka_unit_test(a_write_error_is_reported),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
