/* test_tf_state.c - the `checkpoint` file: what others write, what we write, what is hostile. */
#include "tf_state.h"
#include "tf_state_reader.h"

#include "unit.h"

#include <errno.h>
#include <string.h>

static int parse(const char *text, struct mr_tf_state *s)
{
    struct mr_error err = {0};
    int r = mr_tf_state_parse("checkpoint", text, strlen(text), s, &err);
    assert_int_equal(r, err.code);
    return r;
}

static void what_tensorflow_writes_is_understood(void **state)
{
    struct mr_tf_state s;
    assert_int_equal(parse("model_checkpoint_path: \"ckpt-3\"\n"
                           "all_model_checkpoint_paths: \"ckpt-2\"\n"
                           "all_model_checkpoint_paths: \"ckpt-3\"\n"
                           "all_model_checkpoint_timestamps: 1586029437.3\n"
                           "last_preserved_timestamp: 1586029430.1\n",
                           &s),
                     0);
    assert_string_equal(s.latest, "ckpt-3");
    assert_int_equal(s.n, 2);
    assert_string_equal(s.all[0], "ckpt-2");
    mr_tf_state_fini(&s);
}

static void the_text_format_is_read_in_all_its_forms(void **state)
{
    struct mr_tf_state s;
    assert_int_equal(
        parse("# a comment\nmodel_checkpoint_path:'a' \"b\" # joined\n  'c-\\x31\\060',"
              "all_model_checkpoint_paths : \"q\\\"\\\\\\n\"; unknown: TRUE",
              &s),
        0);
    assert_string_equal(s.latest, "abc-10");
    assert_string_equal(s.all[0], "q\"\\\n");
    mr_tf_state_fini(&s);
    assert_int_equal(parse("", &s), 0);
    assert_null(s.latest);
    mr_tf_state_fini(&s);
}

static void paths_stay_in_the_folder(void **state)
{
    struct mr_tf_state s;
    assert_int_equal(parse("model_checkpoint_path: \"/home/me/run 1/model.ckpt-7\"\n"
                           "all_model_checkpoint_paths: \"../model.ckpt-1\"\n"
                           "all_model_checkpoint_paths: \"a/../../model.ckpt-2\"\n"
                           "all_model_checkpoint_paths: \"..\"\n"
                           "all_model_checkpoint_paths: \"/\"\n"
                           "all_model_checkpoint_paths: \"\"\n"
                           "all_model_checkpoint_paths: \"a\\000b\"\n"
                           "all_model_checkpoint_paths: \"/etc/..\"\n"
                           "all_model_checkpoint_paths: \"sub/model.ckpt-3\"\n"
                           "all_model_checkpoint_paths: \"...\"\n",
                           &s),
                     0);
    assert_string_equal(s.latest, "model.ckpt-7");
    assert_int_equal(s.n, 2);
    assert_string_equal(s.all[0], "sub/model.ckpt-3");
    assert_string_equal(s.all[1], "...");
    assert_int_equal(s.n_refused, 7);
    mr_tf_state_fini(&s);
}

static void bad_text_is_refused(void **state)
{
    static const char *const bad[] = {
        "model_checkpoint_path",
        "model_checkpoint_path:",
        "model_checkpoint_path: \"a",
        "model_checkpoint_path: \"a\nb\"",
        "model_checkpoint_path \"a\"",
        ": \"a\"",
        "{}",
        "a { b: 1 }",
        "a: \"\\",
        "a: \"\\x\"",
        "a: \"\\q\"",
        "a: \"\\777\"",
        "\"a\"",
        "a: 1 }",
    };
    struct mr_tf_state s;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(parse(bad[i], &s), -EBADMSG);
}

static void what_is_written_comes_back(void **state)
{
    static const char *const names[] = {"model.ckpt-20", "q\"u\\o", "m\xc3\xa4\x01",
                                        "model.ckpt-40"};
    struct mr_bytes b;
    struct mr_tf_state s;
    mr_bytes_init(&b);
    mr_tf_state_write(names, 4, &b);
    assert_int_equal(mr_tf_state_parse("checkpoint", (char *)b.data, b.len, &s, NULL), 0);
    assert_string_equal(s.latest, names[3]);
    assert_int_equal(s.n, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(s.all[i], names[i]);
    mr_tf_state_fini(&s);
    mr_bytes_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_tensorflow_writes_is_understood),
        cmocka_unit_test(the_text_format_is_read_in_all_its_forms),
        cmocka_unit_test(paths_stay_in_the_folder),
        cmocka_unit_test(bad_text_is_refused),
        cmocka_unit_test(what_is_written_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
