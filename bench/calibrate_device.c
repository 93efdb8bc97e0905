/* calibrate_device.c - do the built-in device profiles yield the figures they were fitted to?
 *
 *     calibrate_device DIR [RUNS [TABLE]]      TABLE: sequential, scaling, limits, locality, cost
 *
 * Writes 1,024 files of 112 KB to DIR (and removes them), and prints tables of measured against
 * target: sequential bandwidth through the device itself; the rate of the read-only pipeline over
 * threads; that no number of outstanding reads exceeds a limit; seeks with and without shuffling;
 * and what the emulation costs.  A figure is the median of RUNS runs (3) of 1.5 seconds. */
#include "clock.h"
#include "device.h"

#include <millrace/pipeline.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_FILES    1024
#define FILE_BYTES 112000
#define BLOCK      ((uint64_t)1 << 20)
#define RUN_NS     1500000000u
#define MAX_RUNS   15

static unsigned runs = 3;

static void die(const char *what)
{
    fprintf(stderr, "calibrate_device: %s\n", what);
    exit(1);
}

static struct mr_device *open_device(const char *name)
{
    struct mr_device *d = NULL;
    struct mr_error err = {0};
    if (mr_device_open(name, &d, &err))
        die(err.text);
    return d;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v)
{
    qsort(v, runs, sizeof *v, by_value);
    return v[runs / 2];
}

static const char *file_name(const char *dir, unsigned i)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/calibrate/%04u.bin", dir, i);
    return path;
}

static void make_files(const char *dir)
{
    static char bytes[FILE_BYTES], path[4096];
    snprintf(path, sizeof path, "%s/calibrate", dir);
    if (mkdir(path, 0755) && errno != EEXIST)
        die("cannot make a folder there");
    for (unsigned i = 0; i < N_FILES; i++) {
        memset(bytes, (int)i, sizeof bytes);
        FILE *f = fopen(file_name(dir, i), "wb");
        if (!f || fwrite(bytes, sizeof bytes, 1, f) != 1 || fclose(f))
            die("cannot write the files");
    }
    sync(); /* so that they have a place on the disk */
}

static void remove_files(const char *dir)
{
    char path[4096];
    for (unsigned i = 0; i < N_FILES; i++)
        unlink(file_name(dir, i));
    snprintf(path, sizeof path, "%s/calibrate", dir);
    rmdir(path);
}

/* ---- the device by itself ---- */

/* MB/s of a file read or written in blocks, `depth` of them outstanding. */
static double sequential(struct mr_device *d, enum mr_device_op op, unsigned depth)
{
    uint64_t due[64] = {0}, start = mr_clock_ns(), now = start, n = 0;
    for (; now - start < RUN_NS; n++, now = mr_clock_ns()) {
        struct mr_device_place place = {.file = 1, .offset = n * BLOCK};
        mr_device_wait_until(due[n % depth]);
        due[n % depth] = mr_device_reserve(d, op, &place, BLOCK);
    }
    for (unsigned i = 0; i < depth; i++)
        mr_device_wait_until(due[i]);
    return (double)(n * BLOCK) / ((double)(mr_clock_ns() - start) / 1e9) / 1e6;
}

static void report_sequential(const char *name, double target_read, double target_write)
{
    static const enum mr_device_op ops[] = {MR_DEV_READ, MR_DEV_WRITE};
    double v[MAX_RUNS], target[] = {target_read, target_write};
    struct mr_device *d = open_device(name);
    for (unsigned k = 0; k < 2; k++) {
        for (unsigned i = 0; i < runs; i++)
            v[i] = sequential(d, ops[k], 32);
        double m = median(v);
        printf("| %s, sequential %s, MB/s | %.2f | %.2f | %+.2f%% |\n", name, k ? "write" : "read",
               target[k], m, 100 * (m / target[k] - 1));
        fflush(stdout);
    }
    mr_device_close(d);
}

/* ---- through the pipeline ---- */

struct reading {
    enum mr_engine engine;
    unsigned threads, depth;
    enum mr_shuffle shuffle;
    struct mr_device *storage;
};

struct rate {
    double images, mb, cpu_us; /* per second, per second, per image */
};

static struct rate read_once(struct mr_dataset *data, const struct reading *how)
{
    struct mr_pipeline_opts o = {.engine = how->engine,
                                 .threads = how->threads,
                                 .io_depth = how->depth,
                                 .shuffle = how->shuffle,
                                 .storage = how->storage,
                                 .epochs = 1000000,
                                 .start_on_next = 1};
    struct mr_pipeline *p;
    struct mr_batch *b;
    struct mr_error err = {0};
    uint64_t n = 0;
    if (mr_pipeline_open(data, &o, &p, &err))
        die(err.text);
    uint64_t cpu = mr_clock_process_cpu_ns(), start = mr_clock_ns(), last = start;
    while (last - start < RUN_NS) {
        int r = mr_pipeline_next(p, &b);
        if (r < 0)
            die(mr_pipeline_error(p));
        if (!r)
            continue;
        n += b->n;
        mr_batch_unref(b);
        last = mr_clock_ns();
    }
    double seconds = (double)(last - start) / 1e9;
    cpu = mr_clock_process_cpu_ns() - cpu;
    mr_pipeline_close(p);
    return (struct rate){(double)n / seconds, (double)n * FILE_BYTES / seconds / 1e6,
                         (double)cpu / 1e3 / (double)n};
}

static struct rate read_median(struct mr_dataset *data, const struct reading *how)
{
    struct rate r[MAX_RUNS], m;
    double images[MAX_RUNS], mb[MAX_RUNS], cpu[MAX_RUNS];
    for (unsigned i = 0; i < runs; i++) {
        r[i] = read_once(data, how);
        images[i] = r[i].images;
        mb[i] = r[i].mb;
        cpu[i] = r[i].cpu_us;
    }
    m = (struct rate){median(images), median(mb), median(cpu)};
    return m;
}

/* Rates over threads; a target of 0 is not there.  The last column is a minimum for "doubles". */
static void report_scaling(struct mr_dataset *data, const char *name, const double target[4],
                           const char *note)
{
    static const unsigned threads[] = {1, 2, 4, 8};
    double base = 0;
    for (unsigned k = 0; k < 4; k++) {
        struct mr_device *d = open_device(name);
        struct reading how = {.threads = threads[k], .storage = d};
        struct rate r = read_median(data, &how);
        if (!k)
            base = r.images;
        printf("| %s, %u thread%s | %.0f | %.1f | %.2f |", name, threads[k], k ? "s" : "", r.images,
               r.mb, r.images / base);
        if (target[k] > 0)
            printf(" %s%.2f |\n", note, target[k]);
        else
            printf("  |\n");
        fflush(stdout);
        mr_device_close(d);
    }
}

/* A device that is nothing but a limit. */
static struct mr_device *limit_only(double mb_per_s)
{
    struct mr_device_profile p = {.name = "limit",
                                  .read_bytes_per_s = (uint64_t)(mb_per_s * 1e6),
                                  .write_bytes_per_s = (uint64_t)(mb_per_s * 1e6),
                                  .queue_depth = 1,
                                  .targets = 1,
                                  .stripe_bytes = BLOCK};
    struct mr_device *d = NULL;
    struct mr_error err = {0};
    if (mr_device_new(&p, &d, &err))
        die(err.text);
    return d;
}

/* The median of the runs, and the largest of them all: no run may exceed a limit.  Each has a
 * device of its own: what a run that is ended leaves under way is charged, and the next would wait
 * for it.
 */
static void report_limits(struct mr_dataset *data)
{
    double largest = 0, v[MAX_RUNS];
    static const unsigned outstanding[] = {1, 8, 64};
    static const double limits[] = {50, 200, 1000};
    for (unsigned e = 0; e < 2; e++)
        for (unsigned l = 0; l < 3; l++) {
            printf("| %s engine, limit %.0f MB/s |", e ? "uring" : "threads", limits[l]);
            for (unsigned k = 0; k < 3; k++) {
                for (unsigned i = 0; i < runs; i++) {
                    struct mr_device *d = limit_only(limits[l]);
                    struct reading how = {.engine = e ? MR_ENGINE_URING : MR_ENGINE_THREADS,
                                          .threads = e ? 1 : outstanding[k],
                                          .depth = outstanding[k],
                                          .storage = d};
                    v[i] = read_once(data, &how).mb / limits[l];
                    largest = v[i] > largest ? v[i] : largest;
                    mr_device_close(d);
                }
                printf(" %.4f |", median(v));
                fflush(stdout);
            }
            printf("\n");
        }
    printf("\nthe largest share of any run: %.5f\n", largest);
}

static void report_locality(struct mr_dataset *data)
{
    for (unsigned threads = 1; threads <= 8; threads *= 8) {
        double rate[2];
        for (unsigned k = 0; k < 2; k++) {
            struct mr_device *d = open_device("hdd");
            struct reading how = {.threads = threads,
                                  .shuffle = k ? MR_SHUFFLE_NONE : MR_SHUFFLE_GLOBAL,
                                  .storage = d};
            rate[k] = read_once(data, &how).images;
            mr_device_close(d);
        }
        printf("| hdd, %u thread%s | %.0f | %.0f | %.2f |\n", threads, threads > 1 ? "s" : "",
               rate[0], rate[1], rate[1] / rate[0]);
    }
}

static void report_cost(struct mr_dataset *data)
{
    enum { N = 1000000 };
    struct mr_device *d = open_device("lustre");
    struct mr_device_place place = {0};
    uint64_t start = mr_clock_ns();
    for (unsigned i = 1; i <= N; i++) {
        place.file = i;
        mr_device_reserve_file(d, start, &place, FILE_BYTES);
    }
    printf("one reservation: %.0f ns\n", (double)(mr_clock_ns() - start) / N);
    mr_device_close(d);
    static const char *const names[] = {NULL, "hdd", "ssd", "optane"};
    for (unsigned k = 0; k < 4; k++) {
        struct mr_device *s = names[k] ? open_device(names[k]) : NULL;
        struct reading how = {.threads = 2, .storage = s};
        printf("CPU per image, 2 threads, %s: %.1f us\n", names[k] ? names[k] : "no emulation",
               read_once(data, &how).cpu_us);
        mr_device_close(s);
    }
}

static void report_all_sequential(struct mr_dataset *data)
{
    (void)data;
    report_sequential("hdd", 163.00, 133.14);
    report_sequential("ssd", 280.55, 195.05);
    report_sequential("optane", 1603.06, 511.78);
    report_sequential("lustre", 1968.618, 991.914);
}

static void report_all_scaling(struct mr_dataset *data)
{
    static const double hdd[] = {1, 1.65, 1.95, 2.3}, lustre[] = {1, 0, 0, 7.8};
    static const double doubles[] = {1, 1.8, 0, 0};
    report_scaling(data, "hdd", hdd, "");
    report_scaling(data, "ssd", doubles, ">= ");
    report_scaling(data, "optane", doubles, ">= ");
    report_scaling(data, "lustre", lustre, "");
}

static const struct {
    const char *name, *head;
    void (*report)(struct mr_dataset *data);
} tables[] = {
    {"sequential", "| | target | measured | off by |\n|--|--|--|--|\n", report_all_sequential},
    {"scaling", "| 112 KB files | images/s | MB/s | over 1 thread | target |\n|--|--|--|--|--|\n",
     report_all_scaling},
    {"limits", "| share of the limit, reads outstanding: | 1 | 8 | 64 |\n|--|--|--|--|\n",
     report_limits},
    {"locality", "| images/s | shuffled | as they lie | ratio |\n|--|--|--|--|\n", report_locality},
    {"cost", "", report_cost},
};

int main(int argc, char **argv)
{
    struct mr_dataset *data = NULL;
    struct mr_error err = {0};
    char path[4096];
    if (argc < 2 || argc > 4)
        die("usage: calibrate_device DIR [RUNS [TABLE]]");
    if (argc > 2)
        runs = (unsigned)atoi(argv[2]);
    if (runs < 1 || runs > MAX_RUNS)
        die("1 to 15 runs");
    unsigned n_tables = sizeof tables / sizeof *tables, chosen = 0;
    for (unsigned i = 0; i < n_tables; i++)
        chosen += argc < 4 || !strcmp(argv[3], tables[i].name);
    if (!chosen)
        die("TABLE is sequential, scaling, limits, locality or cost");
    make_files(argv[1]);
    snprintf(path, sizeof path, "%s/calibrate", argv[1]);
    if (mr_dataset_open(path, &data, &err))
        die(err.text);

    for (unsigned i = 0; i < n_tables; i++)
        if (argc < 4 || !strcmp(argv[3], tables[i].name)) {
            printf("\n%s", tables[i].head);
            tables[i].report(data);
        }
    mr_dataset_unref(data);
    remove_files(argv[1]);
    return 0;
}
