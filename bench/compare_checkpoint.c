/* compare_checkpoint.c - checkpoints against the bare device and against torch.save.
 *
 *     compare_checkpoint DIR PEERS [MEGABYTES [ROUNDS]] [write] [read] [torch] [stall]
 *
 * Writes in DIR, which is made and emptied of what this makes; PEERS is bench/peers.  The state is
 * synthetic and as large as AlexNet's with Adam: 704 MB, in 48 arrays of AlexNet's kind of sizes.
 * "Bare write" is one file: O_DIRECT in 32 MiB requests, then fsync; "bare read" is O_DIRECT by
 * eight threads, 4 MiB each, which is the fastest that this machine's device was seen to do.
 *
 * "stall" emulates training: a step that sleeps (an accelerator) or computes (all cores), then an
 * update that writes every array.  What is reported is how long begin and before_write held it. */
#include "alternate.h"

#include "clock.h"

#include <millrace/checkpoint.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define N_ARRAYS   48
#define BIG_WRITE  ((size_t)32 << 20)
#define READ_CHUNK ((size_t)4 << 20)
#define N_READERS  8
#define N_STALLS   10

struct bench {
    char dir[512], file[600];
    const char *peers;
    uint64_t bytes;
    struct mr_array arrays[N_ARRAYS];
    char names[N_ARRAYS][16];
    uint8_t *memory; /* of the arrays, and what bare loops write and read */
    uint64_t step;
};

static void *touched(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    madvise(p, bytes, MADV_HUGEPAGE); /* as the library's own buffers: pinning pages costs */
    memset(p, 1, bytes);
    return p;
}

/* Every eighth array is large; together they have b->bytes. */
static void make_arrays(struct bench *b)
{
    uint64_t unit = b->bytes / (6 * 15 + 42) / 4, at = 0;
    b->memory = touched(b->bytes + BIG_WRITE);
    for (unsigned i = 0; i < N_ARRAYS; i++) {
        uint64_t n = i % 8 == 0 ? 15 * unit : unit;
        if (i == N_ARRAYS - 1)
            n = (b->bytes - at) / 4;
        snprintf(b->names[i], sizeof b->names[i], "array%02u", i);
        b->arrays[i] = (struct mr_array){b->names[i], MR_DT_F32, 1, {n}, b->memory + at};
        at += n * 4;
    }
}

static void empty(const struct bench *b)
{
    DIR *d = opendir(b->dir);
    struct dirent *e;
    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.')
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
}

static double seconds_since(uint64_t begin)
{
    return (double)(mr_clock_ns() - begin) / 1e9;
}

/* ---- contenders ---- */

static double save_rate(struct bench *b, enum mr_checkpoint_mode mode)
{
    struct mr_checkpoint_opts o = {.dir = b->dir, .mode = mode, .keep = MR_NONE, .buffers = 1};
    struct mr_checkpoint *c;
    struct mr_checkpoint_record r = {.durable_fast_s = -1};
    struct mr_error err = {0};
    empty(b);
    if (mr_checkpoint_open(b->arrays, N_ARRAYS, &o, &c, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 0;
    }
    if (!mr_checkpoint_begin(c, ++b->step, NULL) &&
        !mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST, NULL))
        mr_checkpoint_get(c, 0, &r);
    mr_checkpoint_close(c, NULL);
    return r.durable_fast_s > 0 ? (double)b->bytes / r.durable_fast_s / 1e6 : 0;
}

static double run_sync(void *ctx)
{
    return save_rate(ctx, MR_CHECKPOINT_SYNC);
}

static double run_lazy(void *ctx)
{
    return save_rate(ctx, MR_CHECKPOINT_LAZY);
}

static double run_bare_write(void *ctx)
{
    struct bench *b = ctx;
    uint64_t begin = mr_clock_ns();
    empty(b);
    begin = mr_clock_ns();
    int fd = open(b->file, O_WRONLY | O_CREAT | O_EXCL | O_DIRECT, 0644);
    int bad = fd < 0;
    for (uint64_t at = 0; !bad && at < b->bytes; at += BIG_WRITE) {
        size_t n =
            b->bytes - at < BIG_WRITE ? (size_t)(b->bytes - at + 4095) & ~(size_t)4095 : BIG_WRITE;
        bad = pwrite(fd, b->memory + at, n, (off_t)at) != (ssize_t)n;
    }
    bad |= fsync(fd);
    close(fd);
    double s = seconds_since(begin);
    if (bad)
        perror(b->file);
    return bad ? 0 : (double)b->bytes / s / 1e6;
}

static double run_restore(void *ctx)
{
    struct bench *b = ctx;
    struct mr_restore_opts o = {.dir = b->dir};
    struct mr_restored found;
    struct mr_error err = {0};
    uint64_t begin = mr_clock_ns();
    if (mr_checkpoint_restore(b->arrays, N_ARRAYS, &o, &found, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 0;
    }
    return (double)b->bytes / seconds_since(begin) / 1e6;
}

struct reader {
    struct bench *b;
    int fd;
    atomic_uint_fast64_t next;
    atomic_int n_threads, bad;
};

static void *read_chunks(void *arg)
{
    struct reader *r = arg;
    uint8_t *buf = r->b->memory + (size_t)atomic_fetch_add(&r->n_threads, 1) * READ_CHUNK;
    uint64_t at;
    while ((at = atomic_fetch_add(&r->next, READ_CHUNK)) < r->b->bytes)
        if (pread(r->fd, buf, READ_CHUNK, (off_t)at) <= 0)
            r->bad = 1;
    return NULL;
}

/* The data file of the checkpoint itself. */
static double run_bare_read(void *ctx)
{
    struct bench *b = ctx;
    struct reader r = {.b = b};
    pthread_t t[N_READERS];
    char path[700];
    snprintf(path, sizeof path, "%s/model.ckpt-%llu.data-00000-of-00001", b->dir,
             (unsigned long long)b->step);
    uint64_t begin = mr_clock_ns();
    r.fd = open(path, O_RDONLY | O_DIRECT);
    if (r.fd < 0) {
        perror(path);
        return 0;
    }
    for (unsigned i = 0; i < N_READERS; i++)
        if (pthread_create(&t[i], NULL, read_chunks, &r))
            return 0;
    for (unsigned i = 0; i < N_READERS; i++)
        pthread_join(t[i], NULL);
    close(r.fd);
    return r.bad ? 0 : (double)b->bytes / seconds_since(begin) / 1e6;
}

static double run_torch(void *ctx)
{
    struct bench *b = ctx;
    char command[2048];
    double s = 0;
    empty(b);
    snprintf(command, sizeof command, "/usr/bin/python3 %s/torch_save.py %s %llu", b->peers,
             b->file, (unsigned long long)b->bytes);
    FILE *f = popen(command, "r");
    int ok = f && fscanf(f, "%lf", &s) == 1;
    if (f)
        pclose(f);
    return ok && s > 0 ? (double)b->bytes / s / 1e6 : 0;
}

/* ---- stall ---- */

static atomic_int computing;
static volatile double sink;

static void *compute(void *arg)
{
    double x = 1;
    (void)arg;
    while (atomic_load_explicit(&computing, memory_order_relaxed))
        for (int i = 0; i < 1000; i++)
            x = x * 1.0000001 + 1e-9;
    sink = x;
    return NULL;
}

/* One step without the update: sleep, or keep every core busy. */
static void forward_backward(double s, int busy)
{
    struct timespec t = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};
    pthread_t threads[64];
    unsigned n = busy ? (unsigned)sysconf(_SC_NPROCESSORS_ONLN) : 0;
    n = n > 64 ? 64 : n;
    atomic_store(&computing, 1);
    for (unsigned i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, compute, NULL))
            abort();
    nanosleep(&t, NULL);
    atomic_store(&computing, 0);
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

static void update(struct bench *b, struct mr_checkpoint *c)
{
    for (unsigned i = 0; i < N_ARRAYS; i++) {
        float *w = b->arrays[i].data;
        mr_checkpoint_before_write(c, i);
        for (uint64_t k = 0; k < b->arrays[i].dims[0]; k++)
            w[k] = w[k] * 0.999f + 0.001f;
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static int measure_stall(struct bench *b, double step_s, int busy)
{
    struct mr_checkpoint_opts o = {.dir = b->dir, .keep = 1};
    struct mr_checkpoint *c;
    struct mr_error err = {0};
    double stall[N_STALLS], copy[N_STALLS], durable[N_STALLS];
    empty(b);
    if (mr_checkpoint_open(b->arrays, N_ARRAYS, &o, &c, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (unsigned i = 0; i < N_STALLS; i++) {
        struct mr_checkpoint_record r;
        if (mr_checkpoint_begin(c, ++b->step, NULL))
            return 1;
        forward_backward(step_s, busy);
        update(b, c);
        if (mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST, NULL) || mr_checkpoint_get(c, i, &r))
            return 1;
        stall[i] = r.stall_s;
        durable[i] = r.durable_fast_s;
        /* The save thread notes the time of the copy when it is through. */
        struct mr_checkpoint_stats s;
        do {
            nanosleep(&(struct timespec){0, 1000000}, NULL);
            mr_checkpoint_get_stats(c, &s);
        } while (s.saving);
        mr_checkpoint_get(c, i, &r);
        copy[i] = r.snapshot_s;
    }
    mr_checkpoint_close(c, NULL);
    qsort(stall, N_STALLS, sizeof *stall, by_value);
    qsort(copy, N_STALLS, sizeof *copy, by_value);
    qsort(durable, N_STALLS, sizeof *durable, by_value);
    printf(
        "stall, step of %.2f s %s: median %.2f ms (%.2f .. %.2f); copied %.0f ms, durable %.0f ms "
        "after begin\n",
        step_s, busy ? "on all cores" : "asleep", 1e3 * (stall[4] + stall[5]) / 2, 1e3 * stall[0],
        1e3 * stall[N_STALLS - 1], 1e3 * copy[5], 1e3 * durable[5]);
    fflush(stdout);
    return 0;
}

static int compare(struct bench *b, const char *what, const struct contender *ours,
                   const struct contender *peer, unsigned rounds, double target)
{
    struct comparison c;
    (void)b;
    if (alternate(ours, peer, rounds, &c))
        return 1;
    alternate_print(what, ours, peer, &c, target);
    return 0;
}

static int wanted(int argc, char **argv, const char *what)
{
    int any = 0;
    for (int i = 3; i < argc; i++) {
        if (!strcmp(argv[i], what))
            return 1;
        any |= argv[i][0] > '9';
    }
    return !any;
}

int main(int argc, char **argv)
{
    static struct bench b;
    unsigned rounds = argc > 4 && atoi(argv[4]) ? (unsigned)atoi(argv[4]) : 9;
    if (argc < 3) {
        fprintf(stderr, "usage: compare_checkpoint DIR PEERS [MEGABYTES [ROUNDS]] [PART...]\n");
        return 2;
    }
    b.bytes = argc > 3 && atoi(argv[3]) ? (uint64_t)atoi(argv[3]) * 1000000 : 704390856;
    b.bytes &= ~(uint64_t)3;
    b.peers = argv[2];
    snprintf(b.dir, sizeof b.dir, "%s/compare-checkpoint", argv[1]);
    snprintf(b.file, sizeof b.file, "%s/bare.dat", b.dir);
    mkdir(b.dir, 0755);
    make_arrays(&b);
    const struct contender sync = {"sync", run_sync, &b}, lazy = {"lazy", run_lazy, &b},
                           bare = {"bare write", run_bare_write, &b},
                           restore = {"restore", run_restore, &b},
                           bare_read = {"bare read", run_bare_read, &b},
                           torch = {"torch.save", run_torch, &b};
    int bad = 0;
    printf("%.0f MB in %d arrays; rates in MB/s\n", (double)b.bytes / 1e6, N_ARRAYS);
    if (wanted(argc, argv, "write")) {
        bad |= compare(&b, "durable, from the arrays", &sync, &bare, rounds, 0.90);
        bad |= compare(&b, "durable, by snapshot", &lazy, &bare, rounds, 0.90);
    }
    if (wanted(argc, argv, "read")) {
        bad |= !(save_rate(&b, MR_CHECKPOINT_SYNC) > 0);
        bad |= compare(&b, "restored and verified", &restore, &bare_read, rounds, 0.80);
    }
    if (wanted(argc, argv, "torch"))
        bad |= compare(&b, "stop, save, sync", &sync, &torch, rounds, 1.00);
    if (wanted(argc, argv, "stall")) {
        bad |= measure_stall(&b, 1.0, 1);
        bad |= measure_stall(&b, 0.2, 0);
        bad |= measure_stall(&b, 0.05, 0);
    }
    empty(&b);
    rmdir(b.dir);
    return bad;
}
