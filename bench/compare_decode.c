/* compare_decode.c - this library's decoder against libjpeg-turbo, bytes in memory to pixels.
 *
 *     compare_decode DIR [ROUNDS [ONLY]]     ONLY: comparisons whose title contains this
 *
 * One thread, its CPU time.  Every file of DIR that both sides decode is held in memory.  A round
 * runs both sides over all files, in groups of 16 and each group in the order A B B A, so that both
 * see the same weather; it gives one ratio of rates, ours to the peer's.  The median and the spread
 * over the rounds are printed.  The first line is the control: the peer against itself on the same
 * schedule.  A ratio nearer to 1 than the control's spread says nothing.
 *
 * Peers: tjDecompress2 to RGB with no resize at all ("bare"); the same followed by a textbook float
 * bilinear resize to planes of 224 x 224 floats ("textbook"); and only the part of the image that a
 * random crop needs, by jpeg_skip_scanlines and jpeg_crop_scanline, to RGB with no resize ("bare
 * crop").  Ours writes into 64 slots in turn, as into a batch. */
#include <millrace/image.h>

#include "random_crop.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <jpeglib.h>
#include <turbojpeg.h>

#define SIDE    224
#define N_SLOTS 64
#define GROUP   16

struct file {
    uint8_t *bytes;
    size_t len;
};

struct work {
    struct file *files;
    size_t n_files;
    size_t from, to; /* the files of this turn */
    struct mr_decoder *dec;
    size_t slot_bytes;
    uint8_t *slots;
    tjhandle tj;
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr jpeg_errors; /* exits: every file was decoded before */
    const char *only;
    uint8_t *rgb; /* large enough for the largest */
    size_t rgb_bytes;
};

typedef double side_fn(struct work *w); /* seconds for the files of this turn */

/* Both sides compute and never wait, so what counts is the thread's own time: other processes then
 * disturb less. */
static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double ours(struct work *w)
{
    double begin = cpu_seconds();
    for (size_t i = w->from; i < w->to; i++)
        mr_decoder_run(w->dec, w->files[i].bytes, w->files[i].len, i,
                       w->slots + i % N_SLOTS * w->slot_bytes);
    return cpu_seconds() - begin;
}

static int bare_one(struct work *w, const struct file *f, int *width, int *height)
{
    int sampling, colours;
    if (tjDecompressHeader3(w->tj, f->bytes, f->len, width, height, &sampling, &colours))
        return -1;
    size_t need = (size_t)*width * (size_t)*height * 3;
    if (need > w->rgb_bytes) {
        free(w->rgb);
        w->rgb = malloc(need);
        w->rgb_bytes = w->rgb ? need : 0;
    }
    return w->rgb ? tjDecompress2(w->tj, f->bytes, f->len, w->rgb, *width, 0, *height, TJPF_RGB, 0)
                  : -1;
}

static double bare(struct work *w)
{
    int width, height;
    double begin = cpu_seconds();
    for (size_t i = w->from; i < w->to; i++)
        bare_one(w, &w->files[i], &width, &height);
    return cpu_seconds() - begin;
}

static void textbook_resize(const uint8_t *rgb, int width, int height, float *out)
{
    float sx = (float)width / SIDE, sy = (float)height / SIDE;
    for (int y = 0; y < SIDE; y++) {
        float fy = (float)y * sy;
        int y0 = (int)fy, y1 = y0 + 1 < height ? y0 + 1 : height - 1;
        const uint8_t *a = rgb + (size_t)y0 * (size_t)width * 3;
        const uint8_t *b = rgb + (size_t)y1 * (size_t)width * 3;
        fy -= (float)y0;
        for (int x = 0; x < SIDE; x++) {
            float fx = (float)x * sx;
            int x0 = (int)fx, x1 = x0 + 1 < width ? x0 + 1 : width - 1;
            fx -= (float)x0;
            for (int c = 0; c < 3; c++) {
                float top = a[3 * x0 + c] + (float)(a[3 * x1 + c] - a[3 * x0 + c]) * fx;
                float low = b[3 * x0 + c] + (float)(b[3 * x1 + c] - b[3 * x0 + c]) * fx;
                out[((size_t)c * SIDE + (size_t)y) * SIDE + (size_t)x] =
                    (top + (low - top) * fy) * (1 / 255.0f);
            }
        }
    }
}

static double textbook(struct work *w)
{
    int width, height;
    double begin = cpu_seconds();
    for (size_t i = w->from; i < w->to; i++)
        if (!bare_one(w, &w->files[i], &width, &height))
            textbook_resize(w->rgb, width, height,
                            (float *)(w->slots + i % N_SLOTS * w->slot_bytes));
    return cpu_seconds() - begin;
}

static void bare_crop_one(struct work *w, const struct file *f, uint64_t key)
{
    struct jpeg_decompress_struct *d = &w->jpeg;
    struct mr_region g;
    jpeg_mem_src(d, f->bytes, f->len);
    jpeg_read_header(d, TRUE);
    d->out_color_space = JCS_RGB;
    mr_random_crop(key, d->image_width, d->image_height, &g);
    jpeg_start_decompress(d);
    JDIMENSION x = g.x, width = g.width;
    jpeg_crop_scanline(d, &x, &width);
    jpeg_skip_scanlines(d, g.y);
    for (uint32_t y = 0; y < g.height; y++) {
        JSAMPROW row = w->rgb + (size_t)y * width * 3;
        jpeg_read_scanlines(d, &row, 1);
    }
    jpeg_abort_decompress(d);
}

static double bare_crop(struct work *w)
{
    double begin = cpu_seconds();
    for (size_t i = w->from; i < w->to; i++)
        bare_crop_one(w, &w->files[i], i);
    return cpu_seconds() - begin;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One round: the files in groups, each group A B B A. */
static void run_round(struct work *w, side_fn *a, side_fn *b, double *ta, double *tb)
{
    *ta = *tb = 0;
    for (w->from = 0; w->from < w->n_files; w->from = w->to) {
        w->to = w->from + GROUP < w->n_files ? w->from + GROUP : w->n_files;
        *ta += a(w);
        *tb += b(w);
        *tb += b(w);
        *ta += a(w);
    }
}

/* Prints the rate of A over the rate of B. */
static void alternate(const char *title, struct work *w, side_fn *a, side_fn *b, int rounds)
{
    double *ratio = calloc((size_t)rounds, sizeof *ratio), rate_a = 0, rate_b = 0, ta, tb;
    if (!ratio)
        return;
    run_round(w, a, b, &ta, &tb);
    for (int i = 0; i < rounds; i++) {
        run_round(w, a, b, &ta, &tb);
        ratio[i] = tb / ta;
        rate_a += 2 * (double)w->n_files / ta / rounds;
        rate_b += 2 * (double)w->n_files / tb / rounds;
    }
    qsort(ratio, (size_t)rounds, sizeof *ratio, by_value);
    printf("%-34s %.3f  (%.3f .. %.3f over %d rounds)  %.0f and %.0f images/s\n", title,
           ratio[rounds / 2], ratio[0], ratio[rounds - 1], rounds, rate_a, rate_b);
    fflush(stdout);
    free(ratio);
}

static int load(const char *path, struct file *out)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    if (!f)
        return -1;
    int r = -1;
    if (!fstat(fileno(f), &st) && S_ISREG(st.st_mode) && st.st_size > 0) {
        out->len = (size_t)st.st_size;
        out->bytes = malloc(out->len);
        r = out->bytes && fread(out->bytes, 1, out->len, f) == out->len ? 0 : -1;
    }
    fclose(f);
    return r;
}

/* Keep a file only if both sides decode it. */
static void add(struct work *w, const char *path)
{
    struct file f = {0};
    int width, height;
    if (load(path, &f) || mr_decoder_run(w->dec, f.bytes, f.len, 0, w->slots) ||
        bare_one(w, &f, &width, &height)) {
        free(f.bytes);
        return;
    }
    struct file *more = realloc(w->files, (w->n_files + 1) * sizeof *more);
    if (!more)
        exit(1);
    w->files = more;
    w->files[w->n_files++] = f;
}

static void load_all(struct work *w, const char *dir)
{
    char path[4096];
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (e->d_name[0] == '.')
            continue;
        else if (e->d_type == DT_DIR)
            load_all(w, path);
        else
            add(w, path);
    }
    if (d)
        closedir(d);
}

static void compare(struct work *w, const char *title, const struct mr_decoder_opts *o,
                    side_fn *peer, int rounds)
{
    if (w->only && !strstr(title, w->only))
        return;
    mr_decoder_free(w->dec);
    w->dec = NULL;
    w->slot_bytes = mr_decoder_bytes(o);
    if (mr_decoder_new(o, &w->dec)) {
        printf("%-34s not on this processor\n", title);
        return;
    }
    alternate(title, w, ours, peer, rounds);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s DIR [ROUNDS [ONLY]]\n", argv[0]);
        return 2;
    }
    int rounds = argc > 2 ? atoi(argv[2]) : 9;
    struct mr_decoder_opts nchw = {.layout = MR_IMAGE_NCHW}, nhwc = {0}, avx2 = nchw, crop = nchw,
                           area = nchw, bytes = {.dtype = MR_IMAGE_U8}, exact = nchw;
    avx2.simd = MR_SIMD_AVX2;
    crop.augment = MR_AUGMENT_CROP_FLIP;
    area.resize = MR_RESIZE_AREA;
    exact.exact = 1;
    struct work w = {.tj = tjInitDecompress(), .slot_bytes = mr_decoder_bytes(&nchw)};
    w.only = argc > 3 ? argv[3] : NULL;
    w.jpeg.err = jpeg_std_error(&w.jpeg_errors);
    jpeg_create_decompress(&w.jpeg);
    w.slots = aligned_alloc(64, N_SLOTS * w.slot_bytes);
    if (!w.tj || !w.slots || rounds < 1 || mr_decoder_new(&nchw, &w.dec))
        return 1;
    memset(w.slots, 0, N_SLOTS * w.slot_bytes);
    load_all(&w, argv[1]);
    printf("%zu images, one thread; rate of the first over the rate of the second\n", w.n_files);
    if (!w.n_files)
        return 1;
    alternate("control: bare / bare", &w, bare, bare, rounds);
    compare(&w, "bilinear f32 nchw / bare", &nchw, bare, rounds);
    compare(&w, "bilinear f32 nhwc / bare", &nhwc, bare, rounds);
    compare(&w, "bilinear f32 nchw avx2 / bare", &avx2, bare, rounds);
    compare(&w, "bilinear u8 nhwc / bare", &bytes, bare, rounds);
    compare(&w, "area f32 nchw / bare", &area, bare, rounds);
    compare(&w, "crop-flip f32 nchw / bare", &crop, bare, rounds);
    compare(&w, "crop-flip f32 nchw / bare crop", &crop, bare_crop, rounds);
    compare(&w, "exact f32 nchw / bare", &exact, bare, rounds);
    compare(&w, "bilinear f32 nchw / textbook", &nchw, textbook, rounds);
    mr_decoder_free(w.dec);
    tjDestroy(w.tj);
    jpeg_destroy_decompress(&w.jpeg);
    for (size_t i = 0; i < w.n_files; i++)
        free(w.files[i].bytes);
    free(w.files);
    free(w.slots);
    free(w.rgb);
    return 0;
}
