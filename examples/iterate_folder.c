/* iterate_folder.c - read a folder of files in shuffled batches.
 *
 *     iterate_folder DIR [BATCH]
 *
 * Prints each batch's labels and bytes.  DIR has one sub-folder per class. */
#include <millrace/pipeline.h>

#include <stdio.h>
#include <stdlib.h>

static void print_batch(const struct mr_batch *b)
{
    size_t bytes = 0;
    printf("batch %llu: labels", (unsigned long long)b->number);
    for (unsigned i = 0; i < b->n; i++) {
        bytes += b->samples[i].len; /* b->samples[i].data is the file */
        printf(" %u", b->samples[i].label);
    }
    printf(", %zu bytes\n", bytes);
}

int main(int argc, char **argv)
{
    struct mr_error err = {0};
    struct mr_dataset *data = NULL;
    struct mr_pipeline *pipe = NULL;
    struct mr_batch *b;

    if (argc < 2) {
        fprintf(stderr, "usage: %s DIR [BATCH]\n", argv[0]);
        return 2;
    }
    struct mr_pipeline_opts opts = {
        .batch = argc > 2 ? (unsigned)atoi(argv[2]) : 4, .seed = 1, .keep_last = 1};
    int r = mr_dataset_open(argv[1], &data, &err);
    if (!r)
        r = mr_pipeline_open(data, &opts, &pipe, &err);
    if (r) {
        fprintf(stderr, "%s\n", err.text);
        mr_dataset_unref(data);
        return 1;
    }
    while ((r = mr_pipeline_next(pipe, &b)) == 1) {
        print_batch(b);
        mr_batch_unref(b);
    }
    if (r < 0)
        fprintf(stderr, "%s\n", mr_pipeline_error(pipe));
    mr_pipeline_close(pipe);
    mr_dataset_unref(data);
    return r < 0;
}
