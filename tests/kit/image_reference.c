/* image_reference.c - see image_reference.h. */
#include "image_reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

struct photo reference_jpeg(const struct sample *s)
{
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    d.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, s->bytes, s->len);
    jpeg_read_header(&d, TRUE);
    int four = d.num_components == 4;
    d.out_color_space = four ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&d);
    struct photo p = {d.output_width, d.output_height,
                      malloc((size_t)d.output_width * d.output_height * 3)};
    uint8_t *line = malloc((size_t)p.width * 4);
    while (d.output_scanline < d.output_height) {
        uint8_t *out = p.rgb + (size_t)d.output_scanline * p.width * 3;
        JSAMPROW row = four ? line : out;
        jpeg_read_scanlines(&d, &row, 1);
        for (unsigned x = 0; four && x < p.width; x++)
            for (int c = 0; c < 3; c++)
                out[3 * x + (unsigned)c] =
                    (uint8_t)(line[4 * x + (unsigned)c] * line[4 * x + 3] / 255);
    }
    free(line);
    jpeg_finish_decompress(&d);
    jpeg_destroy_decompress(&d);
    return p;
}

struct photo reference_crop(const struct photo *p, unsigned x, unsigned y, unsigned w, unsigned h,
                            int flip)
{
    struct photo out = {w, h, malloc((size_t)w * h * 3)};
    for (unsigned j = 0; j < h; j++)
        for (unsigned i = 0; i < w; i++)
            memcpy(out.rgb + ((size_t)j * w + (flip ? w - 1 - i : i)) * 3,
                   p->rgb + ((size_t)(y + j) * p->width + x + i) * 3, 3);
    return out;
}

static double at(const struct photo *p, unsigned x, unsigned y, unsigned c)
{
    return p->rgb[((size_t)y * p->width + x) * 3 + c];
}

float *reference_bilinear(const struct photo *p, unsigned width, unsigned height)
{
    float *out = malloc((size_t)width * height * 3 * sizeof *out);
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 0; x < width; x++)
            for (unsigned c = 0; c < 3; c++) {
                double sx = (double)x * p->width / width, sy = (double)y * p->height / height;
                unsigned x0 = (unsigned)floor(sx), y0 = (unsigned)floor(sy);
                unsigned x1 = x0 + 1 < p->width ? x0 + 1 : p->width - 1;
                unsigned y1 = y0 + 1 < p->height ? y0 + 1 : p->height - 1;
                double fx = sx - x0, fy = sy - y0;
                double top = at(p, x0, y0, c) * (1 - fx) + at(p, x1, y0, c) * fx;
                double low = at(p, x0, y1, c) * (1 - fx) + at(p, x1, y1, c) * fx;
                out[((size_t)y * width + x) * 3 + c] = (float)(top * (1 - fy) + low * fy);
            }
    return out;
}

/* How much of [from, to) lies in [i, i + 1). */
static double covered(double from, double to, unsigned i)
{
    double a = fmax(from, i), b = fmin(to, i + 1.0);
    return b > a ? b - a : 0;
}

float *reference_area(const struct photo *p, unsigned width, unsigned height)
{
    float *out = malloc((size_t)width * height * 3 * sizeof *out);
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 0; x < width; x++) {
            double x0 = (double)x * p->width / width, x1 = (x + 1.0) * p->width / width;
            double y0 = (double)y * p->height / height, y1 = (y + 1.0) * p->height / height;
            double sum[3] = {0}, weight = 0;
            for (unsigned j = (unsigned)y0; j < p->height && j < y1; j++)
                for (unsigned i = (unsigned)x0; i < p->width && i < x1; i++) {
                    double w = covered(x0, x1, i) * covered(y0, y1, j);
                    weight += w;
                    for (unsigned c = 0; c < 3; c++)
                        sum[c] += w * at(p, i, j, c);
                }
            for (unsigned c = 0; c < 3; c++)
                out[((size_t)y * width + x) * 3 + c] = (float)(sum[c] / weight);
        }
    return out;
}

struct difference reference_compare(const float *pixels, const float *reference, size_t n)
{
    struct difference d = {0};
    for (size_t i = 0; i < n; i++) {
        double e = fabs((double)pixels[i] * 255 - (double)reference[i]);
        d.mean += e / (double)n;
        d.max = e > d.max || e != e ? e : d.max;
    }
    return d;
}
