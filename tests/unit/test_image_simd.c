/* test_image_simd.c - every instruction set gives the same bits, whatever the options, the sizes
 * and the alignment of the slot, and none writes outside of it. */
#include "image_samples.h"

#include <millrace/image.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GUARD 128

static const unsigned sizes[][2] = {{1, 1},    {5, 3},     {17, 40}, {130, 90},
                                    {400, 31}, {999, 350}, {9000, 1}};
static const unsigned outputs[][2] = {{1, 1}, {7, 5}, {32, 32}, {50, 41}, {224, 64}};

/* A slot with guards around it, at an odd or an aligned address. */
struct slot {
    uint8_t *memory, *at;
    size_t bytes;
};

static struct slot new_slot(const struct mr_decoder_opts *o, size_t offset)
{
    struct slot s = {.bytes = mr_decoder_bytes(o)};
    s.memory = aligned_alloc(64, (s.bytes + 2 * GUARD + 64 + 63) / 64 * 64);
    s.at = s.memory + GUARD + offset;
    memset(s.memory, 0xa5, s.bytes + 2 * GUARD + 64);
    return s;
}

static void check_guards(const struct slot *s)
{
    for (uint8_t *p = s->memory; p < s->at; p++)
        assert_int_equal(*p, 0xa5);
    for (int i = 0; i < GUARD; i++)
        assert_int_equal(s->at[s->bytes + (size_t)i], 0xa5);
}

static void compare(const struct mr_decoder_opts *base, enum mr_image_simd simd,
                    const struct sample *s, uint64_t key, const uint8_t *expected)
{
    struct mr_decoder_opts o = *base;
    struct mr_decoder *d = NULL;
    o.simd = simd;
    int r = mr_decoder_new(&o, &d);
    if (r == -ENOTSUP)
        return;
    assert_int_equal(r, 0);
    struct slot slot = new_slot(&o, o.dtype == MR_DT_U8 ? key % 64 : key % 16 * 4);
    assert_int_equal(mr_decoder_run(d, s->bytes, s->len, key, slot.at), 0);
    assert_memory_equal(slot.at, expected, slot.bytes);
    check_guards(&slot);
    free(slot.memory);
    mr_decoder_free(d);
}

static void check_file(struct mr_decoder_opts *o, const struct sample *s, uint64_t key)
{
    struct mr_decoder *d = NULL;
    o->simd = MR_SIMD_SCALAR;
    assert_int_equal(mr_decoder_new(o, &d), 0);
    struct slot slot = new_slot(o, 0);
    assert_int_equal(mr_decoder_run(d, s->bytes, s->len, key, slot.at), 0);
    check_guards(&slot);
    mr_decoder_free(d);
    compare(o, MR_SIMD_AVX2, s, key, slot.at);
    compare(o, MR_SIMD_AVX512, s, key, slot.at);
    compare(o, MR_SIMD_BEST, s, key * 16, slot.at); /* 64-byte aligned; without a crop no key */
    free(slot.memory);
}

static void check_options(struct mr_decoder_opts *o)
{
    uint64_t key = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct photo p = sample_photo(sizes[i][0], sizes[i][1], (unsigned)i);
        struct sample files[] = {
            sample_jpeg(&p, &sample_jpeg_kinds[0]), sample_jpeg(&p, &sample_jpeg_kinds[2]),
            sample_jpeg(&p, &sample_jpeg_kinds[4]), sample_jpeg(&p, &sample_jpeg_kinds[8]),
            sample_png(&p, &sample_png_kinds[5], NULL)};
        for (size_t k = 0; k < sizeof files / sizeof files[0]; k++) {
            for (size_t j = 0; j < sizeof outputs / sizeof outputs[0]; j++, key++) {
                o->width = outputs[j][0];
                o->height = outputs[j][1];
                check_file(o, &files[k], key);
            }
            free(files[k].bytes);
        }
        free(p.rgb);
    }
}

/* The comparisons leave out what the processor lacks: say so. */
static void need_level(enum mr_image_simd simd, const char *name)
{
    struct mr_decoder *d = NULL;
    int r = mr_decoder_new(&(struct mr_decoder_opts){.simd = simd}, &d);
    mr_decoder_free(d);
    if (r) {
        print_message("SKIP: no %s on this processor, its results are not compared\n", name);
        skip();
    }
}

static void avx2_is_among_those_compared(void **state)
{
    need_level(MR_SIMD_AVX2, "AVX2");
}

static void avx_512_is_among_those_compared(void **state)
{
    need_level(MR_SIMD_AVX512, "AVX-512");
}

static void all_types_and_layouts_are_equal_bit_for_bit(void **state)
{
    for (int v = 0; v < 16; v++) {
        struct mr_decoder_opts o = {.layout = v & 1 ? MR_IMAGE_NCHW : MR_IMAGE_NHWC,
                                    .dtype = v & 2 ? MR_DT_U8 : MR_DT_F32,
                                    .resize = v & 4 ? MR_RESIZE_AREA : MR_RESIZE_BILINEAR,
                                    .exact = v & 8};
        check_options(&o);
    }
}

static void normalised_values_are_equal_bit_for_bit(void **state)
{
    struct mr_decoder_opts o = {
        .layout = MR_IMAGE_NCHW, .mean = {0.485f, 0.456f, 0.406f}, .std = {0.229f, 0.224f, 0.225f}};
    check_options(&o);
}

static void crops_and_flips_are_equal_bit_for_bit(void **state)
{
    struct mr_decoder_opts o = {.augment = MR_AUGMENT_CROP_FLIP};
    struct photo p = sample_photo(333, 250, 9);
    for (const struct jpeg_kind *k = sample_jpeg_kinds; k->name; k++) {
        struct sample s = sample_jpeg(&p, k);
        for (uint64_t key = 0; key < 6; key++) {
            struct mr_decoder *d = NULL;
            o.width = 60;
            o.height = 50;
            o.simd = MR_SIMD_SCALAR;
            assert_int_equal(mr_decoder_new(&o, &d), 0);
            struct slot slot = new_slot(&o, 0);
            assert_int_equal(mr_decoder_run(d, s.bytes, s.len, key, slot.at), 0);
            mr_decoder_free(d);
            compare(&o, MR_SIMD_AVX2, &s, key, slot.at);
            compare(&o, MR_SIMD_AVX512, &s, key, slot.at);
            free(slot.memory);
        }
        free(s.bytes);
    }
    free(p.rgb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(avx2_is_among_those_compared),
        cmocka_unit_test(avx_512_is_among_those_compared),
        cmocka_unit_test(all_types_and_layouts_are_equal_bit_for_bit),
        cmocka_unit_test(normalised_values_are_equal_bit_for_bit),
        cmocka_unit_test(crops_and_flips_are_equal_bit_for_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
