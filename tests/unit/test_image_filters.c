/* test_image_filters.c - PNG's row filters against their definition, and plain PNG files in odd
 * pieces. */
#include "image_samples.h"
#include "png_filter.h"

#include <millrace/image.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

static int predict(unsigned filter, int a, int b, int c)
{
    int p = a + b - c, pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);
    switch (filter) {
    case 1:
        return a;
    case 2:
        return b;
    case 3:
        return (a + b) / 2;
    case 4:
        return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
    default:
        return 0;
    }
}

static void naive(unsigned filter, unsigned step, const uint8_t *in, const uint8_t *above,
                  uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(in[i] + predict(filter, i < step ? 0 : out[i - step], above[i],
                                           i < step ? 0 : above[i - step]));
}

static void every_filter_is_undone_as_defined(void **state)
{
    uint8_t in[400], above[400], out[400], expected[400];
    uint64_t seed = 1;
    for (int round = 0; round < 2000; round++) {
        unsigned filter = sample_random(&seed) % 5, step = 1 + sample_random(&seed) % 4;
        size_t n = (1 + sample_random(&seed) % 90) * step;
        for (size_t i = 0; i < n + MR_FILTER_SLACK; i++) {
            in[i] = (uint8_t)sample_random(&seed);
            above[i] = (uint8_t)(round % 3 ? sample_random(&seed) : in[i] / 2);
        }
        assert_int_equal(mr_png_unfilter(filter, step, in, above, out, n), 0);
        naive(filter, step, in, above, expected, n);
        assert_memory_equal(out, expected, n);
    }
    assert_int_equal(mr_png_unfilter(5, 3, in, above, out, 3), -1);
}

static void put_be32(uint8_t *p, uint32_t v)
{
    for (int k = 0; k < 4; k++)
        p[k] = (uint8_t)(v >> (24 - 8 * k));
}

static size_t add_chunk(uint8_t *out, const char *type, const uint8_t *data, uint32_t len)
{
    put_be32(out, len);
    memcpy(out + 4, type, 4);
    memcpy(out + 8, data, len);
    put_be32(out + 8 + len, (uint32_t)crc32(0, out + 4, len + 4));
    return (size_t)len + 12;
}

/* Rows of random bytes with random filters, in image data chunks of random sizes, 0 included. */
static size_t random_png(uint64_t *seed, unsigned width, unsigned height, unsigned step,
                         uint8_t *file, uint8_t *rgb)
{
    static const uint8_t colour[] = {0, 0, 4, 2, 6};
    uint8_t raw[8192], zipped[9000], above[200] = {0}, row[200];
    size_t n = (size_t)width * step, raw_len = 0, at = 8;
    for (unsigned y = 0; y < height; y++) {
        uint8_t *in = raw + raw_len;
        in[0] = (uint8_t)(sample_random(seed) % 5);
        for (size_t i = 1; i <= n; i++)
            in[i] = (uint8_t)sample_random(seed);
        naive(in[0], step, in + 1, above, row, n);
        for (unsigned x = 0; x < width; x++)
            for (unsigned c = 0; c < 3; c++)
                *rgb++ = row[x * step + (step < 3 ? 0 : c)];
        memcpy(above, row, n);
        raw_len += n + 1;
    }
    uLongf len = sizeof zipped;
    compress2(zipped, &len, raw, raw_len, (int)(sample_random(seed) % 10));
    uint8_t header[13] = {[8] = 8, [9] = colour[step]};
    put_be32(header, width);
    put_be32(header + 4, height);
    memcpy(file, "\x89PNG\r\n\x1a\n", 8);
    at += add_chunk(file + at, "IHDR", header, 13);
    at += add_chunk(file + at, "teSt", raw, 30);
    for (size_t done = 0; done < len;) {
        size_t part = sample_random(seed) % 300;
        part = part < len - done ? part : len - done;
        at += add_chunk(file + at, "IDAT", zipped + done, (uint32_t)part);
        done += part;
    }
    return at + add_chunk(file + at, "IEND", raw, 0);
}

static void plain_files_in_odd_pieces_decode(void **state)
{
    uint64_t seed = 7;
    for (int round = 0; round < 300; round++) {
        static uint8_t file[60000], rgb[8192], slot[8192];
        unsigned step = 1 + sample_random(&seed) % 4, width = 1 + sample_random(&seed) % 40,
                 height = 1 + sample_random(&seed) % 40;
        size_t len = random_png(&seed, width, height, step, file, rgb);
        struct mr_decoder_opts o = {.width = width, .height = height, .dtype = MR_DT_U8};
        struct mr_decoder *d = NULL;
        assert_int_equal(mr_decoder_new(&o, &d), 0);
        assert_int_equal(mr_decoder_run(d, file, len, 0, slot), 0);
        assert_memory_equal(slot, rgb, (size_t)width * height * 3);
        /* A wrong checksum of the first image data must not go unnoticed. */
        size_t idat = 8 + 25 + 42;
        file[idat + 8 + ((size_t)file[idat + 2] << 8 | file[idat + 3])] ^= 1;
        assert_true(mr_decoder_run(d, file, len, 0, slot) < 0);
        mr_decoder_free(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_filter_is_undone_as_defined),
        cmocka_unit_test(plain_files_in_odd_pieces_decode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
