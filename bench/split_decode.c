/* split_decode.c - what libjpeg-turbo's time for progressive files is spent on, and what a decoder
 * of our own could gain.
 *
 *     split_decode DIR [ROUNDS]
 *
 * Every baseline JPEG below DIR is kept in memory, as it is and made progressive without loss
 * (jpegtran's way, libjpeg's usual ten scans).  A run is one pass over all of them by one thread,
 * in CPU time.  Runs alternate as alternate.h says.  Rates are files a second.
 *
 * Entropy decoding is jpeg_read_coefficients: coefficients and nothing more.  The whole is our
 * decoder to 224 x 224 f32, which takes baseline files itself and gives progressive ones to
 * libjpeg-turbo. */
#include "alternate.h"

#include <millrace/image.h>

#include "clock.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

struct file {
    uint8_t *bytes;
    size_t len;
};

struct pair {
    struct file baseline, progressive;
};

struct work {
    struct pair *pairs;
    size_t n;
    struct mr_decoder *decoder;
    uint8_t *slot;
};

/* ---- files ---- */

static int load(const char *path, struct file *out)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return -1;
    int r = -1;
    if (!fseek(f, 0, SEEK_END) && (out->len = (size_t)ftell(f)) > 0) {
        rewind(f);
        out->bytes = malloc(out->len);
        r = out->bytes && fread(out->bytes, 1, out->len, f) == out->len ? 0 : -1;
    }
    fclose(f);
    return r;
}

/* The same coefficients in ten scans.  Errors exit: our decoder took the file before. */
static struct file make_progressive(const struct file *f)
{
    struct jpeg_decompress_struct in = {0};
    struct jpeg_compress_struct out = {0};
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long len = 0;
    in.err = out.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&in);
    jpeg_create_compress(&out);
    jpeg_mem_src(&in, f->bytes, f->len);
    jpeg_read_header(&in, TRUE);
    jvirt_barray_ptr *coefficients = jpeg_read_coefficients(&in);
    jpeg_copy_critical_parameters(&in, &out);
    jpeg_simple_progression(&out);
    jpeg_mem_dest(&out, &bytes, &len);
    jpeg_write_coefficients(&out, coefficients);
    jpeg_finish_compress(&out);
    jpeg_destroy_compress(&out);
    jpeg_destroy_decompress(&in);
    return (struct file){bytes, len};
}

static void load_all(struct work *w, const char *dir)
{
    char path[4096];
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        struct pair p = {0};
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (e->d_name[0] == '.' || load(path, &p.baseline))
            continue;
        struct mr_decoder_stats stats = {0};
        int r = mr_decoder_run(w->decoder, p.baseline.bytes, p.baseline.len, 0, w->slot);
        mr_decoder_get_stats(w->decoder, &stats);
        if (r || stats.path != MR_PATH_OWN) {
            free(p.baseline.bytes);
            continue;
        }
        struct pair *more = realloc(w->pairs, (w->n + 1) * sizeof *more);
        if (!more)
            exit(1);
        p.progressive = make_progressive(&p.baseline);
        w->pairs = more;
        w->pairs[w->n++] = p;
    }
    if (d)
        closedir(d);
}

/* ---- sides ---- */

static void read_coefficients(struct work *w, const struct file *f)
{
    struct jpeg_decompress_struct in = {0};
    struct jpeg_error_mgr errors;
    in.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&in);
    jpeg_mem_src(&in, f->bytes, f->len);
    jpeg_read_header(&in, TRUE);
    jpeg_read_coefficients(&in);
    jpeg_destroy_decompress(&in);
}

static void decode(struct work *w, const struct file *f)
{
    mr_decoder_run(w->decoder, f->bytes, f->len, 0, w->slot);
}

struct side {
    struct work *w;
    void (*run)(struct work *w, const struct file *f);
    int progressive;
};

static double pass(void *ctx)
{
    const struct side *s = ctx;
    uint64_t begin_ns = mr_clock_thread_cpu_ns();
    for (size_t i = 0; i < s->w->n; i++)
        s->run(s->w, s->progressive ? &s->w->pairs[i].progressive : &s->w->pairs[i].baseline);
    return (double)s->w->n * 1e9 / (double)(mr_clock_thread_cpu_ns() - begin_ns);
}

/* ---- comparisons ---- */

static int compare(struct work *w, const char *title, const char *name, struct side ours,
                   const char *peer_name, struct side peer, unsigned rounds)
{
    ours.w = peer.w = w;
    const struct contender a = {name, pass, &ours}, b = {peer_name, pass, &peer};
    struct comparison c;
    if (alternate(&a, &b, rounds, &c))
        return 1;
    alternate_print(title, &a, &b, &c, 0);
    return 0;
}

int main(int argc, char **argv)
{
    struct mr_decoder_opts opts = {.layout = MR_IMAGE_NCHW};
    struct work w = {.slot = aligned_alloc(64, mr_decoder_bytes(&opts))};
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 9;
    if (argc < 2) {
        fprintf(stderr, "usage: %s DIR [ROUNDS]\n", argv[0]);
        return 2;
    }
    int bad = !w.slot || mr_decoder_new(&opts, &w.decoder, NULL);
    if (!bad)
        load_all(&w, argv[1]);
    printf("%zu images\n", w.n);
    bad |= !w.n;
    const struct side whole = {.run = decode}, entropy = {.run = read_coefficients};
    const struct side whole_p = {.run = decode, .progressive = 1};
    const struct side entropy_p = {.run = read_coefficients, .progressive = 1};
    if (!bad)
        bad = compare(&w, "all / entropy, progressive", "all", whole_p, "entropy", entropy_p,
                      rounds) ||
              compare(&w, "entropy, libjpeg-turbo", "progressive", entropy_p, "baseline", entropy,
                      rounds) ||
              compare(&w, "all", "progressive", whole_p, "baseline", whole, rounds);
    for (size_t i = 0; i < w.n; i++) {
        free(w.pairs[i].baseline.bytes);
        free(w.pairs[i].progressive.bytes);
    }
    free(w.pairs);
    free(w.slot);
    mr_decoder_free(w.decoder);
    return bad ? 1 : 0;
}
