/* list_classes.c - open a data set, hold out a tenth of it, count the samples of each class.
 *
 *     list_classes DIR-or-LIST.csv */
#include <millrace/dataset.h>

#include <stdio.h>
#include <stdlib.h>

static void count(const struct mr_dataset *d, const char *what)
{
    uint32_t n_classes = mr_dataset_n_classes(d);
    uint64_t *n = calloc(n_classes, sizeof *n);
    if (!n)
        return;
    for (uint64_t i = 0; i < mr_dataset_size(d); i++)
        n[mr_dataset_label(d, i)]++;
    printf("%s: %llu samples\n", what, (unsigned long long)mr_dataset_size(d));
    for (uint32_t c = 0; c < n_classes; c++) {
        const char *name = mr_dataset_class_name(d, c);
        printf("  %u %s: %llu\n", c, name ? name : "(no name)", (unsigned long long)n[c]);
    }
    free(n);
}

int main(int argc, char **argv)
{
    struct mr_error err = {0};
    struct mr_dataset *all = NULL, *train = NULL, *held = NULL;

    if (argc != 2) {
        fprintf(stderr, "usage: %s DIR-or-LIST.csv\n", argv[0]);
        return 2;
    }
    int r = mr_dataset_open(argv[1], &all, &err);
    if (r) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    r = mr_dataset_split(all, 0.10, 1, &train, &held, &err);
    if (r) {
        fprintf(stderr, "%s\n", err.text);
    } else {
        count(train, "training");
        count(held, "validation");
    }
    mr_dataset_unref(train);
    mr_dataset_unref(held);
    mr_dataset_unref(all);
    return r != 0;
}
