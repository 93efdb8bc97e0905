/* fuzz_image.c - see fuzz_image.h. */
#include "fuzz_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct mr_decoder_opts ways[FUZZ_WAYS] = {
    {.width = 32, .height = 24},
    {.width = 32, .height = 24, .exact = 1},
    {.width = 16, .height = 16, .resize = MR_RESIZE_AREA},
    {.width = 40, .height = 33, .augment = MR_AUGMENT_CROP_FLIP, .layout = MR_IMAGE_NCHW},
    {.width = 32, .height = 24, .accept_truncated = 1},
    {.width = 32, .height = 24, .accept_truncated = 1, .exact = 1, .dtype = MR_DT_U8},
    {.width = 7, .height = 5, .accept_truncated = 1, .resize = MR_RESIZE_AREA},
    {.width = 20, .height = 20, .simd = MR_SIMD_SCALAR, .dtype = MR_DT_U8},
};

static int is_known(int r)
{
    return r == 0 || r == -ENODATA || r == -EBADMSG || r == -ENOTSUP || r == -EFBIG || r == -ENOMEM;
}

static void check(struct mr_decoder *d, const struct mr_decoder_opts *o, const uint8_t *bytes,
                  size_t len, uint64_t key)
{
    static float slot[40 * 40 * 3];
    struct mr_image_info info;
    int r = mr_decoder_run(d, bytes, len, key, slot);
    if (!is_known(r) || (r != 0) != (mr_decoder_error(d)[0] != 0))
        abort();
    int probed = mr_decoder_probe(d, bytes, len, &info);
    if (!is_known(probed) || (r == 0 && probed != 0))
        abort();
    /* Read every pixel, so that a memory checker sees one that was never written. */
    double sum = 0;
    for (size_t i = 0; r == 0 && i < mr_decoder_bytes(o); i++)
        sum += ((const uint8_t *)slot)[i];
    if (sum < 0)
        abort();
}

int fuzz_image(struct fuzz_decoders *f, const uint8_t *magic, size_t n_magic, const uint8_t *data,
               size_t len)
{
    if (len < 1 + n_magic)
        return 0;
    unsigned way = data[0] % FUZZ_WAYS;
    struct mr_decoder_opts o = ways[way];
    o.max_pixels = 1 << 20;
    if (!f->of[way] && mr_decoder_new(&o, &f->of[way]))
        abort();
    uint8_t *file = malloc(len - 1); /* of exactly its size, for the memory checker */
    if (!file)
        return 0;
    memcpy(file, data + 1, len - 1);
    memcpy(file, magic, n_magic);
    check(f->of[way], &o, file, len - 1, data[0]);
    free(file);
    return 0;
}
