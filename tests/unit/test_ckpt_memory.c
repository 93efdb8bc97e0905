/* test_ckpt_memory.c - what checkpoints allocate, counted by tests/kit/faults.c: sizes that a file
 * only claims never reach malloc, and a run has the memory that it said it would, from opening on.
 */
#include "unit.h"

#include "ckpt_file.h"
#include "ckpt_kit.h"
#include "crc32c.h"
#include "engine.h"
#include "faults.h"
#include "tf_bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENOUGH  ((uint64_t)5 << 20) /* a chunk of a file, places of all shards; never a tensor */
#define LARGE   ((uint64_t)5 << 20)
#define TABLES  (512 << 10) /* names, pieces, paths: what memory_bytes leaves out */
#define N_PARTS 1024

static void note(void *ctx, const char *path, const char *why)
{
    snprintf(ctx, 512, "%s: %s", path, why);
}

/* Both ways in: as a file of anybody's, and as what a run would resume from. */
static void refused(struct tempdir *t, const char *name, const char *what)
{
    float w[4];
    char why[512] = "";
    struct mr_array arrays[] = {{"w", MR_DT_F32, 1, {4}, w}};
    struct mr_restore_opts o = {
        .dir = t->path, .io_depth = 1, .passed_over = note, .passed_over_ctx = why};
    struct mr_restored found;
    struct mr_ckpt_file *c = NULL;
    struct mr_checkpoint_verdict v;
    struct mr_error err = {0};
    faults_reset_sizes();
    int r = mr_ckpt_file_open(tempdir_path(t, name), &c, &err);
    if (!r)
        r = mr_ckpt_file_verify(c, NULL, &v, &err);
    mr_ckpt_file_close(c);
    if (!r || r == -ENOMEM || !err.text[0])
        fail_msg("%s: %d %s", what, r, err.text);
    r = mr_checkpoint_restore(arrays, 1, &o, &found, &err);
    if (r != -EBADMSG || strstr(why, "memory"))
        fail_msg("%s: %d %s; %s", what, r, err.text, why);
    if (faults_largest() > ENOUGH)
        fail_msg("%s: %llu bytes were asked for", what, (unsigned long long)faults_largest());
}

static void put_index(struct tempdir *t, struct mr_bundle *b)
{
    struct mr_bytes index;
    mr_bytes_init(&index);
    assert_int_equal(mr_bundle_write_index(b, &index, NULL), 0);
    tempdir_write(t, "m-1.index", index.data, index.len);
    mr_bytes_fini(&index);
}

/* One tensor "w" in a bundle whose data file has 64 bytes. */
static void put_one(struct tempdir *t, int dtype, uint64_t dim, uint64_t offset, uint64_t bytes,
                    uint32_t n_shards)
{
    static const uint8_t data[64];
    struct mr_tensor tensor = {.name = "w",
                               .dtype = dtype,
                               .n_dims = 1,
                               .dims = {dim},
                               .offset = offset,
                               .bytes = bytes,
                               .has_crc = 1};
    struct mr_bundle b;
    char file[64];
    mr_bundle_init(&b);
    b.n_shards = n_shards;
    assert_int_equal(mr_tensor_table_add(&b.tensors, &tensor), 0);
    put_index(t, &b);
    snprintf(file, sizeof file, "m-1.data-00000-of-%05u", n_shards);
    tempdir_write(t, file, data, sizeof data);
    mr_bundle_fini(&b);
}

static void a_bundle_cannot_claim_what_it_does_not_have(void **state)
{
    struct tempdir *t = *state;
    put_one(t, MR_DT_F32, (uint64_t)1 << 40, 0, (uint64_t)1 << 42, 1);
    refused(t, "m-1", "a tensor of 4 TiB");
    put_one(t, MR_DT_F32, 4, (uint64_t)1 << 62, 16, 1);
    refused(t, "m-1", "a tensor far behind the end");
    put_one(t, MR_DT_STRING, 1, 0, (uint64_t)1 << 42, 1);
    refused(t, "m-1", "a string of 4 TiB");
    put_one(t, MR_DT_STRING, (uint64_t)1 << 40, 0, (uint64_t)1 << 42, 1);
    refused(t, "m-1", "a million million strings");
    put_one(t, MR_DT_F32, 8, 0, 32, MR_BUNDLE_MAX_SHARDS);
    refused(t, "m-1", "as many shards as there may be");
}

/* Each slice of a tensor of 1 GiB is the same mebibyte of the data file. */
static void slices_cannot_share_their_bytes(void **state)
{
    struct tempdir *t = *state;
    static uint8_t data[1 << 20];
    struct mr_bundle b;
    struct mr_tensor whole = {.name = "w",
                              .dtype = MR_DT_U8,
                              .n_dims = 2,
                              .dims = {N_PARTS, sizeof data},
                              .bytes = N_PARTS * sizeof data,
                              .has_crc = 1};
    struct mr_bundle_part *parts = calloc(N_PARTS, sizeof *parts);
    assert_non_null(parts);
    mr_bundle_init(&b);
    assert_int_equal(mr_tensor_table_add(&b.tensors, &whole), 0);
    for (unsigned i = 0; i < N_PARTS; i++)
        parts[i] = (struct mr_bundle_part){.start = {i, 0},
                                           .length = {1, sizeof data},
                                           .bytes = sizeof data,
                                           .crc = mr_crc32c(0, data, sizeof data)};
    b.parts = parts;
    b.n_parts = N_PARTS;
    put_index(t, &b);
    tempdir_write(t, "m-1.data-00000-of-00001", data, sizeof data);
    refused(t, "m-1", "slices that share their bytes");
    mr_bundle_fini(&b);
}

/* And many tensors: their pieces are not even listed. */
static void tensors_cannot_share_their_bytes(void **state)
{
    struct tempdir *t = *state;
    struct mr_bundle b;
    char name[32];
    uint64_t bytes = (uint64_t)4 << 30; /* a hole; 4,096 pieces */
    mr_bundle_init(&b);
    for (unsigned i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "w%u", i);
        struct mr_tensor tensor = {.name = name,
                                   .dtype = MR_DT_U8,
                                   .n_dims = 1,
                                   .dims = {bytes},
                                   .bytes = bytes,
                                   .has_crc = 1};
        assert_int_equal(mr_tensor_table_add(&b.tensors, &tensor), 0);
    }
    struct mr_tensor fits = {.name = "w", .dtype = MR_DT_U8, .bytes = 1, .has_crc = 1};
    assert_int_equal(mr_tensor_table_add(&b.tensors, &fits), 0);
    put_index(t, &b);
    tempdir_write(t, "m-1.data-00000-of-00001", "", 0);
    assert_int_equal(truncate(tempdir_path(t, "m-1.data-00000-of-00001"), (off_t)bytes), 0);
    struct mr_restore_opts o = {.dir = t->path, .io_depth = 1};
    struct mr_restored found;
    uint8_t one;
    struct mr_array arrays[] = {{"w", MR_DT_U8, 0, {0}, &one}};
    faults_reset_sizes();
    assert_int_equal(mr_checkpoint_restore(arrays, 1, &o, &found, NULL), -EBADMSG);
    assert_in_range(faults_largest(), 0, ENOUGH);
    mr_bundle_fini(&b);
}

/* An index block that says what it will be when snappy is done with it. */
static void a_compressed_block_cannot_claim_what_it_cannot_become(void **state)
{
    struct tempdir *t = *state;
    static const uint8_t magic[8] = {0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb};
    uint8_t file[16 + 5 + 48] = {0x80, 0x80, 0x80, 0x80, 0x04, 0, 'x'}; /* 1 GiB, one literal */
    file[16] = 1;
    uint32_t crc = mr_crc32c_mask(mr_crc32c(0, file, 17));
    for (int i = 0; i < 4; i++)
        file[17 + i] = (uint8_t)(crc >> 8 * i);
    file[21 + 1] = file[21 + 3] = 16; /* both handles: from 0, 16 bytes */
    memcpy(file + sizeof file - 8, magic, 8);
    tempdir_write(t, "m-1.index", file, sizeof file);
    refused(t, "m-1", "1 GiB from 16 bytes");
}

static void put_safetensors(struct tempdir *t, uint64_t claimed, const char *header)
{
    uint8_t file[512] = {0};
    for (int i = 0; i < 8; i++)
        file[i] = (uint8_t)(claimed >> 8 * i);
    assert_true(strlen(header) < sizeof file - 8);
    memcpy(file + 8, header, strlen(header));
    tempdir_write(t, "m-1.safetensors", file, 8 + strlen(header));
}

static void safetensors_cannot_claim_what_they_do_not_have(void **state)
{
    struct tempdir *t = *state;
    static const char *const headers[] = {
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[1099511627776],\"data_offsets\":[0,4398046511104]}}",
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,4294967296],"
        "\"data_offsets\":[0,16]}}",
        "{\"w\":{\"dtype\":\"U8\",\"shape\":[18446744073709551615],"
        "\"data_offsets\":[0,18446744073709551615]}}",
    };
    static const uint64_t claims[] = {UINT64_MAX, (uint64_t)1 << 63, (uint64_t)1 << 40, 99000000};
    for (unsigned i = 0; i < ARRAY_LEN(headers); i++) {
        put_safetensors(t, strlen(headers[i]), headers[i]);
        refused(t, "m-1.safetensors", headers[i]);
    }
    for (unsigned i = 0; i < ARRAY_LEN(claims); i++) {
        put_safetensors(t, claims[i], "{}");
        refused(t, "m-1.safetensors", "a header longer than the file");
    }
}

/* A file that is as large as it says, for it is a hole. */
static void files_that_are_too_large_are_not_read(void **state)
{
    struct tempdir *t = *state;
    static const char *const names[] = {"m-1.index", "m-1.safetensors"};
    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        tempdir_write(t, names[i], "", 0);
        assert_int_equal(truncate(tempdir_path(t, names[i]), (off_t)1 << 36), 0);
        refused(t, i ? names[i] : "m-1", "a hole of 64 GiB");
        assert_int_equal(unlink(tempdir_path(t, names[i])), 0);
    }
}

static void run_steps(struct mr_checkpoint *c, struct ckpt_kit *k)
{
    for (uint64_t step = 1; step <= 4; step++) {
        for (unsigned i = 0; i < KIT_N_ARRAYS; i++) {
            mr_checkpoint_before_write(c, i);
            ckpt_kit_fill_one(k, i, step, 0);
        }
        assert_int_equal(mr_checkpoint_begin(c, step, NULL), 0);
    }
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_SLOW, NULL), 0);
}

static void a_run_has_the_memory_that_it_said_from_opening_on(void **state)
{
    struct tempdir *t = *state;
    struct ckpt_kit *k = ckpt_kit_new(LARGE);
    for (unsigned i = 0; i < 12; i++) {
        char fast[512], slow[512];
        struct mr_checkpoint_opts o = {.mode = i % 3, .format = i / 3 % 2, .keep = 2, .dir = fast};
        struct mr_checkpoint *c = NULL;
        struct mr_error err = {0};
        snprintf(fast, sizeof fast, "%s/fast%u", t->path, i);
        snprintf(slow, sizeof slow, "%s/slow%u", t->path, i);
        o.drain_dir = i / 6 ? slow : NULL;
        uint64_t said = 0;
        assert_int_equal(mr_checkpoint_memory(k->arrays, KIT_N_ARRAYS, &o, &said, NULL), 0);
        int64_t before = faults_live_bytes();
        if (mr_checkpoint_open(k->arrays, KIT_N_ARRAYS, &o, &c, &err))
            fail_msg("%s", err.text);
        int64_t opened = faults_live_bytes() - before;
        faults_reset_sizes();
        run_steps(c, k);
        int64_t most = faults_peak_bytes() - before;
        if (opened < (int64_t)said - TABLES || opened > (int64_t)said + TABLES)
            fail_msg("case %u: %lld bytes after opening, %llu said", i, (long long)opened,
                     (unsigned long long)said);
        if (most > (int64_t)said + TABLES)
            fail_msg("case %u: %lld bytes at most, %llu said", i, (long long)most,
                     (unsigned long long)said);
        if (mr_checkpoint_close(c, &err))
            fail_msg("%s", err.text);
        assert_int_equal(faults_live_bytes(), before);
    }
    ckpt_kit_free(k);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_setup_in_memory, tempdir_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_bundle_cannot_claim_what_it_does_not_have),
        TEST(slices_cannot_share_their_bytes),
        TEST(tensors_cannot_share_their_bytes),
        TEST(a_compressed_block_cannot_claim_what_it_cannot_become),
        TEST(safetensors_cannot_claim_what_they_do_not_have),
        TEST(files_that_are_too_large_are_not_read),
        TEST(a_run_has_the_memory_that_it_said_from_opening_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
