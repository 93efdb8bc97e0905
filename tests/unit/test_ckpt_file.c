/* test_ckpt_file.c - checkpoints on disk: read, verified byte by byte, converted, copied. */
#include "ckpt_file.h"

#include "ckpt_folder.h"
#include "ckpt_samples.h"
#include "convert.h"
#include "crc32c.h"
#include "tf_bundle.h"
#include "tf_state_reader.h"
#include "train_state.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int verify(const char *path, struct mr_checkpoint_verdict *v)
{
    struct mr_ckpt_file *c;
    struct mr_error err = {0};
    memset(v, 0, sizeof *v);
    int r = mr_ckpt_file_open(path, &c, &err);
    if (!r) {
        r = mr_ckpt_file_verify(c, NULL, v, &err);
        assert_int_equal(!r, !v->where[0]);
        mr_ckpt_file_close(c);
    }
    assert_int_equal(r, err.code);
    return r;
}

static void both_formats_are_read_and_verified(void **state)
{
    struct tempdir *dir = *state;
    static const char *const names[] = {"a-1", "b-2", "c-3.safetensors"};
    sample_write_tf(dir, "a-1", MR_BUNDLE_ALIGN);
    sample_write_tf(dir, "b-2", 1);
    sample_write_safetensors(dir, "c-3");
    for (int i = 0; i < 3; i++) {
        struct mr_ckpt_file *c;
        struct mr_checkpoint_verdict v;
        const char *path = tempdir_path(dir, names[i]);
        assert_int_equal(mr_ckpt_file_open(path, &c, NULL), 0);
        assert_int_equal(mr_ckpt_file_format(c),
                         i == 2 ? MR_CHECKPOINT_SAFETENSORS : MR_CHECKPOINT_TF);
        assert_true(mr_ckpt_file_has_checksums(c));
        sample_check(c);
        mr_ckpt_file_close(c);
        assert_int_equal(verify(path, &v), 0);
        assert_int_equal(v.n_unchecked, 0);
        assert_true(v.n_tensors >= 10);
    }
}

/* TensorFlow 2: the graph of objects is one more tensor, and there is no .meta. */
static void an_object_checkpoint_of_tensorflow_2_is_read(void **state)
{
    struct tempdir *dir = *state;
    float got[6] = {0}, expected[6];
    int64_t count = 0;
    uint8_t graph[512] = {0};
    struct mr_array arrays[] = {{SAMPLE_TF2_KERNEL, MR_DT_F32, 2, {2, 3}, got},
                                {SAMPLE_TF2_COUNT, MR_DT_I64, 0, {0}, &count}};
    struct mr_restore_opts o = {.dir = dir->path, .io_depth = 1};
    struct mr_tensor_table table;
    struct mr_ckpt_file *c;
    struct mr_checkpoint_verdict v;
    struct mr_restored found;
    struct mr_tf_state s;
    size_t len;
    sample_table(&table);
    memcpy(expected, mr_tensor_table_find(&table, "conv1/weights")->data, sizeof expected);
    mr_tensor_table_fini(&table);
    sample_write_tf2(dir, "ckpt-3");
    assert_int_equal(verify(tempdir_path(dir, "ckpt-3"), &v), 0);
    assert_true(v.n_tensors == 3 && v.n_unchecked == 0);
    assert_int_equal(mr_ckpt_file_open(tempdir_path(dir, "ckpt-3"), &c, NULL), 0);
    const struct mr_tensor_table *t = mr_ckpt_file_tensors(c);
    const struct mr_tensor *g = mr_tensor_table_find(t, SAMPLE_TF2_GRAPH);
    assert_non_null(g);
    assert_true(g->dtype == MR_DT_STRING && g->bytes <= sizeof graph);
    assert_int_equal(mr_ckpt_file_read(c, (size_t)(g - t->tensors), graph, NULL), 0);
    assert_non_null(memmem(graph, g->bytes, SAMPLE_TF2_KERNEL, strlen(SAMPLE_TF2_KERNEL)));
    uint64_t graph_at = g->offset;
    mr_ckpt_file_close(c);
    assert_int_equal(mr_checkpoint_restore(arrays, 2, &o, &found, NULL), 0);
    assert_true(found.step == 3 && count == 40);
    assert_memory_equal(got, expected, sizeof got);
    char *text = (char *)sample_load(tempdir_path(dir, "checkpoint"), &len);
    assert_int_equal(mr_tf_state_parse("checkpoint", text, len, &s, NULL), 0);
    assert_string_equal(s.latest, "ckpt-3");
    mr_tf_state_fini(&s);
    free(text);
    /* The graph has a checksum like everything else. */
    int fd = open(tempdir_path(dir, "ckpt-3.data-00000-of-00001"), O_WRONLY);
    assert_true(fd >= 0 && pwrite(fd, "?", 1, (off_t)graph_at + 20) == 1 && !close(fd));
    assert_int_equal(verify(tempdir_path(dir, "ckpt-3"), &v), -EBADMSG);
    assert_string_equal(v.where, SAMPLE_TF2_GRAPH);
}

/* Is the byte of a data file outside of every tensor? */
static int is_padding(const char *prefix, uint64_t at)
{
    struct mr_ckpt_file *c;
    assert_int_equal(mr_ckpt_file_open(prefix, &c, NULL), 0);
    const struct mr_tensor_table *t = mr_ckpt_file_tensors(c);
    int inside = 0;
    for (size_t i = 0; i < t->n; i++)
        inside |= at >= t->tensors[i].offset && at < t->tensors[i].offset + t->tensors[i].bytes;
    mr_ckpt_file_close(c);
    return !inside;
}

/* Flip one bit of each byte in turn: found, or padding.  Returns how many were padding. */
static size_t flip_all(struct tempdir *dir, const char *file, const char *checkpoint, int may_pad)
{
    char path[512], open_as[512];
    size_t len, n_padding = 0;
    snprintf(path, sizeof path, "%s/%s", dir->path, file);
    snprintf(open_as, sizeof open_as, "%s/%s", dir->path, checkpoint);
    uint8_t *bytes = sample_load(path, &len);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    setvbuf(f, NULL, _IONBF, 0);
    for (size_t i = 0; i < len; i++) {
        struct mr_checkpoint_verdict v;
        fseek(f, (long)i, SEEK_SET);
        fputc(bytes[i] ^ 1 << i % 8, f);
        if (!verify(open_as, &v)) {
            fseek(f, (long)i, SEEK_SET);
            fputc(bytes[i], f);
            assert_true(may_pad && is_padding(open_as, i));
            n_padding++;
        }
        fseek(f, (long)i, SEEK_SET);
        fputc(bytes[i], f);
    }
    fclose(f);
    free(bytes);
    return n_padding;
}

static void every_flipped_byte_of_a_bundle_is_found_or_padding(void **state)
{
    struct tempdir *dir = *state;
    sample_write_tf(dir, "m-1", 64);
    assert_int_equal(flip_all(dir, "m-1.index", "m-1", 0), 0);
    assert_true(flip_all(dir, "m-1.data-00000-of-00001", "m-1", 1) > 0);
    assert_int_equal(flip_all(dir, "m-1.meta", "m-1", 0), 0);
    sample_write_tf(dir, "p-1", 1);
    assert_int_equal(flip_all(dir, "p-1.data-00000-of-00001", "p-1", 0), 0);
}

static void every_flipped_byte_of_safetensors_is_found(void **state)
{
    struct tempdir *dir = *state;
    sample_write_safetensors(dir, "s-1");
    assert_int_equal(flip_all(dir, "s-1.safetensors", "s-1.safetensors", 0), 0);
}

static void verify_names_the_tensor_of_the_first_bad_byte(void **state)
{
    struct tempdir *dir = *state;
    struct mr_checkpoint_verdict v;
    struct mr_ckpt_file *c;
    sample_write_tf(dir, "m-1", MR_BUNDLE_ALIGN);
    const char *prefix = strdup(tempdir_path(dir, "m-1"));
    assert_int_equal(mr_ckpt_file_open(prefix, &c, NULL), 0);
    const struct mr_tensor_table *t = mr_ckpt_file_tensors(c);
    uint64_t step_at = mr_tensor_table_find(t, "global_step")->offset;
    uint64_t flags_at = mr_tensor_table_find(t, "flags")->offset;
    assert_true(step_at < flags_at); /* in the file, not in the alphabet */
    FILE *f = fopen(mr_ckpt_file_path(c, 0), "r+b");
    assert_non_null(f);
    fseek(f, (long)flags_at, SEEK_SET);
    fputc(77, f);
    fseek(f, (long)step_at, SEEK_SET);
    fputc(77, f);
    fclose(f);
    mr_ckpt_file_close(c);
    assert_int_equal(verify(prefix, &v), -EBADMSG);
    assert_string_equal(v.where, "global_step");
    free((char *)(uintptr_t)prefix);
}

static void what_is_missing_is_named(void **state)
{
    struct tempdir *dir = *state;
    struct mr_ckpt_file *c;
    struct mr_error err = {0};
    sample_write_tf(dir, "m-1", 1);
    assert_int_equal(mr_ckpt_file_open(tempdir_path(dir, "x-1"), &c, &err), -ENOENT);
    assert_non_null(strstr(err.text, "x-1.index"));
    assert_int_equal(truncate(tempdir_path(dir, "m-1.data-00000-of-00001"), 100), 0);
    err = (struct mr_error){0};
    assert_int_equal(mr_ckpt_file_open(tempdir_path(dir, "m-1"), &c, &err), -ENODATA);
    assert_int_equal(unlink(tempdir_path(dir, "m-1.data-00000-of-00001")), 0);
    err = (struct mr_error){0};
    assert_int_equal(mr_ckpt_file_open(tempdir_path(dir, "m-1"), &c, &err), -ENOENT);
    assert_non_null(strstr(err.text, "data-00000-of-00001"));
    tempdir_mkdir(dir, "d-1.index");
    assert_int_equal(mr_ckpt_file_open(tempdir_path(dir, "d-1"), &c, NULL), -EISDIR);
}

/* There and back again: every tensor, type and shape survives, strings and odd types included. */
static void converting_there_and_back_loses_nothing(void **state)
{
    struct tempdir *dir = *state;
    char from[MR_CKPT_MAX_PATH], to[512], path[MR_CKPT_MAX_PATH];
    struct mr_checkpoint_verdict v;
    sample_write_tf(dir, "a/m-7", MR_BUNDLE_ALIGN);
    snprintf(from, sizeof from, "%s/a/m-7", dir->path);
    for (int i = 0; i < 4; i++) {
        struct mr_ckpt_file *c;
        struct mr_convert_opts o = {.format = i % 2 ? MR_CHECKPOINT_TF : MR_CHECKPOINT_SAFETENSORS,
                                    .packed = i == 3};
        snprintf(to, sizeof to, "%s/b%d/deeper", dir->path, i);
        assert_int_equal(mr_ckpt_file_open(from, &c, NULL), 0);
        assert_int_equal(mr_ckpt_convert(c, to, &o, path, NULL), 0);
        assert_int_equal(mr_ckpt_convert(c, to, &o, path, NULL), -EEXIST);
        mr_ckpt_file_close(c);
        assert_int_equal(mr_ckpt_file_open(path, &c, NULL), 0);
        sample_check(c);
        mr_ckpt_file_close(c);
        assert_int_equal(verify(path, &v), 0);
        snprintf(from, sizeof from, "%s", path);
    }
    /* The state file names the bundle. */
    size_t len;
    strcat(to, "/checkpoint");
    char *text = (char *)sample_load(to, &len);
    struct mr_tf_state s;
    assert_int_equal(mr_tf_state_parse("checkpoint", text, len, &s, NULL), 0);
    assert_string_equal(s.latest, "m-7");
    mr_tf_state_fini(&s);
    free(text);
}

static void a_copy_is_the_same_bytes(void **state)
{
    struct tempdir *dir = *state;
    static const char *const ends[] = {".index", ".meta", ".data-00000-of-00001"};
    char path[MR_CKPT_MAX_PATH], name[512];
    struct mr_ckpt_file *c;
    sample_write_tf(dir, "m-7", MR_BUNDLE_ALIGN);
    assert_int_equal(mr_ckpt_file_open(tempdir_path(dir, "m-7"), &c, NULL), 0);
    assert_int_equal(
        mr_ckpt_copy(c, tempdir_path(dir, "to"), &(struct mr_convert_opts){0}, path, NULL), 0);
    mr_ckpt_file_close(c);
    for (int i = 0; i < 3; i++) {
        size_t a_len, b_len;
        snprintf(name, sizeof name, "m-7%s", ends[i]);
        uint8_t *a = sample_load(tempdir_path(dir, name), &a_len);
        snprintf(name, sizeof name, "to/m-7%s", ends[i]);
        uint8_t *b = sample_load(tempdir_path(dir, name), &b_len);
        assert_int_equal(a_len, b_len);
        assert_memory_equal(a, b, a_len);
        free(a);
        free(b);
    }
}

/* A partitioned variable, 6 x 4, cut in four corners over two data files. */
static void slices_are_put_together(void **state)
{
    struct tempdir *dir = *state;
    float whole[6][4], corner[4][12], got[6][4];
    struct mr_bundle b;
    struct mr_bundle_part parts[4] = {{0}};
    struct mr_bytes index;
    struct mr_ckpt_file *c;
    mr_bundle_init(&b);
    mr_bytes_init(&index);
    b.n_shards = 2;
    assert_int_equal(mr_tensor_table_add(&b.tensors, &(struct mr_tensor){.name = "w",
                                                                         .dtype = MR_DT_F32,
                                                                         .n_dims = 2,
                                                                         .dims = {6, 4},
                                                                         .bytes = sizeof whole,
                                                                         .has_crc = 1}),
                     0);
    for (int p = 0; p < 4; p++) {
        int rows = p / 2 ? 3 : 3, cols = p % 2 ? 1 : 3, n = 0;
        parts[p] = (struct mr_bundle_part){.start = {p / 2 ? 3 : 0, p % 2 ? 3 : 0},
                                           .length = {(uint64_t)rows, (uint64_t)cols},
                                           .shard = (uint32_t)(p / 2),
                                           .offset = p % 2 ? 64 : 0,
                                           .bytes = (uint64_t)(rows * cols) * 4};
        for (int y = 0; y < rows; y++)
            for (int x = 0; x < cols; x++) {
                int yy = y + (p / 2 ? 3 : 0), xx = x + (p % 2 ? 3 : 0);
                corner[p][n++] = whole[yy][xx] = (float)(10 * yy + xx);
            }
        parts[p].crc = mr_crc32c(0, corner[p], parts[p].bytes);
    }
    b.parts = parts;
    b.n_parts = 4;
    assert_int_equal(mr_bundle_write_index(&b, &index, NULL), 0);
    tempdir_write(dir, "m.index", index.data, index.len);
    for (int s = 0; s < 2; s++) {
        char file[64];
        uint8_t data[80] = {0};
        memcpy(data, corner[2 * s], 36);
        memcpy(data + 64, corner[2 * s + 1], 12);
        snprintf(file, sizeof file, "m.data-%05d-of-00002", s);
        tempdir_write(dir, file, data, sizeof data);
    }
    struct mr_checkpoint_verdict v;
    assert_int_equal(mr_ckpt_file_open(tempdir_path(dir, "m"), &c, NULL), 0);
    assert_int_equal(mr_ckpt_file_read(c, 0, got, NULL), 0);
    assert_memory_equal(got, whole, sizeof whole);
    assert_int_equal(mr_ckpt_file_verify(c, NULL, &v, NULL), 0);
    mr_ckpt_file_close(c);
    b.parts = NULL;
    b.n_parts = 0;
    mr_bundle_fini(&b);
    mr_bytes_fini(&index);
}

static void a_folder_lists_oldest_first(void **state)
{
    struct tempdir *dir = *state;
    struct mr_ckpt_folder f = {0};
    sample_write_tf(dir, "m-100", 1);
    sample_write_safetensors(dir, "m-20");
    sample_write_tf(dir, "final", 1);
    tempdir_text(dir, "checkpoint", "model_checkpoint_path: \"../../etc/passwd\"\n");
    tempdir_text(dir, "notes.txt", "no checkpoint");
    assert_int_equal(mr_ckpt_folder_scan(&f, AT_FDCWD, dir->path, NULL), 0);
    assert_int_equal(f.n, 3);
    assert_int_equal(f.found[0].step, -1);
    assert_int_equal(f.found[1].step, 20);
    assert_true(mr_ends_in(f.found[1].path, "/m-20.safetensors"));
    assert_int_equal(f.found[2].step, 100);
    assert_true(mr_ends_in(f.found[2].path, "/m-100"));
    struct mr_ckpt_file *c;
    assert_int_equal(mr_ckpt_file_open(f.found[2].path, &c, NULL), 0);
    assert_true(f.found[2].bytes > mr_ckpt_file_bytes(c)); /* with .meta */
    mr_ckpt_file_close(c);
    mr_ckpt_folder_fini(&f);
    assert_int_equal(mr_ckpt_folder_scan(&f, AT_FDCWD, tempdir_path(dir, "none"), NULL), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(both_formats_are_read_and_verified),
        WITH_TEMPDIR(an_object_checkpoint_of_tensorflow_2_is_read),
        WITH_TEMPDIR(every_flipped_byte_of_a_bundle_is_found_or_padding),
        WITH_TEMPDIR(every_flipped_byte_of_safetensors_is_found),
        WITH_TEMPDIR(verify_names_the_tensor_of_the_first_bad_byte),
        WITH_TEMPDIR(what_is_missing_is_named),
        WITH_TEMPDIR(converting_there_and_back_loses_nothing),
        WITH_TEMPDIR(a_copy_is_the_same_bytes),
        WITH_TEMPDIR(slices_are_put_together),
        WITH_TEMPDIR(a_folder_lists_oldest_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
