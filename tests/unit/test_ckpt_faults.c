/* test_ckpt_faults.c - every fallible call of a conversion or a copy fails once: then there is an
 * error with words, nothing leaks, no checkpoint that is not whole, and after the next try, which
 * gets through, no temporary. */
#include "unit.h"

#include "ckpt_folder.h"
#include "ckpt_name.h"
#include "ckpt_samples.h"
#include "convert.h"
#include "faults.h"
#include "tf_bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int count_temporary(void *ctx, const char *name)
{
    *(unsigned *)ctx += (unsigned)mr_ckpt_temp_parse(name, NULL, NULL);
    return 0;
}

/* Whatever the folder seems to hold is whole: how many. */
static size_t all_whole(const char *dir)
{
    struct mr_ckpt_folder f = {0};
    if (mr_ckpt_folder_scan(&f, AT_FDCWD, dir, NULL))
        return 0;
    for (size_t i = 0; i < f.n; i++) {
        struct mr_ckpt_file *c;
        struct mr_checkpoint_verdict v;
        struct mr_error err = {0};
        if (mr_ckpt_file_open(f.found[i].path, &c, &err) || mr_ckpt_file_verify(c, NULL, &v, &err))
            fail_msg("%s", err.text);
        mr_ckpt_file_close(c);
    }
    size_t n = f.n;
    mr_ckpt_folder_fini(&f);
    return n;
}

enum way { TO_BUNDLE, TO_SAFETENSORS, COPY };

static int whole_run(const char *from, const char *to, enum way way, struct mr_error *err)
{
    char path[MR_CKPT_MAX_PATH];
    struct mr_checkpoint_verdict v;
    struct mr_ckpt_file *c = NULL;
    struct mr_convert_opts o = {.format = way == TO_BUNDLE ? MR_CHECKPOINT_TF
                                                           : MR_CHECKPOINT_SAFETENSORS};
    int r = mr_ckpt_file_open(from, &c, err);
    if (!r)
        r = mr_ckpt_file_verify(c, NULL, &v, err);
    if (!r)
        r = way == COPY ? mr_ckpt_copy(c, to, &o, path, err)
                        : mr_ckpt_convert(c, to, &o, path, err);
    mr_ckpt_file_close(c);
    return r;
}

/* Nothing fails any more: trying again succeeds, or finds that it is there; then all is whole. */
static void judge(const char *from, const char *to, enum way way)
{
    struct mr_error err = {0};
    unsigned n = 0;
    size_t there = all_whole(to);
    int r = whole_run(from, to, way, &err);
    if (r != (there ? -EEXIST : 0))
        fail_msg("the next try: %d %s", r, err.text);
    assert_int_equal(all_whole(to), 1);
    mr_ckpt_each_name(AT_FDCWD, to, count_temporary, &n);
    assert_int_equal(n, 0);
}

static void loop(struct tempdir *dir, const char *from, enum way way, enum fault_kind kind)
{
    char to[600];
    for (uint64_t at = 1;; at++) {
        struct mr_error err = {0};
        snprintf(to, sizeof to, "%s/to-%d-%d-%llu", dir->path, (int)way, (int)kind,
                 (unsigned long long)at);
        int64_t before = faults_live();
        faults_begin(kind, at);
        int r = whole_run(from, to, way, &err);
        int hit = faults_end();
        if (r != err.code || (r && (!hit || !err.text[0])))
            fail_msg("way %d, kind %d, call %llu: %d %s", (int)way, (int)kind,
                     (unsigned long long)at, r, err.text);
        if (r && kind != FAULT_FAIL && kind != FAULT_FULL)
            fail_msg("way %d, kind %d, call %llu is not continued: %s", (int)way, (int)kind,
                     (unsigned long long)at, err.text);
        if (faults_live() != before)
            fail_msg("way %d, kind %d, call %llu leaves %lld things behind", (int)way, (int)kind,
                     (unsigned long long)at, (long long)(faults_live() - before));
        judge(from, to, way);
        if (!hit)
            return;
        assert_in_range(at, 1, 20000);
    }
}

static void every_failure_leaves_a_whole_checkpoint_or_none(void **state)
{
    struct tempdir *dir = *state;
    char from[512];
    sample_write_tf(dir, "m-1", MR_BUNDLE_ALIGN);
    snprintf(from, sizeof from, "%s/m-1", dir->path);
    for (enum way way = TO_BUNDLE; way <= COPY; way++)
        for (enum fault_kind k = FAULT_FAIL; k <= FAULT_LATE; k++)
            loop(dir, from, way, k);
}

static void the_same_from_safetensors(void **state)
{
    struct tempdir *dir = *state;
    char from[512];
    sample_write_safetensors(dir, "s-1");
    snprintf(from, sizeof from, "%s/s-1.safetensors", dir->path);
    loop(dir, from, TO_BUNDLE, FAULT_FAIL);
    loop(dir, from, COPY, FAULT_EINTR);
}

/* What a reader does: open a folder, a slice, a whole tensor, everything. */
static int read_some(const char *path, struct mr_error *err)
{
    static const uint64_t dims[3] = SAMPLE_PARTS_DIMS;
    const uint64_t start[3] = {4, 1, 3}, extent[3] = {3, 2, 4};
    uint16_t slice[3 * 2 * 4], whole[12 * 10 * 9];
    struct mr_checkpoint_verdict v;
    struct mr_checkpoint_reader *r = NULL;
    int e = mr_checkpoint_reader_open(path, &r, err);
    if (e) {
        assert_null(r);
        return e;
    }
    e = mr_checkpoint_reader_read_slice(r, 0, start, extent, slice, sizeof slice, err);
    if (!e)
        assert_int_equal(slice[0], ((4 * dims[1] + 1) * dims[2] + 3) * 7 + 1);
    if (!e)
        e = mr_checkpoint_reader_read(r, 0, whole, sizeof whole, err);
    if (!e)
        e = mr_checkpoint_reader_verify(r, NULL, &v, err);
    mr_checkpoint_reader_close(r);
    return e;
}

static void a_reader_fails_with_words_and_leaks_nothing(void **state)
{
    struct tempdir *dir = *state;
    sample_write_parts(dir, "p-1");
    for (uint64_t at = 1;; at++) {
        struct mr_error err = {0};
        int64_t before = faults_live();
        faults_begin(FAULT_FAIL, at);
        int r = read_some(dir->path, &err);
        int hit = faults_end();
        if (r != err.code || (r && (!hit || !err.text[0])))
            fail_msg("call %llu: %d %s", (unsigned long long)at, r, err.text);
        if (faults_live() != before)
            fail_msg("call %llu leaves %lld things behind", (unsigned long long)at,
                     (long long)(faults_live() - before));
        if (!hit) {
            assert_int_equal(r, 0);
            break;
        }
        assert_in_range(at, 1, 20000);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_setup_in_memory, tempdir_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_failure_leaves_a_whole_checkpoint_or_none),
        TEST(the_same_from_safetensors),
        TEST(a_reader_fails_with_words_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
