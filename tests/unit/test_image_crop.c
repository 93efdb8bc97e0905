/* test_image_crop.c - random crops: their distribution, and that a cropped decode shows the same
 * pixels as cropping the whole image. */
#include "image_reference.h"
#include "random_crop.h"

#include <millrace/image.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define N 20000

static void crops_have_the_asked_shares_and_ratios(void **state)
{
    double sum = 0, log_sum = 0, x_sum = 0, y_sum = 0;
    int flips = 0;
    for (uint64_t key = 0; key < N; key++) {
        struct mr_region g;
        mr_random_crop(key, 1000, 1000, &g);
        double share = g.width * (double)g.height / 1e6, ratio = (double)g.width / g.height;
        assert_true(g.x + g.width <= 1000 && g.y + g.height <= 1000);
        assert_true(share > 0.079 && ratio > 0.745 && ratio < 1.345);
        sum += share / N;
        log_sum += log(ratio) / N;
        flips += g.flip;
        if (g.width < 1000)
            x_sum += (double)g.x / (1000 - g.width) / N;
        if (g.height < 1000)
            y_sum += (double)g.y / (1000 - g.height) / N;
    }
    /* Shares are uniform but for the wide and tall ones that do not fit. */
    assert_true(sum > 0.44 && sum < 0.54);
    assert_true(fabs(log_sum) < 0.01);
    assert_true(fabs(x_sum - 0.5) < 0.02 && fabs(y_sum - 0.5) < 0.02);
    assert_true(abs(flips - N / 2) < N / 50);
}

static void where_nothing_fits_the_centre_is_taken(void **state)
{
    struct mr_region g;
    for (uint64_t key = 0; key < 100; key++) {
        mr_random_crop(key, 10000, 10, &g);
        assert_true(g.y + g.height <= 10 && g.height >= 1 && g.width <= 13);
        mr_random_crop(key, 3, 5000, &g);
        assert_true(g.x + g.width <= 3 && g.width >= 1 && g.height <= 4);
        mr_random_crop(key, 1, 1, &g);
        assert_true(g.x == 0 && g.y == 0 && g.width == 1 && g.height == 1);
    }
}

/* The numbers are part of what a seed means: a change here changes every run. */
static void a_key_selects_the_same_part_for_ever(void **state)
{
    struct mr_region g;
    uint64_t sum = 0;
    for (uint64_t key = 0; key < 1000; key++) {
        mr_random_crop(key * 0x9e3779b97f4a7c15u, 500, 375, &g);
        sum = sum * 31 + ((uint64_t)g.x << 48 | (uint64_t)g.y << 32 | g.width << 16 |
                          g.height << 1 | (unsigned)g.flip);
    }
    assert_true(sum == 0x4f6d57134bef6e10u);
}

static void check_crops(const struct mr_decoder_opts *o, double mean_limit)
{
    struct mr_decoder *d = NULL;
    struct photo p = sample_photo(350, 260, 2);
    size_t n = (size_t)o->width * o->height * 3;
    float *slot = malloc(mr_decoder_bytes(o));
    assert_int_equal(mr_decoder_new(o, &d, NULL), 0);
    for (const struct jpeg_kind *k = sample_jpeg_kinds; k->name; k++) {
        struct sample s = sample_jpeg(&p, k);
        struct photo full = reference_jpeg(&s);
        for (uint64_t key = 0; key < 20; key++) {
            struct mr_region g;
            mr_random_crop(key, 350, 260, &g);
            struct photo part = reference_crop(&full, g.x, g.y, g.width, g.height, 0);
            float *expected = o->resize == MR_RESIZE_AREA
                                  ? reference_area(&part, o->width, o->height)
                                  : reference_bilinear(&part, o->width, o->height);
            assert_int_equal(mr_decoder_run(d, s.bytes, s.len, key, slot), 0);
            for (size_t i = 0; g.flip && i < n / 3; i++) { /* mirror it back */
                size_t x = i % o->width, other = i - x + o->width - 1 - x;
                for (size_t c = 0; c < 3 && other > i; c++) {
                    float t = slot[i * 3 + c];
                    slot[i * 3 + c] = slot[other * 3 + c];
                    slot[other * 3 + c] = t;
                }
            }
            struct difference e = reference_compare(slot, expected, n);
            if (e.mean > mean_limit || (o->exact && e.max > 0.1))
                fail_msg("%s, key %d: mean %g, max %g", k->name, (int)key, e.mean, e.max);
            free(expected);
            free(part.rgb);
        }
        free(full.rgb);
        free(s.bytes);
    }
    free(slot);
    free(p.rgb);
    mr_decoder_free(d);
}

static void a_cropped_decode_shows_the_pixels_of_the_crop(void **state)
{
    struct mr_decoder_opts o = {.width = 50, .height = 40, .augment = MR_AUGMENT_CROP_FLIP};
    check_crops(&o, 1.0);
    o.exact = 1;
    check_crops(&o, 0.1);
}

static void a_cropped_area_decode_shows_the_pixels_of_the_crop(void **state)
{
    struct mr_decoder_opts o = {
        .width = 50, .height = 40, .augment = MR_AUGMENT_CROP_FLIP, .resize = MR_RESIZE_AREA};
    check_crops(&o, 2.0);
    o.exact = 1;
    check_crops(&o, 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crops_have_the_asked_shares_and_ratios),
        cmocka_unit_test(where_nothing_fits_the_centre_is_taken),
        cmocka_unit_test(a_key_selects_the_same_part_for_ever),
        cmocka_unit_test(a_cropped_decode_shows_the_pixels_of_the_crop),
        cmocka_unit_test(a_cropped_area_decode_shows_the_pixels_of_the_crop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
