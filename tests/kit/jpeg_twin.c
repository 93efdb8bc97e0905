/* jpeg_twin.c - see jpeg_twin.h. */
#include "jpeg_twin.h"

#include "jpeg_kernels.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

/* ---- our own ---- */

static void *need(void *p)
{
    if (!p)
        abort();
    return p;
}

static void allocate(struct twin_plane *p, uint32_t across, uint32_t down)
{
    p->across = across;
    p->down = down;
    p->coefficients = need(calloc((size_t)across * down, 64 * sizeof(int16_t)));
    p->samples = need(calloc((size_t)across * down, 64));
}

void twin_free(struct twin *t)
{
    for (int i = 0; i < 3; i++) {
        free(t->plane[i].coefficients);
        free(t->plane[i].samples);
    }
    *t = (struct twin){0};
}

/* Four blocks of a unit, of which those outside the image are left out. */
static void take_unit(struct mr_jpeg_scan *s, const struct mr_jpeg_kernels *k, unsigned unit,
                      const int16_t *quantiser, struct twin_plane *p, uint32_t x, uint32_t y)
{
    uint8_t samples[8 * 32];
    for (uint32_t b = 0; b < 4 && x + b < p->across && y < p->down; b++)
        for (int row = 0; row < 8; row++)
            memcpy(p->coefficients + (((size_t)y * p->across + x + b) * 64 + (size_t)row * 8),
                   s->units[unit] + row * 32 + b * 8, 16);
    k->idct(s->units[unit], quantiser, s->last[unit], samples, 32);
    for (int i = 0; i < MR_JPEG_UNIT_VALUES; i++)
        if (s->units[unit][i]) {
            fprintf(stderr, "a unit is not zero after its transform\n");
            abort();
        }
    memset(s->last[unit], 0, sizeof s->last[unit]);
    for (uint32_t row = 0; row < 8 && y < p->down; row++)
        for (uint32_t b = 0; b < 4 && x + b < p->across; b++)
            memcpy(p->samples + ((size_t)y * 8 + row) * p->across * 8 + ((size_t)x + b) * 8,
                   samples + row * 32 + b * 8, 8);
}

static int own_scan(struct mr_jpeg_scan *s, const struct mr_jpeg_header *h,
                    const struct mr_jpeg_kernels *k, struct twin *out)
{
    for (uint32_t row = 0; row < h->n_mcu_rows; row++)
        for (uint32_t mcu = 0; mcu < h->n_mcus; mcu += MR_JPEG_GROUP) {
            uint32_t n = h->n_mcus - mcu < MR_JPEG_GROUP ? h->n_mcus - mcu : MR_JPEG_GROUP;
            if (mr_jpeg_scan_group(s, n))
                return 0;
            for (unsigned i = 0; i < h->n_components; i++) {
                const struct mr_jpeg_component *c = &h->component[i];
                for (unsigned u = 0; u < (unsigned)c->h * c->v; u++)
                    take_unit(s, k, s->first_unit[i] + u, h->quantiser[c->quantiser],
                              &out->plane[i], mcu * c->h + u % c->h * 4, row * c->v + u / c->h);
            }
        }
    return !mr_jpeg_scan_end(s);
}

int twin_own(const uint8_t *bytes, size_t len, enum mr_image_simd simd, struct twin *out)
{
    const struct mr_jpeg_kernels *k = mr_jpeg_kernels_pick(need((void *)mr_kernels_pick(simd)));
    struct mr_jpeg_header *h = need(aligned_alloc(64, (sizeof *h + 63) / 64 * 64));
    struct mr_jpeg_scan *s = need(aligned_alloc(64, (sizeof *s + 63) / 64 * 64));
    *out = (struct twin){0};
    memset(s, 0, sizeof *s);
    int ok = mr_jpeg_header_parse(bytes, len, h);
    if (ok) {
        out->n_planes = h->n_components;
        for (unsigned i = 0; i < h->n_components; i++) {
            const struct mr_jpeg_component *c = &h->component[i];
            uint32_t width = (h->width * c->h + h->max_h - 1) / h->max_h;
            uint32_t height = (h->height * c->v + h->max_v - 1) / h->max_v;
            allocate(&out->plane[i], (width + 7) / 8, (height + 7) / 8);
        }
        ok = !mr_jpeg_scan_begin(s, h, bytes, len, k) && own_scan(s, h, k, out);
    }
    mr_jpeg_scan_fini(s);
    free(s);
    free(h);
    return ok;
}

/* ---- libjpeg-turbo ---- */

struct turbo {
    struct jpeg_decompress_struct lib;
    struct jpeg_error_mgr errors;
    jmp_buf escape;
    struct twin *out;
    const uint8_t *bytes;
    size_t len;
};

static void give_up(j_common_ptr lib)
{
    longjmp(((struct turbo *)lib->client_data)->escape, 1);
}

static void hear(j_common_ptr lib, int level)
{
    int m = lib->err->msg_code;
    if (level < 0 && m != JWRN_EXTRANEOUS_DATA && m != JWRN_ADOBE_XFORM && m != JWRN_JFIF_MAJOR)
        give_up(lib);
}

static void turbo_coefficients(struct turbo *t)
{
    jpeg_mem_src(&t->lib, t->bytes, t->len);
    jpeg_read_header(&t->lib, TRUE);
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(&t->lib);
    t->out->n_planes = (unsigned)t->lib.num_components;
    for (int i = 0; i < t->lib.num_components && i < 3; i++) {
        const jpeg_component_info *c = &t->lib.comp_info[i];
        struct twin_plane *p = &t->out->plane[i];
        allocate(p, c->width_in_blocks, c->height_in_blocks);
        for (uint32_t y = 0; y < p->down; y++) {
            JBLOCKARRAY rows =
                t->lib.mem->access_virt_barray((j_common_ptr)&t->lib, arrays[i], y, 1, FALSE);
            memcpy(p->coefficients + (size_t)y * p->across * 64, rows[0], (size_t)p->across * 128);
        }
    }
    jpeg_abort_decompress(&t->lib);
}

/* Rows below the image go into one that nobody reads. */
static void turbo_samples(struct turbo *t)
{
    JSAMPROW rows[3][MAX_SAMP_FACTOR * DCTSIZE];
    JSAMPARRAY planes[3] = {rows[0], rows[1], rows[2]};
    jpeg_mem_src(&t->lib, t->bytes, t->len);
    jpeg_read_header(&t->lib, TRUE);
    t->lib.raw_data_out = TRUE;
    t->lib.out_color_space = t->lib.jpeg_color_space;
    jpeg_start_decompress(&t->lib);
    uint8_t *spare = t->lib.mem->alloc_large((j_common_ptr)&t->lib, JPOOL_IMAGE,
                                             (size_t)t->lib.image_width * 4 + 4 * DCTSIZE * 4);
    for (uint32_t stripe = 0; t->lib.output_scanline < t->lib.output_height; stripe++) {
        for (unsigned i = 0; i < t->out->n_planes; i++) {
            struct twin_plane *p = &t->out->plane[i];
            uint32_t n = (uint32_t)t->lib.comp_info[i].v_samp_factor * DCTSIZE;
            for (uint32_t k = 0; k < n; k++)
                rows[i][k] = stripe * n + k < p->down * 8
                                 ? p->samples + ((size_t)stripe * n + k) * p->across * 8
                                 : spare;
        }
        jpeg_read_raw_data(&t->lib, planes, MAX_SAMP_FACTOR * DCTSIZE);
    }
    jpeg_abort_decompress(&t->lib);
}

int twin_turbo(const uint8_t *bytes, size_t len, struct twin *out)
{
    struct turbo t = {.out = out, .bytes = bytes, .len = len};
    volatile int ok = 0;
    *out = (struct twin){0};
    t.lib.err = jpeg_std_error(&t.errors);
    t.errors.error_exit = give_up;
    t.errors.emit_message = hear;
    t.lib.client_data = &t;
    jpeg_create_decompress(&t.lib);
    if (!setjmp(t.escape)) {
        turbo_coefficients(&t);
        if (out->n_planes == 1 || out->n_planes == 3)
            turbo_samples(&t);
        ok = 1;
    }
    jpeg_destroy_decompress(&t.lib);
    return ok;
}

const char *twin_difference(const struct twin *a, const struct twin *b)
{
    if (a->n_planes != b->n_planes)
        return "number of planes";
    for (unsigned i = 0; i < a->n_planes; i++) {
        const struct twin_plane *p = &a->plane[i], *q = &b->plane[i];
        if (p->across != q->across || p->down != q->down)
            return "size of a plane";
        size_t n = (size_t)p->across * p->down * 64;
        if (memcmp(p->coefficients, q->coefficients, n * 2))
            return "coefficients";
        if (memcmp(p->samples, q->samples, n))
            return "samples";
    }
    return NULL;
}

/* ---- files ---- */

struct twin_kind twin_kind(unsigned n, unsigned largest)
{
    static const struct {
        unsigned n_components;
        int h[3], v[3];
    } samplings[12] = {
        {3, {1, 1, 1}, {1, 1, 1}}, {3, {2, 1, 1}, {1, 1, 1}}, {3, {2, 1, 1}, {2, 1, 1}},
        {3, {1, 1, 1}, {2, 1, 1}}, {3, {4, 1, 1}, {1, 1, 1}}, {3, {4, 1, 1}, {2, 1, 1}},
        {3, {1, 1, 1}, {4, 1, 1}}, {3, {3, 1, 1}, {1, 1, 1}}, {1, {1, 1, 1}, {1, 1, 1}},
        {1, {2, 1, 1}, {2, 1, 1}}, {3, {2, 1, 2}, {2, 2, 1}}, {3, {3, 2, 1}, {1, 2, 1}},
    };
    uint64_t state = n * 7919u + 1;
    unsigned s = n % 12, side = 1 + sample_random(&state) % 40;
    if (sample_random(&state) % 4 == 0)
        side = 1 + sample_random(&state) % 400;
    struct twin_kind k = {
        .width = n < 12 ? 1 : side,
        .height = n < 12 ? 1 : 1 + sample_random(&state) % (2 * side),
        .seed = n,
        .n_components = samplings[s].n_components,
        .quality = 1 + (int)(sample_random(&state) % 100),
        .restart_interval = sample_random(&state) % 3 ? 0 : 1 + sample_random(&state) % 9,
        .optimise = sample_random(&state) % 2 ? 1 : 0,
        .noise = sample_random(&state) % 5 == 0,
    };
    if (k.restart_interval && n % 5 == 0) /* more than a row of MCUs */
        k.restart_interval += k.width + n % 700;
    if (largest > 400 && n % 97 == 24) {
        k.width = 401 + sample_random(&state) % (largest - 401);
        k.height = 401 + sample_random(&state) % ((largest - 401) / 12 + 1);
    } else if (largest > 400 && n % 97 == 72) {
        k.width = 401 + sample_random(&state) % ((largest - 401) / 12 + 1);
        k.height = 401 + sample_random(&state) % (largest - 401);
    } else if (n % 97 == 96) { /* a long side now and then */
        k.width = largest;
        k.height = 1 + sample_random(&state) % 50;
    } else if (n % 97 == 48) {
        k.width = 1 + sample_random(&state) % 50;
        k.height = largest;
    }
    memcpy(k.h, samplings[s].h, sizeof k.h);
    memcpy(k.v, samplings[s].v, sizeof k.v);
    return k;
}

static struct photo noise_of(const struct twin_kind *k)
{
    struct photo p = {k->width, k->height, need(malloc((size_t)k->width * k->height * 3))};
    uint64_t state = k->seed;
    for (size_t i = 0; i < (size_t)k->width * k->height * 3; i++)
        p.rgb[i] = sample_random(&state) & 64 ? 255 : (uint8_t)(sample_random(&state) % 256);
    return p;
}

static void write_pixels(struct jpeg_compress_struct *c, const struct photo *p)
{
    jpeg_start_compress(c, TRUE);
    for (unsigned y = 0; y < p->height; y++) {
        JSAMPROW row = p->rgb + (size_t)y * p->width * 3;
        jpeg_write_scanlines(c, &row, 1);
    }
}

/* libjpeg shrinks chroma by whole factors only.  For others it is given planes, of any samples. */
static void write_planes(struct jpeg_compress_struct *c, const struct photo *p)
{
    JSAMPROW rows[3][MAX_SAMP_FACTOR * DCTSIZE];
    JSAMPARRAY planes[3] = {rows[0], rows[1], rows[2]};
    size_t width = (size_t)p->width * MAX_SAMP_FACTOR + 8 * MAX_SAMP_FACTOR * DCTSIZE;
    uint8_t *memory = need(malloc(3 * MAX_SAMP_FACTOR * DCTSIZE * width));
    size_t n = (size_t)p->width * p->height * 3;
    for (size_t i = 0; i < 3 * MAX_SAMP_FACTOR * DCTSIZE * width; i++)
        memory[i] = p->rgb[i * 3 % n];
    for (int i = 0; i < 3 * MAX_SAMP_FACTOR * DCTSIZE; i++)
        rows[i / (MAX_SAMP_FACTOR * DCTSIZE)][i % (MAX_SAMP_FACTOR * DCTSIZE)] =
            memory + (size_t)i * width;
    c->raw_data_in = TRUE;
    jpeg_start_compress(c, TRUE);
    while (c->next_scanline < c->image_height)
        jpeg_write_raw_data(c, planes, (JDIMENSION)c->max_v_samp_factor * DCTSIZE);
    free(memory);
}

struct sample twin_encode(const struct twin_kind *k)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long len = 0;
    struct photo p = k->noise ? noise_of(k) : sample_photo(k->width, k->height, k->seed);
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &bytes, &len);
    c.image_width = k->width;
    c.image_height = k->height;
    c.in_color_space = JCS_RGB;
    c.input_components = 3;
    jpeg_set_defaults(&c);
    jpeg_set_colorspace(&c, k->n_components == 1 ? JCS_GRAYSCALE : JCS_YCbCr);
    for (unsigned i = 0; i < k->n_components; i++) {
        c.comp_info[i].h_samp_factor = k->h[i];
        c.comp_info[i].v_samp_factor = k->v[i];
    }
    jpeg_set_quality(&c, k->quality, TRUE);
    c.optimize_coding = k->optimise ? TRUE : FALSE;
    c.restart_interval = k->restart_interval;
    static const jpeg_scan_info scans[] = {
        {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    if (k->several_scans) {
        c.scan_info = scans;
        c.num_scans = (int)k->n_components;
    }
    if (k->n_components == 3 && k->h[0] % k->h[1])
        write_planes(&c, &p);
    else
        write_pixels(&c, &p);
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    free(p.rgb);
    return (struct sample){bytes, len};
}

const char *twin_text(const struct twin_kind *k, char *text, size_t size)
{
    snprintf(text, size, "%u x %u, %u components %dx%d %dx%d %dx%d, q%d, restart %u%s%s, seed %u",
             k->width, k->height, k->n_components, k->h[0], k->v[0], k->h[1], k->v[1], k->h[2],
             k->v[2], k->quality, k->restart_interval, k->optimise ? ", own tables" : "",
             k->noise ? ", noise" : "", k->seed);
    return text;
}
