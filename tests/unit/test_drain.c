/* test_drain.c - the drain is modest: it keeps to its bandwidth, its I/O priority is the
 * lowest, and the page cache is after it what it was before.
 *
 * No time is asserted but a least one: the bytes at that rate cannot take less. */
#include "unit.h"

#include "ckpt_kit.h"
#include "clock.h"
#include "engine.h"
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LARGE       ((uint64_t)9 << 20) /* three chunks and then some */
#define RATE        ((uint64_t)24 << 20)
#define N_STEPS     2
#define TMPFS       0x01021994
#define BEST_EFFORT 2 /* ioprio(2); glibc has no header for it */

/* Save steps 1 to N_STEPS on the fast tier alone. */
static void leave_undrained(struct ckpt_kit *k, const char *fast, unsigned format)
{
    struct mr_checkpoint_opts o = {.dir = fast, .mode = MR_CHECKPOINT_BURST, .format = format};
    struct mr_checkpoint *c = NULL;
    struct mr_error err = {0};
    int r = mr_checkpoint_open(k->arrays, KIT_N_ARRAYS, &o, &c, &err);
    for (uint64_t step = 1; !r && step <= N_STEPS; step++) {
        ckpt_kit_fill(k, step, 0);
        r = mr_checkpoint_begin(c, step, NULL);
    }
    if (r || mr_checkpoint_close(c, &err))
        fail_msg("%s", err.text);
}

/* A run that does nothing but drain what is left. */
static void drain(struct ckpt_kit *k, const char *fast, const char *slow, unsigned format,
                  uint64_t rate, const struct mr_out_hook *hook)
{
    struct mr_checkpoint_opts o = {.dir = fast,
                                   .drain_dir = slow,
                                   .mode = MR_CHECKPOINT_BURST,
                                   .format = format,
                                   .drain_bytes_per_s = rate};
    struct mr_checkpoint *c = NULL;
    struct mr_error err = {0};
    if (mr_checkpoint_open_hooked(k->arrays, KIT_N_ARRAYS, &o, hook, &c, &err) ||
        mr_checkpoint_close(c, &err))
        fail_msg("%s", err.text);
}

/* What the drain does to data files, as it is seen from its own thread. */
struct account {
    uint64_t begin_ns;     /* the data file of the copy under way was created */
    uint64_t bytes, total; /* written to it, to all */
    unsigned n_writes, n_too_fast;
    long io_priority;
    int nice_level;
};

static int keep_account(void *ctx, const struct mr_out_op *op)
{
    struct account *a = ctx;
    if (op->tag != MR_TIER_SLOW || !(strstr(op->name, ".data-") || strstr(op->name, ".safetens")))
        return 0;
    if (op->kind == MR_OUT_CREATE) {
        a->begin_ns = mr_clock_ns();
        a->bytes = 0;
    } else if (op->kind == MR_OUT_WRITE || op->kind == MR_OUT_SYNC) {
        double allowed = (double)(mr_clock_ns() - a->begin_ns) / 1e9 * (double)RATE;
        uint64_t padding = op->kind == MR_OUT_SYNC ? MR_DIRECT_ALIGN : 0;
        a->n_too_fast += (double)a->bytes > allowed + (double)padding;
        a->n_writes += op->kind == MR_OUT_WRITE;
        a->bytes += op->len;
        a->total += op->len;
        a->io_priority = syscall(SYS_ioprio_get, 1, 0);
        a->nice_level = getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid));
    }
    return 0;
}

static void a_limited_drain_is_never_ahead_of_its_limit(void **state)
{
    struct tempdir *t = *state;
    struct ckpt_kit *k = ckpt_kit_new(LARGE);
    for (unsigned format = 0; format < 2; format++) {
        struct account a = {0};
        struct mr_out_hook hook = {.before = keep_account, .ctx = &a};
        char fast[512], slow[512];
        snprintf(fast, sizeof fast, "%s/fast%u", t->path, format);
        snprintf(slow, sizeof slow, "%s/slow%u", t->path, format);
        leave_undrained(k, fast, format);
        uint64_t begin = mr_clock_ns();
        drain(k, fast, slow, format, RATE, &hook);
        double seconds = (double)(mr_clock_ns() - begin) / 1e9;
        assert_true(a.total > N_STEPS * LARGE && a.n_writes >= 3 * N_STEPS);
        assert_int_equal(a.n_too_fast, 0);
        /* All of it, but for one chunk a copy that might have gone ahead. */
        assert_true(seconds * (double)RATE >= (double)a.total - N_STEPS * (double)MR_CHUNK_BYTES);
    }
    ckpt_kit_free(k);
}

static void the_draining_thread_has_the_lowest_priority(void **state)
{
    struct tempdir *t = *state;
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct account a = {.io_priority = -1};
    struct mr_out_hook hook = {.before = keep_account, .ctx = &a};
    char fast[512], slow[512];
    snprintf(fast, sizeof fast, "%s/fast", t->path);
    snprintf(slow, sizeof slow, "%s/slow", t->path);
    long ours = syscall(SYS_ioprio_get, 1, 0);
    int our_level = getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid));
    leave_undrained(k, fast, 0);
    drain(k, fast, slow, 0, 0, &hook);
    assert_int_equal(a.io_priority, BEST_EFFORT << 13 | 7);
    assert_in_range(a.nice_level, 10, 19);
    assert_int_equal(syscall(SYS_ioprio_get, 1, 0), ours); /* its thread alone */
    assert_int_equal(getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid)), our_level);
    ckpt_kit_free(k);
}

/* Pages of a file that are in the page cache; *n_pages: all it has. */
static size_t n_cached(const char *path, size_t *n_pages)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st))
        fail_msg("%s: %s", path, strerror(errno));
    size_t n = ((size_t)st.st_size + 4095) / 4096, cached = 0;
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    unsigned char *in = malloc(n);
    assert_true(p != MAP_FAILED && in);
    assert_int_equal(mincore(p, (size_t)st.st_size, in), 0);
    for (size_t i = 0; i < n; i++)
        cached += in[i] & 1;
    free(in);
    munmap(p, (size_t)st.st_size);
    close(fd);
    *n_pages = n;
    return cached;
}

static size_t n_cached_of(const char *dir, unsigned step, unsigned format)
{
    char path[1024];
    size_t n;
    snprintf(path, sizeof path, "%s/model.ckpt-%u%s", dir, step,
             format ? ".safetensors" : ".data-00000-of-00001");
    return n_cached(path, &n);
}

/* A file of training: written, on disk, and in the page cache. */
static const char *cached_file(struct tempdir *t)
{
    uint8_t *bytes = calloc(1, LARGE);
    assert_non_null(bytes);
    const char *path = tempdir_write(t, "image", bytes, LARGE);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && !fsync(fd));
    assert_int_equal(pread(fd, bytes, LARGE, 0), LARGE);
    close(fd);
    free(bytes);
    return path;
}

static void the_page_cache_is_left_as_it_was(void **state)
{
    struct tempdir *t = *state;
    struct ckpt_kit *k = ckpt_kit_new(LARGE);
    struct statfs fs;
    assert_int_equal(statfs(t->path, &fs), 0);
    if (fs.f_type == TMPFS) {
        ckpt_kit_free(k);
        skip(); /* is nothing but page cache */
    }
    for (unsigned format = 0; format < 2; format++) {
        char fast[512], slow[512];
        size_t n = 0, left, in_cache;
        snprintf(fast, sizeof fast, "%s/fast%u", t->path, format);
        snprintf(slow, sizeof slow, "%s/slow%u", t->path, format);
        leave_undrained(k, fast, format);
        left = n_cached_of(fast, N_STEPS, format); /* that one stays there */
        const char *image = cached_file(t);
        in_cache = n_cached(image, &n);
        assert_int_equal(in_cache, n);
        drain(k, fast, slow, format, 0, NULL);
        /* A last block that is not whole may go through it. */
        assert_in_range(n_cached_of(fast, N_STEPS, format), 0, left + 1);
        for (unsigned step = 1; step <= N_STEPS; step++)
            assert_in_range(n_cached_of(slow, step, format), 0, 1);
        in_cache = n_cached(image, &n);
        assert_int_equal(in_cache, n);
    }
    ckpt_kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(a_limited_drain_is_never_ahead_of_its_limit),
        WITH_TEMPDIR(the_draining_thread_has_the_lowest_priority),
        WITH_TEMPDIR(the_page_cache_is_left_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
