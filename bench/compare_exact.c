/* compare_exact.c - how far pixels are from those of a full decode to RGB before the resize.
 *
 *     compare_exact [--area SIDE] DIR...
 *
 * Every JPEG below the folders is decoded twice to 224 x 224 floats, or with `area` to SIDE x SIDE:
 * as usual, with each plane resized at its own size and colour converted last, and with `exact`,
 * the textbook's way.  One line for every chroma sampling and one for all: the mean absolute
 * difference, that of the worst image and the largest of a value, in units of 1/255.  Not a timing.
 * make_variants makes folders of one sampling each. */
#include <millrace/dataset.h>
#include <millrace/image.h>
#include <millrace/store.h>

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST   ((size_t)64 << 20)
#define MAX_KINDS 16

struct kind {
    char name[16];
    unsigned n_files;
    double mean, share; /* sums over the files */
    double worst, most; /* the largest mean of a file, the largest difference */
};

struct work {
    struct mr_decoder *usual, *exact;
    float *slots[2];
    size_t n_values;
    uint8_t *bytes;
    struct kind kinds[MAX_KINDS];
    unsigned n_kinds;
};

static struct kind *find_kind(struct work *w, const struct mr_image_info *info)
{
    const char *name = info->sampling[0] ? info->sampling : "grey";
    for (unsigned i = 0; i < w->n_kinds; i++)
        if (!strcmp(w->kinds[i].name, name))
            return &w->kinds[i];
    if (w->n_kinds == MAX_KINDS)
        return NULL;
    struct kind *k = &w->kinds[w->n_kinds++];
    snprintf(k->name, sizeof k->name, "%s", name);
    return k;
}

static void add_kind(struct kind *k, const struct kind *more)
{
    k->n_files += more->n_files;
    k->mean += more->mean;
    k->share += more->share;
    k->worst = more->worst > k->worst ? more->worst : k->worst;
    k->most = more->most > k->most ? more->most : k->most;
}

static void print_kind(const struct kind *k)
{
    printf("%-6s %5u files: mean %.3f of 255, worst file %.2f, beyond 2: %.3f%%, most %.1f\n",
           k->name, k->n_files, k->mean / k->n_files, k->worst, 100 * k->share / k->n_files,
           k->most);
}

static void add_file(struct work *w, size_t len)
{
    struct mr_image_info info;
    if (mr_decoder_probe(w->usual, w->bytes, len, &info) || info.format != MR_IMAGE_JPEG ||
        info.components == 4 || mr_decoder_run(w->usual, w->bytes, len, 0, w->slots[0]) ||
        mr_decoder_run(w->exact, w->bytes, len, 0, w->slots[1]))
        return;
    struct kind *k = find_kind(w, &info);
    if (!k)
        return;
    double sum = 0, most = 0;
    size_t n_far = 0;
    for (size_t i = 0; i < w->n_values; i++) {
        double d = fabs((double)w->slots[0][i] - (double)w->slots[1][i]) * 255;
        sum += d;
        n_far += d > 2;
        most = d > most ? d : most;
    }
    double n = (double)w->n_values;
    add_kind(k, &(struct kind){.n_files = 1,
                               .mean = sum / n,
                               .share = (double)n_far / n,
                               .worst = sum / n,
                               .most = most});
}

static int add_folder(struct work *w, const char *dir)
{
    struct mr_dataset *data;
    struct mr_error err = {0};
    char path[PATH_MAX];
    size_t len;
    if (mr_dataset_open(dir, &data, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    for (uint64_t i = 0; i < mr_dataset_size(data); i++) {
        mr_dataset_name(data, i, path, sizeof path);
        if (!mr_file_read(path, w->bytes, LARGEST, &len, NULL))
            add_file(w, len);
    }
    mr_dataset_unref(data);
    return 0;
}

/* `area_side` 0: bilinear to the usual size. */
static int set_up(struct work *w, unsigned area_side)
{
    struct mr_decoder_opts usual = {.width = area_side,
                                    .height = area_side,
                                    .resize = area_side ? MR_RESIZE_AREA : MR_RESIZE_BILINEAR};
    struct mr_decoder_opts exact = usual;
    exact.exact = 1;
    size_t bytes = mr_decoder_bytes(&usual);
    w->n_values = bytes / sizeof(float);
    w->slots[0] = malloc(bytes);
    w->slots[1] = malloc(bytes);
    w->bytes = malloc(LARGEST);
    return !w->slots[0] || !w->slots[1] || !w->bytes || mr_decoder_new(&usual, &w->usual, NULL) ||
           mr_decoder_new(&exact, &w->exact, NULL);
}

int main(int argc, char **argv)
{
    struct work w = {0};
    struct kind all = {.name = "all"};
    int is_area = argc > 2 && !strcmp(argv[1], "--area"), first = is_area ? 3 : 1;
    int side = is_area ? atoi(argv[2]) : 0;
    if (argc <= first || side < 0 || is_area != (side > 0)) {
        fprintf(stderr, "usage: compare_exact [--area SIDE] DIR...\n");
        return 2;
    }
    int bad = set_up(&w, (unsigned)side);
    for (int i = first; !bad && i < argc; i++)
        bad = add_folder(&w, argv[i]);
    for (unsigned i = 0; i < w.n_kinds; i++) {
        print_kind(&w.kinds[i]);
        add_kind(&all, &w.kinds[i]);
    }
    if (w.n_kinds > 1)
        print_kind(&all);
    mr_decoder_free(w.usual);
    mr_decoder_free(w.exact);
    free(w.slots[0]);
    free(w.slots[1]);
    free(w.bytes);
    return bad || !w.n_kinds;
}
