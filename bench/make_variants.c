/* make_variants.c - encode the photos of a folder anew, for comparisons on kinds of JPEG that a set
 * of photos does not have.
 *
 *     make_variants KIND FROM TO [COUNT]      KIND: one of the table below
 *
 * Writes TO/0000.jpg and so on.  With COUNT the photos are gone through again until there are so
 * many.  Sizes change by a textbook bilinear filter after halving while the photo is more than
 * twice too large, which keeps detail, and so compressed size, natural. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <turbojpeg.h>

struct kind {
    const char *name;
    int sampling, quality;
    int width, height; /* exactly; 0: as it is */
    int longest;       /* at the most; 0: as it is */
};

static const struct kind kinds[] = {
    {"444", TJSAMP_444, 90, 0, 0, 0},     {"422", TJSAMP_422, 90, 0, 0, 0},
    {"420", TJSAMP_420, 90, 0, 0, 0},     {"440", TJSAMP_440, 90, 0, 0, 0},
    {"411", TJSAMP_411, 90, 0, 0, 0},     {"grey", TJSAMP_GRAY, 90, 0, 0, 0},
    {"tiny", TJSAMP_420, 90, 64, 64, 0},  {"large", TJSAMP_420, 90, 4000, 3000, 0},
    {"q30", TJSAMP_420, 30, 0, 0, 0},     {"q100", TJSAMP_444, 100, 0, 0, 0},
    {"small", TJSAMP_420, 90, 0, 0, 512}, /* what FFCV's authors recommend to store */
};

struct picture {
    int width, height;
    unsigned char *rgb;
};

static void *need(void *p)
{
    if (!p) {
        fprintf(stderr, "make_variants: no memory\n");
        exit(1);
    }
    return p;
}

static int decode(tjhandle tj, const char *path, struct picture *out)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &st) || !S_ISREG(st.st_mode) || !st.st_size) {
        if (f)
            fclose(f);
        return -1;
    }
    size_t len = (size_t)st.st_size;
    unsigned char *bytes = need(malloc(len));
    int sampling, colours, bad = fread(bytes, 1, len, f) != len;
    fclose(f);
    bad =
        bad || tjDecompressHeader3(tj, bytes, len, &out->width, &out->height, &sampling, &colours);
    out->rgb = bad ? NULL : need(malloc((size_t)out->width * (size_t)out->height * 3));
    bad = bad || tjDecompress2(tj, bytes, len, out->rgb, out->width, 0, out->height, TJPF_RGB, 0);
    free(bytes);
    if (bad)
        free(out->rgb);
    return bad ? -1 : 0;
}

/* One sample of a picture, `x` and `y` in 1/256. */
static int sample(const struct picture *p, long x, long y, int c)
{
    long x0 = x >> 8, y0 = y >> 8, x1 = x0 + (x0 + 1 < p->width), y1 = y0 + (y0 + 1 < p->height);
    const unsigned char *a = p->rgb + (size_t)y0 * (size_t)p->width * 3 + c;
    const unsigned char *b = p->rgb + (size_t)y1 * (size_t)p->width * 3 + c;
    long top = a[3 * x0] * (256 - (x & 255)) + a[3 * x1] * (x & 255);
    long low = b[3 * x0] * (256 - (x & 255)) + b[3 * x1] * (x & 255);
    return (int)((top * (256 - (y & 255)) + low * (y & 255)) >> 16);
}

static void scale(struct picture *p, int width, int height)
{
    struct picture q = {width, height, need(malloc((size_t)width * (size_t)height * 3))};
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < 3; c++)
                q.rgb[((size_t)y * (size_t)width + (size_t)x) * 3 + (size_t)c] =
                    (unsigned char)sample(p, (long)x * (p->width - 1) * 256 / width,
                                          (long)y * (p->height - 1) * 256 / height, c);
    free(p->rgb);
    *p = q;
}

static void fit(struct picture *p, const struct kind *k)
{
    int width = p->width, height = p->height, longest = width > height ? width : height;
    if (k->width) {
        width = k->width;
        height = k->height;
    } else if (k->longest && longest > k->longest) {
        width = width * k->longest / longest;
        height = height * k->longest / longest;
    }
    while (p->width > 2 * width && p->height > 2 * height)
        scale(p, p->width / 2, p->height / 2);
    if (width != p->width || height != p->height)
        scale(p, width, height);
}

static int write_variant(const struct picture *p, const struct kind *k, const char *path)
{
    tjhandle tj = tjInitCompress();
    unsigned char *bytes = NULL;
    unsigned long len = 0;
    int bad = !tj || tjCompress2(tj, p->rgb, p->width, 0, p->height, TJPF_RGB, &bytes, &len,
                                 k->sampling, k->quality, 0);
    FILE *f = bad ? NULL : fopen(path, "wb");
    bad = !f || fwrite(bytes, 1, len, f) != len;
    if (f)
        bad |= fclose(f);
    tjFree(bytes);
    if (tj)
        tjDestroy(tj);
    return bad;
}

/* One time through the folder; how many variants there are then. */
static int go_through(const struct kind *k, const char *from, const char *to, int n, int count)
{
    char path[4096];
    DIR *d = opendir(from);
    tjhandle tj = need(tjInitDecompress());
    for (struct dirent *e; d && (!count || n < count) && (e = readdir(d));) {
        struct picture p;
        snprintf(path, sizeof path, "%s/%s", from, e->d_name);
        if (decode(tj, path, &p))
            continue;
        fit(&p, k);
        snprintf(path, sizeof path, "%s/%04d.jpg", to, n);
        if (write_variant(&p, k, path)) {
            fprintf(stderr, "make_variants: %s cannot be written\n", path);
            exit(1);
        }
        free(p.rgb);
        n++;
    }
    tjDestroy(tj);
    if (d)
        closedir(d);
    return n;
}

int main(int argc, char **argv)
{
    const struct kind *k = NULL;
    for (size_t i = 0; argc > 3 && i < sizeof kinds / sizeof *kinds; i++)
        k = strcmp(argv[1], kinds[i].name) ? k : &kinds[i];
    if (!k) {
        fprintf(stderr, "usage: make_variants KIND FROM TO [COUNT]\nkinds:");
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            fprintf(stderr, " %s", kinds[i].name);
        fprintf(stderr, "\n");
        return 2;
    }
    if (mkdir(argv[3], 0777) && errno != EEXIST) {
        perror(argv[3]);
        return 1;
    }
    int count = argc > 4 ? atoi(argv[4]) : 0, n = 0, before = -1;
    while (n > before && (n == 0 || n < count)) {
        before = n;
        n = go_through(k, argv[2], argv[3], n, count);
    }
    printf("%d files\n", n);
    return n ? 0 : 1;
}
