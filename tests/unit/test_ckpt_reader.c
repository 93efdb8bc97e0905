/* test_ckpt_reader.c - the public reader: tensors, slices, folders, and files that lie. */
#include "unit.h"

#include "ckpt_samples.h"
#include "crc32c.h"
#include "draw.h"
#include "tf_bundle.h"

#include <millrace/checkpoint.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct mr_checkpoint_reader *opened(const char *path)
{
    struct mr_checkpoint_reader *r = NULL;
    struct mr_error err = {0};
    if (mr_checkpoint_reader_open(path, &r, &err))
        fail_msg("%s", err.text);
    return r;
}

/* Every tensor of the sample, by its name, with its bytes. */
static void holds_the_sample(struct mr_checkpoint_reader *r)
{
    struct mr_tensor_table t;
    struct mr_tensor_info info;
    sample_table(&t);
    for (size_t k = 0; k < t.n; k++) {
        const struct mr_tensor *x = &t.tensors[k];
        uint8_t buf[4096];
        int64_t i = mr_checkpoint_reader_find(r, x->name);
        assert_true(i >= 0);
        assert_int_equal(mr_checkpoint_reader_get_tensor(r, (uint64_t)i, &info), 0);
        assert_string_equal(info.name, x->name);
        assert_true(info.dtype == x->dtype && info.n_dims == x->n_dims && info.bytes == x->bytes);
        assert_memory_equal(info.dims, x->dims, x->n_dims * sizeof *x->dims);
        assert_int_equal(mr_checkpoint_reader_read(r, (uint64_t)i, buf, x->bytes, NULL), 0);
        if (x->bytes)
            assert_memory_equal(buf, x->data, x->bytes);
    }
    mr_tensor_table_fini(&t);
}

static void every_tensor_is_listed_and_read(void **state)
{
    static const char *const names[] = {"a-7", "a-7.index", "b-8", "c-9.safetensors", "c-9"};
    struct tempdir *dir = *state;
    sample_write_tf(dir, "a-7", MR_BUNDLE_ALIGN);
    sample_write_tf(dir, "b-8", 1);
    sample_write_safetensors(dir, "c-9");
    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        struct mr_checkpoint_reader *r = opened(tempdir_path(dir, names[i]));
        struct mr_checkpoint_verdict v;
        struct mr_checkpoint_info info;
        struct mr_tensor_info tensor;
        holds_the_sample(r);
        mr_checkpoint_reader_get_info(r, &info);
        assert_int_equal(info.format, names[i][0] == 'c');
        assert_int_equal(info.step, names[i][2] - '0');
        assert_string_equal(info.path + strlen(info.path) - 3,
                            ((char[]){names[i][0], '-', names[i][2], 0}));
        assert_true(info.has_checksums && info.bytes > 300);
        assert_int_equal(mr_checkpoint_reader_get_tensor(r, info.n_tensors, &tensor), -ENOENT);
        assert_int_equal(mr_checkpoint_reader_find(r, "no such"), -ENOENT);
        assert_int_equal(mr_checkpoint_reader_verify(r, NULL, &v, NULL), 0);
        assert_int_equal(v.n_tensors, info.n_tensors);
        mr_checkpoint_reader_close(r);
    }
    mr_checkpoint_reader_close(NULL);
}

static void of_a_folder_the_newest_that_opens_is_read(void **state)
{
    struct tempdir *dir = *state;
    struct mr_checkpoint_reader *r = NULL;
    struct mr_checkpoint_info info;
    struct mr_error err = {0};
    tempdir_mkdir(dir, "none");
    assert_int_equal(mr_checkpoint_reader_open(tempdir_path(dir, "none"), &r, &err), -ENOENT);
    assert_non_null(strstr(err.text, "no checkpoint"));
    sample_write_tf(dir, "d/m-7", 1);
    sample_write_safetensors(dir, "d/m-9");
    tempdir_text(dir, "d/m-10.index", "no index");
    tempdir_text(dir, "d/m-11.safetensors", "no header");
    r = opened(tempdir_path(dir, "d"));
    mr_checkpoint_reader_get_info(r, &info);
    assert_int_equal(info.step, 9);
    mr_checkpoint_reader_close(r);
    assert_int_equal(unlink(tempdir_path(dir, "d/m-7.index")), 0);
    assert_int_equal(unlink(tempdir_path(dir, "d/m-9.safetensors")), 0);
    err = (struct mr_error){0};
    r = NULL;
    assert_true(mr_checkpoint_reader_open(tempdir_path(dir, "d"), &r, &err) < 0);
    assert_true(!r && strstr(err.text, "/d/m-1"));
    assert_int_equal(mr_checkpoint_reader_open(tempdir_path(dir, "nowhere"), &r, NULL), -ENOENT);
}

/* ---- slices ---- */

#define N_DIMS 3

/* The slice out of `whole`, element by element. */
static void naive(const uint16_t *whole, const uint64_t dims[N_DIMS], const uint64_t *start,
                  const uint64_t *extent, uint16_t *out)
{
    for (uint64_t x = 0; x < extent[0]; x++)
        for (uint64_t y = 0; y < extent[1]; y++)
            for (uint64_t z = 0; z < extent[2]; z++)
                *out++ = whole[((start[0] + x) * dims[1] + start[1] + y) * dims[2] + start[2] + z];
}

/* Any slices of tensor i, which has these elements. */
static void try_slices(struct mr_checkpoint_reader *r, uint64_t i, const uint16_t *whole,
                       const uint64_t dims[N_DIMS], unsigned n_tries)
{
    size_t n = (size_t)(dims[0] * dims[1] * dims[2]);
    uint16_t *got = malloc(n * sizeof *got), *wanted = malloc(n * sizeof *wanted);
    for (unsigned k = 0; k < n_tries; k++) {
        uint64_t start[N_DIMS], extent[N_DIMS], bytes = sizeof *got;
        struct mr_error err = {0};
        for (unsigned d = 0; d < N_DIMS; d++) {
            uint64_t a = mr_draw(1, MR_DRAW_SYNTHETIC, k, d, 0) % (dims[d] + 1);
            uint64_t b = mr_draw(1, MR_DRAW_SYNTHETIC, k, d, 1) % (dims[d] + 1);
            if (mr_draw(1, MR_DRAW_SYNTHETIC, k, d, 2) % 4 == 0)
                a = 0, b = dims[d];
            start[d] = a < b ? a : b;
            extent[d] = a < b ? b - a : a - b;
            bytes *= extent[d];
        }
        memset(got, 0xee, n * sizeof *got);
        if (mr_checkpoint_reader_read_slice(r, i, start, extent, got, bytes, &err))
            fail_msg("%s", err.text);
        naive(whole, dims, start, extent, wanted);
        if (bytes)
            assert_memory_equal(got, wanted, bytes);
        for (uint64_t at = bytes / sizeof *got; at < n; at++)
            assert_int_equal(got[at], 0xeeee);
    }
    free(got);
    free(wanted);
}

static void slices_of_a_partitioned_tensor_come_from_all_its_files(void **state)
{
    static const uint64_t dims[N_DIMS] = SAMPLE_PARTS_DIMS;
    struct tempdir *dir = *state;
    uint16_t whole[12 * 10 * 9];
    for (size_t i = 0; i < ARRAY_LEN(whole); i++)
        whole[i] = (uint16_t)(7 * i + 1);
    sample_write_parts(dir, "p-1");
    struct mr_checkpoint_reader *r = opened(tempdir_path(dir, "p-1"));
    try_slices(r, 0, whole, dims, 3000);
    uint16_t got[ARRAY_LEN(whole)];
    assert_int_equal(mr_checkpoint_reader_read(r, 0, got, sizeof got, NULL), 0);
    assert_memory_equal(got, whole, sizeof whole);
    mr_checkpoint_reader_close(r);
}

/* Rows near each other are read at once, distant ones are not: dimensions for both. */
static void slices_of_large_tensors_are_right_whatever_lies_between(void **state)
{
    static const uint64_t shapes[][N_DIMS] = {{3, 1500, 700}, {40, 3, 40000}, {1, 1, 3000000}};
    struct tempdir *dir = *state;
    for (unsigned k = 0; k < ARRAY_LEN(shapes); k++)
        for (unsigned format = 0; format < 2; format++) {
            const uint64_t *dims = shapes[k];
            size_t n = (size_t)(dims[0] * dims[1] * dims[2]);
            uint16_t *whole = malloc(n * sizeof *whole);
            for (size_t i = 0; i < n; i++)
                whole[i] = (uint16_t)(i * 31 + i / 65536);
            struct mr_array a[] = {{"x", MR_DT_U16, 3, {dims[0], dims[1], dims[2]}, whole}};
            struct mr_checkpoint_opts o = {.dir = dir->path,
                                           .mode = MR_CHECKPOINT_SYNC,
                                           .format = (enum mr_checkpoint_format)format,
                                           .packed = k % 2};
            struct mr_checkpoint *c;
            assert_int_equal(mr_checkpoint_open(a, 1, &o, &c, NULL), 0);
            assert_int_equal(mr_checkpoint_begin(c, k, NULL), 0);
            assert_int_equal(mr_checkpoint_close(c, NULL), 0);
            struct mr_checkpoint_reader *r = opened(dir->path);
            struct mr_checkpoint_info info;
            mr_checkpoint_reader_get_info(r, &info);
            assert_true(info.step == k && info.format == format);
            try_slices(r, (uint64_t)mr_checkpoint_reader_find(r, "x"), whole, dims, 40);
            mr_checkpoint_reader_close(r);
            free(whole);
        }
}

static void elements_of_half_a_byte_have_slices_at_whole_bytes(void **state)
{
    struct tempdir *dir = *state;
    uint8_t bytes[6] = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba}, got[6];
    struct mr_array a[] = {{"h", MR_DT_F4, 2, {2, 6}, bytes}, {"odd", MR_DT_F4, 2, {4, 3}, bytes}};
    struct mr_checkpoint_opts o = {
        .dir = dir->path, .mode = MR_CHECKPOINT_SYNC, .format = MR_CHECKPOINT_SAFETENSORS};
    struct mr_checkpoint *c;
    assert_int_equal(mr_checkpoint_open(a, 2, &o, &c, NULL), 0);
    assert_int_equal(mr_checkpoint_begin(c, 1, NULL), 0);
    assert_int_equal(mr_checkpoint_close(c, NULL), 0);
    struct mr_checkpoint_reader *r = opened(dir->path);
    uint64_t h = (uint64_t)mr_checkpoint_reader_find(r, "h"),
             odd = (uint64_t)mr_checkpoint_reader_find(r, "odd");
#define SLICE(i, s0, s1, e0, e1)                                                                   \
    mr_checkpoint_reader_read_slice(r, i, (uint64_t[]){s0, s1}, (uint64_t[]){e0, e1}, got, 6, NULL)
    assert_int_equal(SLICE(h, 1, 2, 1, 4), 0);
    assert_memory_equal(got, bytes + 4, 2);
    assert_int_equal(SLICE(h, 0, 2, 2, 2), 0);
    assert_true(got[0] == bytes[1] && got[1] == bytes[4]);
    assert_int_equal(SLICE(h, 0, 1, 1, 2), -ENOTSUP);
    assert_int_equal(SLICE(h, 0, 0, 1, 3), -ENOTSUP);
    assert_int_equal(SLICE(odd, 1, 0, 2, 3), -ENOTSUP); /* a row is no whole number of bytes */
    assert_int_equal(SLICE(odd, 0, 0, 4, 3), 0);
    assert_memory_equal(got, bytes, 6);
    mr_checkpoint_reader_close(r);
}

static void nonsense_is_refused(void **state)
{
    struct tempdir *dir = *state;
    uint8_t got[64];
    struct mr_error err = {0};
    sample_write_tf(dir, "m-1", 1);
    struct mr_checkpoint_reader *r = opened(tempdir_path(dir, "m-1"));
    uint64_t w = (uint64_t)mr_checkpoint_reader_find(r, "conv1/weights"); /* 2 x 3 floats */
    assert_int_equal(mr_checkpoint_reader_read(r, w, got, 23, &err), -EINVAL);
    assert_non_null(strstr(err.text, "needs 24 bytes"));
    assert_int_equal(mr_checkpoint_reader_read(r, 1000, got, 64, NULL), -ENOENT);
    assert_int_equal(mr_checkpoint_reader_read_slice(r, UINT64_MAX, NULL, NULL, got, 64, NULL),
                     -ENOENT);
    assert_int_equal(SLICE(w, 0, 0, 2, 4), -EINVAL);
    assert_int_equal(SLICE(w, 3, 0, 0, 3), -EINVAL);
    assert_int_equal(SLICE(w, 1, 1, UINT64_MAX, 1), -EINVAL);
    assert_int_equal(SLICE(w, UINT64_MAX, 0, 2, 1), -EINVAL);
    assert_int_equal(SLICE(w, 0, 1, 2, 1), -EINVAL); /* room for 6 bytes, needs 8 */
    assert_int_equal(SLICE(w, 2, 0, 0, 3), 0);       /* nothing, at the end */
    uint64_t words = (uint64_t)mr_checkpoint_reader_find(r, "words");
    assert_int_equal(SLICE(words, 0, 0, 1, 1), -ENOTSUP);
    uint64_t step = (uint64_t)mr_checkpoint_reader_find(r, "global_step"); /* a scalar */
    assert_int_equal(mr_checkpoint_reader_read_slice(r, step, NULL, NULL, got, 8, NULL), 0);
    assert_int_equal(got[0], 40);
    mr_checkpoint_reader_close(r);
}

/* ---- files that lie ---- */

static void flip(struct tempdir *dir, const char *name, size_t at)
{
    size_t len;
    uint8_t *bytes = sample_load(tempdir_path(dir, name), &len);
    assert_true(at < len);
    bytes[at] ^= 1;
    tempdir_write(dir, name, bytes, len);
    free(bytes);
}

static void a_wrong_byte_is_found_where_a_checksum_covers_it(void **state)
{
    struct tempdir *dir = *state;
    uint16_t got[12 * 10 * 9];
    struct mr_checkpoint_verdict v;
    struct mr_error err = {0};
    sample_write_parts(dir, "p-1");
    flip(dir, "p-1.data-00001-of-00003", 11); /* part 1: [0, 5) x all x [4, 9) */
    struct mr_checkpoint_reader *r = opened(tempdir_path(dir, "p-1"));
#define BOX(x, y, z, a, b, c)                                                                      \
    mr_checkpoint_reader_read_slice(r, 0, (uint64_t[]){x, y, z}, (uint64_t[]){a, b, c}, got,       \
                                    sizeof got, NULL)
    assert_int_equal(mr_checkpoint_reader_read(r, 0, got, sizeof got, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "'p'"));
    assert_int_equal(BOX(0, 0, 4, 5, 10, 5), -EBADMSG); /* all of that part */
    assert_int_equal(BOX(0, 0, 3, 6, 10, 6), -EBADMSG); /* and some of the others */
    assert_int_equal(BOX(0, 0, 0, 5, 10, 4), 0);        /* another one */
    assert_int_equal(BOX(1, 0, 4, 4, 10, 5), 0);        /* not all of it */
    assert_int_equal(mr_checkpoint_reader_verify(r, NULL, &v, NULL), -EBADMSG);
    assert_string_equal(v.where, "p");
    assert_int_equal(truncate(tempdir_path(dir, "p-1.data-00000-of-00003"), 100), 0);
    assert_true(BOX(0, 0, 0, 5, 9, 4) < 0); /* it got shorter while it was open */
    mr_checkpoint_reader_close(r);
    r = NULL;
    assert_int_equal(mr_checkpoint_reader_open(tempdir_path(dir, "p-1"), &r, &err), -ENODATA);
    assert_null(r);
}

/* However short its files are, and whichever byte is wrong: words, or the right bytes. */
static void no_damage_goes_further_than_an_error(void **state)
{
    static const char *const files[] = {"m-1.index", "m-1.data-00000-of-00001", "s-1.safetensors"};
    struct tempdir *dir = *state;
    sample_write_tf(dir, "m-1", 1);
    sample_write_safetensors(dir, "s-1");
    for (unsigned k = 0; k < ARRAY_LEN(files); k++) {
        size_t len;
        uint8_t *bytes = sample_load(tempdir_path(dir, files[k]), &len);
        for (size_t cut = 0; cut < 2 * len; cut++) {
            struct mr_checkpoint_reader *r = NULL;
            struct mr_checkpoint_verdict v;
            struct mr_error err = {0};
            int short_one = cut < len;
            if (!short_one)
                bytes[cut - len] ^= 0x41;
            tempdir_write(dir, files[k], bytes, short_one ? cut : len);
            if (!short_one)
                bytes[cut - len] ^= 0x41;
            int e =
                mr_checkpoint_reader_open(tempdir_path(dir, k == 2 ? files[2] : "m-1"), &r, &err);
            if (!e)
                e = mr_checkpoint_reader_verify(r, NULL, &v, &err);
            if (e != err.code || (e && !err.text[0]) || (!e && short_one))
                fail_msg("%s, %zu: %d %s", files[k], cut, e, err.text);
            mr_checkpoint_reader_close(r);
        }
        tempdir_write(dir, files[k], bytes, len);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(every_tensor_is_listed_and_read),
        WITH_TEMPDIR(of_a_folder_the_newest_that_opens_is_read),
        WITH_TEMPDIR(slices_of_a_partitioned_tensor_come_from_all_its_files),
        WITH_TEMPDIR(slices_of_large_tensors_are_right_whatever_lies_between),
        WITH_TEMPDIR(elements_of_half_a_byte_have_slices_at_whole_bytes),
        WITH_TEMPDIR(nonsense_is_refused),
        WITH_TEMPDIR(a_wrong_byte_is_found_where_a_checksum_covers_it),
        WITH_TEMPDIR(no_damage_goes_further_than_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
