/* test_ring_failure.c - a ring that fails with files under way: the error comes out, and memory is
 * given back only when the kernel has let go of it.
 *
 * Whether it has is seen by a pipe without bytes, which a request waits for: while the kernel holds
 * the request, it holds the pipe's read end, and a write succeeds; afterwards nobody is left to
 * read, and it does not. */
#include "unit.h"

#include "faults.h"
#include "photo_set.h"
#include "raw_ring.h"
#include "uring_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_TIMES 12

static void assert_nobody_reads(int fd)
{
    ssize_t n = write(fd, "late", 4);
    assert_int_equal(n < 0 ? -errno : n, -EPIPE);
}

static void closing_a_raw_ring_that_failed_waits_for_the_kernel(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < N_TIMES; i++) {
        struct mr_raw_ring *r = NULL;
        struct mr_raw_op *done;
        int end[2];
        uint8_t *bytes = malloc(4096);
        assert_non_null(bytes);
        if (mr_raw_ring_open(2, &r, NULL) == -ENOTSUP) {
            free(bytes);
            skip();
        }
        assert_int_equal(pipe(end), 0);
        struct mr_raw_op op = {.fd = end[0], .len = 4096, .buf = bytes};
        faults_begin(FAULT_RING, 1);
        mr_raw_ring_start(r, &op);
        assert_int_equal(mr_raw_ring_wait(r, 0, &done, 1), -EBADR);
        close(end[0]);
        mr_raw_ring_close(r);
        assert_nobody_reads(end[1]);
        assert_int_equal(faults_end(), 1);
        close(end[1]);
        free(bytes);
    }
}

/* Files are opened so that they never block, until a regular file answers "not now": say so once.
 */
static struct mr_uring_reader *reader_that_blocks(const char *file)
{
    struct mr_uring_reader *r = NULL;
    struct mr_uring_op *done;
    uint8_t bytes[64];
    if (mr_uring_reader_open(2, 0, &r, NULL) == -ENOTSUP)
        skip();
    struct mr_uring_op op = {.path = file, .buf = bytes, .cap = sizeof bytes, .max = 64};
    faults_break_completion(1, -EAGAIN);
    mr_uring_reader_start(r, &op);
    assert_int_equal(mr_uring_reader_wait(r, &done, 1), 1);
    assert_int_equal(op.result, 0);
    faults_break_completion(0, 0);
    return r;
}

static void closing_a_reader_that_failed_waits_for_the_kernel(void **state)
{
    struct tempdir *t = *state;
    char file[512], fifo[512];
    snprintf(file, sizeof file, "%s", tempdir_text(t, "file", "bytes"));
    snprintf(fifo, sizeof fifo, "%s", tempdir_path(t, "fifo"));
    assert_int_equal(mkfifo(fifo, 0600), 0);
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < N_TIMES; i++) {
        struct mr_uring_reader *r = reader_that_blocks(file);
        struct mr_uring_op *done, *op = calloc(1, sizeof *op);
        uint8_t *bytes = malloc(4096);
        assert_true(op && bytes);
        *op = (struct mr_uring_op){.path = fifo, .buf = bytes, .cap = 4096, .max = 4096};
        int reading = open(fifo, O_RDONLY | O_NONBLOCK), writing = open(fifo, O_WRONLY);
        assert_true(reading >= 0 && writing >= 0);
        faults_begin(FAULT_RING, 2); /* the first lets the chain get as far as it can */
        mr_uring_reader_start(r, op);
        assert_int_equal(mr_uring_reader_submit(r), 0);
        assert_int_equal(mr_uring_reader_wait(r, &done, 1), -EBADR);
        close(reading);
        mr_uring_reader_close(r);
        assert_nobody_reads(writing);
        assert_int_equal(faults_end(), 1);
        close(writing);
        free(bytes);
        free(op);
    }
}

static int copy(void *ctx, const struct mr_map_input *in, void *slot)
{
    uint64_t which;
    (void)ctx;
    *(uint64_t *)slot = in->len;
    return photo_set_is(in->bytes, in->len, &which) ? 0 : -EBADMSG;
}

/* Draw all of it with entry `at` into a ring failing for good; 0 when there was none left. */
static int draw(struct mr_dataset *d, const struct mr_pipeline_opts *o, uint64_t at, int *n_broken)
{
    struct mr_pipeline *p = NULL;
    struct mr_error err = {0};
    struct mr_batch *b;
    int64_t before = faults_live();
    faults_begin(FAULT_RING, at);
    int r = mr_pipeline_open(d, o, &p, &err);
    if (r)
        assert_true(err.code == r && err.text[0]);
    while (!r && (r = mr_pipeline_next(p, &b)) == 1) {
        mr_batch_unref(b);
        r = 0;
    }
    *n_broken += p && r == -EBADR;
    if (p && r)
        assert_true(mr_pipeline_error(p)[0]);
    mr_pipeline_close(p);
    int hit = faults_end();
    if (r && !hit)
        fail_msg("entry %llu: %d", (unsigned long long)at, r);
    assert_int_equal(faults_live(), before);
    return hit;
}

static void a_pipeline_whose_ring_fails_says_so_and_leaves_nothing(void **state)
{
    struct tempdir *t = *state;
    char path[512];
    photo_set_write(t, 80);
    snprintf(path, sizeof path, "%s/set", t->path);
    struct mr_dataset *d = photo_set_open(path);
    for (int with_map = 0; with_map < 2; with_map++) {
        struct mr_pipeline_opts o = {.engine = MR_ENGINE_URING,
                                     .threads = 2,
                                     .io_depth = 16,
                                     .batch = 8,
                                     .direct = !with_map};
        struct mr_pipeline *p = NULL;
        if (with_map) {
            o.map = copy;
            o.map_bytes = 8;
        }
        if (mr_pipeline_open(d, &o, &p, NULL) == -ENOTSUP) {
            mr_dataset_unref(d);
            skip();
        }
        mr_pipeline_close(p);
        int n_broken = 0;
        /* Workers share the entries as they come: a run may need fewer than the one before. */
        for (uint64_t at = 1; at < 60 && draw(d, &o, at, &n_broken); at += 4)
            ;
        assert_true(n_broken > 0);
    }
    mr_dataset_unref(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(closing_a_reader_that_failed_waits_for_the_kernel),
        cmocka_unit_test(closing_a_raw_ring_that_failed_waits_for_the_kernel),
        WITH_TEMPDIR(a_pipeline_whose_ring_fails_says_so_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
