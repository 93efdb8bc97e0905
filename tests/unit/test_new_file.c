/* test_new_file.c - a file appears whole or not at all, and no link leads it elsewhere. */
#include "unit.h"

#include "faults.h"
#include "new_file.h"
#include "write_all.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[300], path[400];

static void use(struct tempdir *t, const char *name)
{
    snprintf(dir, sizeof dir, "%s", t->path);
    snprintf(path, sizeof path, "%s/%s", dir, name);
}

static const char *content(const char *of)
{
    static char text[256];
    FILE *f = fopen(of, "re");
    if (!f)
        return NULL;
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

static int put(const char *text)
{
    return mr_new_file_put(path, text, strlen(text));
}

static unsigned mode_of(const char *of)
{
    struct stat st;
    assert_int_equal(lstat(of, &st), 0);
    return st.st_mode & 07777;
}

static void a_new_file_has_the_permissions_that_the_umask_leaves(void **state)
{
    use(*state, "new");
    mode_t before = umask(027);
    assert_int_equal(put("hello"), 0);
    umask(before);
    assert_string_equal(content(path), "hello");
    assert_int_equal(mode_of(path), 0640);
    assert_int_equal(tempdir_count(dir), 1);
}

static void a_file_that_is_replaced_keeps_its_permissions(void **state)
{
    use(*state, "old");
    tempdir_text(*state, "old", "before");
    assert_int_equal(chmod(path, 0604), 0);
    assert_int_equal(put("after"), 0);
    assert_string_equal(content(path), "after");
    assert_int_equal(mode_of(path), 0604);
    assert_int_equal(tempdir_count(dir), 1);
}

static void until_it_is_whole_the_earlier_file_is_there(void **state)
{
    struct mr_new_file f;
    use(*state, "old");
    tempdir_text(*state, "old", "before");
    assert_int_equal(mr_new_file_check(path), 0);
    assert_int_equal(tempdir_count(dir), 1);
    assert_int_equal(mr_new_file_begin(path, &f), 0);
    assert_int_equal(mr_write_all(f.fd, "half", 4), 0);
    assert_string_equal(content(path), "before");
    mr_new_file_abort(&f);
    assert_string_equal(content(path), "before");
    assert_int_equal(mr_new_file_begin(path, &f), 0);
    assert_int_equal(mr_write_all(f.fd, "whole", 5), 0);
    assert_string_equal(content(path), "before");
    assert_int_equal(mr_new_file_commit(&f), 0);
    mr_new_file_abort(&f);
    assert_string_equal(content(path), "whole");
    assert_int_equal(tempdir_count(dir), 1);
}

static void a_link_is_replaced_and_what_it_points_to_stays(void **state)
{
    struct stat st;
    char victim[400];
    use(*state, "link");
    snprintf(victim, sizeof victim, "%s", tempdir_text(*state, "victim", "precious"));
    for (int live = 0; live < 2; live++) {
        unlink(path);
        assert_int_equal(symlink("victim", path), 0);
        int fd = live ? mr_new_file_stream(path) : -1;
        assert_int_equal(live ? mr_write_all(fd, "ours", 4) : put("ours"), 0);
        if (live)
            close(fd);
        assert_string_equal(content(victim), "precious");
        assert_string_equal(content(path), "ours");
        assert_int_equal(lstat(path, &st), 0);
        assert_true(S_ISREG(st.st_mode));
    }
}

static void a_second_name_of_a_file_keeps_the_earlier_content(void **state)
{
    char other[400];
    use(*state, "one");
    snprintf(other, sizeof other, "%s/other", dir);
    tempdir_text(*state, "one", "precious");
    assert_int_equal(link(path, other), 0);
    int fd = mr_new_file_stream(path);
    assert_true(fd >= 0);
    close(fd);
    assert_string_equal(content(other), "precious");
    assert_string_equal(content(path), "");
}

static void links_to_nothing_and_folders_are_refused(void **state)
{
    use(*state, "link");
    assert_int_equal(symlink("nowhere", path), 0);
    assert_int_equal(put("x"), -ENOENT);
    assert_int_equal(mr_new_file_check(path), -ENOENT);
    unlink(path);
    assert_int_equal(symlink(".", path), 0);
    assert_int_equal(put("x"), -EISDIR);
    assert_int_equal(mr_new_file_stream(path), -EISDIR);
    snprintf(path, sizeof path, "%s/", dir);
    assert_int_equal(put("x"), -EISDIR);
    snprintf(path, sizeof path, "%s/none/x", dir);
    assert_int_equal(put("x"), -ENOENT);
    assert_int_equal(mr_new_file_put("", "x", 1), -ENOENT);
    assert_int_equal(tempdir_count(dir), 1);
}

static int write_as_stranger(void *arg)
{
    return mr_new_file_check(arg) == -EACCES && mr_new_file_put(arg, "x", 1) == -EACCES ? 0 : 1;
}

static void a_file_that_may_not_be_written_is_not_replaced(void **state)
{
    use(*state, "locked");
    tempdir_text(*state, "locked", "precious");
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(chmod(dir, 0777), 0); /* in a folder where a new file could be made */
    assert_int_equal(as_stranger(write_as_stranger, path), 0);
    assert_string_equal(content(path), "precious");
}

static void *read_pipe(void *arg)
{
    char *text = calloc(1, 64);
    int fd = open(arg, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    ssize_t got;
    while (fd >= 0 && (got = read(fd, text + n, 63 - n)) > 0)
        n += (size_t)got;
    close(fd);
    return text;
}

static void devices_and_pipes_are_written_to(void **state)
{
    pthread_t reader;
    void *text = NULL;
    struct stat st;
    use(*state, "link");
    assert_int_equal(mr_new_file_check("/dev/null"), 0);
    assert_int_equal(mr_new_file_put("/dev/null", "x", 1), 0);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_int_equal(put("x"), 0);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(mr_new_file_put("/dev/full", "x", 1), -ENOSPC);
    use(*state, "pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(mr_new_file_check(path), 0);
    assert_int_equal(pthread_create(&reader, NULL, read_pipe, path), 0);
    assert_int_equal(put("through"), 0);
    pthread_join(reader, &text);
    assert_string_equal(text, "through");
    free(text);
    assert_int_equal(tempdir_count(dir), 2);
}

/* /dev/stdout when standard output is a file: who writes there goes on where others ended. */
static void a_descriptor_s_name_is_that_descriptor(void **state)
{
    char name[64], file[400];
    use(*state, "link");
    snprintf(file, sizeof file, "%s/file", dir);
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(mr_write_all(fd, "one ", 4), 0);
    snprintf(name, sizeof name, "/dev/fd/%d", fd);
    assert_int_equal(mr_new_file_check(name), 0);
    assert_int_equal(mr_new_file_put(name, "two ", 4), 0);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    assert_int_equal(symlink(name, path), 0);
    assert_int_equal(put("three "), 0);
    assert_int_equal(mr_write_all(fd, "four", 4), 0);
    close(fd);
    assert_string_equal(content(file), "one two three four");
    assert_int_equal(tempdir_count(dir), 2);
}

/* Every call fails once, in every way: the old file or the new one, nothing else in the folder. */
static void whatever_fails_the_file_is_the_old_or_the_new_one(void **state)
{
    static const enum fault_kind kinds[] = {FAULT_FAIL, FAULT_EINTR, FAULT_SHORT, FAULT_FULL,
                                            FAULT_LATE};
    use(*state, "file");
    for (unsigned k = 0; k < ARRAY_LEN(kinds); k++) {
        int failed = 1;
        for (uint64_t at = 1; failed; at++) {
            tempdir_text(*state, "file", "before");
            int64_t live = faults_live();
            faults_begin(kinds[k], at);
            int r = put("after");
            failed = faults_end();
            assert_true(at < 100);
            assert_string_equal(content(path), r ? "before" : "after");
            assert_int_equal(faults_live(), live);
            assert_int_equal(tempdir_count(dir), 1);
            if (kinds[k] != FAULT_FAIL && kinds[k] != FAULT_FULL)
                assert_int_equal(r, 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(a_new_file_has_the_permissions_that_the_umask_leaves),
        WITH_TEMPDIR(a_file_that_is_replaced_keeps_its_permissions),
        WITH_TEMPDIR(until_it_is_whole_the_earlier_file_is_there),
        WITH_TEMPDIR(a_link_is_replaced_and_what_it_points_to_stays),
        WITH_TEMPDIR(a_second_name_of_a_file_keeps_the_earlier_content),
        WITH_TEMPDIR(links_to_nothing_and_folders_are_refused),
        WITH_TEMPDIR(a_file_that_may_not_be_written_is_not_replaced),
        WITH_TEMPDIR(devices_and_pipes_are_written_to),
        WITH_TEMPDIR(a_descriptor_s_name_is_that_descriptor),
        WITH_TEMPDIR(whatever_fails_the_file_is_the_old_or_the_new_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
