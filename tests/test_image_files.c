/* test_image_files.c - every file below $MILLRACE_TEST_DATA decodes, in the ways that differ.
 * Without that variable the test is skipped. */
#include "image_reference.h"

#include <millrace/image.h>
#include <millrace/store.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE ((size_t)64 << 20)
#define SKIPPED  77

static const struct mr_decoder_opts ways[] = {
    {.layout = MR_IMAGE_NCHW},
    {.resize = MR_RESIZE_AREA, .width = 64, .height = 64},
    {.augment = MR_AUGMENT_CROP_FLIP, .dtype = MR_IMAGE_U8},
};
#define N_WAYS (sizeof ways / sizeof ways[0])

/* nftw has no context to pass. */
static struct {
    struct mr_decoder *decoders[N_WAYS];
    uint8_t *file, *slot;
    unsigned n_files, n_bad, n_compared;
    double sum, worst;
} all;

/* Some images, against the reference: it is slow. */
static void compare(size_t len)
{
    struct mr_decoder_opts o = {.width = 224, .height = 224};
    struct mr_decoder *d = NULL;
    struct mr_image_info info;
    if (mr_decoder_new(&o, &d))
        abort();
    if (!mr_decoder_probe(d, all.file, len, &info) && info.format == MR_IMAGE_JPEG &&
        !mr_decoder_run(d, all.file, len, 0, all.slot)) {
        struct photo full = reference_jpeg(&(struct sample){all.file, len});
        float *expected = reference_bilinear(&full, 224, 224);
        struct difference e =
            reference_compare((const float *)all.slot, expected, (size_t)224 * 224 * 3);
        all.sum += e.mean;
        all.worst = e.mean > all.worst ? e.mean : all.worst;
        all.n_compared++;
        free(expected);
        free(full.rgb);
    }
    mr_decoder_free(d);
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *where)
{
    size_t len;
    const char *name = path + where->base;
    if (type != FTW_F || name[0] == '.' || st->st_size == 0)
        return 0;
    if (mr_file_read(path, all.file, MAX_FILE, &len))
        return 0;
    for (size_t i = 0; i < N_WAYS; i++) {
        int r = mr_decoder_run(all.decoders[i], all.file, len, all.n_files, all.slot);
        if (r) {
            printf("%s: %s\n", path, mr_decoder_error(all.decoders[i]));
            all.n_bad++;
        }
    }
    if (all.n_files++ % 16 == 0)
        compare(len);
    return 0;
}

int main(void)
{
    const char *root = getenv("MILLRACE_TEST_DATA");
    if (!root || !*root) {
        printf("SKIP: MILLRACE_TEST_DATA is not set\n");
        return SKIPPED;
    }
    all.file = malloc(MAX_FILE);
    all.slot = aligned_alloc(64, mr_decoder_bytes(&ways[0]));
    for (size_t i = 0; i < N_WAYS; i++)
        if (!all.file || !all.slot || mr_decoder_new(&ways[i], &all.decoders[i]))
            return 1;
    nftw(root, visit, 16, FTW_PHYS);
    for (size_t i = 0; i < N_WAYS; i++)
        mr_decoder_free(all.decoders[i]);
    free(all.file);
    free(all.slot);
    printf("%u files, %u failures; %u compared: mean %.3f, worst %.3f\n", all.n_files, all.n_bad,
           all.n_compared, all.n_compared ? all.sum / all.n_compared : 0, all.worst);
    int close = !all.n_compared || (all.sum / all.n_compared <= 1 && all.worst <= 2);
    return all.n_files && !all.n_bad && close ? 0 : 1;
}
