/* test_jpeg_encode.c - the markers that options ask for are there, and nothing of an image stays
 * behind in the encoder for the next one. */
#include "jpeg_encode.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <cmocka.h>

#define WIDTH  67
#define HEIGHT 35

static uint8_t rgb[HEIGHT * WIDTH * 3], planes[3][HEIGHT * WIDTH];

static struct mr_pixels rgb_pixels(void)
{
    return (struct mr_pixels){MR_PIXELS_RGB, WIDTH, HEIGHT, WIDTH * 3, {rgb, NULL, NULL}};
}

static struct mr_pixels ycc_pixels(void)
{
    return (struct mr_pixels){
        MR_PIXELS_YCC, WIDTH, HEIGHT, WIDTH, {planes[0], planes[1], planes[2]}};
}

static int set_up(void **state)
{
    for (unsigned i = 0; i < sizeof rgb; i++)
        rgb[i] = (uint8_t)(i * i / 97 + i % 13);
    for (unsigned i = 0; i < HEIGHT * WIDTH; i++)
        for (unsigned k = 0; k < 3; k++)
            planes[k][i] = (uint8_t)(90 + k * 20 + i % (40 + k));
    return mr_jpeg_encoder_new((struct mr_jpeg_encoder **)state);
}

static int tear_down(void **state)
{
    mr_jpeg_encoder_free(*state);
    return 0;
}

/* What the markers before the pixels say. */
struct markers {
    int sof, n_components, sampling, width, height, restart, n_comments, comment_bytes;
};

static struct markers markers_of(const uint8_t *b, size_t n)
{
    struct markers m = {0};
    assert_true(n > 4 && b[0] == 0xff && b[1] == 0xd8 && b[n - 2] == 0xff && b[n - 1] == 0xd9);
    for (size_t i = 2; i + 4 < n && b[i + 1] != 0xda;
         i += 2u + (size_t)(b[i + 2] << 8 | b[i + 3])) {
        const uint8_t *s = b + i + 4;
        assert_int_equal(b[i], 0xff);
        if (b[i + 1] == 0xc0 || b[i + 1] == 0xc2)
            m.sof = b[i + 1], m.height = s[1] << 8 | s[2], m.width = s[3] << 8 | s[4],
            m.n_components = s[5], m.sampling = s[7];
        if (b[i + 1] == 0xdd)
            m.restart = s[0] << 8 | s[1];
        if (b[i + 1] == 0xfe)
            m.n_comments++, m.comment_bytes += (b[i + 2] << 8 | b[i + 3]) - 2;
    }
    return m;
}

static struct markers encode(struct mr_jpeg_encoder *e, struct mr_pixels px, struct mr_jpeg_opts o)
{
    const uint8_t *bytes;
    size_t n;
    assert_int_equal(mr_jpeg_encode(e, &px, &o, &bytes, &n, NULL), 0);
    return markers_of(bytes, n);
}

static void every_sampling_is_written_from_both_layouts(void **state)
{
    static const int sampling[] = {0x11, 0x22, 0x21, 0x11}, components[] = {3, 3, 3, 1};
    for (int chroma = 0; chroma < 4; chroma++)
        for (int layout = 0; layout < 2; layout++) {
            struct mr_jpeg_opts o = {.chroma = (enum mr_chroma)chroma};
            struct markers m = encode(*state, layout ? ycc_pixels() : rgb_pixels(), o);
            assert_int_equal(m.sof, 0xc0);
            assert_int_equal(m.width, WIDTH);
            assert_int_equal(m.height, HEIGHT);
            assert_int_equal(m.n_components, components[chroma]);
            assert_int_equal(m.sampling, sampling[chroma]);
        }
}

static void progressive_and_restart_markers_are_written_when_asked_for(void **state)
{
    struct mr_jpeg_opts o = {.progressive = 1, .restart_interval = 5};
    struct markers m = encode(*state, rgb_pixels(), o);
    assert_int_equal(m.sof, 0xc2);
    assert_int_equal(m.restart, 5);
    m = encode(*state, rgb_pixels(), (struct mr_jpeg_opts){0});
    assert_int_equal(m.sof, 0xc0);
    assert_int_equal(m.restart, 0);
}

static void a_long_comment_takes_several_segments(void **state)
{
    char *text = calloc(1, 140000);
    struct mr_jpeg_opts o = {.comment = text, .comment_bytes = 140000};
    struct markers m = encode(*state, rgb_pixels(), o);
    assert_int_equal(m.n_comments, 3);
    assert_int_equal(m.comment_bytes, 140000);
    free(text);
}

static void an_image_does_not_depend_on_the_one_before(void **state)
{
    struct mr_pixels px = rgb_pixels(), other = ycc_pixels();
    struct mr_jpeg_opts plain = {.quality = 90}, own = {.quality = 30, .optimize = 1};
    const uint8_t *bytes;
    size_t n, m;
    assert_int_equal(mr_jpeg_encode(*state, &px, &plain, &bytes, &n, NULL), 0);
    uint8_t *first = malloc(n);
    memcpy(first, bytes, n);
    own.progressive = 1;
    encode(*state, other, own);
    own.progressive = 0;
    encode(*state, other, own);
    assert_int_equal(mr_jpeg_encode(*state, &px, &plain, &bytes, &m, NULL), 0);
    assert_int_equal(m, n);
    assert_memory_equal(bytes, first, n);
    free(first);
}

static void wrong_requests_fail_and_the_encoder_lives_on(void **state)
{
    struct mr_pixels px = rgb_pixels();
    struct mr_jpeg_opts o = {.quality = 101};
    struct mr_error err = {0};
    const uint8_t *bytes = NULL;
    size_t n = 5;
    assert_int_equal(mr_jpeg_encode(*state, &px, &o, &bytes, &n, &err), -EINVAL);
    px.width = 0;
    err.code = 0;
    assert_int_equal(mr_jpeg_encode(*state, &px, NULL, &bytes, &n, &err), -EINVAL);
    assert_non_null(strstr(err.text, "JPEG encoder"));
    px.width = 70000;
    assert_int_equal(mr_jpeg_encode(*state, &px, NULL, &bytes, &n, NULL), -EINVAL);
    assert_null(bytes);
    assert_int_equal(n, 5);
    encode(*state, rgb_pixels(), (struct mr_jpeg_opts){0});
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(every_sampling_is_written_from_both_layouts),
        TEST(progressive_and_restart_markers_are_written_when_asked_for),
        TEST(a_long_comment_takes_several_segments),
        TEST(an_image_does_not_depend_on_the_one_before),
        TEST(wrong_requests_fail_and_the_encoder_lives_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
