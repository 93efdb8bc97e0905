/* test_folder_tree.c - folders as they are found in the world. */
#include "folder_tree.h"
#include "indexed.h"

#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct sample {
    const char *path; /* below the temporary folder */
    uint32_t label;
};

static void check_entries(struct tempdir *t, const struct mr_entries *e, const struct sample *want,
                          size_t n)
{
    size_t skip = strlen(t->path) + 1;
    for (size_t i = 0; i < n && i < e->n; i++) {
        char path[PATH_MAX];
        assert_true(mr_entries_path(e, i, path, sizeof path) > (int)skip);
        assert_string_equal(path + skip, want[i].path);
        assert_int_equal(mr_entries_label(e, i), want[i].label);
    }
    assert_int_equal(e->n, n);
}

static void load(struct tempdir *t, struct mr_entries *e)
{
    struct mr_error err = {0};
    mr_entries_init(e);
    if (indexed(mr_folder_tree_load, t->path, e, &err))
        fail_msg("%s", err.text);
}

static void check_class_names(const struct mr_entries *e, const char *const *want, size_t n)
{
    assert_int_equal(e->n_class_names, n);
    assert_int_equal(e->n_classes, n);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(e->class_names[i], want[i]);
}

static void classes_are_sorted_and_keep_their_names(void **state)
{
    struct tempdir *t = *state;
    static const char *const files[] = {"dog/2.jpg", "cat/b.jpg", "Bird/1.jpg", "dog/10.jpg",
                                        "cat/a.jpg", "emu 1/x",   "dog/1.jpg"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        tempdir_text(t, files[i], "x");
    struct mr_entries e;
    load(t, &e);
    check_class_names(&e, (const char *const[]){"Bird", "cat", "dog", "emu 1"}, 4);
    check_entries(t, &e,
                  (const struct sample[]){{"Bird/1.jpg", 0},
                                          {"cat/a.jpg", 1},
                                          {"cat/b.jpg", 1},
                                          {"dog/1.jpg", 2},
                                          {"dog/10.jpg", 2},
                                          {"dog/2.jpg", 2},
                                          {"emu 1/x", 3}},
                  7);
    mr_entries_fini(&e);
}

static void names_with_a_dot_in_front_are_ignored(void **state)
{
    struct tempdir *t = *state;
    static const char *const files[] = {"cat/.hidden", ".git/config", "cat/.thumbs/1.jpg",
                                        ".DS_Store",   "cat/1.jpg",   "cat/2.",
                                        "cat/..3"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        tempdir_text(t, files[i], "x");
    struct mr_entries e;
    load(t, &e);
    check_class_names(&e, (const char *const[]){"cat"}, 1);
    check_entries(t, &e, (const struct sample[]){{"cat/1.jpg", 0}, {"cat/2.", 0}}, 2);
    mr_entries_fini(&e);
}

static void nested_folders_belong_to_their_class(void **state)
{
    struct tempdir *t = *state;
    static const char *const files[] = {"a/z.jpg", "a/m/2.jpg", "a/m/deep/er/1.jpg", "a/b/1.jpg",
                                        "b/x.jpg"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        tempdir_text(t, files[i], "x");
    struct mr_entries e;
    load(t, &e);
    check_class_names(&e, (const char *const[]){"a", "b"}, 2);
    check_entries(t, &e,
                  (const struct sample[]){{"a/z.jpg", 0},
                                          {"a/b/1.jpg", 0},
                                          {"a/m/2.jpg", 0},
                                          {"a/m/deep/er/1.jpg", 0},
                                          {"b/x.jpg", 1}},
                  5);
    mr_entries_fini(&e);
}

static void files_beside_the_classes_are_ignored(void **state)
{
    struct tempdir *t = *state;
    tempdir_text(t, "list.csv", "cat/1.jpg,0\n");
    tempdir_text(t, "cat/1.jpg", "x");
    struct mr_entries e;
    load(t, &e);
    check_entries(t, &e, (const struct sample[]){{"cat/1.jpg", 0}}, 1);
    mr_entries_fini(&e);
}

static void a_flat_folder_is_one_class_without_a_name(void **state)
{
    struct tempdir *t = *state;
    tempdir_text(t, "b.jpg", "x");
    tempdir_text(t, "a.jpg", "x");
    tempdir_text(t, ".cache/c.jpg", "x");
    struct mr_entries e;
    load(t, &e);
    assert_int_equal(e.n_class_names, 0);
    assert_int_equal(e.n_classes, 1);
    check_entries(t, &e, (const struct sample[]){{"a.jpg", 0}, {"b.jpg", 0}}, 2);
    mr_entries_fini(&e);
}

static void an_empty_class_keeps_its_number(void **state)
{
    struct tempdir *t = *state;
    tempdir_mkdir(t, "a");
    tempdir_text(t, "b/1", "x");
    tempdir_mkdir(t, "c");
    struct mr_entries e;
    load(t, &e);
    check_class_names(&e, (const char *const[]){"a", "b", "c"}, 3);
    check_entries(t, &e, (const struct sample[]){{"b/1", 1}}, 1);
    mr_entries_fini(&e);
}

static void make_link(struct tempdir *t, const char *target, const char *name)
{
    assert_int_equal(symlink(target, tempdir_path(t, name)), 0);
}

static void links_are_what_they_point_to(void **state)
{
    struct tempdir *t = *state;
    tempdir_text(t, "cat/1.jpg", "x");
    make_link(t, "1.jpg", "cat/2.jpg");
    make_link(t, "../.store", "cat/more");
    tempdir_text(t, ".store/3.jpg", "x");
    make_link(t, ".store", "dog");
    make_link(t, "/dev/null", "cat/device");
    struct mr_entries e;
    load(t, &e);
    check_class_names(&e, (const char *const[]){"cat", "dog"}, 2);
    check_entries(t, &e,
                  (const struct sample[]){
                      {"cat/1.jpg", 0}, {"cat/2.jpg", 0}, {"cat/more/3.jpg", 0}, {"dog/3.jpg", 1}},
                  4);
    mr_entries_fini(&e);
}

static void a_dangling_link_is_a_sample_that_will_be_noticed(void **state)
{
    struct tempdir *t = *state;
    tempdir_text(t, "cat/1.jpg", "x");
    make_link(t, "nowhere", "cat/2.jpg");
    make_link(t, "3.jpg", "cat/3.jpg");
    struct mr_entries e;
    load(t, &e);
    check_entries(t, &e,
                  (const struct sample[]){{"cat/1.jpg", 0}, {"cat/2.jpg", 0}, {"cat/3.jpg", 0}}, 3);
    mr_entries_fini(&e);
}

static void pipes_and_sockets_are_no_samples(void **state)
{
    struct tempdir *t = *state;
    tempdir_text(t, "cat/1.jpg", "x");
    assert_int_equal(mkfifo(tempdir_path(t, "cat/pipe"), 0644), 0);
    make_link(t, "pipe", "cat/to_pipe");
    struct mr_entries e;
    load(t, &e);
    check_entries(t, &e, (const struct sample[]){{"cat/1.jpg", 0}}, 1);
    mr_entries_fini(&e);
}

static int refused(const char *path, struct mr_error *err)
{
    struct mr_entries e;
    mr_entries_init(&e);
    *err = (struct mr_error){0};
    int r = indexed(mr_folder_tree_load, path, &e, err);
    mr_entries_fini(&e);
    assert_int_equal(err->code, r);
    return r;
}

static void a_loop_of_links_is_refused(void **state)
{
    struct tempdir *t = *state;
    struct mr_error err;
    tempdir_text(t, "cat/1.jpg", "x");
    make_link(t, "..", "cat/up");
    assert_int_equal(refused(t->path, &err), -ELOOP);
    assert_non_null(strstr(err.text, "folders deep"));
    assert_int_equal(unlink(tempdir_path(t, "cat/up")), 0);
    make_link(t, ".", "cat/a");
    make_link(t, ".", "cat/b");
    assert_int_equal(refused(t->path, &err), -ELOOP);
}

static void a_folder_without_samples_has_no_data(void **state)
{
    struct tempdir *t = *state;
    struct mr_error err;
    assert_int_equal(refused(t->path, &err), -ENODATA);
    assert_non_null(strstr(err.text, t->path));
    tempdir_mkdir(t, "cat");
    tempdir_text(t, "beside", "x");
    assert_int_equal(refused(t->path, &err), -ENODATA);
}

static void what_is_no_folder_is_refused(void **state)
{
    struct tempdir *t = *state;
    struct mr_error err;
    assert_int_equal(refused(tempdir_path(t, "missing"), &err), -ENOENT);
    assert_int_equal(refused(tempdir_text(t, "file", "x"), &err), -ENOTDIR);
}

static void a_path_that_is_too_long_is_refused_with_words(void **state)
{
    struct mr_error err;
    static char path[PATH_MAX + 100];
    memset(path, 'x', sizeof path - 1);
    assert_int_equal(refused(path, &err), -ENAMETOOLONG);
    assert_int_equal(strncmp(err.text, "xxx", 3), 0);
}

static int load_is_denied(void *path)
{
    struct mr_entries e;
    struct mr_error err = {0};
    mr_entries_init(&e);
    int r = indexed(mr_folder_tree_load, path, &e, &err);
    mr_entries_fini(&e);
    return r != -EACCES || !strstr(err.text, "Permission denied");
}

static void an_unreadable_folder_is_refused(void **state)
{
    struct tempdir *t = *state;
    tempdir_text(t, "cat/1.jpg", "x");
    tempdir_text(t, "dog/1.jpg", "x");
    char dog[512];
    snprintf(dog, sizeof dog, "%s", tempdir_path(t, "dog"));
    assert_int_equal(chmod(dog, 0), 0);
    int r = as_stranger(load_is_denied, t->path);
    assert_int_equal(chmod(dog, 0755), 0);
    assert_int_equal(r, 0);
    char *root = t->path;
    assert_int_equal(chmod(root, 0), 0);
    r = as_stranger(load_is_denied, root);
    assert_int_equal(chmod(root, 0755), 0);
    assert_int_equal(r, 0);
}

static void strange_names_stay_as_they_are(void **state)
{
    struct tempdir *t = *state;
    static const char *const files[] = {" a b /\xff\xfe.jpg", " a b / x ", "z\n/a,\"b\".jpg",
                                        "z\n/-rf"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        tempdir_text(t, files[i], "x");
    struct mr_entries e;
    load(t, &e);
    check_class_names(&e, (const char *const[]){" a b ", "z\n"}, 2);
    check_entries(
        t, &e,
        (const struct sample[]){
            {" a b / x ", 0}, {" a b /\xff\xfe.jpg", 0}, {"z\n/-rf", 1}, {"z\n/a,\"b\".jpg", 1}},
        4);
    mr_entries_fini(&e);
}

static void closing_slashes_do_not_count(void **state)
{
    struct tempdir *t = *state;
    char path[512];
    tempdir_text(t, "cat/1.jpg", "x");
    snprintf(path, sizeof path, "%s///", t->path);
    struct mr_entries e;
    struct mr_error err = {0};
    mr_entries_init(&e);
    assert_int_equal(indexed(mr_folder_tree_load, path, &e, &err), 0);
    check_entries(t, &e, (const struct sample[]){{"cat/1.jpg", 0}}, 1);
    mr_entries_fini(&e);
}

static void many_files_and_classes_come_sorted(void **state)
{
    struct tempdir *t = *state;
    for (unsigned i = 0; i < 600; i++) {
        char name[64];
        snprintf(name, sizeof name, "class%02u/%03u.jpg", i * 7 % 40, i * 31 % 600);
        tempdir_text(t, name, "x");
    }
    struct mr_entries e;
    load(t, &e);
    assert_int_equal(e.n, 600);
    assert_int_equal(e.n_class_names, 40);
    char was[PATH_MAX] = "", path[PATH_MAX];
    for (uint64_t i = 0; i < e.n; i++) {
        assert_true(mr_entries_path(&e, i, path, sizeof path) > 0);
        assert_true(strcmp(was, path) < 0);
        memcpy(was, path, sizeof was);
        assert_int_equal(mr_entries_label(&e, i), atoi(strstr(path, "/class") + 6));
    }
    mr_entries_fini(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(classes_are_sorted_and_keep_their_names),
        WITH_TEMPDIR(names_with_a_dot_in_front_are_ignored),
        WITH_TEMPDIR(nested_folders_belong_to_their_class),
        WITH_TEMPDIR(files_beside_the_classes_are_ignored),
        WITH_TEMPDIR(a_flat_folder_is_one_class_without_a_name),
        WITH_TEMPDIR(an_empty_class_keeps_its_number),
        WITH_TEMPDIR(links_are_what_they_point_to),
        WITH_TEMPDIR(a_dangling_link_is_a_sample_that_will_be_noticed),
        WITH_TEMPDIR(pipes_and_sockets_are_no_samples),
        WITH_TEMPDIR(a_loop_of_links_is_refused),
        WITH_TEMPDIR(a_folder_without_samples_has_no_data),
        WITH_TEMPDIR(what_is_no_folder_is_refused),
        cmocka_unit_test(a_path_that_is_too_long_is_refused_with_words),
        WITH_TEMPDIR(an_unreadable_folder_is_refused),
        WITH_TEMPDIR(strange_names_stay_as_they_are),
        WITH_TEMPDIR(closing_slashes_do_not_count),
        WITH_TEMPDIR(many_files_and_classes_come_sorted),
    };
    return cmocka_run_group_tests_name("folder_tree", tests, NULL, NULL);
}
