/* test_scratch_dir.c - the folder of a measurement: gone at the end, found when it was not. */
#include "scratch_dir.h"

#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void touch_in(struct mr_scratch *s, const char *name)
{
    int fd = openat(mr_scratch_fd(s), name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static struct mr_scratch *opened(const char *dir)
{
    struct mr_scratch *s = NULL;
    struct mr_error err = {0};
    if (mr_scratch_open(dir, &s, &err))
        fail_msg("%s", err.text);
    return s;
}

static void everything_goes_when_it_is_closed(void **state)
{
    struct tempdir *t = *state;
    struct mr_scratch *s = opened(t->path);
    assert_int_equal(tempdir_count(t->path), 1);
    assert_int_equal(mr_scratch_n_stale(s), 0);
    touch_in(s, "a");
    touch_in(s, "b");
    assert_int_equal(tempdir_count(mr_scratch_path(s)), 2);
    assert_int_equal(mr_scratch_clear(s), 0);
    assert_int_equal(tempdir_count(mr_scratch_path(s)), 0);
    touch_in(s, "c");
    mr_scratch_close(s);
    assert_int_equal(tempdir_count(t->path), 0);
    mr_scratch_close(NULL);
}

static void a_file_without_a_name_is_not_there(void **state)
{
    struct tempdir *t = *state;
    struct mr_scratch *s = opened(t->path);
    char back[3];
    int fd = mr_scratch_unnamed(s, NULL), other = mr_scratch_unnamed(s, NULL);
    assert_true(fd >= 0 && other >= 0);
    assert_int_equal(tempdir_count(mr_scratch_path(s)), 0);
    assert_int_equal(pwrite(fd, "abc", 3, 0), 3);
    assert_int_equal(pread(fd, back, 3, 0), 3);
    assert_int_equal(pread(other, back, 3, 0), 0);
    close(fd);
    close(other);
    mr_scratch_close(s);
}

/* Die as by kill -9, with a file in the folder. */
static void leave_one(const char *dir)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        struct mr_scratch *s = NULL;
        if (mr_scratch_open(dir, &s, NULL))
            _exit(1);
        int fd = openat(mr_scratch_fd(s), "left", O_WRONLY | O_CREAT, 0600);
        _exit(fd < 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void what_a_killed_process_left_is_removed(void **state)
{
    struct tempdir *t = *state;
    leave_one(t->path);
    assert_int_equal(tempdir_count(t->path), 1);
    struct mr_scratch *s = opened(t->path);
    assert_int_equal(mr_scratch_n_stale(s), 1);
    assert_int_equal(tempdir_count(t->path), 1);
    mr_scratch_close(s);
    assert_int_equal(tempdir_count(t->path), 0);
}

static void rename_only(const char *dir, const char *from, const char *to);

/* A run that was just begun has made its folder and not locked it yet: that is no killed run. */
static void a_folder_that_is_being_made_is_no_killed_run(void **state)
{
    struct tempdir *t = *state;
    leave_one(t->path);
    rename_only(t->path, "-scratch-", "-newborn-");
    struct mr_scratch *s = opened(t->path);
    assert_int_equal(mr_scratch_n_stale(s), 0);
    assert_int_equal(tempdir_count(t->path), 1); /* its maker makes another */
    mr_scratch_close(s);
    assert_int_equal(tempdir_count(t->path), 0);
}

/* Many processes begin and end at once: each has its folder, none says that another was killed. */
static void runs_that_begin_at_once_do_not_disturb_each_other(void **state)
{
    struct tempdir *t = *state;
    enum { N_PROCESSES = 8, N_TIMES = 200 };
    for (int i = 0; i < N_PROCESSES; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        for (int k = 0; !child && k <= N_TIMES; k++) {
            struct mr_scratch *s = NULL;
            if (k == N_TIMES)
                _exit(0);
            if (mr_scratch_open(t->path, &s, NULL) || mr_scratch_n_stale(s) ||
                access(mr_scratch_path(s), F_OK))
                _exit(1);
            mr_scratch_close(s);
        }
    }
    for (int i = 0, status; i < N_PROCESSES; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    assert_int_equal(tempdir_count(t->path), 0);
}

static void folders_in_it_go_and_what_links_name_stays(void **state)
{
    struct tempdir *t = *state;
    tempdir_mkdir(t, "place");
    tempdir_text(t, "mine/photo.jpg", "x");
    char *place = strdup(tempdir_path(t, "place")), *mine = strdup(tempdir_path(t, "mine"));
    leave_one(place);
    struct mr_scratch *s = opened(place);
    assert_int_equal(mr_scratch_n_stale(s), 1);
    int fd = mr_scratch_fd(s);
    assert_int_equal(mkdirat(fd, "a", 0700), 0);
    assert_int_equal(mkdirat(fd, "a/b", 0700), 0);
    assert_int_equal(symlinkat(mine, fd, "a/b/link"), 0);
    assert_int_equal(symlinkat(mine, fd, "link"), 0);
    touch_in(s, "a/b/file");
    mr_scratch_close(s);
    assert_int_equal(tempdir_count(place), 0);
    assert_int_equal(tempdir_count(mine), 1);
    free(place);
    free(mine);
}

/* The name of the only folder there, with `from` (which has to be in it) replaced. */
static void rename_only(const char *dir, const char *from, const char *to)
{
    char old[PATH_MAX], new[PATH_MAX];
    DIR *d = opendir(dir);
    struct dirent *e;
    assert_non_null(d);
    while ((e = readdir(d)) && e->d_name[1] != 'm')
        ;
    assert_non_null(e);
    const char *at = strstr(e->d_name, from);
    assert_non_null(at);
    snprintf(old, sizeof old, "%s/%s", dir, e->d_name);
    snprintf(new, sizeof new, "%s/%.*s%s%s", dir, (int)(at - e->d_name), e->d_name, to,
             at + strlen(from));
    assert_int_equal(rename(old, new), 0);
    closedir(d);
}

static void those_of_another_host_stay_whose_locks_nobody_sees(void **state)
{
    struct tempdir *t = *state;
    char boot[9], name[HOST_NAME_MAX + 1], host[HOST_NAME_MAX + 3];
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    assert_int_equal(gethostname(name, sizeof name), 0);
    if (!f || !fgets(boot, sizeof boot, f) || strlen(name) > 32)
        skip();
    fclose(f);
    for (char *c = name; (c = strchr(c, '-'));)
        *c = '_';
    snprintf(host, sizeof host, "-%s-", name);
    leave_one(t->path);
    rename_only(t->path, host, "-elsewhere-"); /* the same kernel: a container of another name */
    struct mr_scratch *s = opened(t->path);
    assert_int_equal(mr_scratch_n_stale(s), 1);
    mr_scratch_close(s);
    leave_one(t->path);
    rename_only(t->path, boot, "01234567"); /* this host, before it was booted again */
    s = opened(t->path);
    assert_int_equal(mr_scratch_n_stale(s), 1);
    mr_scratch_close(s);
    leave_one(t->path);
    rename_only(t->path, host, "-elsewhere-");
    rename_only(t->path, boot, "01234567");
    s = opened(t->path);
    assert_int_equal(mr_scratch_n_stale(s), 0);
    assert_int_equal(tempdir_count(t->path), 2);
    mr_scratch_close(s);
}

static void a_folder_in_use_and_things_of_others_stay(void **state)
{
    struct tempdir *t = *state;
    struct mr_scratch *a = opened(t->path), *b = opened(t->path);
    assert_int_equal(mr_scratch_n_stale(b), 0);
    assert_int_equal(tempdir_count(t->path), 2);
    tempdir_mkdir(t, ".millrace-scratch-abcdef/folder"); /* like ours, but we make no such names */
    tempdir_text(t, ".millrace-scratch-a-file", "x");
    struct mr_scratch *c = opened(t->path);
    assert_int_equal(mr_scratch_n_stale(c), 0);
    assert_int_equal(tempdir_count(t->path), 5);
    mr_scratch_close(b);
    mr_scratch_close(a);
    mr_scratch_close(c);
    assert_int_equal(tempdir_count(t->path), 2);
}

static void assert_refused(const char *dir, int code, const char *words)
{
    struct mr_scratch *s = NULL;
    struct mr_error err = {0};
    assert_int_equal(mr_scratch_open(dir, &s, &err), code);
    assert_null(s);
    assert_int_equal(strncmp(err.text, dir, strlen(dir) < 100 ? strlen(dir) : 100), 0);
    assert_non_null(strstr(err.text, words));
}

static int refused_to_strangers(void *arg)
{
    struct mr_scratch *s = NULL;
    struct mr_error err = {0};
    return mr_scratch_open(arg, &s, &err) != -EACCES || !strstr(err.text, "may make files");
}

static void a_wrong_folder_is_named_with_the_reason(void **state)
{
    struct tempdir *t = *state;
    char name[PATH_MAX + 8];
    assert_refused(tempdir_path(t, "none"), -ENOENT, "No such file");
    assert_refused(tempdir_text(t, "file", "x"), -ENOTDIR, "not a folder");
    assert_refused("/proc", -ENOENT, "/proc");
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = 0;
    assert_refused(name, -ENAMETOOLONG, "xxx");
    tempdir_mkdir(t, "closed");
    assert_int_equal(chmod(tempdir_path(t, "closed"), 0555), 0);
    assert_int_equal(as_stranger(refused_to_strangers, t->name), 0);
}

static void free_space_is_told(void **state)
{
    struct tempdir *t = *state;
    int fd = open(t->path, O_RDONLY | O_CLOEXEC);
    uint64_t n = mr_free_bytes(fd);
    close(fd);
    assert_true(n > 0 && n < UINT64_MAX);
    fd = open("/proc", O_RDONLY | O_CLOEXEC);
    assert_true(mr_free_bytes(fd) == UINT64_MAX); /* has no blocks: does not say */
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(everything_goes_when_it_is_closed),
        WITH_TEMPDIR(a_file_without_a_name_is_not_there),
        WITH_TEMPDIR(what_a_killed_process_left_is_removed),
        WITH_TEMPDIR(a_folder_that_is_being_made_is_no_killed_run),
        WITH_TEMPDIR(runs_that_begin_at_once_do_not_disturb_each_other),
        WITH_TEMPDIR(folders_in_it_go_and_what_links_name_stays),
        WITH_TEMPDIR(those_of_another_host_stay_whose_locks_nobody_sees),
        WITH_TEMPDIR(a_folder_in_use_and_things_of_others_stay),
        WITH_TEMPDIR(a_wrong_folder_is_named_with_the_reason),
        WITH_TEMPDIR(free_space_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
