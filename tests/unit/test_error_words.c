/* test_error_words.c - every public call that can fail says why in its struct mr_error: the same
 * code as it returns, and words that name the file or the field. */
#include "tempdir.h"
#include "unit.h"

#include <millrace/checkpoint.h>
#include <millrace/image.h>
#include <millrace/pipeline.h>
#include <millrace/store.h>
#include <millrace/trace.h>

#include <errno.h>
#include <math.h>
#include <string.h>

static struct mr_error err; /* of the call under test; clean before each */

static void assert_says(int returned, int code, const char *words)
{
    assert_int_equal(returned, code);
    assert_int_equal(err.code, code);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
    err = (struct mr_error){0};
}

static void files_and_caches(void **state)
{
    const char *path = tempdir_path(*state, "missing");
    struct mr_cache_state s;
    char buf[4];
    size_t len = 77;
    assert_says(mr_file_read(path, buf, sizeof buf, &len, &err), -ENOENT, "/missing: No such file");
    assert_int_equal(len, 77);
    assert_says(mr_cache_query(path, &s, &err), -ENOENT, "/missing: No such file");
    assert_says(mr_cache_evict(path, &s, NULL, &err), -ENOENT, "/missing: No such file");
    path = tempdir_text(*state, "large", "12345");
    assert_says(mr_file_read(path, buf, sizeof buf, &len, &err), -EFBIG, "/large: File too large");
}

static void devices(void **state)
{
    struct mr_device *d = NULL;
    assert_says(mr_device_open("no-such-device", &d, &err), -ENOENT, "no-such-device");
    assert_null(d);
}

static void data_sets(void **state)
{
    struct mr_dataset *d = NULL, *held = NULL, *ten;
    assert_says(mr_dataset_open(tempdir_path(*state, "missing"), &d, &err), -ENOENT, "/missing");
    assert_says(mr_dataset_range(0, &d, &err), -EINVAL, "0 samples");
    assert_int_equal(mr_dataset_range(10, &ten, &err), 0);
    assert_says(mr_dataset_split(ten, 1.5, 0, &d, &held, &err), -EINVAL, "1.5: not from 0 to 1");
    assert_null(d);
    assert_null(held);
    mr_dataset_unref(ten);
}

static void decoders(void **state)
{
    static const struct {
        struct mr_decoder_opts o;
        const char *words;
    } bad[] = {
        {{.width = 20000}, "width, height: 20000 x 224"},
        {{.dtype = MR_DT_F64}, "dtype: "},
        {{.resize = (enum mr_image_resize)7}, "resize: there is no 7"},
        {{.layout = (enum mr_image_layout)7}, "layout: there is no 7"},
        {{.augment = (enum mr_image_augment)7}, "augment: there is no 7"},
        {{.simd = (enum mr_image_simd)7}, "simd: there is no 7"},
        {{.decoder = (enum mr_image_decoder)7}, "decoder: there is no 7"},
        {{.mean = {NAN}}, "mean, std: "},
        {{.std = {-1}}, "mean, std: "},
    };
    struct mr_decoder *d = NULL;
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_says(mr_decoder_new(&bad[i].o, &d, &err), -EINVAL, bad[i].words);
    assert_null(d);
}

static void pipelines(void **state)
{
    struct mr_dataset *ten;
    struct mr_pipeline *p = NULL;
    assert_int_equal(mr_dataset_range(10, &ten, NULL), 0);
    assert_says(mr_pipeline_open(ten, &(struct mr_pipeline_opts){.batch = 1u << 25}, &p, &err),
                -EINVAL, "batch: ");
    assert_says(mr_pipeline_open(ten, &(struct mr_pipeline_opts){.rank = 2, .world = 2}, &p, &err),
                -EINVAL, "shard 2/2");
    assert_null(p);
    mr_dataset_unref(ten);
}

static void traces(void **state)
{
    struct mr_trace_opts o = {.path = tempdir_path(*state, "no/folder.json")};
    assert_says(mr_trace_start(&o, &err), -ENOENT, "folder.json");
    o.ring_spans = ~0u;
    assert_says(mr_trace_start(&o, &err), -EINVAL, "a ring of 4294967295 spans");
}

static void checkpoints(void **state)
{
    float weight = 0;
    const struct tempdir *t = *state;
    const struct mr_array array = {"w", MR_DT_F32, 0, {0}, &weight};
    struct mr_checkpoint *c = NULL;
    struct mr_restored got;
    assert_says(mr_checkpoint_open(&array, 1, &(struct mr_checkpoint_opts){0}, &c, &err), -EINVAL,
                "checkpoint");
    assert_null(c);
    assert_says(
        mr_checkpoint_restore(&array, 1, &(struct mr_restore_opts){.dir = t->path}, &got, &err),
        -ENOENT, "no checkpoint");
}

/* NULL for the error changes nothing else. */
static void words_are_optional(void **state)
{
    struct mr_decoder *d;
    assert_int_equal(mr_cache_query(tempdir_path(*state, "missing"), NULL, NULL), -ENOENT);
    assert_int_equal(mr_decoder_new(&(struct mr_decoder_opts){.dtype = MR_DT_F64}, &d, NULL),
                     -EINVAL);
}

#define IN_TEMPDIR(f) cmocka_unit_test_setup_teardown(f, tempdir_setup, tempdir_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TEMPDIR(files_and_caches), cmocka_unit_test(devices),      IN_TEMPDIR(data_sets),
        cmocka_unit_test(decoders),   cmocka_unit_test(pipelines),    IN_TEMPDIR(traces),
        IN_TEMPDIR(checkpoints),      IN_TEMPDIR(words_are_optional),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
