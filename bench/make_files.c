/* make_files.c - a data set of files with ImageNet's sizes, for measuring reads.
 *
 *     make_files OUT [COUNT [FROM]]
 *
 * Writes OUT/c00 .. OUT/c15 with COUNT files in all (8,192).  With FROM, a folder of real files,
 * these are repeated; else sizes follow ImageNet's distribution and contents are random bytes
 * (fixed seed). */
#include <millrace/dataset.h>
#include <millrace/store.h>

#include "draw.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CLASSES 16
#define LARGEST ((size_t)1 << 20)

/* Quantiles 0, 1/10 .. 1 of file sizes in bytes: ImageNet's photos. */
static const double size_at[11] = {2500,   38000,  66000,  86000,  100000, 110000,
                                   121000, 134000, 149000, 176000, 700000};

static size_t draw_size(uint64_t i)
{
    double q = (double)(mr_draw(1, MR_DRAW_SYNTHETIC, i, 0, 0) >> 11) / 9007199254740992.0 * 10;
    unsigned k = (unsigned)q;
    double t = q - k;
    /* The top tenth has a long tail. */
    t = k == 9 ? t * t * t : t;
    return (size_t)(size_at[k] + t * (size_at[k + 1] - size_at[k]));
}

static void random_bytes(uint8_t *buf, size_t len, uint64_t i)
{
    for (size_t at = 0; at < len; at += 8) {
        uint64_t w = mr_mix(i * 0x9e3779b97f4a7c15u + at);
        memcpy(buf + at, &w, 8);
    }
}

static int write_file(const char *path, const uint8_t *buf, size_t len)
{
    FILE *f = fopen(path, "wbe");
    int bad = !f || fwrite(buf, 1, len, f) != len;
    if (f && fclose(f))
        bad = 1;
    if (bad)
        fprintf(stderr, "make_files: %s: %s\n", path, strerror(errno));
    return bad;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: make_files OUT [COUNT [FROM]]\n");
        return 2;
    }
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 8192;
    struct mr_dataset *from = NULL;
    struct mr_error err = {0};
    char path[PATH_MAX], source[PATH_MAX];
    uint8_t *buf = malloc(LARGEST + 8);
    int bad = !buf || !count;
    if (argc > 3 && mr_dataset_open(argv[3], &from, &err)) {
        fprintf(stderr, "make_files: %s\n", err.text);
        bad = 1;
    }
    if (!bad && mkdir(argv[1], 0777) && errno != EEXIST) {
        fprintf(stderr, "make_files: %s: %s\n", argv[1], strerror(errno));
        bad = 1;
    }
    for (uint64_t i = 0; !bad && i < count; i++) {
        size_t len = draw_size(i);
        snprintf(path, sizeof path, "%s/c%02u", argv[1], (unsigned)(i % CLASSES));
        if (i < CLASSES)
            mkdir(path, 0777);
        if (from) {
            mr_dataset_name(from, i % mr_dataset_size(from), source, sizeof source);
            bad = mr_file_read(source, buf, LARGEST, &len, NULL) != 0;
        } else {
            random_bytes(buf, len, i);
        }
        snprintf(path, sizeof path, "%s/c%02u/%06llu.jpg", argv[1], (unsigned)(i % CLASSES),
                 (unsigned long long)i);
        bad = bad || write_file(path, buf, len);
    }
    mr_dataset_unref(from);
    free(buf);
    return bad;
}
