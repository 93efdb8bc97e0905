/* verdict_matrix.c - is the verdict right?  Runs whose bottleneck is known because it was imposed.
 *
 *     verdict_matrix DIR [ROUNDS]
 *
 * Two sets of photos are made in DIR (and removed): small files, and large ones.  Each row is a
 * training run on an emulated accelerator with one thing made scarce: the storage (a profile), the
 * reads under way (threads, I/O depth), the CPU (large photos to large tensors), the passing on (no
 * prefetch, room for few samples), or nothing.  The verdict names a limit; it is right when that is
 * what was imposed.
 *
 * So that what is called imposed is a fact as well, the run is repeated with just that thing
 * relieved; "relief" is how much faster it was then.  A row where nothing was imposed is relieved
 * of everything at once, and must not gain. */
#include "imposed.h"
#include "train_verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct setup {
    const char *profile; /* lines behind name and write_mb_per_s; NULL = the storage as it is */
    unsigned threads;
    unsigned io_depth; /* 0 = threads engine */
    unsigned batch, prefetch;
    unsigned side; /* of the tensors */
    const char *device;
    int large; /* photos */
};

#define QUICK "emulated:0.005"
#define SLOW  "emulated:0.3"

static const struct row {
    const char *what;
    enum mr_limit imposed;
    struct setup run, relieved;
} rows[] = {
    {"storage of 2 MB/s, 4 threads",
     MR_LIMIT_DEVICE,
     {IMPOSED_NARROW, 4, 0, 16, 1, 32, QUICK, 0},
     {IMPOSED_WIDE, 4, 0, 16, 1, 32, QUICK, 0}},
    {"storage of 2 MB/s, 1 thread",
     MR_LIMIT_DEVICE,
     {IMPOSED_NARROW, 1, 0, 16, 1, 32, QUICK, 0},
     {IMPOSED_WIDE, 1, 0, 16, 1, 32, QUICK, 0}},
    {"storage of 2 MB/s, io_uring",
     MR_LIMIT_DEVICE,
     {IMPOSED_NARROW, 2, 32, 16, 1, 32, QUICK, 0},
     {IMPOSED_WIDE, 2, 32, 16, 1, 32, QUICK, 0}},
    {"storage of 2 MB/s, no prefetch",
     MR_LIMIT_DEVICE,
     {IMPOSED_NARROW, 4, 0, 16, MR_NONE, 32, QUICK, 0},
     {IMPOSED_WIDE, 4, 0, 16, MR_NONE, 32, QUICK, 0}},
    {"storage that seeks 8 ms, 4 threads",
     MR_LIMIT_DEVICE,
     {IMPOSED_SEEKS, 4, 0, 16, 1, 32, QUICK, 0},
     {IMPOSED_WIDE, 4, 0, 16, 1, 32, QUICK, 0}},
    {"100 opens a second, 4 threads",
     MR_LIMIT_DEVICE,
     {IMPOSED_OPENS, 4, 0, 16, 1, 32, QUICK, 0},
     {IMPOSED_WIDE, 4, 0, 16, 1, 32, QUICK, 0}},
    {"latency of 20 ms, 1 thread",
     MR_LIMIT_READ_DEPTH,
     {IMPOSED_FAR, 1, 0, 16, 1, 32, QUICK, 0},
     {IMPOSED_FAR, 8, 0, 16, 1, 32, QUICK, 0}},
    {"latency of 20 ms, 2 threads",
     MR_LIMIT_READ_DEPTH,
     {IMPOSED_FAR, 2, 0, 16, 1, 32, QUICK, 0},
     {IMPOSED_FAR, 8, 0, 16, 1, 32, QUICK, 0}},
    {"latency of 20 ms, io_uring depth 1",
     MR_LIMIT_READ_DEPTH,
     {IMPOSED_FAR, 1, 1, 16, 1, 32, QUICK, 0},
     {IMPOSED_FAR, 1, 16, 16, 1, 32, QUICK, 0}},
    {"disk that sorts its queue, 1 thread",
     MR_LIMIT_READ_DEPTH,
     {IMPOSED_SORTED, 1, 0, 16, 1, 32, QUICK, 0},
     {IMPOSED_SORTED, 8, 0, 16, 1, 32, QUICK, 0}},
    {"much CPU a sample, 1 thread",
     MR_LIMIT_DECODE,
     {NULL, 1, 0, 8, 1, 640, QUICK, 1},
     {NULL, 1, 0, 8, 1, 32, QUICK, 0}},
    {"much CPU a sample, 8 threads",
     MR_LIMIT_DECODE,
     {NULL, 8, 0, 8, 1, 640, QUICK, 1},
     {NULL, 8, 0, 8, 1, 32, QUICK, 0}},
    {"much CPU a sample, io_uring",
     MR_LIMIT_DECODE,
     {NULL, 2, 32, 8, 1, 640, QUICK, 1},
     {NULL, 2, 32, 8, 1, 32, QUICK, 0}},
    {"much CPU a sample, storage of 100 MB/s",
     MR_LIMIT_DECODE,
     {IMPOSED_NOT_ALL, 1, 0, 8, 1, 640, QUICK, 1},
     {IMPOSED_NOT_ALL, 2, 0, 8, 1, 640, QUICK, 1}},
    {"no prefetch, input quicker than training",
     MR_LIMIT_HAND_OVER,
     {NULL, 2, 0, 32, MR_NONE, 224, "emulated:0.1", 0},
     {NULL, 2, 0, 32, 1, 224, "emulated:0.1", 0}},
    {"no prefetch, storage quicker than training",
     MR_LIMIT_HAND_OVER,
     {IMPOSED_NARROW, 4, 0, 16, MR_NONE, 32, SLOW, 0},
     {IMPOSED_NARROW, 4, 0, 16, 1, 32, SLOW, 0}},
    {"room for 4 samples, 16 threads",
     MR_LIMIT_HAND_OVER,
     {IMPOSED_FAR, 16, 0, 2, 1, 32, "emulated:0.001", 0},
     {IMPOSED_FAR, 16, 0, 2, 7, 32, "emulated:0.001", 0}},
    {"room for 4 samples, io_uring depth 32",
     MR_LIMIT_HAND_OVER,
     {IMPOSED_FAR, 2, 32, 2, 1, 32, "emulated:0.001", 0},
     {IMPOSED_FAR, 2, 32, 2, 15, 32, "emulated:0.001", 0}},
    {"slow accelerator",
     MR_LIMIT_NONE,
     {NULL, 2, 0, 16, 1, 32, SLOW, 0},
     {NULL, 8, 0, 16, 4, 32, SLOW, 0}},
    {"slow accelerator, storage of 2 MB/s",
     MR_LIMIT_NONE,
     {IMPOSED_NARROW, 4, 0, 16, 1, 32, SLOW, 0},
     {IMPOSED_WIDE, 8, 0, 16, 4, 32, SLOW, 0}},
};

/* Run it; images/s without the first fill, and the verdict. */
static double train(struct mr_dataset *data, const struct setup *s, unsigned steps,
                    struct mr_verdict *verdict)
{
    struct mr_train_opts o = {
        .data = data,
        .pipe = {.engine = s->io_depth ? MR_ENGINE_URING : MR_ENGINE_THREADS,
                 .threads = s->threads,
                 .io_depth = s->io_depth,
                 .batch = s->batch,
                 .prefetch = s->prefetch,
                 .seed = 1},
        .decode = {.width = s->side, .height = s->side},
        .steps = steps,
    };
    struct mr_train_result r;
    struct mr_error err = {0};
    o.pipe.storage = imposed_device(s->profile);
    if (mr_accelerator_spec_parse(s->device, &o.device, &err) || mr_train_run(&o, &r, &err))
        imposed_die("training", err.text);
    mr_train_judge(&o, &r, verdict);
    double seconds = r.seconds;
    double rate = (double)(r.images - s->batch) / (seconds > 0 ? seconds : 1e-9);
    mr_train_result_fini(&r);
    mr_device_close(o.pipe.storage);
    return rate;
}

/* Steps for a second or so, but enough of them that the ends do not count. */
static unsigned steps_of(const struct setup *s)
{
    return s->batch < 8 ? 100 : !strcmp(s->device, SLOW) ? 6 : 12;
}

static int judge_row(const struct row *row, struct mr_dataset *small, struct mr_dataset *large)
{
    struct mr_verdict v, relieved;
    const struct setup *a = &row->run, *b = &row->relieved;
    double rate = train(a->large ? large : small, a, steps_of(a), &v);
    double without = train(b->large ? large : small, b, steps_of(a), &relieved);
    double gain = without / rate;
    int right = v.limit == row->imposed;
    printf("| %s | %s | %s | %.0f%% | %.1fx | %s |\n", row->what, mr_limit_name(row->imposed),
           mr_limit_name(v.limit), 100 * v.wait_share, gain, right ? "right" : "**wrong**");
    if (!right)
        printf("%s\n", v.text);
    fflush(stdout);
    return right;
}

int main(int argc, char **argv)
{
    struct imposed_photos photos;
    if (argc < 2) {
        fprintf(stderr, "usage: verdict_matrix DIR [ROUNDS]\n");
        return 2;
    }
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 1, right = 0, n = 0;
    imposed_photos_init(&photos, argv[1], 200, 100);
    int uring = imposed_uring_works(photos.small);
    printf("| imposed on the run | limit | verdict | waiting | relief | |\n|--|--|--|--|--|--|\n");
    for (unsigned k = 0; k < rounds; k++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            if (uring || !rows[i].run.io_depth) {
                right += (unsigned)judge_row(&rows[i], photos.small, photos.large);
                n++;
            }
    printf("\n%u of %u right\n", right, n);
    imposed_photos_fini(&photos);
    return right == n ? 0 : 1;
}
