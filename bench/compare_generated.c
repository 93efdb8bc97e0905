/* compare_generated.c - does a generated set look like the real one to whoever reads and decodes
 * it?
 *
 *     compare_generated REAL_DIR GENERATED_DIR [ROUNDS]
 *
 * Sizes, shapes, bits per pixel and chroma sampling are compared over all files, the rate of
 * libjpeg-turbo's plain decoding (tjDecompress2 to RGB) over up to MOST_DECODED files of each set,
 * in memory, on one thread, in turns (alternate.h), in CPU time: nothing waits, and neighbours on
 * the machine should not count.  Exit 0: everything is within its target. */
#include "alternate.h"
#include "buffer.h"
#include "clock.h"
#include "whole_file.h"

#include <fcntl.h>
#include <millrace/dataset.h>

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <turbojpeg.h>

#define MOST_DECODED 500
#define MOST_BYTES   ((uint64_t)64 << 20)

enum { SIZE, WIDTH, HEIGHT, AREA, BITS, N_MEASURES };
static const char *const measure_name[N_MEASURES] = {"file bytes", "width", "height", "pixels",
                                                     "bits/pixel"};

struct photo {
    struct mr_buffer file;
    size_t n_bytes;
};

struct set {
    const char *name;
    size_t n, n_kept;
    double *measure[N_MEASURES];
    size_t n_sampling[TJ_NUMSAMP];
    struct photo *kept;
    tjhandle decoder;
    struct mr_buffer pixels;
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const struct set *s, int measure, double q)
{
    double at = q * (double)(s->n - 1);
    size_t i = (size_t)at, next = i + 1 < s->n ? i + 1 : i;
    const double *v = s->measure[measure];
    return v[i] + (v[next] - v[i]) * (at - (double)i);
}

static int read_photo(const char *path, struct photo *p)
{
    int fd = mr_whole_file_open(AT_FDCWD, path, 0, MOST_BYTES, &p->n_bytes);
    if (fd < 0)
        return fd;
    if (mr_buffer_reserve(&p->file, p->n_bytes))
        return -1;
    return mr_whole_file_fill(fd, 0, p->file.data, p->n_bytes);
}

static int add_photo(struct set *s, const char *path, int keep)
{
    struct photo p = {0};
    int w, h, sampling, space;
    if (read_photo(path, &p) ||
        tjDecompressHeader3(s->decoder, p.file.data, p.n_bytes, &w, &h, &sampling, &space)) {
        fprintf(stderr, "%s: not a readable JPEG file\n", path);
        mr_buffer_fini(&p.file);
        return -1;
    }
    double area = (double)w * h, bytes = (double)p.n_bytes;
    double values[N_MEASURES] = {bytes, w, h, area, 8 * bytes / area};
    for (int k = 0; k < N_MEASURES; k++)
        s->measure[k][s->n] = values[k];
    s->n++;
    if (sampling >= 0 && sampling < TJ_NUMSAMP)
        s->n_sampling[sampling]++;
    if (keep && !mr_buffer_reserve(&s->pixels, (size_t)w * (size_t)h * 3))
        s->kept[s->n_kept++] = p;
    else
        mr_buffer_fini(&p.file);
    return 0;
}

static int load(struct set *s, const char *dir)
{
    struct mr_dataset *d = NULL;
    struct mr_error err = {0};
    char path[PATH_MAX];
    if (mr_dataset_open(dir, &d, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    uint64_t n = mr_dataset_size(d), step = (n + MOST_DECODED - 1) / MOST_DECODED;
    int r = 0;
    s->name = dir;
    s->decoder = tjInitDecompress();
    s->kept = calloc(MOST_DECODED, sizeof *s->kept);
    for (int k = 0; k < N_MEASURES; k++)
        s->measure[k] = calloc(n, sizeof(double));
    for (uint64_t i = 0; !r && i < n; i++) {
        r = mr_dataset_name(d, i, path, sizeof path);
        if (r > 0)
            r = add_photo(s, path, i % step == 0);
    }
    for (int k = 0; k < N_MEASURES; k++)
        qsort(s->measure[k], s->n, sizeof(double), by_value);
    mr_dataset_unref(d);
    return r;
}

static double cpu_seconds(void)
{
    return (double)mr_clock_thread_cpu_ns() / 1e9;
}

/* Images a second. */
static double decode_all(void *arg)
{
    struct set *s = arg;
    double start = cpu_seconds();
    for (size_t i = 0; i < s->n_kept; i++) {
        const struct photo *p = &s->kept[i];
        int w, h, sampling, space;
        tjDecompressHeader3(s->decoder, p->file.data, p->n_bytes, &w, &h, &sampling, &space);
        /* A warning about a real photo's odd bytes counts as decoded. */
        if (tjDecompress2(s->decoder, p->file.data, p->n_bytes, s->pixels.data, w, 0, h, TJPF_RGB,
                          0) &&
            tjGetErrorCode(s->decoder) != TJERR_WARNING)
            return -1;
    }
    return (double)s->n_kept / (cpu_seconds() - start);
}

/* One line; returns 1 when the ratio is within `percent` (0 = no target) by more than `noise`. */
static int line(const char *what, double real, double generated, double percent, double noise)
{
    double ratio = generated / real, off = fabs(ratio - 1) * 100;
    int good = off + 100 * noise <= percent;
    printf("%-18s %12.2f %12.2f   %5.3f   %s\n", what, real, generated, ratio,
           !percent                       ? ""
           : good                         ? "within target"
           : off - 100 * noise <= percent ? "NOT DISTINGUISHABLE from the target"
                                          : "OUTSIDE TARGET");
    return good || !percent;
}

static int compare_quantiles(const struct set *real, const struct set *made)
{
    static const int percents[] = {10, 25, 50, 75, 90};
    int good = 1;
    for (int k = 0; k < N_MEASURES; k++)
        for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
            char what[64];
            double q = percents[i] / 100.0;
            double target = k == BITS && percents[i] != 50 ? 0 : 10;
            snprintf(what, sizeof what, "%s p%d", measure_name[k], percents[i]);
            good &= line(what, quantile(real, k, q), quantile(made, k, q), target, 0);
        }
    return good;
}

/* Shares in percent; within 5 points. */
static int compare_sampling(const struct set *real, const struct set *made)
{
    static const char *const name[TJ_NUMSAMP] = {"4:4:4", "4:2:2", "4:2:0",
                                                 "grey",  "4:4:0", "4:1:1"};
    int all_good = 1;
    for (int k = 0; k < TJ_NUMSAMP; k++) {
        double a = 100.0 * (double)real->n_sampling[k] / (double)real->n;
        double b = 100.0 * (double)made->n_sampling[k] / (double)made->n;
        int good = fabs(a - b) <= 5;
        if (a > 0 || b > 0)
            printf("%-18s %11.1f%% %11.1f%%           %s\n", name[k], a, b,
                   good ? "within 5 points" : "OUTSIDE TARGET");
        all_good &= good;
    }
    return all_good;
}

static int compare_decoding(struct set *real, struct set *made, unsigned rounds)
{
    struct contender a = {"generated", decode_all, made}, b = {"real", decode_all, real};
    struct comparison c;
    if (alternate(&a, &b, rounds, &c)) {
        fputs("a photo could not be decoded\n", stderr);
        return 0;
    }
    double noise = fmax(fabs(c.control.q1 - 1), fabs(c.control.q3 - 1));
    int good = line("decode images/s", c.peer, c.peer * c.ratio.median, 15, noise);
    alternate_print("  decoding", &a, &b, &c, 0);
    return good;
}

static void unload(struct set *s)
{
    for (size_t i = 0; i < s->n_kept; i++)
        mr_buffer_fini(&s->kept[i].file);
    for (int k = 0; k < N_MEASURES; k++)
        free(s->measure[k]);
    free(s->kept);
    mr_buffer_fini(&s->pixels);
    if (s->decoder)
        tjDestroy(s->decoder);
}

int main(int argc, char **argv)
{
    struct set real = {0}, made = {0};
    int rounds = argc == 4 ? atoi(argv[3]) : 9, good = 0;
    if (argc < 3 || argc > 4 || rounds < 9 || rounds > ALTERNATE_MAX_ROUNDS) {
        fputs("compare_generated REAL_DIR GENERATED_DIR [ROUNDS]  (9 rounds or more)\n", stderr);
        return 2;
    }
    if (!load(&real, argv[1]) && !load(&made, argv[2])) {
        printf("%-18s %12s %12s   %s\n", "", "real", "generated", "ratio");
        good = compare_quantiles(&real, &made);
        good &= compare_sampling(&real, &made);
        good &= compare_decoding(&real, &made, (unsigned)rounds);
    }
    unload(&real);
    unload(&made);
    return good ? 0 : 1;
}
