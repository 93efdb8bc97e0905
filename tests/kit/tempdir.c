/* tempdir.c - see tempdir.h.  TMPDIR is used when set; the build's own folder would be on the file
 * system that matters to page-cache tests, so tests run there and use "." as a parent. */
#include "tempdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define STRANGER 65534

struct tempdir *tempdir_new(const char *parent)
{
    struct tempdir *t = calloc(1, sizeof *t);
    assert_non_null(t);
    snprintf(t->path, sizeof t->path, "%s/millrace-test-XXXXXX", parent);
    assert_non_null(mkdtemp(t->path));
    umask(022); /* files that a stranger may read, however this was started */
    assert_int_equal(chmod(t->path, 0755), 0);
    return t;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    return remove(path);
}

void tempdir_free(struct tempdir *t)
{
    nftw(t->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(t);
}

int tempdir_setup(void **state)
{
    const char *parent = getenv("TMPDIR");
    *state = tempdir_new(parent ? parent : "/tmp");
    return 0;
}

int tempdir_setup_in_memory(void **state)
{
    if (access("/dev/shm", W_OK))
        return tempdir_setup(state);
    *state = tempdir_new("/dev/shm");
    return 0;
}

int tempdir_teardown(void **state)
{
    tempdir_free(*state);
    return 0;
}

const char *tempdir_path(struct tempdir *t, const char *name)
{
    int n = snprintf(t->name, sizeof t->name, "%s/%s", t->path, name);
    assert_true(n > 0 && (size_t)n < sizeof t->name);
    return t->name;
}

/* Make the folders that t->name names up to its last '/'. */
static void make_parents(struct tempdir *t)
{
    for (char *p = t->name + strlen(t->path) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        if (mkdir(t->name, 0755))
            assert_int_equal(errno, EEXIST);
        *p = '/';
    }
}

const char *tempdir_write(struct tempdir *t, const char *name, const void *bytes, size_t len)
{
    tempdir_path(t, name);
    make_parents(t);
    int fd = open(t->name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    for (size_t done = 0; done < len;) {
        ssize_t n = write(fd, (const char *)bytes + done, len - done);
        assert_true(n > 0);
        done += (size_t)n;
    }
    assert_int_equal(close(fd), 0);
    return t->name;
}

const char *tempdir_text(struct tempdir *t, const char *name, const char *text)
{
    return tempdir_write(t, name, text, strlen(text));
}

const char *tempdir_mkdir(struct tempdir *t, const char *name)
{
    tempdir_path(t, name);
    make_parents(t);
    assert_int_equal(mkdir(t->name, 0755), 0);
    return t->name;
}

int as_stranger(int (*check)(void *arg), void *arg)
{
    if (geteuid())
        return check(arg);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child)
        _exit(seteuid(STRANGER) ? 127 : check(arg) ? 1 : 0);
    int status;
    while (waitpid(child, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return status;
}

unsigned tempdir_count(const char *path)
{
    unsigned n = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2; /* without . and .. */
}
