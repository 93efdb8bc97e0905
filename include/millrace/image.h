/* image.h - JPEG and PNG bytes in, pixels of one size out.
 *
 * Lifetime: new -> (run | probe)* -> free.  A decoder belongs to one thread at a time; each thread
 *           has its own.
 * Errors:   -ENODATA truncated, -EBADMSG corrupt or not an image, -ENOTSUP an unsupported kind of
 *           image, -EFBIG more than max_pixels or 65,535 a side, -ENOMEM.  A decoder works on after
 *           an error.
 *
 * The content decides what a file is, not its name.  JPEG: baseline, progressive and arithmetic
 * coding, grey, YCbCr, RGB, CMYK and YCCK, every chroma sampling, restart markers; a rotation noted
 * in EXIF is ignored.  PNG: every colour type and depth, interlaced or not; alpha is dropped, 16
 * bits become 8.
 *
 * Memory:   a decoder keeps its buffers, which grow to the largest image seen.  Then baseline JPEG
 *           and 8-bit PNG without palette or interlacing allocate nothing.  For all others
 *           libjpeg-turbo and libspng allocate rows, or a whole progressive or interlaced image.
 *           An image that is refused by its header costs nothing.
 *
 * The pixels are a function of (bytes, options, key) and of nothing else; `simd` does not matter.
 */
/* Example:
 *
 *     static uint8_t file[1 << 20];
 *     struct mr_decoder_opts opts = {.width = 224, .height = 224, .layout = MR_IMAGE_NCHW};
 *     float *slot = aligned_alloc(64, mr_decoder_bytes(&opts));
 *     struct mr_decoder *dec;
 *     size_t len;
 *
 *     if (!slot || mr_file_read("photo.jpg", file, sizeof file, &len, NULL) ||
 *         mr_decoder_new(&opts, &dec, NULL))
 *         return 1;
 *     if (mr_decoder_run(dec, file, len, 0, slot))
 *         puts(mr_decoder_error(dec));
 *     mr_decoder_free(dec);
 *     free(slot);
 */
#ifndef MILLRACE_IMAGE_H
#define MILLRACE_IMAGE_H

#include <millrace/api.h>
#include <millrace/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

enum mr_image_resize {
    MR_RESIZE_BILINEAR, /* TensorFlow 1's: pixel x comes from x * in / out, two neighbours a side */
    MR_RESIZE_AREA,     /* the mean of all that a pixel covers; may use JPEG's cheap half sizes */
};

enum mr_image_layout {
    MR_IMAGE_NHWC, /* red, green, blue of a pixel side by side */
    MR_IMAGE_NCHW, /* all red, then all green, then all blue */
};

enum mr_image_augment {
    MR_AUGMENT_NONE,      /* the whole image */
    MR_AUGMENT_CROP_FLIP, /* a random part of 8..100% of the area with sides 3:4 to 4:3, every
                           * second one mirrored: torchvision's RandomResizedCrop and horizontal
                           * flip */
};

/* For tests; the pixels are the same. */
enum mr_image_simd {
    MR_SIMD_BEST,
    MR_SIMD_SCALAR,
    MR_SIMD_AVX2,
    MR_SIMD_AVX512,
};

/* Of JPEG; the pixels are the same. */
enum mr_image_decoder {
    MR_DECODER_AUTO,  /* our own for plain baseline files, else libjpeg-turbo */
    MR_DECODER_TURBO, /* libjpeg-turbo for all */
};

struct mr_decoder_opts {    /* zero means default */
    unsigned width, height; /* of the output, at most 16384; 0 = 224 */
    enum mr_image_resize resize;
    enum mr_dtype dtype; /* F32: 0..1, or (v - mean) / std; U8: 0..255; 0 = F32 */
    enum mr_image_layout layout;
    enum mr_image_augment augment;
    float mean[3], std[3]; /* F32 only, in units of 0..1; std 0 = 1 */
    uint64_t max_pixels;   /* larger images are refused by their header; 0 = 67,108,864 */
    int exact;             /* no shortcuts: full decode to RGB, then resize */
    int accept_truncated;  /* take what there is of a truncated or damaged image */
    enum mr_image_simd simd;
    enum mr_image_decoder decoder;
};

struct mr_decoder;

MR_API size_t mr_decoder_bytes_sized(const struct mr_decoder_opts *opts, size_t size);
/* Bytes that mr_decoder_run writes: width * height * 3 of the type; 0 for invalid options.
 * NULL = all defaults. */
static inline size_t mr_decoder_bytes(const struct mr_decoder_opts *opts)
{
    return mr_decoder_bytes_sized(opts, sizeof *opts);
}

MR_API int mr_decoder_new_sized(const struct mr_decoder_opts *opts, size_t size,
                                struct mr_decoder **out, struct mr_error *err);
/* -EINVAL: options out of range; -ENOTSUP: this processor lacks the `simd` that was asked for. */
static inline int mr_decoder_new(const struct mr_decoder_opts *opts, struct mr_decoder **out,
                                 struct mr_error *err)
{
    return mr_decoder_new_sized(opts, sizeof *opts, out, err);
}
/* NULL is a no-op. */
MR_API void mr_decoder_free(struct mr_decoder *d);

/* Decode one image into `slot` (borrows; 64-byte alignment is fastest, 4 are needed for F32).
 * `key` draws the crop and the flip and is not used without them.  After a failure the contents of
 * `slot` are undefined.
 *
 * All of the file's image data is read, also what the crop does not show: whether an image is
 * refused does not depend on the key. */
MR_API int mr_decoder_run(struct mr_decoder *d, const void *bytes, size_t len, uint64_t key,
                          void *slot);

/* Why the last run or probe failed, in words; "" after a success. */
MR_API const char *mr_decoder_error(const struct mr_decoder *d);

/* Who decoded an image. */
enum mr_decoder_path {
    MR_PATH_NONE, /* the last run failed, or there was none */
    MR_PATH_OWN,  /* our own JPEG decoder */
    MR_PATH_TURBO,
    MR_PATH_PNG,
    MR_N_PATHS
};

/* Of the last run.  decode_ns and resize_ns add up to all of its time. */
struct mr_decoder_stats {
    uint64_t begin_ns;  /* CLOCK_MONOTONIC when it began */
    uint64_t decode_ns; /* entropy decoding, inverse transform, inflate, headers */
    uint64_t resize_ns; /* resize, colour conversion, normalise, write */
    uint64_t path;      /* enum mr_decoder_path */
};
MR_API void mr_decoder_get_stats_sized(const struct mr_decoder *d, struct mr_decoder_stats *out,
                                       size_t size);
static inline void mr_decoder_get_stats(const struct mr_decoder *d, struct mr_decoder_stats *out)
{
    mr_decoder_get_stats_sized(d, out, sizeof *out);
}

enum mr_image_format {
    MR_IMAGE_JPEG = 1,
    MR_IMAGE_PNG,
};

struct mr_image_info {
    enum mr_image_format format;
    uint32_t width, height;
    unsigned components; /* in the file: 1 grey or palette, 2 grey and alpha, 3 colour, 4 CMYK or
                          * colour and alpha */
    unsigned bits;       /* per component */
    int progressive;     /* progressive JPEG or interlaced PNG */
    char sampling[8];    /* JPEG of three components: "4:4:4", "4:2:0", ... or "other"; else "" */
};

MR_API int mr_decoder_probe_sized(struct mr_decoder *d, const void *bytes, size_t len,
                                  struct mr_image_info *out, size_t size);
/* What an image is, from its header alone.  Works for images larger than max_pixels too. */
static inline int mr_decoder_probe(struct mr_decoder *d, const void *bytes, size_t len,
                                   struct mr_image_info *out)
{
    return mr_decoder_probe_sized(d, bytes, len, out, sizeof *out);
}

#ifdef __cplusplus
}
#endif
#endif
