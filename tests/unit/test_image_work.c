/* test_image_work.c - what an image costs is in proportion to its pixels and those of the output,
 * whatever its shape: multiplications are counted, and bytes of memory. */
#include "image_reference.h"
#include "plane_resizer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_SIDE 65535

static uint64_t n_multiplications;

static void count_rows(const uint8_t *const *rows, const int16_t *weights, uint32_t n_pairs,
                       uint32_t first, uint32_t end, int16_t *out)
{
    (void)rows, (void)weights, (void)out;
    n_multiplications += (uint64_t)2 * n_pairs * (end - first);
}

static void count_columns(const int16_t *in, const struct mr_axis *axis, int16_t *out)
{
    (void)in, (void)out;
    uint64_t n = (axis->spec.n_out + MR_AXIS_LANES - 1) / MR_AXIS_LANES * MR_AXIS_LANES;
    n_multiplications += n * axis->n_pairs * 2;
}

static void count_values(const int16_t *const *rows, const int16_t *weights, uint32_t n_taps,
                         uint32_t n, int16_t *out)
{
    (void)rows, (void)weights, (void)out;
    n_multiplications += (uint64_t)n_taps * n;
}

static void store_nothing(const int16_t *const rgb[3], const struct mr_row_out *out)
{
    (void)rgb, (void)out;
}

static void finish_nothing(void)
{
}

static const struct mr_kernels counting = {
    .name = "counting",
    .blend_rows = count_rows,
    .blend_columns = count_columns,
    .blend_values = count_values,
    .finish = finish_nothing,
    .store_f32_nchw = store_nothing,
    .store_f32_nhwc = store_nothing,
    .store_u8_nchw = store_nothing,
    .store_u8_nhwc = store_nothing,
};

static size_t bytes_of(const struct mr_resizer *r)
{
    size_t n = r->due.cap + r->blended.cap + r->narrow.cap + r->tap_rows.cap;
    for (int i = 0; i < 3; i++)
        n += r->planes[i].ring.cap + r->planes[i].narrow_ring.cap +
             r->planes[i].own_across.memory.cap + r->planes[i].own_down.memory.cap;
    return n;
}

/* Resize one grey plane and compare what that took with its samples and the output's. */
static void check_shape(const struct mr_region *part, uint32_t width, uint32_t height,
                        const struct mr_decoder_opts *o)
{
    struct mr_resizer r;
    struct mr_picture pic = {.colour = MR_COLOUR_GREY,
                             .width = width,
                             .height = height,
                             .shrink = 1,
                             .region = *part,
                             .planes[0] = {.cols = width,
                                           .rows = height,
                                           .stored_cols = width,
                                           .stripe_rows = 1,
                                           .h_num = 1,
                                           .h_den = 1,
                                           .v_num = 1,
                                           .v_den = 1}};
    mr_resizer_init(&r, o, &counting);
    assert_int_equal(mr_resizer_begin(&r, &pic), 0);
    n_multiplications = 0;
    while (!mr_resizer_done(&r))
        mr_resizer_advance(&r);
    uint64_t read = (uint64_t)part->width * part->height;
    uint64_t written =
        (uint64_t)(o->width + MR_AXIS_LANES - 1) / MR_AXIS_LANES * MR_AXIS_LANES * o->height;
    if (n_multiplications > MR_RESIZER_MOST_WORK * (read + written))
        fail_msg("%u x %u of %u x %u to %u x %u, %s: %llu multiplications for %llu samples",
                 part->width, part->height, width, height, o->width, o->height,
                 o->resize == MR_RESIZE_AREA ? "area" : "bilinear",
                 (unsigned long long)n_multiplications, (unsigned long long)(read + written));
    /* Rows of the picture, weights of 16 outputs at least, and pages that are not full. */
    size_t rows = (size_t)height / o->height + 4, sides = (size_t)width + height;
    size_t most =
        rows * (width + 1024 + 8 * (size_t)o->width) + 64 * (sides + o->width + o->height) + 65536;
    if (bytes_of(&r) > most)
        fail_msg("%u x %u to %u x %u: %zu bytes, should be %zu at most", width, height, o->width,
                 o->height, bytes_of(&r), most);
    mr_resizer_fini(&r);
}

/* A side: small, or anything, or as long as it may be. */
static uint32_t a_side(uint64_t *x, uint32_t most)
{
    static const uint32_t below[] = {4, 40, 400, 4000, MAX_SIDE};
    uint32_t n = below[sample_random(x) % 5];
    n = n < most ? n : most;
    return sample_random(x) % 8 ? 1 + sample_random(x) % n : n;
}

static void work_is_in_proportion_to_pixels(void **state)
{
    uint64_t x = 3;
    unsigned n_columns_first = 0;
    (void)state;
    for (unsigned i = 0; i < 4000; i++) {
        uint32_t width = a_side(&x, MAX_SIDE), height = a_side(&x, (1 << 22) / width + 1);
        struct mr_decoder_opts o = {.width = 1 + sample_random(&x) % 500,
                                    .height = 1 + sample_random(&x) % 500,
                                    .resize = i % 2 ? MR_RESIZE_AREA : MR_RESIZE_BILINEAR};
        struct mr_region part = {.width = 1 + sample_random(&x) % width,
                                 .height = 1 + sample_random(&x) % height};
        if (i % 3)
            part = (struct mr_region){.width = width, .height = height};
        part.x = sample_random(&x) % (width - part.width + 1);
        part.y = sample_random(&x) % (height - part.height + 1);
        check_shape(&part, width, height, &o);
        n_columns_first += width > 32 * height * o.width / o.height;
    }
    assert_true(n_columns_first > 100);
}

static void the_widest_image_costs_what_its_pixels_do(void **state)
{
    static const uint32_t sides[][2] = {
        {MAX_SIDE, 1}, {1, MAX_SIDE}, {MAX_SIDE, 2}, {MAX_SIDE, 64}};
    (void)state;
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++)
        for (int area = 0; area < 2; area++) {
            struct mr_decoder_opts o = {
                .width = 224, .height = 224, .resize = area ? MR_RESIZE_AREA : MR_RESIZE_BILINEAR};
            struct mr_region all = {.width = sides[i][0], .height = sides[i][1]};
            check_shape(&all, all.width, all.height, &o);
        }
}

/* Columns first or rows first: the same picture but for rounding. */
static void wide_images_are_resized_as_all_others_are(void **state)
{
    static const unsigned sizes[][2] = {{9000, 1}, {9000, 2}, {20000, 3}};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int v = 0; v < 4; v++) {
            struct mr_decoder_opts o = {.width = v & 2 ? 224 : 19,
                                        .height = 224,
                                        .resize = v & 1 ? MR_RESIZE_AREA : MR_RESIZE_BILINEAR};
            struct photo p = sample_photo(sizes[i][0], sizes[i][1], (unsigned)i);
            struct sample s = sample_png(&p, &sample_png_kinds[5], NULL);
            struct mr_decoder *d = NULL;
            float *pixels = malloc(mr_decoder_bytes(&o));
            float *expected = v & 1 ? reference_area(&p, o.width, o.height)
                                    : reference_bilinear(&p, o.width, o.height);
            assert_int_equal(mr_decoder_new(&o, &d, NULL), 0);
            assert_int_equal(mr_decoder_run(d, s.bytes, s.len, 0, pixels), 0);
            struct difference e =
                reference_compare(pixels, expected, (size_t)o.width * o.height * 3);
            if (e.mean > 0.05 || e.max > 0.6)
                fail_msg("%u x %u, variant %d: mean %.3f max %.3f", p.width, p.height, v, e.mean,
                         e.max);
            mr_decoder_free(d);
            free(pixels);
            free(expected);
            free(s.bytes);
            free(p.rgb);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_in_proportion_to_pixels),
        cmocka_unit_test(the_widest_image_costs_what_its_pixels_do),
        cmocka_unit_test(wide_images_are_resized_as_all_others_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
