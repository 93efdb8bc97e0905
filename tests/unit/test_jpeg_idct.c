/* test_jpeg_idct.c - every instruction set's inverse transform against the definition, on
 * coefficients of any size: those of images, and those that wrap and saturate. */
#include "image_samples.h"
#include "unit.h"

#include "jpeg_kernels.h"

#include <string.h>

#define ROUNDS 20000
#define STRIDE 48
#define GUARD  0xa5

static const enum mr_image_simd simds[] = {MR_SIMD_SCALAR, MR_SIMD_AVX2, MR_SIMD_AVX512};

static const uint8_t zigzag[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                   12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                   35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                   58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

struct unit {
    int16_t values[MR_JPEG_UNIT_VALUES] __attribute__((aligned(64)));
    int16_t quantiser[64] __attribute__((aligned(64)));
    uint8_t last[4];
};

/* Four blocks that end alike or each elsewhere: few or many coefficients, small or as large as 16
 * bits allow, in all of the rows that `last` leaves or only in the first. */
static struct unit random_unit(uint64_t *random)
{
    static const uint8_t lasts[] = {0, 1, 5, MR_IDCT_LOW, MR_IDCT_LOW + 1, 27, 63};
    struct unit u = {0};
    int alike = sample_random(random) % 2;
    for (unsigned block = 0; block < 4; block++)
        u.last[block] =
            alike && block ? u.last[0] : lasts[sample_random(random) % ARRAY_LEN(lasts)];
    unsigned bits = 1 + sample_random(random) % 16, one_in = 1 + sample_random(random) % 8;
    int row_only = sample_random(random) % 4 == 0;
    for (int i = 0; i < 64; i++)
        u.quantiser[i] =
            (int16_t)(1 + sample_random(random) % (sample_random(random) % 2 ? 255 : 8));
    for (unsigned block = 0; block < 4; block++)
        for (unsigned k = 0; k <= u.last[block]; k++) {
            unsigned row = zigzag[k] / 8, column = zigzag[k] % 8;
            if (sample_random(random) % one_in == 0 && (row == 0 || !row_only))
                u.values[row * 32 + block * 8 + column] =
                    (int16_t)((int32_t)(sample_random(random) << (32 - bits)) >> (32 - bits));
        }
    return u;
}

static void check_unit(const struct mr_jpeg_kernels *k, const struct unit *given)
{
    struct unit u = *given;
    uint8_t out[8 * STRIDE], expected[8 * STRIDE];
    memset(out, GUARD, sizeof out);
    memset(expected, GUARD, sizeof expected);
    for (int block = 0; block < 4; block++)
        mr_idct_block(u.values + block * 8, u.quantiser, expected + block * 8, STRIDE);
    k->idct(u.values, u.quantiser, u.last, out, STRIDE);
    assert_memory_equal(out, expected, sizeof out);
    for (int i = 0; i < MR_JPEG_UNIT_VALUES; i++)
        assert_int_equal(u.values[i], 0);
}

static void every_instruction_set_gives_what_is_defined(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(simds); i++) {
        const struct mr_kernels *resizing = mr_kernels_pick(simds[i]);
        uint64_t random = 1;
        for (int n = 0; resizing && n < ROUNDS; n++) {
            struct unit u = random_unit(&random);
            check_unit(mr_jpeg_kernels_pick(resizing), &u);
        }
    }
}

/* The largest sums that there can be: all signs those of one output's constants. */
static void the_largest_coefficients_are_right(void **state)
{
    for (unsigned signs = 0; signs < 256; signs++) {
        struct unit u = {.last = {63, 63, 63, 63}};
        for (int i = 0; i < 64; i++)
            u.quantiser[i] = 1;
        for (int i = 0; i < MR_JPEG_UNIT_VALUES; i++)
            u.values[i] = signs >> (i / 32) & 1 ? INT16_MIN : INT16_MAX;
        for (size_t i = 0; i < ARRAY_LEN(simds); i++)
            if (mr_kernels_pick(simds[i]))
                check_unit(mr_jpeg_kernels_pick(mr_kernels_pick(simds[i])), &u);
    }
}

/* A block of one colour has a way of its own, whose sums have ends of their own. */
static void every_dc_value_is_right(void **state)
{
    static const uint8_t lasts[] = {0, MR_IDCT_LOW, 63};
    for (size_t i = 0; i < ARRAY_LEN(simds) * ARRAY_LEN(lasts); i++) {
        const struct mr_kernels *resizing = mr_kernels_pick(simds[i % ARRAY_LEN(simds)]);
        for (int dc = INT16_MIN; resizing && dc <= INT16_MAX - 3; dc += 4) {
            struct unit u = {.quantiser = {1}};
            memset(u.last, lasts[i / ARRAY_LEN(simds)], sizeof u.last);
            for (int block = 0; block < 4; block++)
                u.values[block * 8] = (int16_t)(dc + block);
            check_unit(mr_jpeg_kernels_pick(resizing), &u);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_set_gives_what_is_defined),
        cmocka_unit_test(the_largest_coefficients_are_right),
        cmocka_unit_test(every_dc_value_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
