/* test_cache_faults.c - each call that asks about the page cache or empties it fails once.
 *
 * What must hold: an error writes no output, nothing leaks, and "cold" is never said of a file with
 * pages in memory, nor of one of which it is not known what lies below. */
#include <millrace/store.h>

#include "faults.h"
#include "filesystem.h"
#include "io_account.h"
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SIZE     (64 << 10)
#define SENTINEL 0x5eed

static const char *only; /* fail this one alone, always, with this code */
static int only_code;

static int fails(const char *name)
{
    if (only) {
        errno = only_code;
        return !strcmp(only, name);
    }
    errno = EIO;
    return faults_turn();
}

#define WRAP(type, name, ...)                                                                      \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

WRAP(int, posix_fadvise64, int fd, off_t at, off_t len, int advice)
{
    return fails("posix_fadvise") ? errno : __real_posix_fadvise64(fd, at, len, advice);
}

WRAP(int, fdatasync, int fd)
{
    return fails("fdatasync") ? -1 : __real_fdatasync(fd);
}

WRAP(int, mincore, void *at, size_t len, unsigned char *state)
{
    return fails("mincore") ? -1 : __real_mincore(at, len, state);
}

/* It is variadic in its declaration; no call of ours has more arguments. */
WRAP(int, fcntl64, int fd, int what, long arg)
{
    return fails("fcntl") ? -1 : __real_fcntl64(fd, what, arg);
}

WRAP(int, faccessat, int dir, const char *path, int mode, int flags)
{
    return fails("faccessat") ? -1 : __real_faccessat(dir, path, mode, flags);
}

WRAP(int, access, const char *path, int mode)
{
    return fails("access") ? -1 : __real_access(path, mode);
}

WRAP(int, fstatfs64, int fd, struct statfs *out)
{
    return fails("fstatfs") ? -1 : __real_fstatfs64(fd, out);
}

static int n_streams; /* that are open */

WRAP(FILE *, fopen64, const char *path, const char *mode)
{
    FILE *f = fails("fopen") ? NULL : __real_fopen64(path, mode);
    n_streams += f != NULL;
    return f;
}

WRAP(int, fclose, FILE *f)
{
    n_streams--;
    return __real_fclose(f);
}

WRAP(char *, fgets, char *line, int cap, FILE *f)
{
    return fails("fgets") ? NULL : __real_fgets(line, cap, f);
}

/* The system's caches are everybody's: dropping them goes as far as the call that fails. */
WRAP(void, sync, void)
{
}

static int refuse_cachestat(long number)
{
    return number == 451 && fails("cachestat");
}

static int build_setup(void **state)
{
    *state = tempdir_new(".");
    return 0;
}

#define IN_BUILD(test) cmocka_unit_test_setup_teardown(test, build_setup, tempdir_teardown)

/* A file with pages that are dirty. */
static const char *dirty_file(struct tempdir *t)
{
    static char bytes[SIZE];
    memset(bytes, 'x', sizeof bytes);
    return tempdir_write(t, "file", bytes, sizeof bytes);
}

/* Resident pages, asked without any of the code under test. */
static unsigned n_resident(const char *path)
{
    unsigned char state[SIZE / 4096] = {0};
    unsigned n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *at = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(fd >= 0 && at != MAP_FAILED);
    assert_int_equal(__real_mincore(at, SIZE, state), 0);
    for (unsigned i = 0; i < sizeof state; i++)
        n += state[i] & 1;
    munmap(at, SIZE);
    close(fd);
    return n;
}

static void evicting_tells_no_lies_whichever_call_fails(void **state)
{
    int hit = 1;
    for (uint64_t at = 1; hit; at++) {
        const char *path = dirty_file(*state);
        struct mr_cache_state before = {SENTINEL, SENTINEL}, after = before;
        int64_t live = faults_live();
        faults_begin(FAULT_FAIL, at);
        int r = mr_cache_evict(path, &before, &after, NULL);
        hit = faults_end();
        assert_int_equal(faults_live(), live);
        if (r < 0) {
            assert_true(hit);
            assert_int_equal(before.size_bytes, SENTINEL);
            assert_int_equal(after.size_bytes, SENTINEL);
        } else {
            assert_int_equal(after.size_bytes, SIZE);
            if (after.cached_bytes >= 0)
                assert_int_equal(after.cached_bytes, n_resident(path) * 4096);
        }
        if (r == MR_COLD_DATA)
            assert_int_equal(n_resident(path), 0);
        assert_in_range(at, 1, 1000);
    }
}

static void asking_tells_no_lies_whichever_call_fails(void **state)
{
    const char *path = dirty_file(*state);
    int hit = 1;
    for (uint64_t at = 1; hit; at++) {
        struct mr_cache_state now = {SENTINEL, SENTINEL};
        int64_t live = faults_live();
        faults_begin(FAULT_FAIL, at);
        int r = mr_cache_query(path, &now, NULL);
        hit = faults_end();
        assert_int_equal(faults_live(), live);
        assert_true(r == 0 || (r < 0 && hit));
        assert_int_equal(now.size_bytes, r ? SENTINEL : SIZE);
        if (!r && now.cached_bytes >= 0)
            assert_int_equal(now.cached_bytes, SIZE);
        assert_in_range(at, 1, 1000);
    }
}

/* Evict with one call failing whenever it is made. */
static int evict_without(const char *path, const char *call, int code, struct mr_cache_state *after)
{
    only = call;
    only_code = code;
    int r = mr_cache_evict(path, NULL, after, NULL);
    only = NULL;
    return r;
}

static int is_block_or_overlay(const char *path, enum mr_fs_kind *kind)
{
    struct mr_filesystem fs;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(mr_filesystem_of(fd, &fs), 0);
    close(fd);
    *kind = fs.kind;
    return !fs.lower_cache && (fs.kind == MR_FS_BLOCK || fs.kind == MR_FS_OVERLAY);
}

static void single_calls_that_always_fail(void **state)
{
    struct mr_cache_state after;
    enum mr_fs_kind kind;
    const char *path = dirty_file(*state);
    if (!is_block_or_overlay(path, &kind))
        skip();
    /* Pages that are mapped stay, so writing back is tried. */
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *at = mmap(NULL, SIZE, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    assert_true(fd >= 0 && at != MAP_FAILED);
    /* The device has lost what was written: an error, whatever is cached. */
    assert_int_equal(evict_without(path, "fdatasync", EIO, &after), -EIO);
    /* There is no writing back: what stays is seen. */
    assert_int_equal(evict_without(path, "fdatasync", EINVAL, &after), MR_COLD_UNPROVEN);
    assert_true(after.cached_bytes > 0);
    munmap(at, SIZE);
    close(fd);
    assert_int_equal(evict_without(path, "posix_fadvise", ESPIPE, &after), -ESPIPE);
    /* Older kernels have no cachestat: mincore proves it. */
    path = dirty_file(*state);
    assert_int_equal(evict_without(path, "cachestat", ENOSYS, &after), MR_COLD_DATA);
    assert_int_equal(n_resident(path), 0);
    if (kind == MR_FS_BLOCK) { /* is it a loop device?  Nobody knows. */
        assert_int_equal(evict_without(path, "fopen", EMFILE, &after), MR_COLD_UNPROVEN);
        assert_int_equal(evict_without(path, "fopen", ENOENT, &after), MR_COLD_DATA);
    }
}

static void what_the_device_delivered_is_told_or_not(void **state)
{
    (void)state;
    uint64_t now;
    if (mr_io_read_bytes(&now))
        skip(); /* a kernel that does not account it */
    int hit = 1;
    for (uint64_t at = 1; hit; at++) {
        uint64_t n = SENTINEL;
        faults_begin(FAULT_FAIL, at);
        int r = mr_io_read_bytes(&n);
        hit = faults_end();
        assert_int_equal(r < 0, hit);
        assert_true(!r || n == SENTINEL);
        assert_int_equal(n_streams, 0);
        assert_in_range(at, 1, 100);
    }
}

/* Neither opening nor writing may fail unseen.  A third try, in which nothing fails, would empty
 * the caches of the whole machine. */
static void dropping_all_caches_fails_aloud(void **state)
{
    (void)state;
    for (uint64_t at = 1; at <= 2; at++) {
        int64_t live = faults_live();
        faults_begin(FAULT_FAIL, at);
        int r = mr_cache_drop_all(NULL), hit = faults_end();
        assert_true(r < 0);
        assert_true(!hit || r == -EIO);
        assert_int_equal(faults_live(), live);
        if (!hit)
            skip(); /* no right to open it */
    }
}

int main(void)
{
    faults_before_syscall = refuse_cachestat;
    const struct CMUnitTest tests[] = {
        IN_BUILD(evicting_tells_no_lies_whichever_call_fails),
        IN_BUILD(asking_tells_no_lies_whichever_call_fails),
        IN_BUILD(single_calls_that_always_fail),
        cmocka_unit_test(what_the_device_delivered_is_told_or_not),
        cmocka_unit_test(dropping_all_caches_fails_aloud),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
