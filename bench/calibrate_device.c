/* calibrate_device.c - do the built-in device profiles yield the figures they were fitted to?
 *
 *     calibrate_device DIR [RUNS [TABLE]]      TABLE: sequential, scaling, limits, locality, cost
 *
 * Writes 1,024 files of 112 KB to DIR (and removes them), and prints tables of measured against
 * target: sequential bandwidth through the device itself; the rate of the read-only pipeline over
 * threads; that no number of outstanding reads exceeds a limit; seeks with and without shuffling;
 * and what the emulation costs.  A figure is the median of RUNS runs (3) of 1.5 seconds.
 *
 * What others do on the machine makes a reader late, and late is slow.  So the limits are measured
 * with precedence over ordinary programs (SCHED_FIFO) where that is allowed, and each run has its
 * control beside it: a thread that sleeps a millisecond at a time and adds up how late it is woken,
 * and the time that the hypervisor took away.  A run in which either exceeds 1% is disturbed; it is
 * repeated, up to three times RUNS, and the table says how many were. */
#include "clock.h"
#include "device.h"
#include "steal.h"
#include "tidy.h"

#include <millrace/pipeline.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define N_FILES    1024
#define FILE_BYTES 112000
#define BLOCK      ((uint64_t)1 << 20)
#define RUN_NS     1500000000u
#define MAX_RUNS   15
#define MAX_TRIES  (3 * MAX_RUNS)

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

static double median_of(double *v, unsigned n)
{
    qsort(v, n, sizeof *v, by_value);
    return v[n / 2];
}

static double median(double *v)
{
    return median_of(v, runs);
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

static void remove_files(const void *parent)
{
    const char *dir = parent;
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

/* ---- the control beside a run ---- */

#define CONTROL_NS 1000000
#define TOLERATED  200000 /* the spin of other waits, and a timer's own lateness */
#define DISTURBED  0.01

struct control {
    pthread_t thread;
    atomic_int stop;
    uint64_t late_ns, start_ns;
    struct steal steal;
};

struct disturbance {
    double late, steal; /* shares of the run's time */
};

static void *sleep_and_look(void *arg)
{
    struct control *c = arg;
    uint64_t now = mr_clock_ns();
    while (!atomic_load(&c->stop)) {
        uint64_t due = now + CONTROL_NS;
        struct timespec at = {(time_t)(due / 1000000000u), (long)(due % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        now = mr_clock_ns();
        if (now > due + TOLERATED)
            c->late_ns += now - due;
    }
    return NULL;
}

static void control_begin(struct control *c)
{
    *c = (struct control){.start_ns = mr_clock_ns()};
    steal_begin(&c->steal);
    if (pthread_create(&c->thread, NULL, sleep_and_look, c))
        die("no thread for the control");
}

static struct disturbance control_end(struct control *c)
{
    double seconds = (double)(mr_clock_ns() - c->start_ns) / 1e9;
    double steal = steal_share(&c->steal);
    atomic_store(&c->stop, 1);
    pthread_join(c->thread, NULL);
    return (struct disturbance){(double)c->late_ns / 1e9 / seconds, steal};
}

/* ---- limits ---- */

/* The runs of one cell: those that nothing disturbed come first. */
struct cell {
    unsigned n, n_calm;
    double share[MAX_TRIES], lowest, highest;
    struct disturbance most;
};

/* Each run has a device of its own: what a run that is ended leaves under way is charged, and the
 * next would wait for it. */
static void one_limit(struct mr_dataset *data, enum mr_engine engine, unsigned outstanding,
                      double limit, struct cell *c)
{
    struct mr_device *d = limit_only(limit);
    struct reading how = {.engine = engine,
                          .threads = engine == MR_ENGINE_URING ? 1 : outstanding,
                          .depth = outstanding,
                          .storage = d};
    struct control control;
    control_begin(&control);
    double share = read_once(data, &how).mb / limit;
    struct disturbance x = control_end(&control);
    mr_device_close(d);
    unsigned at = c->n++;
    if (x.late <= DISTURBED && x.steal <= DISTURBED) {
        c->share[at] = c->share[c->n_calm];
        at = c->n_calm++;
    }
    c->share[at] = share;
    c->lowest = at == 0 && c->n == 1 ? share : share < c->lowest ? share : c->lowest;
    c->highest = share > c->highest ? share : c->highest;
    c->most.late = x.late > c->most.late ? x.late : c->most.late;
    c->most.steal = x.steal > c->most.steal ? x.steal : c->most.steal;
}

/* Not those of a disturbed run, if there is any other. */
static void print_cell(struct cell *c, double limit, enum mr_engine engine, unsigned outstanding)
{
    double m = median_of(c->share, c->n_calm ? c->n_calm : c->n);
    printf("| %s, %.0f MB/s, %u | %.4f | %.4f .. %.4f | %u of %u | %.2f%% | %.2f%% | %s |\n",
           engine == MR_ENGINE_URING ? "uring" : "threads", limit, outstanding, m, c->lowest,
           c->highest, c->n - c->n_calm, c->n, 100 * c->most.late, 100 * c->most.steal,
           c->highest > 1 ? "EXCEEDED"
           : m >= 0.97    ? "reached"
           : c->n_calm    ? "MISSED"
                          : "disturbed");
    fflush(stdout);
}

static void report_limits(struct mr_dataset *data)
{
    double largest = 0, least = 1;
    static const unsigned outstanding[] = {1, 8, 64};
    static const double limits[] = {50, 200, 1000};
    struct sched_param first = {.sched_priority = 1}, none = {0};
    int precedence = !sched_setscheduler(0, SCHED_FIFO, &first);
    for (unsigned i = 0; i < 18; i++) {
        enum mr_engine engine = i / 9 ? MR_ENGINE_URING : MR_ENGINE_THREADS;
        double limit = limits[i / 3 % 3];
        struct cell c = {0};
        while (c.n_calm < runs && c.n < 3 * runs)
            one_limit(data, engine, outstanding[i % 3], limit, &c);
        print_cell(&c, limit, engine, outstanding[i % 3]);
        largest = c.highest > largest ? c.highest : largest;
        double m = median_of(c.share, c.n_calm ? c.n_calm : c.n);
        least = m < least ? m : least;
    }
    if (precedence)
        sched_setscheduler(0, SCHED_OTHER, &none);
    printf("\nthe largest share of any run: %.5f; the smallest median: %.4f; %s\n", largest, least,
           precedence ? "with precedence over other programs"
                      : "without precedence (not permitted)");
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
            rate[k] = read_median(data, &how).images;
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
               read_median(data, &how).cpu_us);
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
    {"limits",
     "| engine, limit, reads outstanding | share of the limit | all runs | disturbed | woken late "
     "| stolen | |\n|--|--|--|--|--|--|--|\n",
     report_limits},
    {"locality", "| images/s | shuffled | as they lie | ratio |\n|--|--|--|--|\n", report_locality},
    {"cost", "", report_cost},
};

static int calibrate(int argc, char **argv)
{
    struct mr_dataset *data = NULL;
    struct mr_error err = {0};
    char path[4096];
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
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 4)
        die("usage: calibrate_device DIR [RUNS [TABLE]]");
    return tidy_run(calibrate, argc, argv, remove_files, argv[1]);
}
