/* test_image_pixels.c - decoded pixels against the naive reference: every kind of JPEG and PNG,
 * many sizes, both ways of resizing, every output layout. */
#include "image_reference.h"

#include <millrace/image.h>

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const unsigned sizes[][2] = {{1, 1},    {1, 7},     {7, 1},     {2, 2},    {3, 5},
                                    {8, 8},    {9, 17},    {16, 16},   {17, 33},  {63, 65},
                                    {100, 75}, {227, 149}, {500, 375}, {331, 500}};
#define N_SIZES (sizeof sizes / sizeof sizes[0])

static struct mr_decoder *new_decoder(const struct mr_decoder_opts *o)
{
    struct mr_decoder *d = NULL;
    assert_int_equal(mr_decoder_new(o, &d), 0);
    return d;
}

/* Decode with a decoder that may have seen other images; free(). */
static float *decode(struct mr_decoder *d, const struct mr_decoder_opts *o, const struct sample *s,
                     const char *what)
{
    float *slot = malloc(mr_decoder_bytes(o));
    int r = mr_decoder_run(d, s->bytes, s->len, 0, slot);
    if (r)
        fail_msg("%s: %d, %s", what, r, mr_decoder_error(d));
    assert_string_equal(mr_decoder_error(d), "");
    return slot;
}

struct tally {
    double sum, worst, max;
    unsigned n;
};

static void check_one(struct mr_decoder *d, const struct mr_decoder_opts *o,
                      const struct jpeg_kind *k, struct photo made, struct tally *t)
{
    char what[64];
    snprintf(what, sizeof what, "%s %u x %u", k->name, made.width, made.height);
    struct sample s = sample_jpeg(&made, k);
    struct photo full = reference_jpeg(&s);
    float *expected = o->resize == MR_RESIZE_AREA ? reference_area(&full, o->width, o->height)
                                                  : reference_bilinear(&full, o->width, o->height);
    float *pixels = decode(d, o, &s, what);
    struct difference e = reference_compare(pixels, expected, (size_t)o->width * o->height * 3);
    t->sum += e.mean;
    t->n++;
    t->worst = e.mean > t->worst ? e.mean : t->worst;
    t->max = e.max > t->max ? e.max : t->max;
    if (getenv("MILLRACE_TEST_VERBOSE"))
        printf("%-32s mean %.3f max %.1f\n", what, e.mean, e.max);
    free(pixels);
    free(expected);
    free(full.rgb);
    free(s.bytes);
    free(made.rgb);
}

static void print_tally(const struct tally *t)
{
    printf("%u images: mean %.3f, worst mean %.3f, worst pixel %.2f\n", t->n, t->sum / t->n,
           t->worst, t->max);
}

static struct tally check_all(const struct mr_decoder_opts *o)
{
    struct tally t = {0};
    struct mr_decoder *d = new_decoder(o);
    for (const struct jpeg_kind *k = sample_jpeg_kinds; k->name; k++)
        for (size_t i = 0; i < N_SIZES; i++)
            check_one(d, o, k,
                      sample_photo(sizes[i][0], sizes[i][1], sizes[i][0] * 7 + sizes[i][1]), &t);
    mr_decoder_free(d);
    print_tally(&t);
    return t;
}

static void exact_is_within_one_of_the_reference_everywhere(void **state)
{
    struct tally t = check_all(&(struct mr_decoder_opts){.width = 224, .height = 224, .exact = 1});
    assert_true(t.max < 1);
    t = check_all(&(struct mr_decoder_opts){.width = 31, .height = 50, .exact = 1});
    assert_true(t.max < 1);
}

static void planes_first_differs_by_one_at_most_on_average(void **state)
{
    struct tally t = check_all(&(struct mr_decoder_opts){.width = 224, .height = 224});
    assert_true(t.sum / t.n <= 1 && t.worst <= 2);
    t = check_all(&(struct mr_decoder_opts){.width = 33, .height = 20});
    assert_true(t.sum / t.n <= 1 && t.worst <= 2);
}

static void area_with_scaled_transforms_differs_by_two_at_most_on_average(void **state)
{
    struct tally t =
        check_all(&(struct mr_decoder_opts){.width = 224, .height = 224, .resize = MR_RESIZE_AREA});
    assert_true(t.sum / t.n <= 2 && t.worst <= 2);
    t = check_all(&(struct mr_decoder_opts){.width = 40, .height = 30, .resize = MR_RESIZE_AREA});
    assert_true(t.sum / t.n <= 2 && t.worst <= 2);
}

/* Shrunk by more than the inverse transform does in one step, at ratios that are no whole numbers:
 * nothing but edges is the worst that can be given to it. */
static void area_of_sharp_images_differs_by_two_at_most_on_average(void **state)
{
    static const unsigned photos[][2] = {{500, 375}, {331, 500}, {300, 197}, {640, 427}};
    static const int kinds[] = {0, 2, 8, 14}; /* 4:4:4, 4:2:0, grey, progressive */
    static const unsigned sides[] = {16, 32, 48, 64, 100, 224};
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++) {
        struct mr_decoder_opts o = {
            .width = sides[i], .height = sides[i], .resize = MR_RESIZE_AREA};
        struct mr_decoder *d = new_decoder(&o);
        struct tally t = {0};
        for (unsigned k = 0; k < 4; k++)
            for (unsigned n = 0; n < 4; n++)
                check_one(d, &o, &sample_jpeg_kinds[kinds[k]],
                          sample_edges(photos[n][0], photos[n][1], k * 4 + n), &t);
        mr_decoder_free(d);
        print_tally(&t);
        if (t.sum / t.n > 2)
            fail_msg("to %u x %u: mean %g", o.width, o.height, t.sum / t.n);
    }
}

static void exact_area_is_within_one_of_the_reference_everywhere(void **state)
{
    struct mr_decoder_opts o = {.width = 40, .height = 30, .resize = MR_RESIZE_AREA, .exact = 1};
    assert_true(check_all(&o).max < 1);
}

/* The same image in every type and layout. */
static void layouts_and_types_hold_the_same_pixels(void **state)
{
    static const float mean[3] = {0.485f, 0.456f, 0.406f}, std[3] = {0.229f, 0.224f, 0.225f};
    struct mr_decoder_opts o = {.width = 37, .height = 21};
    struct photo made = sample_photo(101, 77, 5);
    struct sample s = sample_jpeg(&made, &sample_jpeg_kinds[2]);
    size_t n = 37 * 21;
    struct mr_decoder *d = new_decoder(&o);
    float *nhwc = decode(d, &o, &s, "nhwc");
    mr_decoder_free(d);
    for (int variant = 0; variant < 8; variant++) {
        o.layout = variant & 1 ? MR_IMAGE_NCHW : MR_IMAGE_NHWC;
        o.dtype = variant & 2 ? MR_DT_U8 : MR_DT_F32;
        memcpy(o.mean, mean, variant & 4 ? sizeof mean : 0);
        memcpy(o.std, std, variant & 4 ? sizeof std : 0);
        assert_int_equal(mr_decoder_bytes(&o), n * 3 * (variant & 2 ? 1 : 4));
        d = new_decoder(&o);
        float *f = decode(d, &o, &s, "variant");
        const uint8_t *u = (const uint8_t *)f;
        for (size_t i = 0; i < n; i++)
            for (size_t c = 0; c < 3; c++) {
                size_t at = variant & 1 ? c * n + i : i * 3 + c;
                float v = nhwc[i * 3 + c];
                assert_true(v >= 0 && v <= 1);
                if (variant & 2)
                    assert_true(fabsf(u[at] - v * 255) <= 0.501f);
                else if (variant & 4)
                    assert_true(fabsf(f[at] - (v - mean[c]) / std[c]) < 1e-5f);
                else
                    assert_true(f[at] == v);
            }
        free(f);
        mr_decoder_free(d);
    }
    free(nhwc);
    free(s.bytes);
    free(made.rgb);
}

static void a_rotation_noted_in_exif_is_ignored(void **state)
{
    /* APP1: "Exif", a little-endian TIFF header, one entry: 0x112, orientation, is 6. */
    static const uint8_t exif[36] = {0xff, 0xe1, 0,  34, 'E', 'x', 'i', 'f', 0, 0,
                                     'I',  'I',  42, 0,  8,   0,   0,   0,   1, 0,
                                     0x12, 1,    3,  0,  1,   0,   0,   0,   6, 0};
    struct mr_decoder_opts o = {.width = 30, .height = 20};
    struct photo p = sample_photo(90, 60, 3);
    struct mr_decoder *d = new_decoder(&o);
    for (int kind = 0; kind < 15; kind += 14) { /* by our decoder and by libjpeg-turbo */
        struct sample s = sample_jpeg(&p, &sample_jpeg_kinds[kind]), turned;
        turned = (struct sample){malloc(s.len + sizeof exif), s.len + sizeof exif};
        memcpy(turned.bytes, s.bytes, 2);
        memcpy(turned.bytes + 2, exif, sizeof exif);
        memcpy(turned.bytes + 2 + sizeof exif, s.bytes + 2, s.len - 2);
        float *as_is = decode(d, &o, &s, "as it is"), *noted = decode(d, &o, &turned, "EXIF");
        assert_int_equal(mr_decoder_path(d), kind ? MR_PATH_TURBO : MR_PATH_OWN);
        assert_memory_equal(as_is, noted, mr_decoder_bytes(&o));
        free(as_is);
        free(noted);
        free(s.bytes);
        free(turned.bytes);
    }
    free(p.rgb);
    mr_decoder_free(d);
}

static void white_is_one_and_black_is_zero(void **state)
{
    struct mr_decoder_opts o = {.width = 20, .height = 20};
    struct mr_decoder *d = new_decoder(&o);
    for (int level = 0; level < 256; level += 255)
        for (const struct jpeg_kind *k = sample_jpeg_kinds; k->name; k++) {
            struct photo p = {50, 50, malloc(7500)};
            memset(p.rgb, level, 7500);
            struct sample s = sample_jpeg(&p, k);
            float *f = decode(d, &o, &s, k->name);
            for (int i = 0; i < 1200; i++)
                assert_true(fabsf(f[i] - (float)level / 255) < 0.025f && f[i] >= 0 && f[i] <= 1);
            free(f);
            free(s.bytes);
            free(p.rgb);
        }
    mr_decoder_free(d);
}

static void every_kind_of_png_is_resized_from_its_own_pixels(void **state)
{
    struct mr_decoder_opts o = {.width = 50, .height = 33};
    struct mr_decoder *d = new_decoder(&o);
    for (const struct png_kind *k = sample_png_kinds; k->name; k++)
        for (size_t i = 0; i < N_SIZES; i++) {
            struct photo p = sample_photo(sizes[i][0], sizes[i][1], (unsigned)i), full = p;
            struct sample s = sample_png(&p, k, &full.rgb);
            float *expected = reference_bilinear(&full, o.width, o.height);
            float *f = decode(d, &o, &s, k->name);
            struct difference e = reference_compare(f, expected, 50 * 33 * 3);
            if (e.max > 0.1)
                fail_msg("%s %u x %u: off by %g", k->name, p.width, p.height, e.max);
            free(f);
            free(expected);
            free(full.rgb);
            free(p.rgb);
            free(s.bytes);
        }
    mr_decoder_free(d);
}

static void an_unchanged_size_copies_the_pixels(void **state)
{
    struct mr_decoder_opts o = {.width = 100, .height = 75, .dtype = MR_DT_U8};
    struct photo p = sample_photo(100, 75, 3);
    uint8_t *rgb;
    for (int resize = 0; resize < 2; resize++) {
        o.resize = resize ? MR_RESIZE_AREA : MR_RESIZE_BILINEAR;
        struct mr_decoder *d = new_decoder(&o);
        struct sample s = sample_png(&p, &sample_png_kinds[5], &rgb);
        uint8_t *u = (uint8_t *)decode(d, &o, &s, "png");
        assert_memory_equal(u, rgb, 100 * 75 * 3);
        free(u);
        free(rgb);
        free(s.bytes);
        mr_decoder_free(d);
    }
    free(p.rgb);
}

static void a_probe_tells_what_a_header_says(void **state)
{
    struct mr_decoder *d = new_decoder(&(struct mr_decoder_opts){.max_pixels = 1});
    struct photo p = sample_photo(77, 31, 1);
    struct mr_image_info info;
    for (const struct jpeg_kind *k = sample_jpeg_kinds; k->name; k++) {
        struct sample s = sample_jpeg(&p, k);
        assert_int_equal(mr_decoder_probe(d, s.bytes, s.len, &info), 0);
        assert_int_equal(info.format, MR_IMAGE_JPEG);
        assert_true(info.width == 77 && info.height == 31 && info.bits == 8);
        assert_int_equal(info.progressive, k->progressive);
        static const unsigned n[] = {3, 1, 3, 4, 4};
        assert_int_equal(info.components, n[k->colour]);
        if (k->name[1] == ':')
            assert_string_equal(info.sampling, k->name);
        free(s.bytes);
    }
    for (const struct png_kind *k = sample_png_kinds; k->name; k++) {
        struct sample s = sample_png(&p, k, NULL);
        assert_int_equal(mr_decoder_probe(d, s.bytes, s.len, &info), 0);
        assert_true(info.format == MR_IMAGE_PNG && info.width == 77 && info.height == 31);
        assert_true((int)info.bits == k->bits && info.progressive == k->interlaced);
        assert_string_equal(info.sampling, "");
        free(s.bytes);
    }
    free(p.rgb);
    mr_decoder_free(d);
}

static void the_two_times_are_counted(void **state)
{
    struct mr_decoder_times t;
    struct mr_decoder_opts o = {0};
    struct mr_decoder *d = new_decoder(NULL);
    struct photo p = sample_photo(300, 300, 1);
    struct sample s = sample_jpeg(&p, &sample_jpeg_kinds[0]);
    free(decode(d, &o, &s, "times"));
    mr_decoder_get_times(d, &t);
    assert_true(t.decode_ns > 0 && t.resize_ns > 0);
    assert_true(t.decode_ns < 10000000000u && t.resize_ns < 10000000000u);
    free(s.bytes);
    free(p.rgb);
    mr_decoder_free(d);
}

static void options_out_of_range_are_refused(void **state)
{
    struct mr_decoder *d = NULL;
    struct mr_decoder_opts bad[] = {{.width = 16385},
                                    {.height = 1u << 31},
                                    {.std = {-1, 1, 1}},
                                    {.mean = {NAN}},
                                    {.dtype = (enum mr_dtype)77},
                                    {.dtype = MR_DT_F64},
                                    {.resize = (enum mr_image_resize)7}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(mr_decoder_new(&bad[i], &d), -EINVAL);
        assert_int_equal(mr_decoder_bytes(&bad[i]), 0);
    }
    assert_int_equal(mr_decoder_bytes(NULL), 224 * 224 * 3 * 4);
    mr_decoder_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_is_within_one_of_the_reference_everywhere),
        cmocka_unit_test(planes_first_differs_by_one_at_most_on_average),
        cmocka_unit_test(area_with_scaled_transforms_differs_by_two_at_most_on_average),
        cmocka_unit_test(area_of_sharp_images_differs_by_two_at_most_on_average),
        cmocka_unit_test(exact_area_is_within_one_of_the_reference_everywhere),
        cmocka_unit_test(layouts_and_types_hold_the_same_pixels),
        cmocka_unit_test(a_rotation_noted_in_exif_is_ignored),
        cmocka_unit_test(white_is_one_and_black_is_zero),
        cmocka_unit_test(every_kind_of_png_is_resized_from_its_own_pixels),
        cmocka_unit_test(an_unchanged_size_copies_the_pixels),
        cmocka_unit_test(a_probe_tells_what_a_header_says),
        cmocka_unit_test(the_two_times_are_counted),
        cmocka_unit_test(options_out_of_range_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
