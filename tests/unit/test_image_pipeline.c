/* test_image_pipeline.c - batches of decoded images do not depend on the instruction set, nor on
 * threads and decoder; a crop and a flip change them. */
#include "image_samples.h"
#include "photo_set.h"

#include <millrace/image.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* JPEG and PNG files of all kinds, and some that are cut. */
static void write_images(struct tempdir *t)
{
    char name[64];
    unsigned n = 0;
    for (const struct jpeg_kind *k = sample_jpeg_kinds; k->name; k++, n++) {
        struct photo p = sample_photo(60 + n * 7, 90 + n * 3, n);
        struct sample s = sample_jpeg(&p, k);
        snprintf(name, sizeof name, "set/class%u/%u.jpg", n % 2, n);
        tempdir_write(t, name, s.bytes, n % 5 == 4 ? s.len / 2 : s.len);
        free(s.bytes);
        free(p.rgb);
    }
    for (const struct png_kind *k = sample_png_kinds; k->name; k++, n++) {
        struct photo p = sample_photo(50 + n, 40 + n, n);
        struct sample s = sample_png(&p, k, NULL);
        snprintf(name, sizeof name, "set/class%u/%u.png", n % 2, n);
        tempdir_write(t, name, s.bytes, s.len);
        free(s.bytes);
        free(p.rgb);
    }
}

static uint64_t hash_of(struct mr_dataset *d, const struct mr_decoder_opts *image, unsigned threads)
{
    struct mr_pipeline_opts o = {
        .decode = image, .threads = threads, .batch = 8, .max_error_count = 100};
    int r = 0;
    uint64_t hash = photo_set_hash(d, &o, &r);
    assert_int_equal(r, 0);
    return hash;
}

static void batches_have_one_hash_on_every_instruction_set(void **state)
{
    struct tempdir *t = *state;
    uint64_t want[2];
    write_images(t);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    for (int crop = 0; crop < 2; crop++) {
        struct mr_decoder_opts o = {.width = 48, .height = 40, .simd = MR_SIMD_SCALAR};
        o.augment = crop ? MR_AUGMENT_CROP_FLIP : MR_AUGMENT_NONE;
        want[crop] = hash_of(d, &o, 1);
        o.decoder = MR_DECODER_TURBO;
        assert_int_equal(hash_of(d, &o, 2), want[crop]);
        o.decoder = MR_DECODER_AUTO;
        for (enum mr_image_simd simd = MR_SIMD_BEST; simd <= MR_SIMD_AVX512; simd++) {
            struct mr_decoder *there = NULL;
            o.simd = simd;
            if (mr_decoder_new(&o, &there, NULL))
                print_message("SKIP: level %d is not there\n", (int)simd);
            else
                assert_int_equal(hash_of(d, &o, 3), want[crop]);
            mr_decoder_free(there);
        }
    }
    assert_int_not_equal(want[0], want[1]);
    mr_dataset_unref(d);
}

static void images_are_a_field_with_their_shape(void **state)
{
    struct tempdir *t = *state;
    write_images(t);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    for (int planes = 0; planes < 2; planes++) {
        struct mr_decoder_opts image = {.width = 48,
                                        .height = 40,
                                        .dtype = planes ? MR_DT_U8 : MR_DT_NONE,
                                        .layout = planes ? MR_IMAGE_NCHW : MR_IMAGE_NHWC};
        struct mr_pipeline_opts o = {.decode = &image, .batch = 8, .max_error_count = 100};
        struct mr_pipeline *p = photo_set_pipeline(d, &o);
        struct mr_batch *b;
        assert_int_equal(mr_pipeline_next(p, &b), 1);
        assert_int_equal(b->n_fields, 2);
        const struct mr_field *f = mr_batch_field(b, "image");
        static const uint64_t nhwc[] = {40, 48, 3}, nchw[] = {3, 40, 48};
        assert_ptr_equal(f->data, b->data);
        assert_int_equal(f->dtype, planes ? MR_DT_U8 : MR_DT_F32);
        assert_int_equal(f->n_dims, 3);
        assert_memory_equal(f->shape, planes ? nchw : nhwc, sizeof nhwc);
        const int64_t *labels = mr_batch_field(b, "label")->data;
        for (unsigned i = 0; i < b->n; i++)
            assert_true(labels[i] == b->samples[i].label);
        mr_batch_unref(b);
        mr_pipeline_close(p);
    }
    mr_dataset_unref(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(images_are_a_field_with_their_shape, tempdir_setup,
                                        tempdir_teardown),
        cmocka_unit_test_setup_teardown(batches_have_one_hash_on_every_instruction_set,
                                        tempdir_setup, tempdir_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
