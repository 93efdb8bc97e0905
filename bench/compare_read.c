/* compare_read.c - the two engines against bare loops, and against fio on the device.
 *
 *     compare_read DIR [ROUNDS [DEPTH [warm|cold]]]
 *
 * "Bare" loops throw each file away: their buffer stays in the CPU's cache.  "Keeping" loops do
 * nothing else either, but keep files in a buffer of a given size before they overwrite the first.
 * With 2 MB that is still about a cache.  One batch of 64 files is the least that somebody who is
 * given batches can do with, when nothing is read while it is looked at; two, when the next one is.
 * What a keeping loop reaches of a bare one is about what can be expected of a pipeline, and is
 * printed first; the engines are held against both, and the threads engine also with smaller
 * batches. Loops share the process's descriptors and open whole paths, as anybody's first loop
 * does.
 *
 * DIR is a data set as make_files writes it.  All contenders read the same files in the same
 * shuffled order; files are cached ("warm", and a run goes through them several times) or evicted
 * before each run ("cold").  fio, if it is
 * installed, reads a file of its own in DIR with ImageNet's size split and O_DIRECT. */
#include "alternate.h"
#include "bare_loops.h"
#include "tidy.h"

#include "clock.h"
#include "json.h"

#include <millrace/pipeline.h>
#include <millrace/store.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 64         /* the pipeline's default */
#define CACHE (2u << 20) /* bytes: the L2 cache of many CPUs */
#define TIMES 4          /* that a warm run goes through all files: it lasts tenths of a second */
#define SEED  7

struct setting {
    const char *dir;
    struct mr_dataset *data;
    struct file_list files; /* of one run, in the pipeline's order */
    uint64_t n_files;       /* that there are */
    unsigned threads, depth, batch;
    int cold, direct;
};

static int do_nothing(void *ctx, const struct mr_map_input *in, void *slot)
{
    (void)ctx;
    (void)in;
    (void)slot;
    return 0;
}

/* The files of TIMES epochs as a pipeline reads them.  In which order pages come and in which they
 * once came into the cache makes a difference. */
static int list_in_order(struct setting *s)
{
    struct mr_pipeline_opts o = {.map = do_nothing,
                                 .map_bytes = 1,
                                 .map_without_bytes = 1,
                                 .seed = SEED,
                                 .epochs = TIMES,
                                 .keep_last = 1};
    struct mr_pipeline *p;
    struct mr_batch *b;
    char path[PATH_MAX];
    uint64_t n = 0;
    int r = mr_pipeline_open(s->data, &o, &p, NULL);
    if (r)
        return r;
    while (n < TIMES * s->n_files && (r = mr_pipeline_next(p, &b)) >= 0) {
        for (unsigned i = 0; r && i < b->n; i++) {
            mr_dataset_name(s->data, b->samples[i].index, path, sizeof path);
            s->files.path[n++] = strdup(path);
        }
        if (r)
            mr_batch_unref(b);
    }
    mr_pipeline_close(p);
    return r < 0 ? r : 0;
}

static int load(struct setting *s)
{
    struct mr_error err = {0};
    uint64_t bytes = 0;
    if (mr_dataset_open(s->dir, &s->data, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    s->n_files = mr_dataset_size(s->data);
    s->files.path = calloc(TIMES * s->n_files, sizeof *s->files.path);
    if (!s->files.path || list_in_order(s)) {
        fprintf(stderr, "%s: the files cannot be listed\n", s->dir);
        return -1;
    }
    for (uint64_t i = 0; i < s->n_files; i++) {
        struct mr_cache_state st;
        if (!mr_cache_query(s->files.path[i], &st, NULL))
            bytes += st.size_bytes;
    }
    s->files.mean_bytes = bytes / s->n_files;
    return 0;
}

/* Warm: everything was read by the run before.  Cold: out it goes. */
static void prepare(const struct setting *s)
{
    for (uint64_t i = 0; s->cold && i < s->n_files; i++)
        if (mr_cache_evict(s->files.path[i], NULL, NULL, NULL) != MR_COLD_DATA)
            fprintf(stderr, "warning: %s is not provably cold\n", s->files.path[i]);
}

static double our_rate(const struct setting *s, enum mr_engine engine)
{
    struct mr_pipeline *p;
    struct mr_batch *b;
    struct mr_pipeline_opts o = {.engine = engine,
                                 .threads = s->threads,
                                 .io_depth = s->depth,
                                 .batch = s->batch,
                                 .direct = s->direct,
                                 .seed = SEED,
                                 .epochs = (unsigned)(s->files.n / s->n_files),
                                 .keep_last = 1,
                                 .start_on_next = 1};
    uint64_t n = 0;
    int r = 0;
    prepare(s);
    if (mr_pipeline_open(s->data, &o, &p, NULL))
        return 0;
    uint64_t start = mr_clock_ns();
    while (n < s->files.n && (r = mr_pipeline_next(p, &b)) >= 0)
        if (r) {
            n += b->n;
            mr_batch_unref(b);
        }
    double seconds = (double)(mr_clock_ns() - start) / 1e9;
    mr_pipeline_close(p);
    return r < 0 || n != s->files.n ? 0 : (double)n / seconds;
}

static double run_threads_engine(void *ctx)
{
    return our_rate(ctx, MR_ENGINE_THREADS);
}

static double run_uring_engine(void *ctx)
{
    return our_rate(ctx, MR_ENGINE_URING);
}

static double run_bare_threads(void *ctx)
{
    struct setting *s = ctx;
    prepare(s);
    return bare_threads(&s->files, s->threads, 0);
}

/* Bytes of that many batches, on average. */
static uint64_t batches(const struct setting *s, unsigned n)
{
    return (uint64_t)n * BATCH * s->files.mean_bytes;
}

static double run_caching_threads(void *ctx)
{
    struct setting *s = ctx;
    prepare(s);
    return bare_threads(&s->files, s->threads, CACHE * s->threads);
}

static double run_threads_keeping_one(void *ctx)
{
    struct setting *s = ctx;
    prepare(s);
    return bare_threads(&s->files, s->threads, batches(s, 1));
}

static double run_threads_keeping_two(void *ctx)
{
    struct setting *s = ctx;
    prepare(s);
    return bare_threads(&s->files, s->threads, batches(s, 2));
}

static double run_bare_uring(void *ctx)
{
    struct setting *s = ctx;
    prepare(s);
    return bare_uring(&s->files, s->threads, s->depth, 0);
}

static double run_ring_keeping_one(void *ctx)
{
    struct setting *s = ctx;
    prepare(s);
    return bare_uring(&s->files, s->threads, s->depth, batches(s, 1));
}

static double run_ring_keeping_two(void *ctx)
{
    struct setting *s = ctx;
    prepare(s);
    return bare_uring(&s->files, s->threads, s->depth, batches(s, 2));
}

/* Bytes per second as a rate of files of the set's mean size, so that it compares. */
static double run_fio(void *ctx)
{
    struct setting *s = ctx;
    char command[PATH_MAX + 512];
    static char text[1 << 17];
    snprintf(command, sizeof command,
             "fio --name=split --filename=%s/.fio.dat --size=4G --rw=randread --direct=1 "
             "--ioengine=io_uring --iodepth=%u --time_based --runtime=1 --output-format=json "
             "--bssplit=2K/1:4K/2:8K/4:16K/8:32K/13:64K/38:128K/33:256K/1 2>/dev/null",
             s->dir, s->depth);
    FILE *f = popen(command, "r");
    if (!f)
        return 0;
    size_t len = fread(text, 1, sizeof text, f);
    if (pclose(f))
        return 0;
    char *brace = memchr(text, '{', len);
    struct mr_json *j = brace ? mr_json_parse(brace, len - (size_t)(brace - text)) : NULL;
    double bytes = j ? mr_json_number(mr_json_at(j, "jobs.0.read.bw_bytes")) : 0;
    mr_json_free(j);
    return bytes / (double)s->files.mean_bytes;
}

static int compare(struct setting *s, const struct contender *ours, const struct contender *peer,
                   unsigned rounds, double target)
{
    struct comparison c;
    char what[64];
    snprintf(what, sizeof what, "%s%s, %u thread%s, depth %u, batch %u", s->cold ? "cold" : "warm",
             s->direct ? " direct" : "", s->threads, s->threads > 1 ? "s" : "", s->depth, s->batch);
    if (alternate(ours, peer, rounds, &c))
        return 1;
    alternate_print(what, ours, peer, &c, target);
    return 0;
}

/* All rows of one temperature and number of threads. */
static int compare_engines(struct setting *s, unsigned rounds)
{
    const struct contender threads = {"threads engine", run_threads_engine, s},
                           uring = {"uring engine", run_uring_engine, s},
                           loop = {"bare loop", run_bare_threads, s},
                           ring = {"bare ring", run_bare_uring, s},
                           caching_loop = {"loop keeping 2 MB", run_caching_threads, s},
                           loop_of_one = {"loop keeping one batch", run_threads_keeping_one, s},
                           loop_of_two = {"loop keeping two batches", run_threads_keeping_two, s},
                           ring_of_one = {"ring keeping one batch", run_ring_keeping_one, s},
                           ring_of_two = {"ring keeping two batches", run_ring_keeping_two, s};
    static const unsigned smaller[] = {8, 16, 32};
    int bad = 0;
    if (!s->cold) {
        bad |= compare(s, &caching_loop, &loop, rounds, 0);
        bad |= compare(s, &loop_of_one, &loop, rounds, 0);
        bad |= compare(s, &loop_of_two, &loop, rounds, 0);
    }
    bad |= compare(s, &threads, &loop, rounds, 0.90);
    if (!s->cold) {
        bad |= compare(s, &threads, &loop_of_one, rounds, 0);
        bad |= compare(s, &threads, &loop_of_two, rounds, 0);
        for (unsigned i = 0; i < sizeof smaller / sizeof *smaller; i++) {
            s->batch = smaller[i];
            bad |= compare(s, &threads, &loop, rounds, 0);
        }
        s->batch = BATCH;
        bad |= compare(s, &ring_of_one, &ring, rounds, 0);
        bad |= compare(s, &ring_of_two, &ring, rounds, 0);
    }
    bad |= compare(s, &uring, &ring, rounds, 0.90);
    if (s->cold)
        return bad | compare(s, &uring, &threads, rounds, s->threads == 2 ? 2.0 : 0);
    bad |= compare(s, &uring, &ring_of_one, rounds, 0);
    return bad | compare(s, &uring, &ring_of_two, rounds, 0);
}

/* The device itself, if there is somebody to ask it. */
static int compare_fio(struct setting *s, unsigned rounds)
{
    const struct contender uring = {"uring engine", run_uring_engine, s}, fio = {"fio", run_fio, s};
    if (system("command -v fio >/dev/null")) {
        printf("fio is not installed: not compared\n");
        return 0;
    }
    int bad = compare(s, &uring, &fio, rounds, 0);
    s->direct = 1;
    bad |= compare(s, &uring, &fio, rounds, 0.90);
    s->direct = 0;
    return bad;
}

static int compare_all(int argc, char **argv)
{
    struct setting s = {.dir = argc > 1 ? argv[1] : NULL, .depth = 32, .batch = BATCH};
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 9;
    const char *only = argc > 4 ? argv[4] : "";
    if (argc > 3)
        s.depth = (unsigned)atoi(argv[3]);
    if (argc < 2 || argc > 5 || !s.depth ||
        (*only && strcmp(only, "warm") != 0 && strcmp(only, "cold") != 0)) {
        fprintf(stderr, "usage: compare_read DIR [ROUNDS [DEPTH [warm|cold]]]\n");
        return 2;
    }
    if (load(&s))
        return 1;
    printf("%s: %llu files, %.1f KB on average; two batches are %.1f MB\n", s.dir,
           (unsigned long long)s.n_files, (double)s.files.mean_bytes / 1e3,
           (double)batches(&s, 2) / 1e6);
    int bad = 0;
    for (s.cold = *only == 'c'; s.cold < (*only == 'w' ? 1 : 2); s.cold++)
        for (s.threads = 1; s.threads <= 2; s.threads++) {
            s.files.n = (s.cold ? 1 : TIMES) * s.n_files;
            bad |= compare_engines(&s, rounds);
        }
    s.cold = 1;
    s.threads = 2;
    s.files.n = s.n_files;
    if (*only != 'w')
        bad |= compare_fio(&s, rounds);
    for (uint64_t i = 0; i < TIMES * s.n_files; i++)
        free(s.files.path[i]);
    free(s.files.path);
    mr_dataset_unref(s.data);
    return bad;
}

static void remove_fio_file(const void *dir)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/.fio.dat", (const char *)dir);
    unlink(path);
}

int main(int argc, char **argv)
{
    return tidy_run(compare_all, argc, argv, remove_fio_file, argc > 1 ? argv[1] : "");
}
