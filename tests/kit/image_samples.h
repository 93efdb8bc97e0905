/* image_samples.h - JPEG and PNG files made in memory, for the tests of src/image. */
#ifndef IMAGE_SAMPLES_H
#define IMAGE_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

/* A file, or pixels: free(bytes). */
struct sample {
    uint8_t *bytes;
    size_t len;
};

struct photo {
    unsigned width, height;
    uint8_t *rgb; /* free() */
};

/* Something like a photograph: smooth colours, edges, texture, a little noise. */
struct photo sample_photo(unsigned width, unsigned height, unsigned seed);

/* All edges: rectangles of any colour over each other, hatched in part. */
struct photo sample_edges(unsigned width, unsigned height, unsigned seed);

enum sample_colour { SAMPLE_YCC, SAMPLE_GREY, SAMPLE_RGB, SAMPLE_CMYK, SAMPLE_YCCK };

struct jpeg_kind {
    const char *name;
    enum sample_colour colour;
    int h, v;    /* sampling factors of luma (chroma 1 x 1); 0 = 1 */
    int quality; /* 0 = 90 */
    int progressive, arithmetic, optimise;
    int restart_rows; /* rows of MCUs from one restart marker to the next */
};

/* Every kind that the tests go through; the name of the last is NULL. */
extern const struct jpeg_kind sample_jpeg_kinds[];

struct sample sample_jpeg(const struct photo *p, const struct jpeg_kind *k);

struct png_kind {
    const char *name;
    int colour_type; /* of spng: 0 grey, 2 RGB, 3 palette, 4 grey + alpha, 6 RGBA */
    int bits;
    int interlaced;
};

extern const struct png_kind sample_png_kinds[];

/* *rgb, if not NULL, becomes what a decoder should see: width * height * 3 bytes, free(). */
struct sample sample_png(const struct photo *p, const struct png_kind *k, uint8_t **rgb);

/* Small repeatable random numbers. */
uint32_t sample_random(uint64_t *state);

#endif
