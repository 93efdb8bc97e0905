/* decoder.c - struct mr_decoder: options, which reader an image goes to, times.
 *
 *     bytes -> jpeg_baseline  planes          \
 *              jpeg_reader    planes or rows   > plane_resizer -> slot
 *              png_reader     rows            /
 *
 * All that is needed again for the next image is kept, and grows to the largest image seen; what
 * libjpeg takes for an image (two small blocks, unless it is progressive) it takes again for the
 * next. */
#include "errtext.h"
#include "clock.h"
#include "jpeg_baseline.h"
#include "jpeg_reader.h"
#include "png_reader.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SIDE   224
#define MAX_SIDE       16384
#define DEFAULT_PIXELS ((uint64_t)64 << 20)
#define MOST_PIXELS    ((uint64_t)1 << 40) /* keeps sums of pixels within 64 bits */

struct mr_decoder {
    struct mr_decoder_opts opts; /* complete */
    struct mr_resizer resizer;
    struct mr_own_jpeg *own; /* NULL when not wanted */
    struct mr_jpeg *jpeg;
    struct mr_png *png;
    struct mr_decoder_times times;
    enum mr_decoder_path path;
    struct mr_error error;
};

static int is_sane(const struct mr_decoder_opts *o)
{
    for (int c = 0; c < 3; c++)
        if (!isfinite(o->mean[c]) || !isfinite(o->std[c]) || o->std[c] < 0)
            return 0;
    return o->width <= MAX_SIDE && o->height <= MAX_SIDE && (unsigned)o->resize <= MR_RESIZE_AREA &&
           (o->dtype == MR_DT_F32 || o->dtype == MR_DT_U8) &&
           (unsigned)o->layout <= MR_IMAGE_NCHW && (unsigned)o->augment <= MR_AUGMENT_CROP_FLIP &&
           (unsigned)o->simd <= MR_SIMD_AVX512 && (unsigned)o->decoder <= MR_DECODER_TURBO;
}

/* Fill in the defaults: 0 or -EINVAL. */
static int complete(const struct mr_decoder_opts *opts, struct mr_decoder_opts *out)
{
    *out = opts ? *opts : (struct mr_decoder_opts){0};
    if (!out->dtype)
        out->dtype = MR_DT_F32;
    if (!is_sane(out))
        return -EINVAL;
    if (!out->width)
        out->width = DEFAULT_SIDE;
    if (!out->height)
        out->height = DEFAULT_SIDE;
    if (!out->max_pixels)
        out->max_pixels = DEFAULT_PIXELS;
    if (out->max_pixels > MOST_PIXELS)
        out->max_pixels = MOST_PIXELS;
    return 0;
}

size_t mr_decoder_bytes(const struct mr_decoder_opts *opts)
{
    struct mr_decoder_opts o;
    if (complete(opts, &o))
        return 0;
    return (size_t)o.width * o.height * 3 * mr_dtype_size(o.dtype);
}

int mr_decoder_new(const struct mr_decoder_opts *opts, struct mr_decoder **out)
{
    struct mr_decoder_opts o;
    if (complete(opts, &o))
        return -EINVAL;
    const struct mr_kernels *kernels = mr_kernels_pick(o.simd);
    if (!kernels)
        return -ENOTSUP;
    struct mr_decoder *d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    d->opts = o;
    mr_resizer_init(&d->resizer, &d->opts, kernels);
    int r = mr_jpeg_new(&d->jpeg);
    if (!r && o.decoder == MR_DECODER_AUTO)
        r = mr_own_jpeg_new(kernels, &d->own);
    if (!r)
        r = mr_png_new(&d->png);
    if (r) {
        mr_decoder_free(d);
        return r;
    }
    *out = d;
    return 0;
}

void mr_decoder_free(struct mr_decoder *d)
{
    if (!d)
        return;
    mr_own_jpeg_free(d->own);
    mr_jpeg_free(d->jpeg);
    mr_resizer_fini(&d->resizer);
    mr_png_free(d->png);
    free(d);
}

static int begins_with(const struct mr_frame *f, const void *magic, size_t n)
{
    size_t have = f->len < n ? f->len : n;
    return have && !memcmp(f->bytes, magic, have);
}

/* The format that the first bytes tell, or -errno.  A file cut within them is truncated. */
static int recognise(const struct mr_frame *f)
{
    if (!f->len)
        return mr_fail(f->error, -ENODATA, "empty");
    if (begins_with(f, "\xff\xd8\xff", 3))
        return MR_IMAGE_JPEG;
    if (begins_with(f, "\x89PNG\r\n\x1a\n", 8))
        return MR_IMAGE_PNG;
    return mr_fail(f->error, -EBADMSG, "neither JPEG nor PNG");
}

static struct mr_frame new_frame(struct mr_decoder *d, const void *bytes, size_t len)
{
    d->error = (struct mr_error){0};
    return (struct mr_frame){
        .bytes = bytes, .len = len, .opts = &d->opts, .resizer = &d->resizer, .error = &d->error};
}

/* Our own decoder first; what it does not take, the other one does or refuses. */
static int run_jpeg(struct mr_decoder *d, const struct mr_frame *f)
{
    d->path = MR_PATH_OWN;
    int r = d->own ? mr_own_jpeg_run(d->own, f) : 1;
    if (r <= 0)
        return r;
    d->path = MR_PATH_TURBO;
    return mr_jpeg_run(d->jpeg, f);
}

int mr_decoder_run(struct mr_decoder *d, const void *bytes, size_t len, uint64_t key, void *slot)
{
    uint64_t begin_ns = mr_clock_ns();
    struct mr_frame f = new_frame(d, bytes, len);
    f.key = key;
    f.slot = slot;
    d->resizer.spent_ns = 0;
    int r = recognise(&f);
    if (r == MR_IMAGE_JPEG) {
        r = run_jpeg(d, &f);
    } else if (r == MR_IMAGE_PNG) {
        d->path = MR_PATH_PNG;
        r = mr_png_run(d->png, &f);
    }
    if (r)
        d->path = MR_PATH_NONE;
    d->times.begin_ns = begin_ns;
    d->times.resize_ns = d->resizer.spent_ns;
    d->times.decode_ns = mr_clock_ns() - begin_ns - d->times.resize_ns;
    return r;
}

int mr_decoder_probe(struct mr_decoder *d, const void *bytes, size_t len, struct mr_image_info *out)
{
    struct mr_frame f = new_frame(d, bytes, len);
    int r = recognise(&f);
    if (r < 0)
        return r;
    return r == MR_IMAGE_JPEG ? mr_jpeg_probe(d->jpeg, &f, out) : mr_png_probe(&f, out);
}

const char *mr_decoder_error(const struct mr_decoder *d)
{
    return d->error.text;
}

void mr_decoder_get_times(const struct mr_decoder *d, struct mr_decoder_times *out)
{
    *out = d->times;
}

enum mr_decoder_path mr_decoder_path(const struct mr_decoder *d)
{
    return d->path;
}
