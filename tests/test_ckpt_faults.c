/* test_ckpt_faults.c - the n-th call that can fail does, for n = 1, 2, 3 ... until a conversion or
 * a copy gets through: then there is an error with words, no temporary file, and no checkpoint that
 * is not whole. */
#include "ckpt_file.h"
#include "ckpt_folder.h"
#include "ckpt_samples.h"
#include "convert.h"
#include "tf_bundle.h"
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum kind { FAIL, INTERRUPT, SHORT };

static enum kind kind;
static unsigned long n_calls, fail_at;
static int armed, hit;

/* Is it this call's turn?  `kinds`: what can happen to it. */
static int turn(unsigned kinds, int code)
{
    if (!armed || !(kinds & 1u << kind) || ++n_calls != fail_at)
        return 0;
    hit = 1;
    errno = kind == INTERRUPT ? EINTR : code;
    return 1;
}

#define F   (1u << FAIL)
#define FI  (F | 1u << INTERRUPT)
#define FIS (FI | 1u << SHORT)

#define WRAP(type, name, args, call, kinds, code, failure)                                         \
    type __real_##name args;                                                                       \
    type __wrap_##name args;                                                                       \
    type __wrap_##name args                                                                        \
    {                                                                                              \
        return turn(kinds, code) ? failure : __real_##name call;                                   \
    }

WRAP(void *, malloc, (size_t n), (n), F, ENOMEM, NULL)
WRAP(void *, calloc, (size_t n, size_t m), (n, m), F, ENOMEM, NULL)
WRAP(void *, realloc, (void *p, size_t n), (p, n), F, ENOMEM, NULL)
WRAP(char *, strdup, (const char *s), (s), F, ENOMEM, NULL)
WRAP(char *, strndup, (const char *s, size_t n), (s, n), F, ENOMEM, NULL)
WRAP(void *, mmap64, (void *at, size_t n, int prot, int flags, int fd, off_t off),
     (at, n, prot, flags, fd, off), F, ENOMEM, MAP_FAILED)
WRAP(int, open64, (const char *path, int flags, int mode), (path, flags, mode), FI, EMFILE, -1)
WRAP(int, fstat64, (int fd, struct stat *st), (fd, st), F, EIO, -1)
WRAP(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n), FI, EIO, -1)

/* Not the real one: what it would make durable is a test's. */
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    return turn(F, EIO) ? -1 : 0;
}
WRAP(int, rename, (const char *a, const char *b), (a, b), F, EIO, -1)
WRAP(int, mkdir, (const char *p, mode_t m), (p, m), F, EACCES, -1)
WRAP(DIR *, opendir, (const char *p), (p), F, EMFILE, NULL)

ssize_t __real_pread64(int fd, void *p, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *p, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *p, size_t n, off_t at)
{
    if (turn(FIS, EIO))
        return kind == SHORT ? __real_pread64(fd, p, n > 4096 ? 4096 : n, at) : -1;
    return __real_pread64(fd, p, n, at);
}

ssize_t __real_pwrite64(int fd, const void *p, size_t n, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *p, size_t n, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *p, size_t n, off_t at)
{
    if (turn(FIS, ENOSPC))
        return kind == SHORT ? __real_pwrite64(fd, p, n > 1 ? 1 : n, at) : -1;
    return __real_pwrite64(fd, p, n, at);
}

static void no_temporaries(const char *dir)
{
    DIR *d = __real_opendir(dir);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));)
        assert_null(strstr(e->d_name, ".millrace-tmp"));
    closedir(d);
}

/* Whatever the folder seems to hold is whole. */
static size_t all_whole(const char *dir)
{
    struct mr_ckpt_folder f = {0};
    if (mr_ckpt_folder_scan(&f, dir, NULL))
        return 0;
    for (size_t i = 0; i < f.n; i++) {
        struct mr_ckpt_file *c;
        struct mr_ckpt_verdict v;
        struct mr_error err = {0};
        if (mr_ckpt_file_open(f.found[i].path, &c, &err) || mr_ckpt_file_verify(c, NULL, &v, &err))
            fail_msg("call %lu: %s", fail_at, err.text);
        mr_ckpt_file_close(c);
    }
    size_t n = f.n;
    mr_ckpt_folder_fini(&f);
    return n;
}

/* Ways: 0 and 3 to a bundle, 1 to safetensors, 2 a copy. */
static int whole_run(const char *from, const char *to, int way, struct mr_error *err)
{
    char path[MR_CKPT_MAX_PATH];
    struct mr_ckpt_verdict v;
    struct mr_ckpt_file *c = NULL;
    struct mr_convert_opts o = {.format = way % 3 ? MR_CHECKPOINT_SAFETENSORS : MR_CHECKPOINT_TF};
    int r = mr_ckpt_file_open(from, &c, err);
    if (!r)
        r = mr_ckpt_file_verify(c, NULL, &v, err);
    if (!r)
        r = way == 2 ? mr_ckpt_copy(c, to, NULL, path, err) : mr_ckpt_convert(c, to, &o, path, err);
    mr_ckpt_file_close(c);
    return r;
}

static void loop(struct tempdir *dir, const char *from, int way, enum kind k)
{
    char to[512];
    for (fail_at = 1;; fail_at++) {
        struct mr_error err = {0};
        kind = k;
        n_calls = 0;
        hit = 0;
        snprintf(to, sizeof to, "%s/to-%d-%d-%lu", dir->path, way, (int)k, fail_at);
        armed = 1;
        int r = whole_run(from, to, way, &err);
        armed = 0;
        assert_int_equal(r, err.code);
        assert_true(!r || (hit && err.text[0]));
        assert_true(!r || k == FAIL); /* interrupted and short calls are continued */
        no_temporaries(to);
        if (all_whole(to) != 1 && !r)
            fail_msg("way %d, kind %d, call %lu: there is no checkpoint", way, (int)k, fail_at);
        if (!hit)
            return;
        assert_in_range(fail_at, 1, 20000);
    }
}

static void every_failure_leaves_a_whole_checkpoint_or_none(void **state)
{
    struct tempdir *dir = *state;
    char from[512];
    sample_write_tf(dir, "m-1", MR_BUNDLE_ALIGN);
    snprintf(from, sizeof from, "%s/m-1", dir->path);
    for (int way = 0; way < 3; way++)
        for (int k = FAIL; k <= SHORT; k++)
            loop(dir, from, way, (enum kind)k);
    sample_write_safetensors(dir, "s-1");
    snprintf(from, sizeof from, "%s/s-1.safetensors", dir->path);
    loop(dir, from, 3, FAIL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(every_failure_leaves_a_whole_checkpoint_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
