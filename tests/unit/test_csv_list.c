/* test_csv_list.c - lists as people write them, and lists that must be refused. */
#include "csv_list.h"
#include "indexed.h"

#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The text is given from a block of its own, so that a sanitizer sees a read beside it. */
static int parse(const char *text, size_t len, const char *base, struct mr_entries *e,
                 struct mr_error *err)
{
    char *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, text, len);
    mr_entries_init(e);
    int r = mr_csv_list_parse(copy, len, base, "the.csv", e, err);
    free(copy);
    return r;
}

struct sample {
    const char *path;
    uint32_t label;
};

static void check_entries(const struct mr_entries *e, const struct sample *want, size_t n)
{
    assert_int_equal(e->n, n);
    for (size_t i = 0; i < n; i++) {
        char path[PATH_MAX];
        assert_int_equal(mr_entries_path(e, i, path, sizeof path), strlen(want[i].path));
        assert_string_equal(path, want[i].path);
        assert_int_equal(mr_entries_label(e, i), want[i].label);
    }
}

static void check_len(const char *text, size_t len, const struct sample *want, size_t n)
{
    struct mr_entries e;
    struct mr_error err = {0};
    int r = parse(text, len, "dir/", &e, &err);
    if (r)
        fail_msg("refused: %s", err.text);
    check_entries(&e, want, n);
    mr_entries_fini(&e);
}

#define CHECK(text, ...)                                                                           \
    do {                                                                                           \
        static const struct sample want[] = {__VA_ARGS__};                                         \
        check_len(text, sizeof(text) - 1, want, ARRAY_LEN(want));                                  \
    } while (0)

static void a_relative_path_starts_at_the_list(void **state)
{
    CHECK("cat/1.jpg,3\n2.jpg,4\n", {"dir/cat/1.jpg", 3}, {"dir/2.jpg", 4});
    CHECK("../up/1.jpg,1\n./2.jpg,2\n", {"dir/../up/1.jpg", 1}, {"dir/./2.jpg", 2});
}

static void an_absolute_path_stays(void **state)
{
    CHECK("/data/x.jpg,4\n/y.jpg,5\n", {"/data/x.jpg", 4}, {"/y.jpg", 5});
}

static void quoted_fields_hold_commas_quotes_and_newlines(void **state)
{
    CHECK("\"odd, name.jpg\",1\n", {"dir/odd, name.jpg", 1});
    CHECK("\"a \"\"b\"\".jpg\",2\n", {"dir/a \"b\".jpg", 2});
    CHECK("\"two\nlines.jpg\",3\nnext.jpg,4\n", {"dir/two\nlines.jpg", 3}, {"dir/next.jpg", 4});
    CHECK("\"cr\r\nlf.jpg\",3\r\n", {"dir/cr\r\nlf.jpg", 3});
    CHECK("\"/abs, olute\",\"7\"\n", {"/abs, olute", 7});
    CHECK("\"alone.jpg\"\n\"crlf.jpg\"\r\n\"end.jpg\"", {"dir/alone.jpg", 0}, {"dir/crlf.jpg", 0},
          {"dir/end.jpg", 0});
    CHECK("\"\"\"\"\"\"\n", {"dir/\"\"", 0});
    CHECK("\"end\"\r", {"dir/end", 0});
}

static void a_quote_inside_a_plain_field_is_a_letter(void **state)
{
    CHECK("5\" disk.jpg,1\n", {"dir/5\" disk.jpg", 1});
}

static void crlf_ends_a_line(void **state)
{
    CHECK("a.jpg,1\r\nb.jpg\r\nc.jpg,\r\n\r\nd.jpg,2\r", {"dir/a.jpg", 1}, {"dir/b.jpg", 0},
          {"dir/c.jpg", 0}, {"dir/d.jpg", 2});
}

static void blank_lines_are_skipped(void **state)
{
    CHECK("\na.jpg,1\n", {"dir/a.jpg", 1});
    CHECK("\r\na.jpg,1\n", {"dir/a.jpg", 1});
    CHECK("\n\n\r\n  \n\t\r\na.jpg,1\n\n\nb.jpg,2\n\n \n", {"dir/a.jpg", 1}, {"dir/b.jpg", 2});
    CHECK("a.jpg,\n\nb.jpg,2", {"dir/a.jpg", 0}, {"dir/b.jpg", 2});
}

static void a_missing_label_is_zero(void **state)
{
    CHECK("a.jpg\nb.jpg,\nc.jpg,  \n\"d.jpg\"\n\"e.jpg\",\nf.jpg,\"\"", {"dir/a.jpg", 0},
          {"dir/b.jpg", 0}, {"dir/c.jpg", 0}, {"dir/d.jpg", 0}, {"dir/e.jpg", 0}, {"dir/f.jpg", 0});
}

static void labels_may_have_spaces_zeros_and_quotes(void **state)
{
    CHECK("a, 7\nb,\t8 \nc,007\nd,\"9\"\ne, \"10\"\r\nf,2147483647\ng,\" 3 \"\n", {"dir/a", 7},
          {"dir/b", 8}, {"dir/c", 7}, {"dir/d", 9}, {"dir/e", 10}, {"dir/f", 2147483647},
          {"dir/g", 3});
}

static void spaces_belong_to_a_path(void **state)
{
    CHECK(" a b .jpg ,1\n", {"dir/ a b .jpg ", 1});
}

static void the_last_line_needs_no_end(void **state)
{
    CHECK("a.jpg,1\nb.jpg,23", {"dir/a.jpg", 1}, {"dir/b.jpg", 23});
    CHECK("a", {"dir/a", 0});
}

static void a_byte_order_mark_is_skipped(void **state)
{
    CHECK("\xef\xbb\xbf"
          "a.jpg,1\n",
          {"dir/a.jpg", 1});
    CHECK("\xef\xbb\xbf\"a.jpg\",1\n", {"dir/a.jpg", 1});
    CHECK("\xef\xbb\xbf\na.jpg,1\n", {"dir/a.jpg", 1});
    CHECK("\xef\xbb"
          "a.jpg,1\n",
          {"dir/\xef\xbb"
           "a.jpg",
           1});
}

static void a_heading_is_skipped(void **state)
{
    CHECK("path,label\na.jpg,1\n", {"dir/a.jpg", 1});
    CHECK("Path,Label\r\na.jpg,1\n", {"dir/a.jpg", 1});
    CHECK("\"path\",\"label\"\na.jpg,1\n", {"dir/a.jpg", 1});
    CHECK("\xef\xbb\xbfpath,label\na.jpg,1\n", {"dir/a.jpg", 1});
    CHECK("path, label\na.jpg,1\n", {"dir/a.jpg", 1});
    CHECK("path,3\na.jpg,1\n", {"dir/path", 3}, {"dir/a.jpg", 1});
    CHECK("path\na.jpg,1\n", {"dir/path", 0}, {"dir/a.jpg", 1});
}

static void bytes_that_are_no_utf8_stay(void **state)
{
    CHECK("\xfc\xff\x80/\xfe.jpg,1\n", {"dir/\xfc\xff\x80/\xfe.jpg", 1});
}

/* Refused with -EBADMSG, a text that begins "the.csv: line N: " and contains `words`; the entries
 * may hold what came before. */
static void check_refused(const char *text, size_t len, unsigned line, const char *words)
{
    struct mr_entries e;
    struct mr_error err = {0};
    char start[64];
    snprintf(start, sizeof start, "the.csv: line %u: ", line);
    assert_int_equal(parse(text, len, "dir/", &e, &err), -EBADMSG);
    assert_int_equal(err.code, -EBADMSG);
    if (strncmp(err.text, start, strlen(start)) || !strstr(err.text, words))
        fail_msg("\"%s\" instead of \"%s... %s\"", err.text, start, words);
    mr_entries_fini(&e);
}

#define REFUSED(text, line, words) check_refused(text, sizeof(text) - 1, line, words)

static void a_bad_label_is_refused(void **state)
{
    REFUSED("a,_x\n", 1, "not a whole number");
    REFUSED("a,1\nb,cat\n", 2, "not a whole number");
    REFUSED("a,1\nb,-1\n", 2, "not a whole number");
    REFUSED("a,+1\n", 1, "not a whole number");
    REFUSED("a,1.5\n", 1, "not a whole number");
    REFUSED("a,1 2\n", 1, "not a whole number");
    REFUSED("a,0x1\n", 1, "not a whole number");
    REFUSED("a,1\0002\n", 1, "not a whole number");
    REFUSED("a,1\r2\n", 1, "not a whole number");
    REFUSED("a,cat\nb,1\n", 2, "is a number, and those before are names");
    REFUSED("a,cat\nb\n", 2, "the label is missing");
    REFUSED("a\nb,cat\n", 2, "a line before has none");
    REFUSED("a,c\x1b[31m\n", 1, "not a whole number");
    REFUSED("a,2147483648\n", 1, "larger than 2147483647");
    REFUSED("a,1\n\n\nb,99999999999999999999999999999999\n", 4, "larger than 2147483647");
}

static void class_names_are_numbered_in_alphabetical_order(void **state)
{
    CHECK("1,dog\n2,cat\n3, dog \n4,\"n01440764\"\n5,\xc3\xa9\n", {"dir/1", 1}, {"dir/2", 0},
          {"dir/3", 1}, {"dir/4", 2}, {"dir/5", 3});
    CHECK("\nfilename,class\n1,b\n2,a\n", {"dir/1", 1}, {"dir/2", 0});
}

static void many_class_names_are_all_kept(void **state)
{
    struct mr_entries e;
    struct mr_error err = {0};
    size_t len = 0, cap = 40000;
    char *text = malloc(cap), name[16];
    (void)state;
    for (unsigned i = 0; i < 1000; i++) /* in an order that is not the alphabetical one */
        len += (size_t)sprintf(text + len, "x%u,class%04u\n", i, i * 7 % 500);
    mr_entries_init(&e);
    assert_int_equal(mr_csv_list_parse(text, len, "", "list", &e, &err), 0);
    assert_int_equal(e.n_classes, 500);
    assert_int_equal(e.n_class_names, 500);
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "class%04u", i * 7 % 500);
        assert_int_equal(mr_entries_label(&e, i), i * 7 % 500);
        assert_string_equal(e.class_names[mr_entries_label(&e, i)], name);
    }
    assert_false(e.unlabelled);
    mr_entries_fini(&e);
    free(text);
}

static void a_semicolon_separates_when_the_first_line_has_no_comma(void **state)
{
    CHECK("path;label\na, b.jpg;3\n\"c;d.jpg\";4\n", {"dir/a, b.jpg", 3}, {"dir/c;d.jpg", 4});
    CHECK("\n\"a,b\";cat\n", {"dir/a,b", 0});
    CHECK("a;b.jpg,1\nc,2\n", {"dir/a;b.jpg", 1}, {"dir/c", 2});
    CHECK("\"a;b\"\nc,2\n", {"dir/a;b", 0}, {"dir/c", 2});
    REFUSED("a;1\nb;2;3\n", 2, "more than two fields");
}

static void a_list_without_labels_is_known_as_such(void **state)
{
    static const struct {
        const char *text;
        int unlabelled;
    } lists[] = {{"a\nb\n", 1}, {"a,\n", 1}, {"a\nb,0\n", 0}, {"a,cat\n", 0}};
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(lists); i++) {
        struct mr_entries e;
        mr_entries_init(&e);
        assert_int_equal(
            mr_csv_list_parse(lists[i].text, strlen(lists[i].text), "", "list", &e, NULL), 0);
        assert_int_equal(e.unlabelled, lists[i].unlabelled);
        mr_entries_fini(&e);
    }
}

static void a_strange_quote_in_a_label_is_refused(void **state)
{
    REFUSED("a,3\"\n", 1, "not a whole number");
    REFUSED("a,1\nb,\"3\n", 2, "not closed");
    REFUSED("a,\"3\"4\n", 1, "text follows");
    REFUSED("a,\"\"3\n", 1, "text follows");
    REFUSED("a,\"\n", 1, "not closed");
}

static void extra_fields_are_refused(void **state)
{
    REFUSED("a,1,2\n", 1, "more than two fields");
    REFUSED("a,1,\n", 1, "more than two fields");
    REFUSED("x,0\nodd, name.jpg,1\n", 2, "more than two fields");
    REFUSED("\"two\nlines\",1,2\n", 1, "more than two fields");
    REFUSED("\"three\n\nlines\",1\na,1,2\n", 4, "more than two fields");
}

static void an_open_quote_is_refused_where_it_begins(void **state)
{
    REFUSED("\"a.jpg,1\n", 1, "not closed");
    REFUSED("a,1\nb,2\n\"c.jpg,1\nd,2\ne,3\n", 3, "not closed");
    REFUSED("\"", 1, "not closed");
    REFUSED("\"a\"\"", 1, "not closed");
}

static void text_after_a_quote_is_refused(void **state)
{
    REFUSED("\"a\"b,1\n", 1, "text follows");
    REFUSED("\"a\" ,1\n", 1, "text follows");
    REFUSED("\"a\"\rb,1\n", 1, "text follows");
    REFUSED("x,1\n\"a\nb\"c,1\n", 2, "text follows");
}

static void an_empty_path_is_refused(void **state)
{
    REFUSED(",1\n", 1, "the path is empty");
    REFUSED("a,1\n,\n", 2, "the path is empty");
    REFUSED("\"\",1\n", 1, "the path is empty");
    REFUSED("\"\"\n", 1, "the path is empty");
}

static void a_zero_byte_is_refused(void **state)
{
    REFUSED("a\0b,1\n", 1, "zero byte");
    REFUSED("x\n\"a\0b\",1\n", 2, "zero byte");
    REFUSED("\0", 1, "zero byte");
}

static void a_folder_is_refused(void **state)
{
    REFUSED("cats/,1\n", 1, "ends in '/'");
    REFUSED("/,1\n", 1, "ends in '/'");
}

/* `quotes`, n times 'a' with a '/' here and there, `quotes`. */
static size_t long_path(char *text, const char *quotes, size_t n)
{
    char *p = stpcpy(text, quotes);
    for (size_t i = 0; i < n; i++)
        *p++ = i % 100 == 99 && i + 1 < n ? '/' : 'a';
    return (size_t)(stpcpy(stpcpy(p, quotes), ",1\n") - text);
}

static void a_path_may_be_just_shorter_than_path_max(void **state)
{
    static char text[4 * PATH_MAX], path[PATH_MAX];
    size_t most = PATH_MAX - 1 - strlen("dir/");
    for (int quoted = 0; quoted < 2; quoted++) {
        const char *quotes = quoted ? "\"" : "";
        struct mr_entries e;
        size_t len = long_path(text, quotes, most);
        assert_int_equal(parse(text, len, "dir/", &e, NULL), 0);
        assert_int_equal(mr_entries_path(&e, 0, path, sizeof path), PATH_MAX - 1);
        assert_int_equal(mr_entries_path(&e, 0, path, PATH_MAX - 1), -ENAMETOOLONG);
        mr_entries_fini(&e);
        check_refused(text, long_path(text, quotes, most + 1), 1, "too long");
        check_refused(text, long_path(text, quotes, PATH_MAX), 1, "too long");
        check_refused(text, long_path(text, quotes, PATH_MAX + 1), 1, "too long");
        check_refused(text, long_path(text, quotes, 3 * PATH_MAX), 1, "too long");
    }
}

static void a_list_without_samples_has_no_data(void **state)
{
    static const char *const texts[] = {"",    "\n", "\n\n\r\n", "path,label\n", "\xef\xbb\xbf",
                                        "  \n"};
    for (size_t k = 0; k < ARRAY_LEN(texts); k++) {
        struct mr_entries e;
        struct mr_error err = {0};
        assert_int_equal(parse(texts[k], strlen(texts[k]), "", &e, &err), -ENODATA);
        assert_non_null(strstr(err.text, "names no samples"));
        mr_entries_fini(&e);
    }
}

static void classes_are_counted_by_the_largest_label(void **state)
{
    struct mr_entries e;
    assert_int_equal(parse("a,5\nb,2\n", 8, "", &e, NULL), 0);
    assert_int_equal(e.n_classes, 6);
    assert_int_equal(e.n_class_names, 0);
    mr_entries_fini(&e);
}

static void many_folders_are_told_apart(void **state)
{
    enum { DIRS = 3000, ROUNDS = 3 };
    size_t cap = (size_t)DIRS * ROUNDS * 40, len = 0;
    char *text = malloc(cap);
    assert_non_null(text);
    for (unsigned i = 0; i < DIRS * ROUNDS; i++)
        len += (size_t)snprintf(text + len, cap - len, "class %u/%u.jpg,%u\n", i * 7 % DIRS, i, i);
    struct mr_entries e;
    assert_int_equal(parse(text, len, "/data/", &e, NULL), 0);
    assert_int_equal(e.blobs.n_dirs, DIRS);
    for (unsigned i = 0; i < DIRS * ROUNDS; i++) {
        char want[64], path[64];
        snprintf(want, sizeof want, "/data/class %u/%u.jpg", i * 7 % DIRS, i);
        assert_int_equal(mr_entries_path(&e, i, path, sizeof path), strlen(want));
        assert_string_equal(path, want);
        assert_int_equal(mr_entries_label(&e, i), i);
    }
    mr_entries_fini(&e);
    free(text);
}

static int load(const char *path, struct mr_entries *e, struct mr_error *err)
{
    mr_entries_init(e);
    *err = (struct mr_error){0};
    int r = indexed(mr_csv_list_load, path, e, err);
    if (r) {
        assert_int_equal(err->code, r);
        assert_int_equal(strncmp(err->text, path, strlen(path)), 0);
    }
    return r;
}

static void a_file_gives_its_folder_to_its_paths(void **state)
{
    struct tempdir *t = *state;
    char want[512];
    struct mr_entries e;
    struct mr_error err;
    snprintf(want, sizeof want, "%s/sub/cat/1.jpg", t->path);
    assert_int_equal(load(tempdir_text(t, "sub/list.csv", "\ncat/1.jpg,3\n/x,1"), &e, &err), 0);
    check_entries(&e, (struct sample[]){{want, 3}, {"/x", 1}}, 2);
    mr_entries_fini(&e);
}

static void a_file_whose_last_page_is_full_is_read(void **state)
{
    struct tempdir *t = *state;
    char *text = malloc(8192);
    assert_non_null(text);
    for (int i = 0; i < 1024; i++)
        memcpy(text + 8 * i, "abcde,1\n", 8);
    text[8191] = '2';
    struct mr_entries e;
    struct mr_error err;
    assert_int_equal(load(tempdir_write(t, "list", text, 8192), &e, &err), 0);
    assert_int_equal(e.n, 1024);
    assert_int_equal(mr_entries_label(&e, 1023), 12);
    mr_entries_fini(&e);
    free(text);
}

static void files_that_are_no_list_are_refused(void **state)
{
    struct tempdir *t = *state;
    struct mr_entries e;
    struct mr_error err;
    assert_int_equal(load(tempdir_path(t, "missing"), &e, &err), -ENOENT);
    assert_non_null(strstr(err.text, "No such file"));
    assert_int_equal(load(tempdir_mkdir(t, "dir"), &e, &err), -EISDIR);
    assert_int_equal(load(tempdir_text(t, "empty", ""), &e, &err), -ENODATA);
    assert_non_null(strstr(err.text, "empty"));
    assert_int_equal(mkfifo(tempdir_path(t, "pipe"), 0644), 0);
    assert_int_equal(load(tempdir_path(t, "pipe"), &e, &err), -EINVAL);
    assert_int_equal(load(tempdir_text(t, "bad", "a,1\nb,?\n"), &e, &err), -EBADMSG);
    assert_non_null(strstr(err.text, ": line 2: "));
    mr_entries_fini(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_relative_path_starts_at_the_list),
        cmocka_unit_test(an_absolute_path_stays),
        cmocka_unit_test(quoted_fields_hold_commas_quotes_and_newlines),
        cmocka_unit_test(a_quote_inside_a_plain_field_is_a_letter),
        cmocka_unit_test(crlf_ends_a_line),
        cmocka_unit_test(blank_lines_are_skipped),
        cmocka_unit_test(a_missing_label_is_zero),
        cmocka_unit_test(labels_may_have_spaces_zeros_and_quotes),
        cmocka_unit_test(spaces_belong_to_a_path),
        cmocka_unit_test(the_last_line_needs_no_end),
        cmocka_unit_test(a_byte_order_mark_is_skipped),
        cmocka_unit_test(a_heading_is_skipped),
        cmocka_unit_test(bytes_that_are_no_utf8_stay),
        cmocka_unit_test(a_bad_label_is_refused),
        cmocka_unit_test(class_names_are_numbered_in_alphabetical_order),
        cmocka_unit_test(many_class_names_are_all_kept),
        cmocka_unit_test(a_semicolon_separates_when_the_first_line_has_no_comma),
        cmocka_unit_test(a_list_without_labels_is_known_as_such),
        cmocka_unit_test(a_strange_quote_in_a_label_is_refused),
        cmocka_unit_test(extra_fields_are_refused),
        cmocka_unit_test(an_open_quote_is_refused_where_it_begins),
        cmocka_unit_test(text_after_a_quote_is_refused),
        cmocka_unit_test(an_empty_path_is_refused),
        cmocka_unit_test(a_zero_byte_is_refused),
        cmocka_unit_test(a_folder_is_refused),
        cmocka_unit_test(a_path_may_be_just_shorter_than_path_max),
        cmocka_unit_test(a_list_without_samples_has_no_data),
        cmocka_unit_test(classes_are_counted_by_the_largest_label),
        cmocka_unit_test(many_folders_are_told_apart),
        WITH_TEMPDIR(a_file_gives_its_folder_to_its_paths),
        WITH_TEMPDIR(a_file_whose_last_page_is_full_is_read),
        WITH_TEMPDIR(files_that_are_no_list_are_refused),
    };
    return cmocka_run_group_tests_name("csv_list", tests, NULL, NULL);
}
