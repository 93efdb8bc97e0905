/* test_page_cache.c - what is cached, what is not, and what cannot be known.
 *
 * Tests of eviction run in the build's own folder, which is usually on a disk, and are skipped
 * where it is not. */
#include <millrace/store.h>

#include "filesystem.h"
#include "io_account.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE 1000001

static int build_setup(void **state)
{
    *state = tempdir_new(".");
    return 0;
}

#define IN_BUILD(test) cmocka_unit_test_setup_teardown(test, build_setup, tempdir_teardown)

static const char *big_file(struct tempdir *t)
{
    char *bytes = malloc(SIZE);
    assert_non_null(bytes);
    memset(bytes, 'x', SIZE);
    const char *path = tempdir_write(t, "file", bytes, SIZE);
    free(bytes);
    return path;
}

static enum mr_fs_kind kind_of(const char *path)
{
    struct mr_filesystem fs;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(mr_filesystem_of(fd, &fs), 0);
    close(fd);
    return fs.lower_cache ? MR_FS_OTHER : fs.kind;
}

static int is_on_a_disk(const char *path)
{
    enum mr_fs_kind kind = kind_of(path);
    return kind == MR_FS_BLOCK || kind == MR_FS_OVERLAY;
}

static void eviction_is_proven_on_a_disk(void **state)
{
    const char *path = big_file(*state);
    struct mr_cache_state before, after, now;
    if (!is_on_a_disk(path))
        skip();
    assert_int_equal(mr_cache_query(path, &now, NULL), 0);
    assert_int_equal(now.size_bytes, SIZE);
    assert_int_equal(now.cached_bytes, SIZE); /* just written, dirty */
    assert_int_equal(mr_cache_evict(path, &before, &after, NULL), MR_COLD_DATA);
    assert_int_equal(before.size_bytes, SIZE);
    assert_int_equal(before.cached_bytes, SIZE);
    assert_int_equal(after.size_bytes, SIZE);
    assert_int_equal(after.cached_bytes, 0);
    assert_int_equal(mr_cache_query(path, &now, NULL), 0);
    assert_int_equal(now.cached_bytes, 0);
}

static void reading_brings_it_back_and_is_accounted(void **state)
{
    const char *path = big_file(*state);
    struct mr_cache_state now;
    uint64_t was, is;
    size_t len;
    if (kind_of(path) != MR_FS_BLOCK)
        skip();
    char *buf = malloc(SIZE);
    assert_non_null(buf);
    assert_int_equal(mr_cache_evict(path, NULL, NULL, NULL), MR_COLD_DATA);
    int accounted = !mr_io_read_bytes(&was);
    assert_int_equal(mr_file_read(path, buf, SIZE, &len, NULL), 0);
    assert_int_equal(mr_cache_query(path, &now, NULL), 0);
    assert_int_equal(now.cached_bytes, SIZE);
    if (accounted) {
        assert_int_equal(mr_io_read_bytes(&is), 0);
        assert_true(is - was >= SIZE);
        assert_int_equal(mr_file_read(path, buf, SIZE, &len, NULL), 0);
        assert_int_equal(mr_io_read_bytes(&was), 0);
        assert_int_equal(was - is, 0); /* from the cache: nothing was fetched */
    }
    free(buf);
}

static void a_mapped_file_is_not_called_cold(void **state)
{
    const char *path = big_file(*state);
    struct mr_cache_state after;
    if (!is_on_a_disk(path))
        skip();
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    char *map = mmap(NULL, SIZE, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    assert_int_equal(map[SIZE - 1], 'x');
    assert_int_equal(mr_cache_evict(path, NULL, &after, NULL), MR_COLD_UNPROVEN);
    assert_true(after.cached_bytes > 0);
    munmap(map, SIZE);
    close(fd);
    assert_int_equal(mr_cache_evict(path, NULL, &after, NULL), MR_COLD_DATA);
}

static void an_empty_file_is_cold(void **state)
{
    const char *path = tempdir_text(*state, "empty", "");
    struct mr_cache_state s;
    assert_int_equal(mr_cache_query(path, &s, NULL), 0);
    assert_int_equal(s.size_bytes, 0);
    assert_int_equal(s.cached_bytes, 0);
    assert_int_equal(mr_cache_evict(path, NULL, &s, NULL),
                     is_on_a_disk(path) ? MR_COLD_DATA : MR_COLD_UNPROVEN);
}

static void memory_cannot_be_evicted(void **state)
{
    if (access("/dev/shm", W_OK) || kind_of("/dev/shm") != MR_FS_MEMORY)
        skip();
    struct tempdir *t = tempdir_new("/dev/shm");
    struct mr_cache_state before, after;
    assert_int_equal(mr_cache_evict(big_file(t), &before, &after, NULL), MR_COLD_UNPROVEN);
    assert_int_equal(before.size_bytes, SIZE);
    assert_int_equal(after.cached_bytes, SIZE);
    tempdir_free(t);
}

static void what_is_no_file_is_refused(void **state)
{
    struct tempdir *t = *state;
    struct mr_cache_state s = {1, 2};
    assert_int_equal(mr_cache_query(tempdir_path(t, "missing"), &s, NULL), -ENOENT);
    assert_int_equal(mr_cache_evict(tempdir_path(t, "missing"), &s, &s, NULL), -ENOENT);
    assert_int_equal(mr_cache_query(t->path, &s, NULL), -EISDIR);
    assert_int_equal(mr_cache_evict(t->path, &s, &s, NULL), -EISDIR);
    assert_int_equal(mkfifo(tempdir_path(t, "pipe"), 0644), 0);
    assert_int_equal(mr_cache_query(tempdir_path(t, "pipe"), &s, NULL), -EINVAL);
    assert_int_equal(mr_cache_evict(tempdir_path(t, "pipe"), &s, &s, NULL), -EINVAL);
    assert_int_equal(s.size_bytes, 1);
    assert_int_equal(s.cached_bytes, 2);
}

/* A file of somebody else that may be read and not written. */
static int nothing_can_be_known(void *path)
{
    struct mr_cache_state s, before, after;
    if (mr_cache_query(path, &s, NULL) || s.size_bytes != SIZE || s.cached_bytes != -1)
        return 1;
    return mr_cache_evict(path, &before, &after, NULL) != MR_COLD_UNPROVEN ||
           before.cached_bytes != -1 || after.cached_bytes != -1;
}

/* The same when it may be written. */
static int all_can_be_known(void *path)
{
    struct mr_cache_state s;
    return mr_cache_query(path, &s, NULL) || s.size_bytes != SIZE || s.cached_bytes != SIZE;
}

static int access_is_denied(void *path)
{
    struct mr_cache_state s;
    return mr_cache_query(path, &s, NULL) != -EACCES ||
           mr_cache_evict(path, NULL, NULL, NULL) != -EACCES;
}

static void a_stranger_is_told_what_can_be_known(void **state)
{
    struct mr_cache_state s;
    if (geteuid()) { /* only root can make a file that is not its own; this one exists */
        assert_int_equal(mr_cache_query("/etc/passwd", &s, NULL), 0);
        assert_int_equal(s.cached_bytes, -1);
        assert_int_equal(mr_cache_evict("/etc/passwd", NULL, NULL, NULL), MR_COLD_UNPROVEN);
        return;
    }
    char *path = strdup(big_file(*state));
    assert_non_null(path);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(as_stranger(nothing_can_be_known, path), 0);
    big_file(*state); /* whoever may read a file may evict it */
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(as_stranger(all_can_be_known, path), 0);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(as_stranger(access_is_denied, path), 0);
    free(path);
}

static void an_owner_may_know_even_what_is_read_only(void **state)
{
    const char *path = big_file(*state);
    struct mr_cache_state s;
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(mr_cache_query(path, &s, NULL), 0);
    assert_int_equal(s.size_bytes, SIZE);
    assert_in_range(s.cached_bytes, 0, SIZE);
}

static void a_part_of_a_file_can_be_cached(void **state)
{
    const char *path = big_file(*state);
    struct mr_cache_state s;
    if (kind_of(path) != MR_FS_BLOCK)
        skip();
    assert_int_equal(mr_cache_evict(path, NULL, NULL, NULL), MR_COLD_DATA);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char byte;
    assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0); /* no read-ahead */
    assert_int_equal(pread(fd, &byte, 1, 500000), 1);
    close(fd);
    assert_int_equal(mr_cache_query(path, &s, NULL), 0);
    assert_in_range(s.cached_bytes, 1, SIZE / 2);
}

static void file_systems_are_told_apart(void **state)
{
    struct mr_filesystem fs;
    assert_int_equal(mr_filesystem_of(-1, &fs), -EBADF);
    assert_int_equal(kind_of("/proc/self/status"), MR_FS_OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_BUILD(eviction_is_proven_on_a_disk),
        IN_BUILD(reading_brings_it_back_and_is_accounted),
        IN_BUILD(a_mapped_file_is_not_called_cold),
        IN_BUILD(a_part_of_a_file_can_be_cached),
        IN_BUILD(an_empty_file_is_cold),
        cmocka_unit_test(memory_cannot_be_evicted),
        IN_BUILD(what_is_no_file_is_refused),
        WITH_TEMPDIR(a_stranger_is_told_what_can_be_known),
        IN_BUILD(an_owner_may_know_even_what_is_read_only),
        cmocka_unit_test(file_systems_are_told_apart),
    };
    return cmocka_run_group_tests_name("page_cache", tests, NULL, NULL);
}
