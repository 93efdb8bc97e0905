/* image_samples.c - see image_samples.h. */
#include "image_samples.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <spng.h>

const struct jpeg_kind sample_jpeg_kinds[] = {
    {"4:4:4", SAMPLE_YCC, 1, 1},
    {"4:2:2", SAMPLE_YCC, 2, 1},
    {"4:2:0", SAMPLE_YCC, 2, 2},
    {"4:4:0", SAMPLE_YCC, 1, 2},
    {"4:1:1", SAMPLE_YCC, 4, 1},
    {"4:1:0", SAMPLE_YCC, 4, 2},
    {"1x4", SAMPLE_YCC, 1, 4},
    {"3x1", SAMPLE_YCC, 3, 1},
    {"grey", SAMPLE_GREY, 1, 1},
    {"grey 2x2", SAMPLE_GREY, 2, 2},
    {"RGB", SAMPLE_RGB, 1, 1},
    {"CMYK", SAMPLE_CMYK, 1, 1},
    {"YCCK 4:2:0", SAMPLE_YCCK, 2, 2},
    {"progressive 4:4:4", SAMPLE_YCC, 1, 1, .progressive = 1},
    {"progressive 4:2:0", SAMPLE_YCC, 2, 2, .progressive = 1},
    {"progressive grey", SAMPLE_GREY, 1, 1, .progressive = 1},
    {"progressive CMYK", SAMPLE_CMYK, 1, 1, .progressive = 1},
    {"restarts 4:2:0", SAMPLE_YCC, 2, 2, .restart_rows = 1},
    {"restarts 4:4:4", SAMPLE_YCC, 1, 1, .restart_rows = 2, .optimise = 1},
    {"progressive restarts", SAMPLE_YCC, 2, 1, .progressive = 1, .restart_rows = 1},
    {"arithmetic", SAMPLE_YCC, 2, 2, .arithmetic = 1},
    {"quality 30", SAMPLE_YCC, 2, 2, .quality = 30},
    {"quality 100", SAMPLE_YCC, 1, 1, .quality = 100},
    {NULL},
};

const struct png_kind sample_png_kinds[] = {
    {"grey 1", 0, 1, 0},
    {"grey 2", 0, 2, 1},
    {"grey 4", 0, 4, 0},
    {"grey 8", 0, 8, 0},
    {"grey 16", 0, 16, 1},
    {"RGB 8", 2, 8, 0},
    {"RGB 8 interlaced", 2, 8, 1},
    {"RGB 16", 2, 16, 0},
    {"palette 1", 3, 1, 0},
    {"palette 2", 3, 2, 0},
    {"palette 4", 3, 4, 1},
    {"palette 8", 3, 8, 0},
    {"grey alpha 8", 4, 8, 0},
    {"grey alpha 16", 4, 16, 0},
    {"RGBA 8", 6, 8, 0},
    {"RGBA 16", 6, 16, 1},
    {NULL},
};

uint32_t sample_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static uint8_t to_byte(double v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v + 0.5);
}

struct photo sample_photo(unsigned width, unsigned height, unsigned seed)
{
    struct photo p = {width, height, malloc((size_t)width * height * 3)};
    uint64_t state = seed * 2654435761u + 1;
    double f[3][3], cx = sample_random(&state) % 1000 / 1000.0, cy = 0.5, size = width + height;
    for (int c = 0; c < 3; c++)
        for (int k = 0; k < 3; k++)
            f[c][k] = 2 + sample_random(&state) % 600 / 100.0;
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 0; x < width; x++) {
            double u = x / size * 2, v = y / size * 2;
            double inside = hypot(u - cx, v - cy) < 0.3 ? 50 : 0;
            double texture = 12 * sin(x * 0.9) * sin(y * 0.7);
            double noise = sample_random(&state) % 9 - 4.0;
            for (int c = 0; c < 3; c++)
                p.rgb[((size_t)y * width + x) * 3 + (size_t)c] =
                    to_byte(110 + 40 * sin(f[c][0] * u + f[c][1] * v) + 25 * cos(f[c][2] * v * u) +
                            inside * (c == 1 ? -0.5 : 1) + texture + noise);
        }
    return p;
}

struct photo sample_edges(unsigned width, unsigned height, unsigned seed)
{
    struct photo p = sample_photo(width, height, seed);
    uint64_t state = seed * 2654435761u + 7;
    for (unsigned n = 0; n < width * height / 200; n++) {
        unsigned x0 = sample_random(&state) % width, y0 = sample_random(&state) % height;
        unsigned w = 2 + sample_random(&state) % 30, h = 2 + sample_random(&state) % 30;
        unsigned hatch = 1 + sample_random(&state) % 3;
        uint32_t bits = sample_random(&state);
        uint8_t rgb[3] = {bits & 1 ? 225 : 30, bits & 2 ? 225 : 30, bits & 4 ? 225 : 30};
        for (unsigned y = y0; y < y0 + h && y < height; y++)
            for (unsigned x = x0; x < x0 + w && x < width; x++)
                if ((x + y) % hatch == 0)
                    memcpy(p.rgb + ((size_t)y * width + x) * 3, rgb, 3);
    }
    return p;
}

/* ---- JPEG ---- */

static void set_colour(struct jpeg_compress_struct *c, const struct jpeg_kind *k)
{
    static const J_COLOR_SPACE space[] = {JCS_YCbCr, JCS_GRAYSCALE, JCS_RGB, JCS_CMYK, JCS_YCCK};
    int four = k->colour == SAMPLE_CMYK || k->colour == SAMPLE_YCCK;
    c->in_color_space = four ? JCS_CMYK : JCS_RGB;
    c->input_components = four ? 4 : 3;
    jpeg_set_defaults(c);
    jpeg_set_colorspace(c, space[k->colour]);
    for (int i = 0; i < c->num_components; i++) {
        int full = i == 0 || i == 3;
        c->comp_info[i].h_samp_factor = full && k->h ? k->h : 1;
        c->comp_info[i].v_samp_factor = full && k->v ? k->v : 1;
    }
}

/* The inverted CMYK that Adobe's programs write: r = c * k / 255. */
static void to_cmyk(const uint8_t *rgb, unsigned n, uint8_t *out)
{
    for (unsigned i = 0; i < n; i++) {
        for (int c = 0; c < 3; c++)
            out[4 * i + c] =
                (uint8_t)(rgb[3 * i + c] * 255 / 250 > 255 ? 255 : rgb[3 * i + c] * 255 / 250);
        out[4 * i + 3] = 250;
    }
}

struct sample sample_jpeg(const struct photo *p, const struct jpeg_kind *k)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long len = 0;
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &bytes, &len);
    c.image_width = p->width;
    c.image_height = p->height;
    set_colour(&c, k);
    jpeg_set_quality(&c, k->quality ? k->quality : 90, TRUE);
    if (k->progressive)
        jpeg_simple_progression(&c);
    c.arith_code = k->arithmetic ? TRUE : FALSE;
    c.optimize_coding = k->optimise ? TRUE : FALSE;
    c.restart_in_rows = k->restart_rows;
    jpeg_start_compress(&c, TRUE);
    uint8_t *cmyk = malloc((size_t)p->width * 4);
    for (unsigned y = 0; y < p->height; y++) {
        JSAMPROW row = p->rgb + (size_t)y * p->width * 3;
        if (c.input_components == 4) {
            to_cmyk(row, p->width, cmyk);
            row = cmyk;
        }
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    free(cmyk);
    return (struct sample){bytes, len};
}

/* ---- PNG ---- */

static int channels_of(int colour_type)
{
    static const int n[] = {[0] = 1, [2] = 3, [3] = 1, [4] = 2, [6] = 4};
    return n[colour_type];
}

/* Sample `c` of a pixel in the file, as `bits` bits, and what it looks like in RGB. */
static unsigned file_value(const struct png_kind *k, const uint8_t *rgb, int c)
{
    int n = channels_of(k->colour_type);
    unsigned v = rgb[n < 3 ? 0 : c % 3];
    if ((n == 2 && c == 1) || (n == 4 && c == 3))
        v = 99; /* alpha, to be dropped */
    return k->bits == 16 ? v * 256 + 77 : v >> (8 - k->bits);
}

static void put_bits(uint8_t *row, size_t index, int bits, unsigned v)
{
    if (bits == 16) {
        row[2 * index] = (uint8_t)(v & 255); /* the host's order */
        row[2 * index + 1] = (uint8_t)(v >> 8);
    } else if (bits == 8) {
        row[index] = (uint8_t)v;
    } else {
        size_t at = index * (size_t)bits;
        row[at / 8] |= (uint8_t)(v << (8 - (size_t)bits - at % 8));
    }
}

static struct spng_plte_entry palette_entry(unsigned i)
{
    return (struct spng_plte_entry){(uint8_t)(i * 37), (uint8_t)(255 - i), (uint8_t)(i * 11)};
}

static void expected_rgb(const struct png_kind *k, const uint8_t *rgb, uint8_t *out)
{
    unsigned v = file_value(k, rgb, 0);
    if (k->colour_type == 3) {
        struct spng_plte_entry e = palette_entry(v);
        memcpy(out, (uint8_t[]){e.red, e.green, e.blue}, 3);
        return;
    }
    for (int c = 0; c < 3; c++) {
        v = file_value(k, rgb, channels_of(k->colour_type) < 3 ? 0 : c);
        out[c] = (uint8_t)(k->bits == 16 ? v >> 8 : v * 255 / ((1u << k->bits) - 1));
    }
}

static uint8_t *png_pixels(const struct photo *p, const struct png_kind *k, size_t *bytes)
{
    int n = channels_of(k->colour_type);
    size_t row = ((size_t)p->width * (size_t)(n * k->bits) + 7) / 8;
    uint8_t *out = calloc(row, p->height);
    for (unsigned y = 0; y < p->height; y++)
        for (unsigned x = 0; x < p->width; x++)
            for (int c = 0; c < n; c++)
                put_bits(out + y * row, (size_t)x * (size_t)n + (size_t)c, k->bits,
                         file_value(k, p->rgb + ((size_t)y * p->width + x) * 3, c));
    *bytes = row * p->height;
    return out;
}

struct sample sample_png(const struct photo *p, const struct png_kind *k, uint8_t **rgb)
{
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    struct spng_ihdr h = {p->width, p->height, (uint8_t)k->bits,      (uint8_t)k->colour_type,
                          0,        0,         (uint8_t)k->interlaced};
    struct spng_plte palette = {.n_entries = 1u << (k->bits < 8 ? k->bits : 8)};
    size_t bytes, len;
    int e = 0;
    uint8_t *pixels = png_pixels(p, k, &bytes);
    spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1);
    spng_set_ihdr(ctx, &h);
    for (unsigned i = 0; i < palette.n_entries; i++)
        palette.entries[i] = palette_entry(i);
    if (k->colour_type == 3)
        spng_set_plte(ctx, &palette);
    e = spng_encode_image(ctx, pixels, bytes, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
    struct sample s = {e ? NULL : spng_get_png_buffer(ctx, &len, &e), 0};
    s.len = s.bytes ? len : 0;
    if (e)
        fprintf(stderr, "%s: %s\n", k->name, spng_strerror(e));
    spng_ctx_free(ctx);
    free(pixels);
    if (rgb) {
        *rgb = malloc((size_t)p->width * p->height * 3);
        for (size_t i = 0; i < (size_t)p->width * p->height; i++)
            expected_rgb(k, p->rgb + 3 * i, *rgb + 3 * i);
    }
    return s;
}
