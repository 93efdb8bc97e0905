/* test_whole_file.c - a file is read whole or not at all, and nothing blocks or leaks. */
#include "whole_file.h"

#include <millrace/store.h>

#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static unsigned n_open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* The error of reading `path` with room for `cap` bytes; neither the buffer nor *len may change. */
static int error_of(const char *path, size_t cap)
{
    char buf[64], was[64];
    memset(buf, 7, sizeof buf);
    memset(was, 7, sizeof was);
    size_t len = 12345;
    unsigned n_open = n_open_files();
    assert_true(cap <= sizeof buf);
    int r = mr_file_read(path, buf, cap, &len, NULL);
    assert_int_equal(len, 12345);
    assert_memory_equal(buf, was, sizeof buf);
    assert_int_equal(n_open_files(), n_open);
    return r;
}

static void a_file_is_read_whole(void **state)
{
    struct tempdir *t = *state;
    static const size_t sizes[] = {1, 2, 4095, 4096, 4097, 100000, 3000001};
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        size_t n = sizes[k], len = 0;
        char *want = malloc(n), *got = malloc(n);
        assert_true(want && got);
        for (size_t i = 0; i < n; i++)
            want[i] = (char)(i * 31 + k);
        unsigned n_open = n_open_files();
        assert_int_equal(mr_file_read(tempdir_write(t, "file", want, n), got, n, &len, NULL), 0);
        assert_int_equal(len, n);
        assert_memory_equal(got, want, n);
        assert_int_equal(n_open_files(), n_open);
        free(want);
        free(got);
    }
}

static void a_missing_file_is_reported(void **state)
{
    struct tempdir *t = *state;
    assert_int_equal(error_of(tempdir_path(t, "missing"), 10), -ENOENT);
    assert_int_equal(error_of("", 10), -ENOENT);
    tempdir_text(t, "file", "x");
    assert_int_equal(error_of(tempdir_path(t, "file/below"), 10), -ENOTDIR);
}

static void a_folder_is_no_file(void **state)
{
    struct tempdir *t = *state;
    assert_int_equal(error_of(t->path, 10), -EISDIR);
}

static void a_pipe_does_not_block(void **state)
{
    struct tempdir *t = *state;
    assert_int_equal(mkfifo(tempdir_path(t, "pipe"), 0644), 0);
    assert_int_equal(error_of(tempdir_path(t, "pipe"), 10), -EINVAL);
}

static void a_device_or_socket_is_no_file(void **state)
{
    struct tempdir *t = *state;
    assert_int_equal(error_of("/dev/zero", 10), -EINVAL);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const char *path = tempdir_path(t, "socket");
    assert_true(strlen(path) < sizeof name.sun_path);
    strcpy(name.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
    assert_int_equal(error_of(path, 10), -ENXIO);
    close(fd);
}

static void an_empty_file_has_no_data(void **state)
{
    assert_int_equal(error_of(tempdir_text(*state, "empty", ""), 10), -ENODATA);
    assert_int_equal(error_of(tempdir_path(*state, "empty"), 0), -ENODATA);
}

static void a_file_larger_than_the_room_is_refused(void **state)
{
    const char *path = tempdir_text(*state, "file", "0123456789");
    char buf[10];
    size_t len;
    assert_int_equal(error_of(path, 9), -EFBIG);
    assert_int_equal(error_of(path, 0), -EFBIG);
    assert_int_equal(mr_file_read(path, buf, 10, &len, NULL), 0);
    assert_int_equal(len, 10);
}

static int read_is_denied(void *path)
{
    char buf[16];
    size_t len;
    return mr_file_read(path, buf, sizeof buf, &len, NULL) != -EACCES;
}

static void a_file_without_permission_is_reported(void **state)
{
    char *path = strdup(tempdir_text(*state, "secret", "x"));
    assert_non_null(path);
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(as_stranger(read_is_denied, path), 0);
    free(path);
}

static void a_file_that_shrinks_is_not_taken_for_whole(void **state)
{
    char buf[100];
    size_t size;
    const char *path = tempdir_text(*state, "file", "0123456789");
    unsigned n_open = n_open_files();
    int fd = mr_whole_file_open(AT_FDCWD, path, 0, 100, &size);
    assert_true(fd >= 0);
    assert_int_equal(size, 10);
    assert_int_equal(truncate(path, 4), 0);
    assert_int_equal(mr_whole_file_fill(fd, 0, buf, size), -ENODATA);
    assert_int_equal(n_open_files(), n_open);
}

static void a_file_that_grows_is_cut_at_the_size_it_had(void **state)
{
    char buf[100] = {0};
    size_t size;
    const char *path = tempdir_text(*state, "file", "0123456789");
    int fd = mr_whole_file_open(AT_FDCWD, path, 0, 100, &size);
    assert_true(fd >= 0);
    tempdir_text(*state, "file", "0123456789abcdef");
    assert_int_equal(mr_whole_file_fill(fd, 0, buf, size), 0);
    assert_string_equal(buf, "0123456789");
}

static void a_read_error_is_reported_and_the_file_closed(void **state)
{
    char buf[100];
    unsigned n_open = n_open_files();
    int fd = open(tempdir_text(*state, "file", "0123456789"), O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(mr_whole_file_fill(fd, 0, buf, 10), -EBADF);
    assert_int_equal(n_open_files(), n_open);
}

static void a_file_that_is_known_must_be_as_it_was(void **state)
{
    struct tempdir *t = *state;
    char buf[16] = {0};
    unsigned n_open = n_open_files();
    const char *path = tempdir_text(t, "file", "0123456789");
    assert_int_equal(mr_whole_file_again(AT_FDCWD, path, buf, 10), 1);
    assert_memory_equal(buf, "0123456789", 10);
    assert_int_equal(mr_whole_file_again(AT_FDCWD, path, buf, 9), 0);
    assert_int_equal(mr_whole_file_again(AT_FDCWD, path, buf, 11), 0);
    assert_int_equal(mr_whole_file_again(AT_FDCWD, tempdir_path(t, "none"), buf, 10), 0);
    assert_int_equal(mr_whole_file_again(AT_FDCWD, t->path, buf, 10), 0);
    assert_int_equal(mkfifo(tempdir_path(t, "pipe"), 0600), 0);
    assert_int_equal(mr_whole_file_again(AT_FDCWD, tempdir_path(t, "pipe"), buf, 10), 0);
    assert_int_equal(n_open_files(), n_open);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(a_file_is_read_whole),
        WITH_TEMPDIR(a_missing_file_is_reported),
        WITH_TEMPDIR(a_folder_is_no_file),
        WITH_TEMPDIR(a_pipe_does_not_block),
        WITH_TEMPDIR(a_device_or_socket_is_no_file),
        WITH_TEMPDIR(an_empty_file_has_no_data),
        WITH_TEMPDIR(a_file_larger_than_the_room_is_refused),
        WITH_TEMPDIR(a_file_without_permission_is_reported),
        WITH_TEMPDIR(a_file_that_shrinks_is_not_taken_for_whole),
        WITH_TEMPDIR(a_file_that_grows_is_cut_at_the_size_it_had),
        WITH_TEMPDIR(a_read_error_is_reported_and_the_file_closed),
        WITH_TEMPDIR(a_file_that_is_known_must_be_as_it_was),
    };
    return cmocka_run_group_tests_name("whole_file", tests, NULL, NULL);
}
