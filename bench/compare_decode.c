/* compare_decode.c - this library's decoder against libjpeg-turbo, bytes in memory to pixels.
 *
 *     compare_decode DIR [ROUNDS [THREADS [ONLY]]]   ONLY: comparisons whose title contains this
 *
 * Every file below DIR that both sides decode is held in memory.  A run is one pass over all of
 * them by THREADS threads that take files in turn; with one thread its CPU time counts, so that
 * other processes disturb less, with more the time from start to end.  Runs alternate as
 * alternate.h says.
 *
 * Peers: tjDecompress2 to RGB with no resize at all ("bare"); the same followed by a textbook float
 * bilinear resize to planes of 224 x 224 floats ("textbook"); only the part of the image that a
 * random crop needs, by jpeg_skip_scanlines and jpeg_crop_scanline, to RGB with no resize ("bare
 * crop"); and our own path through libjpeg-turbo's planes ("turbo").  Ours writes into 64 slots a
 * thread in turn, as into a batch.
 *
 * For plain C against plain C, JSIMD_FORCENONE=1 keeps libjpeg-turbo from its vector code:
 *     JSIMD_FORCENONE=1 compare_decode DIR 9 1 scalar */
#include "alternate.h"

#include <millrace/image.h>

#include "clock.h"
#include "random_crop.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jpeglib.h>
#include <turbojpeg.h>

#define SIDE        224
#define N_SLOTS     64
#define MAX_THREADS 8

struct file {
    uint8_t *bytes;
    size_t len;
};

/* What a thread decodes with. */
struct worker {
    struct work *w;
    pthread_t thread;
    struct mr_decoder *dec;
    tjhandle tj;
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr jpeg_errors; /* exits: every file was decoded before */
    uint8_t *slots;
    uint8_t *rgb; /* large enough for the largest so far */
    size_t rgb_bytes;
};

typedef void side_fn(struct worker *k, const struct file *f, uint64_t number, uint8_t *slot);

struct work {
    struct file *files;
    size_t n_files;
    size_t slot_bytes;
    unsigned n_threads;
    struct worker worker[MAX_THREADS];
    atomic_size_t next;
    side_fn *side;
};

/* ---- sides ---- */

static void ours(struct worker *k, const struct file *f, uint64_t number, uint8_t *slot)
{
    mr_decoder_run(k->dec, f->bytes, f->len, number, slot);
}

static int make_room(struct worker *k, size_t need)
{
    if (need > k->rgb_bytes) {
        free(k->rgb);
        k->rgb = malloc(need);
        k->rgb_bytes = k->rgb ? need : 0;
    }
    return k->rgb != NULL;
}

static int bare_size(struct worker *k, const struct file *f, int *width, int *height)
{
    int sampling, colours;
    if (tjDecompressHeader3(k->tj, f->bytes, f->len, width, height, &sampling, &colours) ||
        !make_room(k, (size_t)*width * (size_t)*height * 3))
        return -1;
    return tjDecompress2(k->tj, f->bytes, f->len, k->rgb, *width, 0, *height, TJPF_RGB, 0);
}

static void bare(struct worker *k, const struct file *f, uint64_t number, uint8_t *slot)
{
    int width, height;
    bare_size(k, f, &width, &height);
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

static void textbook(struct worker *k, const struct file *f, uint64_t number, uint8_t *slot)
{
    int width, height;
    if (!bare_size(k, f, &width, &height))
        textbook_resize(k->rgb, width, height, (float *)slot);
}

static void bare_crop(struct worker *k, const struct file *f, uint64_t number, uint8_t *slot)
{
    struct jpeg_decompress_struct *d = &k->jpeg;
    struct mr_region g;
    jpeg_mem_src(d, f->bytes, f->len);
    jpeg_read_header(d, TRUE);
    d->out_color_space = JCS_RGB;
    mr_random_crop(number, d->image_width, d->image_height, &g);
    jpeg_start_decompress(d);
    JDIMENSION x = g.x, width = g.width;
    jpeg_crop_scanline(d, &x, &width);
    jpeg_skip_scanlines(d, g.y);
    for (uint32_t y = 0; y < g.height; y++) {
        JSAMPROW row = k->rgb + (size_t)y * width * 3;
        jpeg_read_scanlines(d, &row, 1);
    }
    jpeg_abort_decompress(d);
}

/* ---- runs ---- */

static double cpu_seconds(void)
{
    return (double)mr_clock_thread_cpu_ns() / 1e9;
}

static void *work_through(void *arg)
{
    struct worker *k = arg;
    struct work *w = k->w;
    for (size_t i, n = 0; (i = atomic_fetch_add(&w->next, 1)) < w->n_files; n++)
        w->side(k, &w->files[i], i, k->slots + n % N_SLOTS * w->slot_bytes);
    return NULL;
}

/* Files per second of one pass. */
static double pass(struct work *w, side_fn *side)
{
    w->side = side;
    atomic_store(&w->next, 0);
    double cpu = cpu_seconds();
    uint64_t begin = mr_clock_ns();
    if (w->n_threads == 1) {
        work_through(&w->worker[0]);
        return (double)w->n_files / (cpu_seconds() - cpu);
    }
    for (unsigned i = 0; i < w->n_threads; i++)
        if (pthread_create(&w->worker[i].thread, NULL, work_through, &w->worker[i]))
            exit(1);
    for (unsigned i = 0; i < w->n_threads; i++)
        pthread_join(w->worker[i].thread, NULL);
    return (double)w->n_files / ((double)(mr_clock_ns() - begin) / 1e9);
}

struct entrant {
    struct work *w;
    side_fn *side;
    const struct mr_decoder_opts *opts; /* for `ours` */
};

/* A decoder is made anew for each run, which costs nothing that could be measured. */
static double run_entrant(void *ctx)
{
    struct entrant *e = ctx;
    for (unsigned i = 0; e->opts && i < e->w->n_threads; i++) {
        mr_decoder_free(e->w->worker[i].dec);
        e->w->worker[i].dec = NULL;
        if (mr_decoder_new(e->opts, &e->w->worker[i].dec, NULL))
            return 0;
    }
    return pass(e->w, e->side);
}

/* ---- files ---- */

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
    struct worker *k = &w->worker[0];
    struct file f = {0};
    int width, height;
    if (load(path, &f) || mr_decoder_run(k->dec, f.bytes, f.len, 0, k->slots) ||
        bare_size(k, &f, &width, &height)) {
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

static int set_up(struct work *w, const struct mr_decoder_opts *o)
{
    w->slot_bytes = mr_decoder_bytes(o);
    for (unsigned i = 0; i < w->n_threads; i++) {
        struct worker *k = &w->worker[i];
        k->w = w;
        k->tj = tjInitDecompress();
        k->jpeg.err = jpeg_std_error(&k->jpeg_errors);
        jpeg_create_decompress(&k->jpeg);
        k->slots = aligned_alloc(64, N_SLOTS * w->slot_bytes);
        if (!k->tj || !k->slots || mr_decoder_new(o, &k->dec, NULL))
            return -1;
        memset(k->slots, 0, N_SLOTS * w->slot_bytes);
    }
    return 0;
}

static void tear_down(struct work *w)
{
    for (unsigned i = 0; i < w->n_threads; i++) {
        struct worker *k = &w->worker[i];
        mr_decoder_free(k->dec);
        tjDestroy(k->tj);
        jpeg_destroy_decompress(&k->jpeg);
        free(k->slots);
        free(k->rgb);
    }
    for (size_t i = 0; i < w->n_files; i++)
        free(w->files[i].bytes);
    free(w->files);
}

/* ---- comparisons ---- */

struct match {
    const char *title;
    struct mr_decoder_opts ours;
    const char *peer_name;
    side_fn *peer;
    double target;
};

#define TURBO_OPTS                                                                                 \
    {                                                                                              \
        .layout = MR_IMAGE_NCHW, .decoder = MR_DECODER_TURBO                                       \
    }

static const struct match matches[] = {
    {"bilinear f32 nchw / bare", {.layout = MR_IMAGE_NCHW}, "bare", bare, 1.9},
    {"bilinear f32 nchw avx2 / bare",
     {.layout = MR_IMAGE_NCHW, .simd = MR_SIMD_AVX2},
     "bare",
     bare,
     1.9},
    {"bilinear f32 nchw / turbo", {.layout = MR_IMAGE_NCHW}, "turbo", ours, 1.0},
    {"bilinear f32 nhwc / bare", {0}, "bare", bare, 0},
    {"bilinear u8 nhwc / bare", {.dtype = MR_DT_U8}, "bare", bare, 0},
    {"area f32 nchw / bare", {.layout = MR_IMAGE_NCHW, .resize = MR_RESIZE_AREA}, "bare", bare, 0},
    {"crop-flip f32 nchw / bare",
     {.layout = MR_IMAGE_NCHW, .augment = MR_AUGMENT_CROP_FLIP},
     "bare",
     bare,
     0},
    {"crop-flip f32 nchw / bare crop",
     {.layout = MR_IMAGE_NCHW, .augment = MR_AUGMENT_CROP_FLIP},
     "bare crop",
     bare_crop,
     0},
    {"exact f32 nchw / bare", {.layout = MR_IMAGE_NCHW, .exact = 1}, "bare", bare, 0},
    {"bilinear f32 nchw / textbook", {.layout = MR_IMAGE_NCHW}, "textbook", textbook, 0},
    {"turbo f32 nchw / bare", TURBO_OPTS, "bare", bare, 0},
    {"scalar f32 nchw / bare", {.layout = MR_IMAGE_NCHW, .simd = MR_SIMD_SCALAR}, "bare", bare, 0},
};

static int compare(struct work *w, const struct match *m, unsigned rounds)
{
    static const struct mr_decoder_opts turbo_opts = TURBO_OPTS;
    struct entrant a = {w, ours, &m->ours};
    struct entrant b = {w, m->peer, m->peer == ours ? &turbo_opts : NULL};
    const struct contender mine = {"ours", run_entrant, &a}, peer = {m->peer_name, run_entrant, &b};
    struct mr_decoder *probe;
    struct comparison c;
    if (mr_decoder_new(&m->ours, &probe, NULL)) {
        printf("%-34s not on this processor\n", m->title);
        return 0;
    }
    mr_decoder_free(probe);
    if (alternate(&mine, &peer, rounds, &c))
        return 1;
    /* Without its vectors libjpeg-turbo is what plain C is measured against. */
    double target = m->ours.simd == MR_SIMD_SCALAR && getenv("JSIMD_FORCENONE") ? 1.2 : m->target;
    alternate_print(m->title, &mine, &peer, &c, target);
    return 0;
}

int main(int argc, char **argv)
{
    struct mr_decoder_opts nchw = {.layout = MR_IMAGE_NCHW};
    struct work w = {.n_threads = argc > 3 ? (unsigned)atoi(argv[3]) : 1};
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 9;
    if (argc < 2 || w.n_threads < 1 || w.n_threads > MAX_THREADS) {
        fprintf(stderr, "usage: %s DIR [ROUNDS [THREADS [ONLY]]]\n", argv[0]);
        return 2;
    }
    int bad = set_up(&w, &nchw);
    if (!bad)
        load_all(&w, argv[1]);
    printf("%zu images, %u thread%s\n", w.n_files, w.n_threads, w.n_threads > 1 ? "s" : "");
    bad |= !w.n_files;
    for (size_t i = 0; !bad && i < sizeof matches / sizeof *matches; i++)
        if (argc <= 4 || strstr(matches[i].title, argv[4]))
            bad |= compare(&w, &matches[i], rounds);
    tear_down(&w);
    return bad ? 1 : 0;
}
