/* test_raw_io.c - operations on one file, many at once.  Run once for each engine
 * (MILLRACE_ENGINE=threads|uring). */
#include "raw_io.h"

#include "device.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 4096, N = 200, DEPTH = 16 };

static struct mr_raw_io *io;
static int fd = -1;

static enum mr_raw_engine engine(void)
{
    const char *name = getenv("MILLRACE_ENGINE");
    return name && !strcmp(name, "uring") ? MR_RAW_URING : MR_RAW_THREADS;
}

static int setup(void **state)
{
    tempdir_setup(state);
    struct mr_error err = {0};
    int r = mr_raw_io_open(engine(), DEPTH, (size_t)DEPTH * BLOCK, &io, &err);
    if (r && r != -ENOTSUP)
        fail_msg("%s", err.text);
    fd = open(tempdir_path(*state, "file"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    return 0;
}

static int teardown(void **state)
{
    mr_raw_io_close(io);
    io = NULL;
    close(fd);
    return tempdir_teardown(state);
}

static void block(const void *ctx, uint64_t i, uint64_t *offset, uint32_t *len)
{
    (void)ctx;
    *offset = i * BLOCK;
    *len = BLOCK;
}

/* Each operation once, whoever asks; those that there are none of count last. */
static atomic_uint asked[N + 1];
static void counted_block(const void *ctx, uint64_t i, uint64_t *offset, uint32_t *len)
{
    atomic_fetch_add(&asked[i < N ? i : N], 1);
    block(ctx, i, offset, len);
}

static struct mr_raw_job job(int write)
{
    return (struct mr_raw_job){.name = "file",
                               .fd = fd,
                               .write = write,
                               .depth = DEPTH,
                               .max_len = BLOCK,
                               .place = block,
                               .n_ops = N};
}

static void run(const struct mr_raw_job *j, struct mr_raw_result *out)
{
    struct mr_error err = {0};
    if (mr_raw_io_run(io, j, out, &err))
        fail_msg("%s", err.text);
}

static void every_operation_is_done_once(void **state)
{
    struct mr_raw_job j = job(1);
    struct mr_raw_result out;
    (void)state;
    if (!io)
        skip();
    j.place = counted_block;
    j.sync = 1;
    for (unsigned depth = 1; depth <= DEPTH; depth *= 4) {
        memset(asked, 0, sizeof asked);
        j.depth = depth;
        run(&j, &out);
        for (unsigned i = 0; i < N; i++)
            assert_int_equal(atomic_load(&asked[i]), 1);
        assert_int_equal(atomic_load(&asked[N]), 0);
        assert_int_equal(out.n_ops, N);
        assert_int_equal(out.bytes, N * BLOCK);
        assert_int_equal(out.latency.n, N);
        assert_int_equal(out.cut, 0);
        assert_int_equal(out.n_late, 0);
        assert_true(out.seconds > 0);
        struct stat st;
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(st.st_size, N * BLOCK);
        j.write = !j.write; /* and the same for reading */
        run(&j, &out);
        assert_int_equal(out.bytes, N * BLOCK);
        j.write = 1;
    }
}

static void no_two_blocks_that_are_written_are_equal(void **state)
{
    struct mr_raw_job j = job(1);
    struct mr_raw_result out;
    uint64_t first[N];
    (void)state;
    if (!io)
        skip();
    run(&j, &out);
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(pread(fd, &first[i], 8, (off_t)i * BLOCK), 8);
        for (unsigned k = 0; k < i; k++)
            assert_true(first[i] != first[k]);
    }
    run(&j, &out); /* another run writes something else */
    for (unsigned i = 0; i < N; i++) {
        uint64_t now;
        assert_int_equal(pread(fd, &now, 8, (off_t)i * BLOCK), 8);
        assert_true(now != first[i]);
    }
}

static void bytes_come_from_their_place(void **state)
{
    struct mr_raw_job j = job(0);
    struct mr_raw_result out;
    static char bytes[BLOCK];
    (void)state;
    if (!io)
        skip();
    for (unsigned i = 0; i < DEPTH; i++) {
        memset(bytes, 'a' + (int)i, BLOCK);
        assert_int_equal(pwrite(fd, bytes, BLOCK, (off_t)i * BLOCK), BLOCK);
    }
    j.depth = j.n_ops = 1;
    for (unsigned i = 0; i < DEPTH; i++) {
        run(&j, &out);
        assert_int_equal(mr_raw_io_buffer(io)[BLOCK - 1], 'a');
    }
    j.n_ops = 7; /* the last one that went through the only buffer */
    run(&j, &out);
    assert_int_equal(mr_raw_io_buffer(io)[BLOCK - 1], 'a' + 6);
}

static void a_job_may_ask_for_ordinary_pages(void **state)
{
    struct mr_raw_job j = job(0);
    struct mr_raw_result out;
    static char bytes[BLOCK];
    (void)state;
    if (!io)
        skip();
    memset(bytes, 'z', BLOCK);
    assert_int_equal(pwrite(fd, bytes, BLOCK, 0), BLOCK);
    j.depth = j.n_ops = 1;
    j.ordinary = 1;
    memset(mr_raw_io_buffer(io), 'x', BLOCK); /* the first buffer in huge pages */
    run(&j, &out);
    assert_int_equal(out.bytes, BLOCK);
    assert_int_equal(mr_raw_io_buffer(io)[BLOCK - 1], 'x');
    j.ordinary = 0;
    run(&j, &out);
    assert_int_equal(mr_raw_io_buffer(io)[BLOCK - 1], 'z');
}

static void the_end_of_the_file_is_an_error(void **state)
{
    struct mr_raw_job j = job(0);
    struct mr_raw_result out;
    struct mr_error err = {0};
    (void)state;
    if (!io)
        skip();
    assert_int_equal(ftruncate(fd, 100 * BLOCK + 1000), 0); /* in the middle of a block */
    assert_int_equal(mr_raw_io_run(io, &j, &out, &err), -ENODATA);
    assert_non_null(strstr(err.text, "file: read of 4096 bytes at "));
    assert_non_null(strstr(err.text, "the file ends before that"));
    assert_int_equal(ftruncate(fd, (off_t)N * BLOCK), 0); /* nothing is left behind by that */
    run(&j, &out);
    assert_int_equal(out.n_ops, N);
}

static void an_operation_that_fails_is_named(void **state)
{
    struct mr_raw_job j = job(1);
    struct mr_raw_result out;
    struct mr_error err = {0};
    if (!io)
        skip();
    j.fd = open(tempdir_path(*state, "file"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(mr_raw_io_run(io, &j, &out, &err), -EBADF);
    assert_non_null(strstr(err.text, "file: write of 4096 bytes at "));
    close(j.fd);
    j.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (j.fd < 0)
        return;
    err = (struct mr_error){0};
    assert_int_equal(mr_raw_io_run(io, &j, &out, &err), -ENOSPC);
    close(j.fd);
}

static void a_failing_sync_is_an_error(void **state)
{
    struct mr_raw_job j = job(1);
    struct mr_raw_result out;
    struct mr_error err = {0};
    (void)state;
    if (!io)
        skip();
    j.fd = open("/dev/null", O_RDWR | O_CLOEXEC); /* takes writes, refuses fsync */
    j.sync = 1;
    assert_int_equal(mr_raw_io_run(io, &j, &out, &err), -EINVAL);
    assert_non_null(strstr(err.text, "fsync"));
    close(j.fd);
}

static int stop_at_once(void *ctx, uint64_t done, uint64_t total)
{
    assert_int_equal(total, UINT64_MAX);
    assert_true(done < total);
    ++*(unsigned *)ctx;
    return 1;
}

/* Would go on for ever. */
static void block_again(const void *ctx, uint64_t i, uint64_t *offset, uint32_t *len)
{
    block(ctx, i % N, offset, len);
}

static void progress_stops_a_run(void **state)
{
    struct mr_raw_job j = job(1);
    struct mr_raw_result out;
    unsigned n_calls = 0;
    (void)state;
    if (!io)
        skip();
    j.place = block_again;
    j.n_ops = UINT64_MAX;
    j.progress = stop_at_once;
    j.progress_ctx = &n_calls;
    assert_int_equal(mr_raw_io_run(io, &j, &out, NULL), -ECANCELED);
    assert_int_equal(n_calls, 1);
}

static void the_box_ends_a_run(void **state)
{
    struct mr_raw_job j = job(1);
    struct mr_raw_result out;
    (void)state;
    if (!io)
        skip();
    j.place = block_again;
    j.n_ops = UINT64_MAX;
    j.box_ns = 20000000;
    run(&j, &out);
    assert_int_equal(out.cut, 1);
    assert_int_equal(out.bytes, out.n_ops * BLOCK); /* none at all when all cores are busy */
    assert_int_equal(out.latency.n, out.n_ops);
}

static struct mr_device *slow_device(void)
{
    static const char text[] = "name = slow\nread_mb_per_s = 40\nwrite_mb_per_s = 40\n"
                               "read_latency_us = 300\nwrite_latency_us = 300\nsync_us = 5000\n";
    struct mr_device_profile p;
    struct mr_device *d = NULL;
    assert_int_equal(mr_device_profile_parse(text, sizeof text - 1, "slow", &p, NULL), 0);
    assert_int_equal(mr_device_new(&p, &d, NULL), 0);
    return d;
}

/* What the device promises is a lower bound of the time, however loaded the machine is. */
static void every_operation_is_charged_to_the_device(void **state)
{
    struct mr_raw_job j = job(1);
    struct mr_raw_result out;
    (void)state;
    if (!io)
        skip();
    j.device = slow_device();
    j.inode = 1;
    j.sync = 1;
    double transfer = (double)N * BLOCK / 40e6;
    run(&j, &out);
    assert_true(out.seconds >= transfer + 0.005);
    assert_true(out.latency.max >= 300000);
    j.write = j.sync = 0;
    run(&j, &out);
    assert_true(out.seconds >= transfer);
    assert_int_equal(out.n_ops, N);
    j.depth = 1; /* the latency of each comes on top */
    run(&j, &out);
    assert_true(out.seconds >= transfer + N * 0.0003);
    mr_device_close(j.device);
}

static void a_job_that_does_not_fit_is_refused(void **state)
{
    struct mr_raw_job j = job(0);
    struct mr_raw_result out;
    (void)state;
    if (!io)
        skip();
    j.depth = DEPTH + 1;
    assert_int_equal(mr_raw_io_run(io, &j, &out, NULL), -EINVAL);
    j.depth = 0;
    assert_int_equal(mr_raw_io_run(io, &j, &out, NULL), -EINVAL);
    j.depth = DEPTH;
    j.max_len = BLOCK + 1;
    assert_int_equal(mr_raw_io_run(io, &j, &out, NULL), -EINVAL);
}

static void noise_does_not_repeat(void **state)
{
    uint8_t a[1003], b[1003];
    (void)state;
    mr_noise_fill(a, sizeof a, 1);
    mr_noise_fill(b, sizeof b, 1);
    assert_memory_equal(a, b, sizeof a);
    mr_noise_fill(b, sizeof b, 2);
    unsigned same = 0;
    for (unsigned i = 0; i < sizeof a; i++)
        same += a[i] == b[i];
    assert_true(same < 50);
}

#define ON_A_FILE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_A_FILE(every_operation_is_done_once),
        ON_A_FILE(no_two_blocks_that_are_written_are_equal),
        ON_A_FILE(bytes_come_from_their_place),
        ON_A_FILE(a_job_may_ask_for_ordinary_pages),
        ON_A_FILE(the_end_of_the_file_is_an_error),
        ON_A_FILE(an_operation_that_fails_is_named),
        ON_A_FILE(a_failing_sync_is_an_error),
        ON_A_FILE(progress_stops_a_run),
        ON_A_FILE(the_box_ends_a_run),
        ON_A_FILE(every_operation_is_charged_to_the_device),
        ON_A_FILE(a_job_that_does_not_fit_is_refused),
        cmocka_unit_test(noise_does_not_repeat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
