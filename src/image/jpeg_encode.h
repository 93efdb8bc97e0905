/* jpeg_encode.h - pixels in memory to JPEG bytes in memory.
 * Lifetime: new -> encode* -> free.  One encoder per thread. */
#ifndef MR_JPEG_ENCODE_H
#define MR_JPEG_ENCODE_H

#include <millrace/api.h>

enum mr_chroma {
    MR_CHROMA_444, /* every pixel has its own colour */
    MR_CHROMA_420, /* 2 x 2 pixels share one */
    MR_CHROMA_422, /* 2 x 1 */
    MR_CHROMA_GREY,
};

enum mr_pixel_layout {
    MR_PIXELS_RGB, /* plane[0]: R G B R G B ... */
    MR_PIXELS_YCC, /* plane[0..2]: Y, Cb and Cr (JFIF), each at full resolution */
};

/* Borrowed pixels; row y of a plane begins at plane[] + y * stride_bytes. */
struct mr_pixels {
    enum mr_pixel_layout layout;
    unsigned width, height; /* 1 .. 65500 */
    size_t stride_bytes;
    const uint8_t *plane[3];
};

struct mr_jpeg_opts { /* zero means default */
    unsigned quality; /* 1 .. 100, libjpeg's scale; 0 = 75 */
    enum mr_chroma chroma;
    unsigned restart_interval; /* in MCUs; 0 = no restart markers */
    int progressive;
    int optimize;        /* Huffman tables made for this image instead of the standard's */
    const void *comment; /* borrowed; written into comment segments */
    size_t comment_bytes;
};

struct mr_jpeg_encoder;

int mr_jpeg_encoder_new(struct mr_jpeg_encoder **out);
/* NULL is a no-op. */
void mr_jpeg_encoder_free(struct mr_jpeg_encoder *e);

/* Encode.  NULL opts = all defaults.  The bytes belong to the encoder and stay until its next
 * call.  The same pixels and options give the same bytes on every machine. */
int mr_jpeg_encode(struct mr_jpeg_encoder *e, const struct mr_pixels *pixels,
                   const struct mr_jpeg_opts *opts, const uint8_t **bytes, size_t *n_bytes,
                   struct mr_error *err);

#endif
