/* test_image_hostile.c - broken, lying and foreign files: an error with words, never a crash, and
 * the next good image is not affected.
 *
 * MILLRACE_TEST_BRIEF=1 is for memory checkers that are thirty times as slow: fewer variants, in
 * plain C. */
#include "image_samples.h"

#include <millrace/image.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define SIDE    32
#define N_BYTES (SIDE * SIDE * 3 * 4)

static const struct mr_decoder_opts plain = {.width = SIDE, .height = SIDE};

static int is_brief(void)
{
    return getenv("MILLRACE_TEST_BRIEF") != NULL;
}
static const struct mr_decoder_opts tolerant = {
    .width = SIDE, .height = SIDE, .accept_truncated = 1};

struct fixture {
    struct mr_decoder *strict, *tolerant;
    uint8_t slot[N_BYTES], good[N_BYTES];
    struct sample sound; /* a good image, */
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct photo p = sample_photo(90, 70, 4);
    f->sound = sample_jpeg(&p, &sample_jpeg_kinds[2]);
    free(p.rgb);
    struct mr_decoder_opts o[2] = {plain, tolerant};
    o[0].simd = o[1].simd = is_brief() ? MR_SIMD_SCALAR : MR_SIMD_BEST;
    if (mr_decoder_new(&o[0], &f->strict, NULL) || mr_decoder_new(&o[1], &f->tolerant, NULL))
        return -1;
    *state = f;
    return mr_decoder_run(f->strict, f->sound.bytes, f->sound.len, 0, f->good);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    mr_decoder_free(f->strict);
    mr_decoder_free(f->tolerant);
    free(f->sound.bytes);
    free(f);
    return 0;
}

static void good_image_still_decodes(struct fixture *f)
{
    struct mr_decoder *both[] = {f->strict, f->tolerant};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mr_decoder_run(both[i], f->sound.bytes, f->sound.len, 0, f->slot), 0);
        assert_memory_equal(f->slot, f->good, N_BYTES);
    }
}

/* From a buffer of exactly its size, so that a checker sees a read past the end. */
static int run(struct fixture *f, struct mr_decoder *d, const uint8_t *bytes, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);
    memcpy(copy, bytes, len);
    int r = mr_decoder_run(d, copy, len, 0, f->slot);
    if (!(r == 0 || r == -ENODATA || r == -EBADMSG || r == -ENOTSUP || r == -EFBIG))
        fail_msg("%d: %s", r, mr_decoder_error(d));
    assert_int_equal(r != 0, mr_decoder_error(d)[0] != 0);
    /* Look at every pixel: a memory checker then sees one that was never written. */
    for (size_t i = 0; r == 0 && i < N_BYTES / sizeof(float); i++) {
        float v;
        memcpy(&v, f->slot + i * sizeof v, sizeof v);
        assert_true(v >= 0 && v <= 1);
    }
    free(copy);
    return r;
}

/* Once the header is there, something can be shown; before, nothing.  A progressive file has tables
 * between its scans, and half a table is an error. */
static void check_tolerance(struct fixture *f, const struct sample *s, int progressive)
{
    size_t scan = 0;
    while (s->bytes[scan] != 0xff || s->bytes[scan + 1] != 0xda)
        scan++;
    for (size_t part = 0; part < 16; part++) {
        size_t len = s->len * part / 16;
        int r = run(f, f->tolerant, s->bytes, len);
        if (len > scan + 16 && (!progressive || part == 15))
            assert_int_equal(r, 0);
        else if (len < scan)
            assert_true(r < 0);
    }
}

static void a_jpeg_cut_anywhere_is_truncated(void **state)
{
    struct fixture *f = *state;
    struct photo p = sample_photo(120, 100, 8);
    for (const struct jpeg_kind *k = sample_jpeg_kinds; k->name; k++) {
        struct sample s = sample_jpeg(&p, k);
        for (size_t part = 0; part < 16; part++)
            assert_int_equal(run(f, f->strict, s.bytes, s.len * part / 16), -ENODATA);
        check_tolerance(f, &s, k->progressive);
        free(s.bytes);
        good_image_still_decodes(f);
    }
    free(p.rgb);
}

static void a_png_cut_anywhere_is_truncated(void **state)
{
    struct fixture *f = *state;
    struct photo p = sample_photo(120, 100, 8);
    for (const struct png_kind *k = sample_png_kinds; k->name; k++) {
        struct sample s = sample_png(&p, k, NULL);
        for (size_t part = 0; part < 16; part++)
            assert_int_equal(run(f, f->strict, s.bytes, s.len * part / 16), -ENODATA);
        int r = run(f, f->tolerant, s.bytes, s.len * 15 / 16);
        if (r)
            fail_msg("%s: %d, %s", k->name, r, mr_decoder_error(f->tolerant));
        free(s.bytes);
    }
    good_image_still_decodes(f);
    free(p.rgb);
}

/* Whole, a part, and so small that the last rows are not needed. */
static const struct mr_decoder_opts views[] = {
    {.width = SIDE, .height = SIDE},
    {.width = SIDE, .height = SIDE, .augment = MR_AUGMENT_CROP_FLIP},
    {.width = 2, .height = 2},
    {.width = 4, .height = 4, .resize = MR_RESIZE_AREA, .augment = MR_AUGMENT_CROP_FLIP},
    {.width = 8, .height = 8, .exact = 1, .augment = MR_AUGMENT_CROP_FLIP},
};
#define N_VIEWS (sizeof views / sizeof views[0])
#define N_KEYS  3

/* The same answer for every part of the image that may be shown; 0 or the code. */
static int verdict(struct fixture *f, struct mr_decoder *const decoders[N_VIEWS],
                   const uint8_t *bytes, size_t len, const char *what)
{
    uint8_t *copy = malloc(len); /* of exactly its size */
    memcpy(copy, bytes, len);
    int first = mr_decoder_run(decoders[0], copy, len, 0, f->slot);
    for (size_t v = 1; v < N_VIEWS; v++)
        for (uint64_t key = 0; key < N_KEYS; key++) {
            int r = mr_decoder_run(decoders[v], copy, len, key, f->slot);
            if (r != first)
                fail_msg("%s, %zu bytes: %d, but %d in view %zu, key %d (%s)", what, len, first, r,
                         v, (int)key, mr_decoder_error(decoders[v]));
        }
    free(copy);
    return first;
}

static void check_verdicts(struct fixture *f, struct mr_decoder *const decoders[N_VIEWS],
                           const struct sample *s, const char *what)
{
    uint64_t seed = 3;
    for (size_t part = 1; part < 16; part++)
        assert_int_equal(verdict(f, decoders, s->bytes, s->len * part / 16, what), -ENODATA);
    for (size_t n = 1; n <= 40; n += n < 8 ? 1 : 3)
        verdict(f, decoders, s->bytes, s->len - n, what);
    for (int i = 0; i < 10; i++) { /* damage in the lower half */
        size_t at = s->len / 2 + sample_random(&seed) % (s->len / 2);
        uint8_t old = s->bytes[at];
        s->bytes[at] = (uint8_t)sample_random(&seed);
        verdict(f, decoders, s->bytes, s->len, what);
        s->bytes[at] = old;
    }
    assert_int_equal(verdict(f, decoders, s->bytes, s->len, what), 0);
}

static void the_part_that_is_shown_does_not_decide_what_is_damaged(void **state)
{
    if (is_brief())
        skip();
    struct fixture *f = *state;
    struct photo p = sample_photo(60, 110, 8);
    for (int turbo = 0; turbo < 2; turbo++) {
        struct mr_decoder *decoders[N_VIEWS];
        for (size_t v = 0; v < N_VIEWS; v++) {
            struct mr_decoder_opts o = views[v];
            o.decoder = turbo ? MR_DECODER_TURBO : MR_DECODER_AUTO;
            assert_int_equal(mr_decoder_new(&o, &decoders[v], NULL), 0);
        }
        for (const struct jpeg_kind *k = sample_jpeg_kinds; k->name; k++) {
            struct sample s = sample_jpeg(&p, k);
            check_verdicts(f, decoders, &s, k->name);
            free(s.bytes);
        }
        for (const struct png_kind *k = sample_png_kinds; !turbo && k->name; k++) {
            struct sample s = sample_png(&p, k, NULL);
            check_verdicts(f, decoders, &s, k->name);
            free(s.bytes);
        }
        for (size_t v = 0; v < N_VIEWS; v++)
            mr_decoder_free(decoders[v]);
    }
    free(p.rgb);
}

static void the_part_of_a_truncated_jpeg_that_is_there_is_right(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(run(f, f->tolerant, f->sound.bytes, f->sound.len * 3 / 4), 0);
    assert_memory_equal(f->slot, f->good, N_BYTES / 4);
}

static void ten_thousand_damaged_files_do_no_harm(void **state)
{
    struct fixture *f = *state;
    uint64_t seed = 1;
    struct photo p = sample_photo(64, 48, 8);
    size_t n_jpeg = 0, n_png = 0;
    while (sample_jpeg_kinds[n_jpeg].name)
        n_jpeg++;
    while (sample_png_kinds[n_png].name)
        n_png++;
    for (size_t i = 0; i < 100; i++) {
        size_t kind = i % (n_jpeg + n_png);
        struct sample s = kind < n_jpeg ? sample_jpeg(&p, &sample_jpeg_kinds[kind])
                                        : sample_png(&p, &sample_png_kinds[kind - n_jpeg], NULL);
        for (int v = 0; v < (is_brief() ? 2 : 100); v++) {
            uint8_t *copy = malloc(s.len);
            memcpy(copy, s.bytes, s.len);
            for (unsigned n = 1 + sample_random(&seed) % 8; n; n--)
                copy[sample_random(&seed) % s.len] = (uint8_t)sample_random(&seed);
            run(f, v % 2 ? f->strict : f->tolerant, copy, s.len);
            free(copy);
        }
        free(s.bytes);
        good_image_still_decodes(f);
    }
    free(p.rgb);
}

static void what_is_not_an_image_is_refused(void **state)
{
    struct fixture *f = *state;
    static const char gif[] = "GIF89a................", text[] = "hello, world\n";
    uint8_t zeros[1000] = {0};
    assert_int_equal(run(f, f->strict, zeros, 0), -ENODATA);
    assert_int_equal(run(f, f->strict, zeros, sizeof zeros), -EBADMSG);
    assert_int_equal(run(f, f->strict, (const uint8_t *)gif, sizeof gif), -EBADMSG);
    assert_int_equal(run(f, f->tolerant, (const uint8_t *)text, sizeof text), -EBADMSG);
    assert_int_equal(run(f, f->strict, (const uint8_t *)"\xff\xd8\xff", 3), -ENODATA);
    assert_string_not_equal(mr_decoder_error(f->strict), "");
    good_image_still_decodes(f);
}

/* Where a JPEG's frame header begins: ff c0 (or c2), length, precision, height, width, count. */
static size_t find_marker(const struct sample *s, uint8_t marker)
{
    for (size_t i = 2; i + 4 < s->len; i += 2 + ((size_t)s->bytes[i + 2] << 8 | s->bytes[i + 3]))
        if (s->bytes[i + 1] == marker)
            return i;
    return 0;
}

static void put_size(struct sample *s, unsigned width, unsigned height)
{
    size_t at = find_marker(s, 0xc0);
    at = at ? at : find_marker(s, 0xc2);
    assert_true(at > 0);
    s->bytes[at + 5] = (uint8_t)(height >> 8);
    s->bytes[at + 6] = (uint8_t)height;
    s->bytes[at + 7] = (uint8_t)(width >> 8);
    s->bytes[at + 8] = (uint8_t)width;
}

static void a_jpeg_that_claims_to_be_huge_is_refused_by_its_header(void **state)
{
    struct fixture *f = *state;
    struct photo p = sample_photo(32, 32, 1);
    for (int progressive = 0; progressive < 2; progressive++) {
        struct sample s = sample_jpeg(&p, &(struct jpeg_kind){.progressive = progressive});
        put_size(&s, 65500, 65500);
        assert_int_equal(run(f, f->strict, s.bytes, s.len), -EFBIG);
        assert_int_equal(run(f, f->tolerant, s.bytes, s.len), -EFBIG);
        put_size(&s, 65535, 65535);
        assert_int_equal(run(f, f->strict, s.bytes, s.len), -EFBIG);
        put_size(&s, 0, 32);
        assert_int_equal(run(f, f->strict, s.bytes, s.len), -EBADMSG);
        put_size(&s, 32, 0);
        assert_int_equal(run(f, f->tolerant, s.bytes, s.len), -EBADMSG);
        put_size(&s, 0, 0);
        assert_int_equal(run(f, f->strict, s.bytes, s.len), -EBADMSG);
        free(s.bytes);
    }
    good_image_still_decodes(f);
    free(p.rgb);
}

static void the_limit_of_pixels_is_exact(void **state)
{
    struct mr_decoder_opts o = plain;
    struct mr_decoder *d = NULL;
    struct fixture *f = *state;
    o.max_pixels = 90 * 70;
    assert_int_equal(mr_decoder_new(&o, &d, NULL), 0);
    assert_int_equal(mr_decoder_run(d, f->sound.bytes, f->sound.len, 0, f->slot), 0);
    mr_decoder_free(d);
    o.max_pixels--;
    assert_int_equal(mr_decoder_new(&o, &d, NULL), 0);
    assert_int_equal(mr_decoder_run(d, f->sound.bytes, f->sound.len, 0, f->slot), -EFBIG);
    mr_decoder_free(d);
}

static void wrong_component_counts_are_refused(void **state)
{
    struct fixture *f = *state;
    size_t at = find_marker(&f->sound, 0xc0);
    uint8_t *copy = malloc(f->sound.len);
    for (unsigned n = 0; n < 256; n++) {
        memcpy(copy, f->sound.bytes, f->sound.len);
        copy[at + 9] = (uint8_t)n;
        int r = run(f, f->strict, copy, f->sound.len);
        assert_int_equal(r == 0, n == 3);
    }
    free(copy);
    good_image_still_decodes(f);
}

static void corrupt_huffman_tables_are_refused(void **state)
{
    struct fixture *f = *state;
    size_t at = find_marker(&f->sound, 0xc4);
    uint8_t *copy = malloc(f->sound.len);
    for (size_t i = 0; i < 17; i++) {
        memcpy(copy, f->sound.bytes, f->sound.len);
        copy[at + 4 + i] = 0xff; /* the class, then how many codes there are of each length */
        assert_int_equal(run(f, f->strict, copy, f->sound.len), -EBADMSG);
        run(f, f->tolerant, copy, f->sound.len);
    }
    memcpy(copy, f->sound.bytes, f->sound.len);
    memset(copy + at + 21, 0xff, 4); /* symbols that are no DC lengths */
    assert_true(run(f, f->strict, copy, f->sound.len) < 0);
    free(copy);
    good_image_still_decodes(f);
}

/* Take out every segment with this marker; returns how many there were. */
static int remove_segments(struct sample *s, uint8_t marker)
{
    int n = 0;
    for (size_t at; (at = find_marker(s, marker)) > 0; n++) {
        size_t len = 2 + ((size_t)s->bytes[at + 2] << 8 | s->bytes[at + 3]);
        memmove(s->bytes + at, s->bytes + at + len, s->len - at - len);
        s->len -= len;
    }
    return n;
}

static void a_file_without_tables_does_not_see_those_of_the_last_image(void **state)
{
    struct fixture *f = *state;
    struct photo p = sample_photo(64, 64, 3);
    struct sample no_quant = sample_jpeg(&p, &sample_jpeg_kinds[0]);
    struct sample no_huff = sample_jpeg(&p, &sample_jpeg_kinds[0]), whole = no_huff;
    struct sample other = sample_jpeg(&p, &(struct jpeg_kind){.optimise = 1, .quality = 20});
    uint8_t expected[N_BYTES];
    assert_int_equal(run(f, f->strict, whole.bytes, whole.len), 0);
    memcpy(expected, f->slot, N_BYTES);

    assert_true(remove_segments(&no_quant, 0xdb) > 0);
    assert_int_equal(run(f, f->strict, no_quant.bytes, no_quant.len), -EBADMSG);
    assert_int_equal(run(f, f->tolerant, no_quant.bytes, no_quant.len), -EBADMSG);

    /* Motion JPEG leaves out the standard Huffman tables, and they are what this file uses. */
    assert_true(remove_segments(&no_huff, 0xc4) > 0);
    assert_int_equal(run(f, f->strict, other.bytes, other.len), 0);
    assert_int_equal(run(f, f->strict, no_huff.bytes, no_huff.len), 0);
    assert_memory_equal(f->slot, expected, N_BYTES);
    free(no_quant.bytes);
    free(no_huff.bytes);
    free(other.bytes);
    free(p.rgb);
}

/* A progressive file whose last scan comes again and again. */
static void endless_scans_are_refused_in_time(void **state)
{
    if (is_brief())
        skip();
    struct fixture *f = *state;
    struct photo p = sample_photo(1500, 1500, 3);
    struct sample s = sample_jpeg(&p, &(struct jpeg_kind){.colour = SAMPLE_GREY, .progressive = 1});
    size_t last = s.len - 2;
    while (!(s.bytes[last] == 0xff && s.bytes[last + 1] == 0xda))
        last--;
    /* The scan's header and a byte of its data: libjpeg supplies zeros and goes on. */
    size_t head = 2 + ((size_t)s.bytes[last + 2] << 8 | s.bytes[last + 3]), n = 200000;
    uint8_t *bomb = malloc(last + (head + 1) * n);
    memcpy(bomb, s.bytes, last);
    for (size_t i = 0; i < n; i++) {
        memcpy(bomb + last + i * (head + 1), s.bytes + last, head);
        bomb[last + i * (head + 1) + head] = 0;
    }
    clock_t begin = clock();
    assert_true(run(f, f->strict, bomb, last + (head + 1) * n) < 0);
    assert_true(run(f, f->tolerant, bomb, last + (head + 1) * n) < 0);
    assert_true((clock() - begin) / CLOCKS_PER_SEC < 20);
    good_image_still_decodes(f);
    free(bomb);
    free(s.bytes);
    free(p.rgb);
}

/* ---- PNG ---- */

static uint32_t crc32_of(const uint8_t *p, size_t n)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void put_be32(uint8_t *p, uint32_t v)
{
    for (int k = 0; k < 4; k++)
        p[k] = (uint8_t)(v >> (24 - 8 * k));
}

/* A PNG of these dimensions whose pixels are missing. */
static size_t bare_png(uint8_t *out, uint32_t width, uint32_t height, uint8_t bits, uint8_t colour)
{
    memcpy(out, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
    put_be32(out + 16, width);
    put_be32(out + 20, height);
    memcpy(out + 24, (uint8_t[]){bits, colour, 0, 0, 0}, 5);
    put_be32(out + 29, crc32_of(out + 12, 17));
    return 33;
}

static size_t add_chunk(uint8_t *out, const char *type, const void *data, uint32_t len)
{
    put_be32(out, len);
    memcpy(out + 4, type, 4);
    memcpy(out + 8, data, len);
    put_be32(out + 8 + len, crc32_of(out + 4, len + 4));
    return len + 12;
}

static void png_headers_that_lie_are_refused(void **state)
{
    struct fixture *f = *state;
    uint8_t png[64];
    static const struct {
        uint32_t width, height;
        uint8_t bits, colour;
        int code;
    } cases[] = {{0, 0, 8, 2, -EBADMSG},          {0, 5, 8, 2, -EBADMSG},
                 {65500, 65500, 8, 2, -EFBIG},    {0x7fffffff, 0x7fffffff, 8, 2, -EFBIG},
                 {0xffffffff, 1, 8, 2, -EBADMSG}, {0x7fffffff, 1, 1, 0, -EFBIG},
                 {67000000, 1, 8, 2, -EFBIG},     {1, 67000000, 8, 2, -EFBIG},
                 {65536, 1, 8, 2, -EFBIG},        {1, 65536, 8, 6, -EFBIG},
                 {65536, 1, 1, 3, -EFBIG},        {65535, 1024, 8, 6, -ENODATA},
                 {32, 32, 8, 5, -EBADMSG},        {32, 32, 3, 0, -EBADMSG},
                 {32, 32, 16, 3, -EBADMSG},       {32, 32, 8, 2, -ENODATA}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t n = bare_png(png, cases[i].width, cases[i].height, cases[i].bits, cases[i].colour);
        int r = run(f, f->strict, png, n);
        if (r != cases[i].code)
            fail_msg("case %zu: %d, %s", i, r, mr_decoder_error(f->strict));
    }
}

/* A good PNG with a hostile chunk put in after its header. */
static int run_with_chunk(struct fixture *f, const struct sample *s, const char *type,
                          const void *data, uint32_t len)
{
    uint8_t *png = malloc(s->len + len + 12);
    memcpy(png, s->bytes, 33);
    size_t n = add_chunk(png + 33, type, data, len);
    memcpy(png + 33 + n, s->bytes + 33, s->len - 33);
    int r = run(f, f->strict, png, s->len + n);
    free(png);
    return r;
}

static void hostile_png_chunks_are_refused_or_ignored(void **state)
{
    struct fixture *f = *state;
    struct photo p = sample_photo(40, 30, 2);
    struct sample s = sample_png(&p, &sample_png_kinds[5], NULL);
    uint8_t big[70000];
    memset(big, 'x', sizeof big);
    assert_int_equal(run_with_chunk(f, &s, "teXt", big, 100), 0); /* unknown, not critical */
    assert_int_equal(run_with_chunk(f, &s, "QQQQ", big, 100), -ENOTSUP);
    assert_true(run_with_chunk(f, &s, "IHDR", s.bytes + 16, 13) < 0);
    assert_true(run_with_chunk(f, &s, "PLTE", big, 7) < 0);
    assert_true(run_with_chunk(f, &s, "IEND", big, 0) < 0);
    assert_true(run_with_chunk(f, &s, "IDAT", big, 1000) < 0);
    static const char *const metadata[] = {"tEXt", "zTXt", "iTXt", "iCCP", "sPLT", "eXIf",
                                           "gAMA", "cHRM", "hIST", "tRNS", "bKGD", "pHYs"};
    for (size_t i = 0; i < sizeof metadata / sizeof metadata[0]; i++)
        for (uint32_t len = 0; len < sizeof big; len = len * 3 + 1)
            run_with_chunk(f, &s, metadata[i], big, len);
    /* A length that reaches past the end. */
    put_be32(s.bytes + 33, 0x7fffffff);
    assert_true(run(f, f->strict, s.bytes, s.len) < 0);
    put_be32(s.bytes + 33, 0xffffffff);
    assert_true(run(f, f->strict, s.bytes, s.len) < 0);
    good_image_still_decodes(f);
    free(s.bytes);
    free(p.rgb);
}

static void a_png_with_a_palette_index_out_of_range_is_harmless(void **state)
{
    struct fixture *f = *state;
    struct photo p = sample_photo(40, 30, 2);
    struct sample s = sample_png(&p, &sample_png_kinds[11], NULL);
    /* Shorten the palette to one entry: 33 bytes of header, then PLTE. */
    assert_memory_equal(s.bytes + 37, "PLTE", 4);
    size_t old = 12 + 256 * 3, n = 33;
    uint8_t *png = malloc(s.len), colour[3] = {1, 2, 3};
    memcpy(png, s.bytes, 33);
    n += add_chunk(png + n, "PLTE", colour, 3);
    memcpy(png + n, s.bytes + 33 + old, s.len - 33 - old);
    run(f, f->strict, png, s.len - old + 15);
    free(png);
    free(s.bytes);
    free(p.rgb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_jpeg_cut_anywhere_is_truncated),
        cmocka_unit_test(a_png_cut_anywhere_is_truncated),
        cmocka_unit_test(the_part_that_is_shown_does_not_decide_what_is_damaged),
        cmocka_unit_test(the_part_of_a_truncated_jpeg_that_is_there_is_right),
        cmocka_unit_test(ten_thousand_damaged_files_do_no_harm),
        cmocka_unit_test(what_is_not_an_image_is_refused),
        cmocka_unit_test(a_jpeg_that_claims_to_be_huge_is_refused_by_its_header),
        cmocka_unit_test(the_limit_of_pixels_is_exact),
        cmocka_unit_test(wrong_component_counts_are_refused),
        cmocka_unit_test(corrupt_huffman_tables_are_refused),
        cmocka_unit_test(a_file_without_tables_does_not_see_those_of_the_last_image),
        cmocka_unit_test(endless_scans_are_refused_in_time),
        cmocka_unit_test(png_headers_that_lie_are_refused),
        cmocka_unit_test(hostile_png_chunks_are_refused_or_ignored),
        cmocka_unit_test(a_png_with_a_palette_index_out_of_range_is_harmless),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
