/* fuzz_jpeg_twin.c - our own JPEG decoder against libjpeg-turbo, on any bytes.
 *
 * What our stages take, libjpeg-turbo takes, with equal coefficients and samples.  And a decoder
 * that may use both answers every file as one that has only libjpeg-turbo: the same code, the same
 * words, the same pixels.  The first byte selects options and, on its own, the
 * instruction set: every set meets whole images, crops and areas. */
#include "fuzz_entry.h"
#include "jpeg_twin.h"

#include "kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_WAYS     6
#define MAX_PIXELS (1u << 18)

static const struct mr_decoder_opts ways[N_WAYS] = {
    {.width = 32, .height = 24},
    {.width = 16, .height = 16, .resize = MR_RESIZE_AREA},
    {.width = 40, .height = 33, .augment = MR_AUGMENT_CROP_FLIP, .layout = MR_IMAGE_NCHW},
    {.width = 32, .height = 24, .accept_truncated = 1, .dtype = MR_DT_U8},
    {.width = 1, .height = 1},
    {.width = 9, .height = 40, .augment = MR_AUGMENT_CROP_FLIP, .dtype = MR_DT_U8},
};
static const enum mr_image_simd simds[] = {MR_SIMD_AVX512, MR_SIMD_AVX2, MR_SIMD_SCALAR};

#define N_SIMDS (sizeof simds / sizeof simds[0])

/* Made when first used, as in a pipeline. */
static struct mr_decoder *decoders[N_WAYS][N_SIMDS][2];

static void broken(const char *what)
{
    fprintf(stderr, "fuzz_jpeg_twin: %s\n", what);
    abort();
}

static enum mr_image_simd pick_simd(unsigned n)
{
    return mr_kernels_pick(simds[n]) ? simds[n] : MR_SIMD_SCALAR;
}

static void compare_decoders(unsigned way, unsigned set, const uint8_t *file, size_t len)
{
    struct mr_decoder **two = decoders[way][set];
    static float slots[2][40 * 40 * 3];
    int r[2];
    for (int i = 0; i < 2; i++) {
        struct mr_decoder_opts o = ways[way];
        o.max_pixels = MAX_PIXELS;
        o.decoder = i ? MR_DECODER_TURBO : MR_DECODER_AUTO;
        o.simd = pick_simd(set);
        if (!two[i] && mr_decoder_new(&o, &two[i]))
            broken("no decoder");
        r[i] = mr_decoder_run(two[i], file, len, len, slots[i]);
    }
    if (r[0] != r[1])
        broken("one decoder takes what the other refuses");
    if (strcmp(mr_decoder_error(two[0]), mr_decoder_error(two[1])))
        broken("the words differ");
    if (!r[0] && memcmp(slots[0], slots[1], mr_decoder_bytes(&ways[way])))
        broken("the pixels differ");
}

/* Pixels that the header claims, read as any frame header. */
static int is_small(unsigned set, const uint8_t *file, size_t len)
{
    struct mr_image_info info;
    return !mr_decoder_probe(decoders[0][set][1], file, len, &info) &&
           (uint64_t)info.width * info.height <= MAX_PIXELS;
}

static void compare_stages(unsigned set, const uint8_t *file, size_t len)
{
    struct twin own, turbo;
    if (is_small(set, file, len)) {
        int taken = twin_own(file, len, pick_simd(set), &own);
        if (taken) {
            if (!twin_turbo(file, len, &turbo))
                broken("our stages take what libjpeg-turbo refuses");
            const char *difference = twin_difference(&own, &turbo);
            if (difference)
                broken(difference);
            twin_free(&turbo);
        }
        twin_free(&own);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < 4)
        return 0;
    unsigned way = data[0] % N_WAYS, set = data[0] / N_WAYS % N_SIMDS;
    uint8_t *file = malloc(len - 1); /* of exactly its size, for the memory checker */
    if (!file)
        return 0;
    memcpy(file, data + 1, len - 1);
    file[0] = 0xff;
    file[1] = 0xd8;
    compare_decoders(way, set, file, len - 1);
    compare_decoders(0, set, file, len - 1);
    compare_stages(set, file, len - 1);
    free(file);
    return 0;
}
