/* compare_read.c - the two engines against bare loops, and against fio on the device.
 *
 *     compare_read DIR [ROUNDS [DEPTH]]
 *
 * "Bare" loops throw each file away.  "Keeping" loops do nothing else either, but read into the
 * memory of two batches in turn, which is the least that somebody who is given batches can do with:
 * one is looked at while the next is filled.  What a keeping loop reaches of a bare one is thus what
 * can be expected of a pipeline, and is printed first.
 *
 * DIR is a data set as make_files writes it.  All contenders read the same files in the same
 * shuffled order; files are cached ("warm") or evicted before each run ("cold").  fio, if it is
 * installed, reads a file of its own in DIR with ImageNet's size split and O_DIRECT. */
#include "alternate.h"
#include "bare_loops.h"

#include "clock.h"
#include "json.h"
#include "permutation.h"

#include <millrace/pipeline.h>
#include <millrace/store.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOTS (2 * 64) /* two batches of the pipeline's default size */

struct setting {
    const char *dir;
    struct mr_dataset *data;
    struct file_list files; /* shuffled */
    unsigned threads, depth;
    int cold, direct;
};

static int load(struct setting *s)
{
    struct mr_error err = {0};
    struct mr_permutation order;
    char path[PATH_MAX];
    if (mr_dataset_open(s->dir, &s->data, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    s->files.n = mr_dataset_size(s->data);
    s->files.path = calloc(s->files.n, sizeof *s->files.path);
    mr_permutation_init(&order, s->files.n, 7);
    for (uint64_t i = 0; i < s->files.n; i++) {
        struct mr_cache_state st;
        mr_dataset_path(s->data, mr_permutation_at(&order, i), path, sizeof path);
        s->files.path[i] = strdup(path);
        if (!mr_cache_query(path, &st))
            s->files.bytes += st.size_bytes;
    }
    return 0;
}

/* Warm: everything was read by the run before.  Cold: out it goes. */
static void prepare(const struct setting *s)
{
    for (uint64_t i = 0; s->cold && i < s->files.n; i++)
        if (mr_cache_evict(s->files.path[i], NULL, NULL) != MR_COLD_DATA)
            fprintf(stderr, "warning: %s is not provably cold\n", s->files.path[i]);
}

static double our_rate(const struct setting *s, enum mr_engine engine)
{
    struct mr_pipeline *p;
    struct mr_batch *b;
    struct mr_pipeline_opts o = {.engine = engine,
                                 .threads = s->threads,
                                 .io_depth = s->depth,
                                 .direct = s->direct,
                                 .seed = 7,
                                 .keep_last = 1,
                                 .start_on_next = 1};
    uint64_t n = 0;
    int r;
    prepare(s);
    if (mr_pipeline_open(s->data, &o, &p, NULL))
        return 0;
    uint64_t start = mr_clock_ns();
    while ((r = mr_pipeline_next(p, &b)) == 1) {
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
    return bare_threads(&s->files, s->threads, 1);
}

static double run_keeping_threads(void *ctx)
{
    struct setting *s = ctx;
    prepare(s);
    return bare_threads(&s->files, s->threads, SLOTS / s->threads);
}

static double run_bare_uring(void *ctx)
{
    struct setting *s = ctx;
    prepare(s);
    return bare_uring(&s->files, s->threads, s->depth, 1);
}

static double run_keeping_uring(void *ctx)
{
    struct setting *s = ctx;
    prepare(s);
    return bare_uring(&s->files, s->threads, s->depth, SLOTS / s->threads);
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
    return bytes / ((double)s->files.bytes / (double)s->files.n);
}

static int compare(struct setting *s, const struct contender *ours, const struct contender *peer,
                   unsigned rounds, double target)
{
    struct comparison c;
    char what[64];
    snprintf(what, sizeof what, "%s%s, %u thread%s, depth %u", s->cold ? "cold" : "warm",
             s->direct ? " direct" : "", s->threads, s->threads > 1 ? "s" : "", s->depth);
    if (alternate(ours, peer, rounds, &c))
        return 1;
    alternate_print(what, ours, peer, &c, target);
    return 0;
}

int main(int argc, char **argv)
{
    struct setting s = {.dir = argc > 1 ? argv[1] : NULL, .depth = 32};
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 9;
    if (argc > 3)
        s.depth = (unsigned)atoi(argv[3]);
    if (argc < 2 || argc > 4 || !s.depth) {
        fprintf(stderr, "usage: compare_read DIR [ROUNDS [DEPTH]]\n");
        return 2;
    }
    const struct contender threads = {"threads engine", run_threads_engine, &s},
                           uring = {"uring engine", run_uring_engine, &s},
                           loop = {"bare loop", run_bare_threads, &s},
                           ring = {"bare ring", run_bare_uring, &s},
                           keeping_loop = {"keeping loop", run_keeping_threads, &s},
                           keeping_ring = {"keeping ring", run_keeping_uring, &s},
                           fio = {"fio", run_fio, &s};
    if (load(&s))
        return 1;
    printf("%s: %llu files, %.1f KB on average\n", s.dir, (unsigned long long)s.files.n,
           (double)s.files.bytes / (double)s.files.n / 1e3);
    int bad = 0;
    for (s.cold = 0; s.cold < 2; s.cold++)
        for (s.threads = 1; s.threads <= 2; s.threads++) {
            bad |= compare(&s, &keeping_loop, &loop, rounds, 0);
            bad |= compare(&s, &threads, &loop, rounds, 0.95);
            bad |= compare(&s, &threads, &keeping_loop, rounds, 0);
            bad |= compare(&s, &keeping_ring, &ring, rounds, 0);
            bad |= compare(&s, &uring, &ring, rounds, 0.90);
            bad |= compare(&s, &uring, &keeping_ring, rounds, 0);
            if (s.cold)
                bad |= compare(&s, &uring, &threads, rounds, s.threads == 2 ? 2.0 : 0);
        }
    s.cold = 1;
    s.threads = 2;
    if (!system("command -v fio >/dev/null")) {
        char path[PATH_MAX];
        bad |= compare(&s, &uring, &fio, rounds, 0);
        s.direct = 1;
        bad |= compare(&s, &uring, &fio, rounds, 0.90);
        snprintf(path, sizeof path, "%s/.fio.dat", s.dir);
        unlink(path);
    } else {
        printf("fio is not installed: not compared\n");
    }
    for (uint64_t i = 0; i < s.files.n; i++)
        free(s.files.path[i]);
    free(s.files.path);
    mr_dataset_unref(s.data);
    return bad;
}
