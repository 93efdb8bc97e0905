/* test_photo_maker.c - the photos have the sizes, shapes and sampling of the model, and classes
 * that can be told apart.
 *
 * Classes: a photo becomes 8 x 8 mean colours, as green and what red and blue differ from it, and
 * the directions of its edges in four quarters; a held-out photo belongs to the class whose mean
 * is nearest.  What so simple a rule can tell, a network can. */
#include "digest.h"
#include "draw.h"
#include "painter.h"
#include "photo_maker.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

#include <setjmp.h>
#include <cmocka.h>

#define N_CLASSES  102 /* of Caltech-101 */
#define N_TRAIN    6
#define N_HELD     2
#define GRID       8
#define SIDE       64 /* edges are looked for at this size */
#define N_TURNS    8
#define N_FEATURES (GRID * GRID * 3 + 4 * N_TURNS)

static int set_up(void **state)
{
    return mr_photo_maker_new((struct mr_photo_maker **)state);
}

static int tear_down(void **state)
{
    mr_photo_maker_free(*state);
    return 0;
}

static size_t make(struct mr_photo_maker *m, enum mr_preset preset, uint64_t index,
                   uint32_t class_id, struct mr_photo_plan *plan, const uint8_t **bytes)
{
    size_t n;
    mr_photo_plan_draw(preset, 1, index, plan);
    assert_int_equal(mr_photo_make(m, plan, mr_mix(index), class_id, bytes, &n, NULL), 0);
    return n;
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Quantiles of n sizes within 10 percent of those that the real sets were measured to have. */
static void expect_quantiles(enum mr_preset preset, uint32_t *sizes, size_t n)
{
    static const unsigned percents[] = {10, 25, 50, 75, 90};
    static const double wanted[MR_N_PRESETS][5] = {{25827, 60444, 113364, 140761, 187953},
                                                   {7224, 9440, 12865, 17253, 22773}};
    qsort(sizes, n, sizeof *sizes, by_value);
    for (int i = 0; i < 5; i++) {
        double want = wanted[preset][i];
        double got = sizes[n * percents[i] / 100];
        if (fabs(got / want - 1) > 0.1)
            fail_msg("%s p%u: %.0f instead of %.0f", mr_preset_name(preset), percents[i], got,
                     want);
    }
}

static void file_sizes_have_the_model_s_quantiles(void **state)
{
    enum { N = 100 };
    uint32_t sizes[N];
    struct mr_photo_plan plan;
    const uint8_t *bytes;
    for (int preset = 0; preset < MR_N_PRESETS; preset++) {
        for (unsigned i = 0; i < N; i++)
            sizes[i] = (uint32_t)make(*state, (enum mr_preset)preset, i, i, &plan, &bytes);
        expect_quantiles((enum mr_preset)preset, sizes, N);
    }
}

static void plans_have_the_model_s_quantiles_under_every_seed(void **state)
{
    enum { N = 300 };
    uint32_t sizes[N];
    (void)state;
    for (int preset = 0; preset < MR_N_PRESETS; preset++)
        for (uint64_t seed = 0; seed < 5; seed++) {
            for (unsigned i = 0; i < N; i++) {
                struct mr_photo_plan plan;
                mr_photo_plan_draw((enum mr_preset)preset, seed, i, &plan);
                sizes[i] = plan.n_bytes;
                assert_true(plan.n_bytes > plan.comment_bytes + 1000);
            }
            expect_quantiles((enum mr_preset)preset, sizes, N);
        }
}

static void a_photo_has_its_plan_s_shape_and_sampling(void **state)
{
    static const int sampling_of[] = {TJSAMP_444, TJSAMP_420, TJSAMP_422, TJSAMP_GRAY};
    tjhandle tj = tjInitDecompress();
    for (int preset = 0; preset < MR_N_PRESETS; preset++)
        for (unsigned i = 0; i < 30; i++) {
            struct mr_photo_plan plan;
            const uint8_t *bytes;
            int w, h, sampling, space;
            size_t n = make(*state, (enum mr_preset)preset, i, i, &plan, &bytes);
            assert_int_equal(tjDecompressHeader3(tj, bytes, n, &w, &h, &sampling, &space), 0);
            assert_int_equal(w, plan.width);
            assert_int_equal(h, plan.height);
            assert_int_equal(sampling, sampling_of[plan.chroma]);
        }
    tjDestroy(tj);
}

static uint64_t picture_digest(struct mr_painter *p, struct mr_scene scene, int sample)
{
    struct mr_digest d;
    struct mr_pixels px;
    mr_digest_init(&d);
    assert_int_equal(mr_painter_paint(p, &scene), 0);
    if (sample)
        mr_painter_mix_sample(p, 3 * MR_GAIN_ONE, 4, &px);
    else
        mr_painter_mix(p, 3 * MR_GAIN_ONE, &px);
    for (int k = 0; k < 3; k++)
        for (unsigned y = 0; y < px.height; y++)
            mr_digest_add(&d, px.plane[k] + y * px.stride_bytes, px.width);
    return mr_digest_value(&d);
}

static void pictures_are_the_same_whatever_the_compiler(void **state)
{
    struct mr_scene scene = {.key = 1, .width = 400, .height = 301, .busy = 200};
    struct mr_digest all;
    struct mr_painter *p;
    (void)state;
    mr_digest_init(&all);
    assert_int_equal(mr_painter_new(&p), 0);
    for (scene.class_id = 0; scene.class_id < 16; scene.class_id++) {
        scene.plain = scene.class_id % 4 == 3;
        mr_digest_add_u64(&all, picture_digest(p, scene, 0));
        mr_digest_add_u64(&all, picture_digest(p, scene, 1));
    }
    mr_painter_free(p);
    assert_int_equal(mr_digest_value(&all), 0x2a4a6b2afff8898du);
}

static void pictures_may_have_any_shape(void **state)
{
    static const unsigned shapes[][2] = {{1, 1}, {1, 700}, {700, 1}, {7, 3}, {65, 17}, {2000, 19}};
    struct mr_scene scene = {.key = 1, .class_id = 4, .busy = 255};
    struct mr_painter *p;
    (void)state;
    assert_int_equal(mr_painter_new(&p), 0);
    assert_true(mr_painter_paint(p, &scene) < 0);
    for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        scene.width = shapes[i][0];
        scene.height = shapes[i][1];
        assert_int_equal(picture_digest(p, scene, 0), picture_digest(p, scene, 0));
        picture_digest(p, scene, 1);
    }
    mr_painter_free(p);
}

/* Mean colour (channel 0 .. 2) of cell (x, y) of n x n cells. */
static double cell(const uint8_t *rgb, int w, int h, int n, int x, int y, int channel)
{
    double sum = 0;
    int count = 0;
    for (int j = y * h / n; j < (y + 1) * h / n; j++)
        for (int i = x * w / n; i < (x + 1) * w / n; i++, count++)
            sum += rgb[(j * w + i) * 3 + channel];
    return sum / (count ? count : 1) / 255;
}

static void add_edges(const uint8_t *rgb, int w, int h, double *out)
{
    static double grey[SIDE][SIDE];
    double all = 1e-9;
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            grey[y][x] = cell(rgb, w, h, SIDE, x, y, 1);
    for (int y = 1; y < SIDE - 1; y++)
        for (int x = 1; x < SIDE - 1; x++) {
            double dx = grey[y][x + 1] - grey[y][x - 1], dy = grey[y + 1][x] - grey[y - 1][x];
            int turn = (int)((atan2(dy, dx) / M_PI + 1) * N_TURNS) % N_TURNS;
            int quarter = y * 2 / SIDE * 2 + x * 2 / SIDE;
            out[quarter * N_TURNS + turn] += hypot(dx, dy);
            all += hypot(dx, dy);
        }
    for (int i = 0; i < 4 * N_TURNS; i++)
        out[i] *= 3 / all;
}

static void features(tjhandle tj, const uint8_t *bytes, size_t n, double *out)
{
    int w, h, sampling, space;
    memset(out, 0, N_FEATURES * sizeof *out);
    assert_int_equal(tjDecompressHeader3(tj, bytes, n, &w, &h, &sampling, &space), 0);
    uint8_t *rgb = malloc((size_t)w * (size_t)h * 3);
    assert_non_null(rgb);
    assert_int_equal(tjDecompress2(tj, bytes, n, rgb, w, 0, h, TJPF_RGB, 0), 0);
    for (int i = 0; i < GRID * GRID; i++) {
        int x = i % GRID, y = i / GRID;
        double green = cell(rgb, w, h, GRID, x, y, 1);
        out[3 * i] = green - cell(rgb, w, h, 1, 0, 0, 1);
        out[3 * i + 1] = 3 * (cell(rgb, w, h, GRID, x, y, 0) - green);
        out[3 * i + 2] = 3 * (cell(rgb, w, h, GRID, x, y, 2) - green);
    }
    add_edges(rgb, w, h, out + GRID * GRID * 3);
    free(rgb);
}

static int nearest(double (*mean)[N_FEATURES], const double *f)
{
    int best = 0;
    double least = INFINITY;
    for (int k = 0; k < N_CLASSES; k++) {
        double sum = 0;
        for (int i = 0; i < N_FEATURES; i++)
            sum += (mean[k][i] - f[i]) * (mean[k][i] - f[i]);
        if (sum < least)
            least = sum, best = k;
    }
    return best;
}

static void classes_can_be_told_apart_on_held_out_photos(void **state)
{
    static double mean[N_CLASSES][N_FEATURES];
    double f[N_FEATURES];
    tjhandle tj = tjInitDecompress();
    int right = 0;
    for (int i = 0; i < N_CLASSES * (N_TRAIN + N_HELD); i++) {
        struct mr_photo_plan plan;
        const uint8_t *bytes;
        int k = i % N_CLASSES;
        size_t n = make(*state, MR_PRESET_CALTECH101, (uint64_t)i, (uint32_t)k, &plan, &bytes);
        features(tj, bytes, n, f);
        if (i >= N_CLASSES * N_TRAIN)
            right += nearest(mean, f) == k;
        else
            for (int j = 0; j < N_FEATURES; j++)
                mean[k][j] += f[j] / N_TRAIN;
    }
    tjDestroy(tj);
    print_message("%d of %d right, chance is %d\n", right, N_CLASSES * N_HELD, N_HELD);
    assert_true(right * 100 > 50 * N_CLASSES * N_HELD);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(file_sizes_have_the_model_s_quantiles),
        TEST(plans_have_the_model_s_quantiles_under_every_seed),
        TEST(a_photo_has_its_plan_s_shape_and_sampling),
        TEST(pictures_are_the_same_whatever_the_compiler),
        TEST(pictures_may_have_any_shape),
        TEST(classes_can_be_told_apart_on_held_out_photos),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
