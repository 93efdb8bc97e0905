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
#include "device.h"
#include "generate.h"
#include "train_verdict.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct setup {
    const char *profile; /* lines behind name and write_mb_per_s; NULL = the storage as it is */
    unsigned threads;
    unsigned io_depth; /* 0 = threads engine */
    unsigned batch, prefetch;
    unsigned side; /* of the tensors */
    const char *device;
    int large; /* photos */
};

#define WIDE    "read_mb_per_s = 5000\n"
#define NARROW  "read_mb_per_s = 2\n"
#define FAR     "read_mb_per_s = 5000\nread_latency_us = 20000\n"
#define SEEKS   "read_mb_per_s = 200\nseek_us = 8000\n"
#define OPENS   "read_mb_per_s = 5000\nmetadata_us = 10000\nmetadata_parallel = 1\n"
#define SORTED  "read_mb_per_s = 200\nseek_us = 12000\nseek_shrink = 0.4\nqueue_depth = 8\n"
#define NOT_ALL "read_mb_per_s = 100\n"
#define QUICK   "emulated:0.005"
#define SLOW    "emulated:0.3"

static const struct row {
    const char *what;
    enum mr_limit imposed;
    struct setup run, relieved;
} rows[] = {
    {"storage of 2 MB/s, 4 threads",
     MR_LIMIT_DEVICE,
     {NARROW, 4, 0, 16, 1, 32, QUICK, 0},
     {WIDE, 4, 0, 16, 1, 32, QUICK, 0}},
    {"storage of 2 MB/s, 1 thread",
     MR_LIMIT_DEVICE,
     {NARROW, 1, 0, 16, 1, 32, QUICK, 0},
     {WIDE, 1, 0, 16, 1, 32, QUICK, 0}},
    {"storage of 2 MB/s, io_uring",
     MR_LIMIT_DEVICE,
     {NARROW, 2, 32, 16, 1, 32, QUICK, 0},
     {WIDE, 2, 32, 16, 1, 32, QUICK, 0}},
    {"storage of 2 MB/s, no prefetch",
     MR_LIMIT_DEVICE,
     {NARROW, 4, 0, 16, MR_NONE, 32, QUICK, 0},
     {WIDE, 4, 0, 16, MR_NONE, 32, QUICK, 0}},
    {"storage that seeks 8 ms, 4 threads",
     MR_LIMIT_DEVICE,
     {SEEKS, 4, 0, 16, 1, 32, QUICK, 0},
     {WIDE, 4, 0, 16, 1, 32, QUICK, 0}},
    {"100 opens a second, 4 threads",
     MR_LIMIT_DEVICE,
     {OPENS, 4, 0, 16, 1, 32, QUICK, 0},
     {WIDE, 4, 0, 16, 1, 32, QUICK, 0}},
    {"latency of 20 ms, 1 thread",
     MR_LIMIT_READ_DEPTH,
     {FAR, 1, 0, 16, 1, 32, QUICK, 0},
     {FAR, 8, 0, 16, 1, 32, QUICK, 0}},
    {"latency of 20 ms, 2 threads",
     MR_LIMIT_READ_DEPTH,
     {FAR, 2, 0, 16, 1, 32, QUICK, 0},
     {FAR, 8, 0, 16, 1, 32, QUICK, 0}},
    {"latency of 20 ms, io_uring depth 1",
     MR_LIMIT_READ_DEPTH,
     {FAR, 1, 1, 16, 1, 32, QUICK, 0},
     {FAR, 1, 16, 16, 1, 32, QUICK, 0}},
    {"disk that sorts its queue, 1 thread",
     MR_LIMIT_READ_DEPTH,
     {SORTED, 1, 0, 16, 1, 32, QUICK, 0},
     {SORTED, 8, 0, 16, 1, 32, QUICK, 0}},
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
     {NOT_ALL, 1, 0, 8, 1, 640, QUICK, 1},
     {NOT_ALL, 2, 0, 8, 1, 640, QUICK, 1}},
    {"no prefetch, input quicker than training",
     MR_LIMIT_HAND_OVER,
     {NULL, 2, 0, 32, MR_NONE, 224, "emulated:0.1", 0},
     {NULL, 2, 0, 32, 1, 224, "emulated:0.1", 0}},
    {"no prefetch, storage quicker than training",
     MR_LIMIT_HAND_OVER,
     {NARROW, 4, 0, 16, MR_NONE, 32, SLOW, 0},
     {NARROW, 4, 0, 16, 1, 32, SLOW, 0}},
    {"room for 4 samples, 16 threads",
     MR_LIMIT_HAND_OVER,
     {FAR, 16, 0, 2, 1, 32, "emulated:0.001", 0},
     {FAR, 16, 0, 2, 7, 32, "emulated:0.001", 0}},
    {"room for 4 samples, io_uring depth 32",
     MR_LIMIT_HAND_OVER,
     {FAR, 2, 32, 2, 1, 32, "emulated:0.001", 0},
     {FAR, 2, 32, 2, 15, 32, "emulated:0.001", 0}},
    {"slow accelerator",
     MR_LIMIT_NONE,
     {NULL, 2, 0, 16, 1, 32, SLOW, 0},
     {NULL, 8, 0, 16, 4, 32, SLOW, 0}},
    {"slow accelerator, storage of 2 MB/s",
     MR_LIMIT_NONE,
     {NARROW, 4, 0, 16, 1, 32, SLOW, 0},
     {WIDE, 8, 0, 16, 4, 32, SLOW, 0}},
};

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "verdict_matrix: %s: %s\n", what, why);
    exit(1);
}

static struct mr_device *make_device(const char *lines)
{
    struct mr_device_profile p;
    struct mr_device *d = NULL;
    struct mr_error err = {0};
    char text[512];
    int n = snprintf(text, sizeof text, "name = imposed\nwrite_mb_per_s = 100\n%s", lines);
    if (mr_device_profile_parse(text, (size_t)n, "profile", &p, &err) ||
        mr_device_new(&p, &d, &err))
        die("profile", err.text);
    return d;
}

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
    o.pipe.storage = s->profile ? make_device(s->profile) : NULL;
    if (mr_accelerator_spec_parse(s->device, &o.device, &err) || mr_train_run(&o, &r, &err))
        die("training", err.text);
    mr_train_judge(&o, &r, verdict);
    double seconds = r.seconds - r.first_fill_s;
    double rate = (double)(r.images - s->batch) / (seconds > 0 ? seconds : 1e-9);
    mr_train_result_fini(&r);
    mr_device_close(o.pipe.storage);
    return rate;
}

static struct mr_dataset *make_photos(const char *dir, enum mr_preset preset, unsigned n)
{
    struct mr_generate_opts o = {.preset = preset, .count = n, .classes = 4};
    struct mr_dataset *d = NULL;
    struct mr_error err = {0};
    if (mr_generate(dir, &o, NULL, &err) || mr_dataset_open(dir, &d, &err))
        die(dir, err.text);
    return d;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static int uring_works(struct mr_dataset *data)
{
    struct mr_pipeline_opts o = {.engine = MR_ENGINE_URING};
    struct mr_pipeline *p;
    if (mr_pipeline_open(data, &o, &p, NULL))
        return 0;
    mr_pipeline_close(p);
    return 1;
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
    char dir[4096], small_dir[4200], large_dir[4200];
    if (argc < 2) {
        fprintf(stderr, "usage: verdict_matrix DIR [ROUNDS]\n");
        return 2;
    }
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 1, right = 0, n = 0;
    snprintf(dir, sizeof dir, "%s/verdict-XXXXXX", argv[1]);
    if (!mkdtemp(dir))
        die(argv[1], "cannot make a folder there");
    snprintf(small_dir, sizeof small_dir, "%s/small", dir);
    snprintf(large_dir, sizeof large_dir, "%s/large", dir);
    struct mr_dataset *small = make_photos(small_dir, MR_PRESET_CALTECH101, 200);
    struct mr_dataset *large = make_photos(large_dir, MR_PRESET_IMAGENET, 100);
    int uring = uring_works(small);
    printf("| imposed on the run | limit | verdict | waiting | relief | |\n|--|--|--|--|--|--|\n");
    for (unsigned k = 0; k < rounds; k++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            if (uring || !rows[i].run.io_depth) {
                right += (unsigned)judge_row(&rows[i], small, large);
                n++;
            }
    printf("\n%u of %u right\n", right, n);
    mr_dataset_unref(small);
    mr_dataset_unref(large);
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return right == n ? 0 : 1;
}
