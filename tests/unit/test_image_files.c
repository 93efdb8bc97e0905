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
    {.augment = MR_AUGMENT_CROP_FLIP, .dtype = MR_DT_U8},
};
#define N_WAYS (sizeof ways / sizeof ways[0])

/* What is compared with the reference, and how far it may be: on average over the images, for the
 * worst of them, for a value. */
static const struct {
    const char *name;
    struct mr_decoder_opts opts;
    double mean, worst, most;
} limits[] = {
    {"bilinear", {.width = 224, .height = 224}, 1, 2, 256},
    {"exact", {.width = 224, .height = 224, .exact = 1}, 0.1, 0.1, 1},
    {"area 224", {.width = 224, .height = 224, .resize = MR_RESIZE_AREA}, 2, 10, 256},
    {"area 64", {.width = 64, .height = 64, .resize = MR_RESIZE_AREA}, 2, 10, 256},
    {"area 48", {.width = 48, .height = 48, .resize = MR_RESIZE_AREA}, 2, 10, 256},
    {"area 32", {.width = 32, .height = 32, .resize = MR_RESIZE_AREA}, 2, 10, 256},
    {"exact area", {.width = 64, .height = 64, .resize = MR_RESIZE_AREA, .exact = 1}, 0.1, 0.1, 1},
};
#define N_LIMITS (sizeof limits / sizeof limits[0])

struct tally {
    unsigned n;
    double sum, worst, most;
};

/* nftw has no context to pass. */
static struct {
    struct mr_decoder *decoders[N_WAYS], *compared[N_LIMITS];
    uint8_t *file, *slot;
    unsigned n_files, n_bad;
    struct tally tallies[N_LIMITS];
} all;

static void compare_one(size_t i, const struct photo *full, size_t len)
{
    const struct mr_decoder_opts *o = &limits[i].opts;
    struct tally *t = &all.tallies[i];
    if (mr_decoder_run(all.compared[i], all.file, len, 0, all.slot)) {
        all.n_bad++;
        return;
    }
    float *expected = o->resize == MR_RESIZE_AREA ? reference_area(full, o->width, o->height)
                                                  : reference_bilinear(full, o->width, o->height);
    struct difference e =
        reference_compare((const float *)all.slot, expected, (size_t)o->width * o->height * 3);
    t->n++;
    t->sum += e.mean;
    t->worst = e.mean > t->worst ? e.mean : t->worst;
    t->most = e.max > t->most ? e.max : t->most;
    free(expected);
}

/* Some images, against the reference: it is slow. */
static void compare(size_t len)
{
    struct mr_image_info info;
    if (mr_decoder_probe(all.compared[0], all.file, len, &info) || info.format != MR_IMAGE_JPEG)
        return;
    struct photo full = reference_jpeg(&(struct sample){all.file, len});
    for (size_t i = 0; i < N_LIMITS; i++)
        compare_one(i, &full, len);
    free(full.rgb);
}

/* Print the tallies; nonzero when all are within their limits. */
static int all_are_close(void)
{
    int close = 1;
    for (size_t i = 0; i < N_LIMITS; i++) {
        const struct tally *t = &all.tallies[i];
        double mean = t->n ? t->sum / t->n : 0;
        int ok = mean <= limits[i].mean && t->worst <= limits[i].worst && t->most <= limits[i].most;
        printf("%-10s %u compared: mean %.3f, worst image %.3f, worst value %.2f%s\n",
               limits[i].name, t->n, mean, t->worst, t->most, ok ? "" : ": TOO FAR");
        close &= ok;
    }
    return close;
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *where)
{
    size_t len;
    const char *name = path + where->base;
    if (type != FTW_F || name[0] == '.' || st->st_size == 0)
        return 0;
    if (mr_file_read(path, all.file, MAX_FILE, &len, NULL)) {
        printf("%s: cannot be read\n", path);
        all.n_bad++;
        return 0;
    }
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
    if (!all.file || !all.slot)
        return 1;
    for (size_t i = 0; i < N_WAYS; i++)
        if (mr_decoder_new(&ways[i], &all.decoders[i], NULL))
            return 1;
    for (size_t i = 0; i < N_LIMITS; i++)
        if (mr_decoder_new(&limits[i].opts, &all.compared[i], NULL))
            return 1;
    nftw(root, visit, 16, FTW_PHYS);
    for (size_t i = 0; i < N_WAYS; i++)
        mr_decoder_free(all.decoders[i]);
    for (size_t i = 0; i < N_LIMITS; i++)
        mr_decoder_free(all.compared[i]);
    free(all.file);
    free(all.slot);
    printf("%u files, %u failures\n", all.n_files, all.n_bad);
    return all_are_close() && all.n_files && !all.n_bad ? 0 : 1;
}
