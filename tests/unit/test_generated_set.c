/* test_generated_set.c - a folder is used when it is empty or ours; nobody else's file is touched.
 */
#include "unit.h"

#include "generated_set.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct mr_generated_set small = {4, 2}, large = {7, 3};

static struct mr_error err;

static int claim(struct tempdir *t, const struct mr_generated_set *s, int again)
{
    err = (struct mr_error){0};
    int r = mr_generated_claim(tempdir_path(t, "set"), s, again, &err);
    assert_int_equal(err.code, r);
    return r;
}

/* What generate leaves: the mark, the images, the list. */
static void make_set(struct tempdir *t, const struct mr_generated_set *s, uint64_t n_listed)
{
    char name[96], list[1024] = "path,label\n", *at = list + strlen(list);
    assert_int_equal(claim(t, s, 0), 0);
    for (uint64_t i = 0; i < s->count; i++) {
        memcpy(name, "set/", 4);
        mr_generated_name(s, i, name + 4, sizeof name - 4);
        tempdir_text(t, name, "image");
        if (i < n_listed)
            at += sprintf(at, "%s,%u\n", name + 4, (unsigned)mr_generated_class(s, i));
    }
    tempdir_text(t, "set/list.csv", list);
}

static unsigned n_seen;

static int see(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)path, (void)st, (void)type, (void)at;
    n_seen++;
    return 0;
}

/* Files, links and folders below the set's folder, itself included. */
static unsigned n_things(struct tempdir *t)
{
    n_seen = 0;
    nftw(tempdir_path(t, "set"), see, 16, FTW_PHYS);
    return n_seen;
}

static void refused(struct tempdir *t, int code, const char *words)
{
    unsigned before = n_things(t);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(claim(t, &large, again), code);
        assert_non_null(strstr(err.text, words));
        assert_int_equal(n_things(t), before);
    }
}

static void a_new_and_an_empty_folder_are_taken(void **state)
{
    assert_int_equal(claim(*state, &small, 0), 0);
    assert_int_equal(n_things(*state), 1 + 1 + 2); /* itself, the mark, two classes */
    struct tempdir *t = *state;
    tempdir_mkdir(t, "empty/set/lost+found");
    assert_int_equal(mr_generated_claim(tempdir_path(t, "empty/set"), &small, 0, &err), 0);
    tempdir_mkdir(t, "bare");
    assert_int_equal(symlink("bare", tempdir_path(t, "way")), 0);
    assert_int_equal(mr_generated_claim(tempdir_path(t, "way"), &small, 0, &err), 0);
    assert_int_equal(tempdir_count(tempdir_path(t, "bare")), 3);
}

static void our_set_is_replaced_when_that_is_asked_for(void **state)
{
    make_set(*state, &small, 4);
    unsigned before = n_things(*state);
    assert_int_equal(claim(*state, &large, 0), -EEXIST);
    assert_non_null(strstr(err.text, "4 images"));
    assert_int_equal(n_things(*state), before);
    assert_int_equal(claim(*state, &large, 1), 0);
    assert_int_equal(n_things(*state), 1 + 1 + 3);
}

static void so_is_one_that_was_cut_off(void **state)
{
    make_set(*state, &small, 2); /* a list of what was made until then */
    assert_int_equal(claim(*state, &large, 1), 0);
    assert_int_equal(claim(*state, &small, 1), 0); /* folders without images and list */
    assert_int_equal(n_things(*state), 1 + 1 + 2);
}

static void another_s_files_are_left_alone(void **state)
{
    struct tempdir *t = *state;
    tempdir_text(t, "set/list.csv", "path,label\nmine.jpg,1\n");
    refused(t, -ENOTEMPTY, "list.csv");
    assert_int_equal(unlink(tempdir_path(t, "set/list.csv")), 0);
    tempdir_text(t, "set/.hidden", "");
    refused(t, -ENOTEMPTY, ".hidden");
    assert_int_equal(unlink(tempdir_path(t, "set/.hidden")), 0);
    tempdir_text(t, "set/class_0000/00000000.jpg", "by name it could be ours");
    refused(t, -ENOTEMPTY, "class_0000");
}

static void another_s_file_in_our_set_keeps_all_of_it(void **state)
{
    static const char *const foreign[] = {"notes.txt",
                                          "class_0000/mine.jpg",
                                          "class_0000/00000001.jpg",
                                          "class_0000/0.jpg",
                                          "class_0000/00000004.jpg",
                                          "class_0000/00000000.JPG",
                                          "class_0002/x",
                                          "class_00/00000000.jpg",
                                          "class_/x",
                                          "class_0001/sub/x.jpg",
                                          "lost+found.txt",
                                          "class_0000/.x"};
    struct tempdir *t = *state;
    make_set(t, &small, 4);
    for (unsigned i = 0; i < ARRAY_LEN(foreign); i++) {
        char name[96];
        snprintf(name, sizeof name, "set/%s", foreign[i]);
        tempdir_text(t, name, "mine");
        refused(t, -ENOTEMPTY, "move that away");
        assert_int_equal(unlink(tempdir_path(t, name)), 0);
        rmdir(tempdir_path(t, "set/class_0002"));
        rmdir(tempdir_path(t, "set/class_00"));
        rmdir(tempdir_path(t, "set/class_"));
        rmdir(tempdir_path(t, "set/class_0001/sub"));
    }
    assert_int_equal(claim(t, &large, 1), 0); /* when they are gone, it is ours again */
}

static void a_list_that_somebody_changed_is_his(void **state)
{
    static const char *const lists[] = {"", "path,label\nclass_0000/00000000.jpg,7\n",
                                        "class_0000/00000000.jpg,0\n",
                                        "path,label\nclass_0000/00000000.jpg,0\n\n"};
    struct tempdir *t = *state;
    make_set(t, &small, 4);
    for (unsigned i = 0; i < ARRAY_LEN(lists); i++) {
        tempdir_text(t, "set/list.csv", lists[i]);
        refused(t, -ENOTEMPTY, "list.csv");
    }
}

static void links_in_our_set_are_not_followed(void **state)
{
    struct tempdir *t = *state;
    char victim[400];
    snprintf(victim, sizeof victim, "%s", tempdir_text(t, "other/00000000.jpg", "precious"));
    make_set(t, &small, 4);
    assert_int_equal(unlink(tempdir_path(t, "set/class_0000/00000000.jpg")), 0);
    assert_int_equal(symlink(victim, tempdir_path(t, "set/class_0000/00000000.jpg")), 0);
    refused(t, -ENOTEMPTY, "class_0000/00000000.jpg");
    assert_int_equal(unlink(tempdir_path(t, "set/class_0000/00000000.jpg")), 0);
    assert_int_equal(unlink(tempdir_path(t, "set/class_0000/00000002.jpg")), 0);
    assert_int_equal(rmdir(tempdir_path(t, "set/class_0000")), 0);
    assert_int_equal(symlink("../other", tempdir_path(t, "set/class_0000")), 0);
    refused(t, -ENOTEMPTY, "class_0000");
    assert_int_equal(access(victim, F_OK), 0);
}

static void a_mark_that_is_not_as_we_write_it_proves_nothing(void **state)
{
    static const char *const marks[] = {"",
                                        "millrace generated set\n",
                                        "millrace generated set\ncount 4\nclasses 0\n",
                                        "millrace generated set\ncount 4\nclasses 5\n",
                                        "millrace generated set\ncount -4\nclasses 2\n",
                                        "millrace generated set\ncount 4\nclasses 2\nmore\n"};
    struct tempdir *t = *state;
    make_set(t, &small, 4);
    for (unsigned i = 0; i < ARRAY_LEN(marks); i++) {
        tempdir_text(t, "set/.millrace-generated", marks[i]);
        refused(t, -ENOTEMPTY, "has no generated set");
    }
    tempdir_text(t, "mark", "millrace generated set\ncount 4\nclasses 2\n");
    assert_int_equal(unlink(tempdir_path(t, "set/.millrace-generated")), 0);
    assert_int_equal(symlink("../mark", tempdir_path(t, "set/.millrace-generated")), 0);
    refused(t, -ENOTEMPTY, "has no generated set");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(a_new_and_an_empty_folder_are_taken),
        WITH_TEMPDIR(our_set_is_replaced_when_that_is_asked_for),
        WITH_TEMPDIR(so_is_one_that_was_cut_off),
        WITH_TEMPDIR(another_s_files_are_left_alone),
        WITH_TEMPDIR(another_s_file_in_our_set_keeps_all_of_it),
        WITH_TEMPDIR(a_list_that_somebody_changed_is_his),
        WITH_TEMPDIR(links_in_our_set_are_not_followed),
        WITH_TEMPDIR(a_mark_that_is_not_as_we_write_it_proves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
