/* test_ckpt_clean.c - what a crash leaves is removed at the next start, and nothing else is. */
#include "unit.h"

#include "ckpt_clean.h"
#include "ckpt_name.h"
#include "ckpt_samples.h"
#include "convert.h"
#include "tf_bundle.h"
#include "tf_clean.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DATA_0 "m.data-00000-of-00002"
#define DATA_1 "m.data-00001-of-00002"

static const char *temp(const char *name)
{
    static char out[MR_CKPT_MAX_NAME];
    assert_int_equal(mr_ckpt_temp_name(out, name, 1), 0);
    return out;
}

static int there(struct tempdir *dir, const char *name)
{
    return !access(tempdir_path(dir, name), F_OK);
}

static void put(struct tempdir *dir, const char *name)
{
    tempdir_text(dir, name, "x");
}

/* An index that has one tensor in each of two data files. */
static void put_index(struct tempdir *dir, const char *name)
{
    struct mr_bundle b;
    struct mr_bytes index;
    mr_bundle_init(&b);
    mr_bytes_init(&index);
    b.n_shards = 2;
    for (uint32_t s = 0; s < 2; s++) {
        struct mr_tensor t = {.name = s ? "b" : "a", .dtype = MR_DT_U8, .shard = s, .bytes = 1};
        assert_int_equal(mr_tensor_table_add(&b.tensors, &t), 0);
    }
    assert_int_equal(mr_bundle_write_index(&b, &index, NULL), 0);
    tempdir_write(dir, name, index.data, index.len);
    mr_bundle_fini(&b);
    mr_bytes_fini(&index);
}

static void clean(struct tempdir *dir)
{
    struct mr_out_dir *out;
    assert_int_equal(mr_out_dir_open(dir->path, NULL, &out, NULL), 0);
    assert_int_equal(mr_ckpt_clean(out), 0);
    mr_out_dir_close(out);
}

static void files_that_a_temporary_index_names_go_with_it(void **state)
{
    struct tempdir *dir = *state;
    put_index(dir, temp("m.index"));
    put(dir, temp(DATA_1)); /* not renamed yet */
    put(dir, DATA_0);
    put(dir, "m.meta");
    clean(dir);
    assert_false(there(dir, temp("m.index")) || there(dir, temp(DATA_1)));
    assert_false(there(dir, DATA_0) || there(dir, "m.meta"));
}

static void files_of_others_stay(void **state)
{
    static const char *const theirs[] = {
        "m.data-00000-of-00001",         /* another number of data files */
        "m.data-00002-of-00002",         /* one that no index can name */
        "n.data-00000-of-00002",         /* another checkpoint's */
        "m.index.millrace-tmp",          /* no checksum */
        "m.index.millrace-00000000.tmp", /* a wrong one */
        "m.index.tmp",
        "checkpoint",
        "m-1.safetensors",
    };
    struct tempdir *dir = *state;
    size_t n = sizeof theirs / sizeof *theirs;
    for (size_t i = 0; i < n; i++)
        put(dir, theirs[i]);
    put_index(dir, temp("m.index"));
    put(dir, temp("checkpoint"));
    put(dir, temp("m-1.safetensors"));
    clean(dir);
    for (size_t i = 0; i < n; i++)
        if (!there(dir, theirs[i]))
            fail_msg("%s is gone", theirs[i]);
    assert_false(there(dir, temp("checkpoint")) || there(dir, temp("m-1.safetensors")));
}

static void what_an_index_uses_stays(void **state)
{
    struct tempdir *dir = *state;
    put_index(dir, "m.index");
    put_index(dir, temp("m.index"));
    put(dir, temp(DATA_0));
    put(dir, DATA_0);
    put(dir, DATA_1);
    put(dir, "m.meta");
    clean(dir);
    assert_true(there(dir, DATA_0) && there(dir, DATA_1) && there(dir, "m.meta"));
    assert_false(there(dir, temp("m.index")) || there(dir, temp(DATA_0)));
}

static void replaced_data_go_when_they_are_marked(void **state)
{
    struct tempdir *dir = *state;
    put_index(dir, "m.index");
    put(dir, "m.data-00000-of-00001");
    put(dir, temp("m.data-00000-of-00001" MR_OLD));
    put(dir, DATA_0);
    put(dir, temp(DATA_0 MR_OLD));
    put(dir, "n.data-00000-of-00001"); /* its index has been removed since */
    put(dir, temp("n.data-00000-of-00001" MR_OLD));
    put(dir, "o.data-00000-of-00001"); /* somebody's; a new one was being written */
    put(dir, temp("o.data-00000-of-00001"));
    clean(dir);
    assert_false(there(dir, "m.data-00000-of-00001") || there(dir, "n.data-00000-of-00001"));
    assert_true(there(dir, DATA_0) && there(dir, "m.index") && there(dir, "o.data-00000-of-00001"));
    assert_false(there(dir, temp(DATA_0 MR_OLD)) || there(dir, temp("o.data-00000-of-00001")));
}

/* A run of an earlier version was cut off while it replaced a step: the index may be the older one,
 * and the graph beside it the newer one. */
static void an_older_graph_gets_its_name_back_if_its_index_is_there(void **state)
{
    struct tempdir *dir = *state;
    char path[512];
    size_t n_graph, n_now;
    sample_write_tf(dir, "m-1", 4096);
    snprintf(path, sizeof path, "%s/m-1.meta", dir->path);
    uint8_t *graph = sample_load(path, &n_graph);
    tempdir_write(dir, temp("m-1.meta" MR_OLD), graph, n_graph);
    put(dir, "m-1.meta");
    clean(dir);
    assert_false(there(dir, temp("m-1.meta" MR_OLD)));
    uint8_t *now = sample_load(path, &n_now);
    assert_true(n_now == n_graph && !memcmp(now, graph, n_graph));
    free(now);
    put(dir, temp("m-1.meta" MR_OLD)); /* torn, or not the one of this index */
    clean(dir);
    now = sample_load(path, &n_now);
    assert_true(n_now == n_graph && !memcmp(now, graph, n_graph));
    assert_false(there(dir, temp("m-1.meta" MR_OLD)));
    free(now);
    free(graph);
}

static void a_damaged_index_proves_nothing(void **state)
{
    struct tempdir *dir = *state;
    put(dir, temp("m.index")); /* torn: nothing was renamed on its word */
    put(dir, DATA_0);
    put(dir, "n.index"); /* damaged: who knows what it needs */
    put_index(dir, temp("n.index"));
    put(dir, "n.data-00000-of-00002");
    clean(dir);
    assert_true(there(dir, DATA_0) && there(dir, "n.data-00000-of-00002"));
    assert_false(there(dir, temp("m.index")) || there(dir, temp("n.index")));
}

/* Convert and the engine clean up after each other. */
static void a_start_of_a_run_cleans_up_after_convert(void **state)
{
    struct tempdir *dir = *state;
    float w[4] = {0};
    struct mr_array array = {"w", MR_DT_F32, 1, {4}, w};
    struct mr_checkpoint_opts o = {.dir = dir->path, .mode = MR_CHECKPOINT_SYNC};
    struct mr_checkpoint *run;
    put_index(dir, temp("m.index"));
    put(dir, DATA_0);
    assert_int_equal(mr_checkpoint_open(&array, 1, &o, &run, NULL), 0);
    assert_false(there(dir, temp("m.index")) || there(dir, DATA_0));
    assert_int_equal(mr_checkpoint_close(run, NULL), 0);
}

static void convert_waits_for_nobody_and_replaces_nothing(void **state)
{
    struct tempdir *dir = *state;
    char path[MR_CKPT_MAX_PATH], to[512];
    struct mr_ckpt_file *c;
    struct mr_out_dir *busy;
    struct mr_convert_opts tf = {.format = MR_CHECKPOINT_TF};
    struct mr_error err = {0};
    sample_write_safetensors(dir, "m-1");
    snprintf(to, sizeof to, "%s/to", dir->path);
    assert_int_equal(mr_ckpt_file_open(tempdir_path(dir, "m-1.safetensors"), &c, NULL), 0);
    assert_int_equal(mr_out_dir_open(to, NULL, &busy, NULL), 0);
    assert_int_equal(mr_ckpt_convert(c, to, &tf, path, &err), -EBUSY);
    assert_non_null(strstr(err.text, "another run"));
    mr_out_dir_close(busy);
    put(dir, "to/m-1.data-00000-of-00001"); /* somebody is about to copy an index here */
    err = (struct mr_error){0};
    assert_int_equal(mr_ckpt_convert(c, to, &tf, path, &err), -EEXIST);
    assert_non_null(strstr(err.text, "m-1.data-00000-of-00001: is there already"));
    mr_ckpt_file_close(c);
}

static void a_name_without_room_for_a_temporary_is_refused(void **state)
{
    struct tempdir *dir = *state;
    char name[256], path[MR_CKPT_MAX_PATH];
    struct mr_ckpt_file *c;
    struct mr_error err = {0};
    memset(name, 'n', 225);
    strcpy(name + 225, "-1");
    sample_write_safetensors(dir, name);
    strcat(name, ".safetensors");
    assert_int_equal(mr_ckpt_file_open(tempdir_path(dir, name), &c, NULL), 0);
    assert_int_equal(
        mr_ckpt_convert(c, tempdir_path(dir, "to"), &(struct mr_convert_opts){0}, path, &err),
        -ENAMETOOLONG);
    assert_true(err.text[0]);
    mr_ckpt_file_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(files_that_a_temporary_index_names_go_with_it),
        WITH_TEMPDIR(files_of_others_stay),
        WITH_TEMPDIR(what_an_index_uses_stays),
        WITH_TEMPDIR(replaced_data_go_when_they_are_marked),
        WITH_TEMPDIR(an_older_graph_gets_its_name_back_if_its_index_is_there),
        WITH_TEMPDIR(a_damaged_index_proves_nothing),
        WITH_TEMPDIR(a_start_of_a_run_cleans_up_after_convert),
        WITH_TEMPDIR(convert_waits_for_nobody_and_replaces_nothing),
        WITH_TEMPDIR(a_name_without_room_for_a_temporary_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
