/* compare_exact.c - how far pixels are from those of a full decode to RGB before the resize.
 *
 *     compare_exact DIR...
 *
 * Every JPEG below the folders is decoded twice to 224 x 224 floats: as usual, with each plane
 * resized at its own size and colour converted last, and with `exact`, the textbook's way.  One
 * line for every chroma sampling: the mean and the largest absolute difference, in units of 1/255.
 * Not a timing.  make_variants makes folders of one sampling each. */
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
    double mean, share, most; /* the first two are sums over the files */
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
    k->n_files++;
    k->mean += sum / (double)w->n_values;
    k->share += (double)n_far / (double)w->n_values;
    k->most = most > k->most ? most : k->most;
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
        mr_dataset_path(data, i, path, sizeof path);
        if (!mr_file_read(path, w->bytes, LARGEST, &len))
            add_file(w, len);
    }
    mr_dataset_unref(data);
    return 0;
}

static int set_up(struct work *w)
{
    struct mr_decoder_opts usual = {0}, exact = {.exact = 1};
    size_t bytes = mr_decoder_bytes(&usual);
    w->n_values = bytes / sizeof(float);
    w->slots[0] = malloc(bytes);
    w->slots[1] = malloc(bytes);
    w->bytes = malloc(LARGEST);
    return !w->slots[0] || !w->slots[1] || !w->bytes || mr_decoder_new(&usual, &w->usual) ||
           mr_decoder_new(&exact, &w->exact);
}

int main(int argc, char **argv)
{
    struct work w = {0};
    if (argc < 2) {
        fprintf(stderr, "usage: compare_exact DIR...\n");
        return 2;
    }
    int bad = set_up(&w);
    for (int i = 1; !bad && i < argc; i++)
        bad = add_folder(&w, argv[i]);
    for (unsigned i = 0; i < w.n_kinds; i++) {
        const struct kind *k = &w.kinds[i];
        printf("%-6s %5u files: mean %.3f of 255, beyond 2: %.3f%%, most %.1f\n", k->name,
               k->n_files, k->mean / k->n_files, 100 * k->share / k->n_files, k->most);
    }
    mr_decoder_free(w.usual);
    mr_decoder_free(w.exact);
    free(w.slots[0]);
    free(w.slots[1]);
    free(w.bytes);
    return bad || !w.n_kinds;
}
