/* test_uring_reader.c - files by io_uring, opened ahead and by chains: read whole or refused, with
 * the words that whole_file.c has for them. */
#include "uring_reader.h"
#include "whole_file.h"

#include <millrace/store.h>

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_BYTES ((size_t)1 << 20)

enum way { BY_CHAIN, OPENED_AHEAD, N_WAYS };

static struct mr_uring_reader *reader;
static uint8_t *room;        /* [2 * MAX_BYTES], on a page's boundary */
static void (*meddle)(void); /* runs between the opening ahead and the read */
static char victim[4352];

static void open_reader(unsigned depth, int direct)
{
    struct mr_error err = {0};
    if (mr_uring_reader_open(depth, direct, &reader, &err))
        fail_msg("%s", err.text);
}

static void close_reader(void)
{
    mr_uring_reader_close(reader);
    reader = NULL;
}

/* Read a file into `room` as an engine does, `cap` bytes being there when its size is not known;
 * its length, or -errno.  No descriptor may stay behind. */
static int64_t read_file(const char *path, size_t cap, enum way way)
{
    struct mr_uring_op op = {.path = path, .buf = room, .cap = cap, .max = MAX_BYTES}, *done;
    unsigned n_open = tempdir_count("/proc/self/fd");
    int found = way == OPENED_AHEAD ? mr_uring_reader_find(reader, &op) : 0;
    if (found > 0)
        op.cap = mr_direct_round(op.size);
    if (meddle)
        meddle();
    op.result = found < 0 ? found : 0;
    while (op.result >= 0) {
        if (op.result == 1)
            op.cap = mr_direct_round(op.size);
        mr_uring_reader_start(reader, &op);
        assert_int_equal(mr_uring_reader_wait(reader, &done, 1), 1);
        assert_ptr_equal(done, &op);
        if (op.result == 0)
            break;
    }
    assert_int_equal(tempdir_count("/proc/self/fd"), n_open);
    return op.result < 0 ? op.result : (int64_t)op.size;
}

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 31 + i / 256);
}

static const char *write_file(struct tempdir *t, const char *name, size_t n)
{
    uint8_t *bytes = malloc(n + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = byte_at(i);
    const char *path = tempdir_write(t, name, bytes, n);
    free(bytes);
    return path;
}

static void files_of_any_size_come_whole(void **state)
{
    static const size_t sizes[] = {1, 4095, 4096, 4097, 65535, 65536, 65537, 300001, MAX_BYTES};
    for (int direct = 0; direct < 2; direct++) {
        open_reader(1, direct);
        for (size_t k = 0; k < ARRAY_LEN(sizes) * N_WAYS; k++) {
            size_t n = sizes[k / N_WAYS];
            memset(room, 0, n);
            const char *path = write_file(*state, "file", n);
            assert_int_equal(read_file(path, 65536, k % N_WAYS), n);
            for (size_t i = 0; i < n; i++)
                if (room[i] != byte_at(i))
                    fail_msg("%zu bytes: byte %zu is wrong", n, i);
        }
        close_reader();
    }
}

static void what_is_refused_is_refused_in_the_same_words_as_by_plain_reads(void **state)
{
    struct tempdir *t = *state;
    char small[64];
    size_t len;
    write_file(t, "large", MAX_BYTES + 1);
    write_file(t, "empty", 0);
    write_file(t, "file", 5);
    tempdir_mkdir(t, "folder");
    assert_int_equal(mkfifo(tempdir_path(t, "pipe"), 0644), 0);
    assert_int_equal(mkfifo(tempdir_path(t, "full"), 0644), 0);
    assert_int_equal(symlink("loop", tempdir_path(t, "loop")), 0);
    int pipe = open(tempdir_path(t, "full"), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_true(pipe >= 0);
    assert_int_equal(write(pipe, "bytes", 5), 5);
    /* "full" is first, and only opened ahead: a chain would take what is in it, and then wait for
     * more.  The last two have a size of 0, or one page, and other contents. */
    static const char *const odd[] = {"full",
                                      "large",
                                      "empty",
                                      "folder",
                                      "pipe",
                                      "loop",
                                      "missing",
                                      "file/below",
                                      "",
                                      "/dev/zero",
                                      "/dev/null",
                                      "/proc/self/status",
                                      "/sys/kernel/mm/transparent_hugepage/enabled"};
    open_reader(1, 0);
    for (size_t k = 0; k < ARRAY_LEN(odd); k++) {
        char path[4352];
        snprintf(path, sizeof path, "%s",
                 odd[k][0] == '/' || !odd[k][0] ? odd[k] : tempdir_path(t, odd[k]));
        int want =
            strcmp(odd[k], "large") ? mr_file_read(path, room, MAX_BYTES, &len, NULL) : -EFBIG;
        assert_true(want < 0);
        for (enum way way = k ? BY_CHAIN : OPENED_AHEAD; way < N_WAYS; way++) {
            int64_t got = read_file(path, 65536, way);
            if (got != want)
                fail_msg("%s: %lld, not %d", path, (long long)got, want);
        }
    }
    close_reader();
    /* Nobody took what was in the pipe. */
    assert_int_equal(read(pipe, small, sizeof small), 5);
    close(pipe);
}

static void cut(void)
{
    assert_int_equal(truncate(victim, 40000), 0);
}

static void cut_to_nothing(void)
{
    assert_int_equal(truncate(victim, 0), 0);
}

static void grow(void)
{
    int fd = open(victim, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "more", 4), 4);
    close(fd);
}

static void replace(void)
{
    char other[4400];
    snprintf(other, sizeof other, "%s.new", victim);
    int fd = open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "new", 3), 3);
    close(fd);
    assert_int_equal(rename(other, victim), 0);
}

static void a_file_that_changes_after_it_was_opened_is_what_it_was_or_refused(void **state)
{
    static const struct {
        void (*change)(void);
        int64_t result;
    } cases[] = {{cut, -ENODATA}, {cut_to_nothing, -ENODATA}, {grow, 100000}, {replace, 100000}};
    for (int direct = 0; direct < 2; direct++) {
        open_reader(1, direct);
        for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
            memset(room, 0, 100010);
            snprintf(victim, sizeof victim, "%s", write_file(*state, "victim", 100000));
            meddle = cases[k].change;
            int64_t got = read_file(victim, 65536, OPENED_AHEAD);
            meddle = NULL;
            assert_int_equal(got, cases[k].result);
            for (size_t i = 0; got >= 0 && i < 100000; i++)
                assert_int_equal(room[i], byte_at(i));
            if (!direct) /* and not a byte beyond the size it had */
                assert_int_equal(room[100000], 0);
        }
        close_reader();
    }
}

static void what_was_found_can_be_left(void **state)
{
    unsigned n_open = tempdir_count("/proc/self/fd");
    open_reader(1, 0);
    struct mr_uring_op op = {.path = write_file(*state, "file", 5), .max = MAX_BYTES};
    if (!mr_uring_reader_find(reader, &op))
        fail_msg("a file that was just written is not found in memory");
    assert_int_equal(op.size, 5);
    mr_uring_op_drop(&op);
    mr_uring_op_drop(&op);
    close_reader();
    assert_int_equal(tempdir_count("/proc/self/fd"), n_open);
}

static void both_ways_go_on_in_one_ring(void **state)
{
    enum { N = 8 };
    struct mr_uring_op op[N], *done[N];
    char path[N][4352];
    open_reader(N, 0);
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < N; i++) {
            char name[16];
            snprintf(name, sizeof name, "f%u", i);
            snprintf(path[i], sizeof path[i], "%s", write_file(*state, name, 1000 + 100 * i));
            op[i] = (struct mr_uring_op){
                .path = path[i], .buf = room + i * 4096, .cap = 4096, .max = 4096};
            if ((i + round) % 2)
                mr_uring_reader_find(reader, &op[i]);
            mr_uring_reader_start(reader, &op[i]);
        }
        for (unsigned left = N; left;)
            left -= (unsigned)mr_uring_reader_wait(reader, done, left);
        for (unsigned i = 0; i < N; i++) {
            assert_int_equal(op[i].result, 0);
            assert_int_equal(op[i].size, 1000 + 100 * i);
            assert_int_equal(room[i * 4096 + 999], byte_at(999));
        }
    }
    close_reader();
}

int main(void)
{
    struct mr_uring_reader *probe;
    if (mr_uring_reader_open(1, 0, &probe, NULL)) {
        printf("SKIP: io_uring is not available here\n");
        return 77;
    }
    mr_uring_reader_close(probe);
    room = mmap(NULL, 2 * MAX_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return 1;
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(files_of_any_size_come_whole),
        WITH_TEMPDIR(what_is_refused_is_refused_in_the_same_words_as_by_plain_reads),
        WITH_TEMPDIR(a_file_that_changes_after_it_was_opened_is_what_it_was_or_refused),
        WITH_TEMPDIR(what_was_found_can_be_left),
        WITH_TEMPDIR(both_ways_go_on_in_one_ring),
    };
    int failed = cmocka_run_group_tests_name("uring_reader", tests, NULL, NULL);
    munmap(room, 2 * MAX_BYTES);
    return failed;
}
