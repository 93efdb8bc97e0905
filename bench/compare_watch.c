/* compare_watch.c - what the sampler costs, and whether its totals are those of iostat.
 *
 *     compare_watch DIR [ROUNDS [LOAD_SECONDS]]
 *
 * Cost: CPU time of a process that does nothing but sample, at 100 ms and 10 ms, as a share of one
 * core; then a table of 5,000 devices.
 *
 * Agreement: the sampler and two iostats watch the device of DIR at the same time while random
 * reads and writes of mixed sizes (O_DIRECT, a file in DIR) begin after all of them have and end
 * before.  Each says what it saw in all; ours / iostat is compared with iostat / iostat. */
#include "clock.h"
#include "draw.h"
#include "json.h"
#include "sample_csv.h"
#include "sampler.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_ROUNDS 99
#define N_CHILDREN 20
#define FILE_BYTES (256u << 20)
#define MAX_BYTES  (256u << 10)

enum { READ_KB, READ_IOS, READ_WAIT, WRITE_KB, WRITE_IOS, WRITE_WAIT, N_FIGURES };
static const char *const figure_names[N_FIGURES] = {"KB read",    "read requests",  "read wait",
                                                    "KB written", "write requests", "write wait"};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sleep_ns(uint64_t ns)
{
    struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (nanosleep(&t, &t))
        ;
}

static void to_csv(void *ctx, const struct mr_system_sample *s)
{
    mr_sample_csv_rows(ctx, s, NULL);
    fflush(ctx);
}

/* CPU per cent of one core while sampling for `seconds`, CSV written to /dev/null. */
static double cost(uint64_t interval_ns, double seconds, pid_t process)
{
    struct mr_sampler *s;
    FILE *null = fopen("/dev/null", "we");
    struct mr_sampler_opts o = {
        .interval_ns = interval_ns, .on_sample = to_csv, .ctx = null, .process = process};
    if (!null || mr_sampler_open(&o, &s, NULL))
        return -1;
    uint64_t cpu = mr_clock_process_cpu_ns(), start = mr_clock_ns();
    sleep_ns((uint64_t)(seconds * 1e9));
    cpu = mr_clock_process_cpu_ns() - cpu;
    double share = 100 * (double)cpu / (double)(mr_clock_ns() - start);
    mr_sampler_close(s);
    fclose(null);
    return share;
}

static void print_spread(const char *what, const char *unit, double *v, unsigned n)
{
    qsort(v, n, sizeof *v, by_value);
    printf("%-34s %.3f%s (%.3f .. %.3f), %u rounds\n", what, v[n / 2], unit, v[n / 4],
           v[n - 1 - n / 4], n);
}

/* Children that sleep until they are ended, for a tree to sample. */
static void start_children(pid_t *child)
{
    for (unsigned i = 0; i < N_CHILDREN; i++) {
        child[i] = fork();
        if (!child[i])
            for (;;)
                pause();
    }
}

static void end_children(const pid_t *child)
{
    for (unsigned i = 0; i < N_CHILDREN; i++)
        if (child[i] > 0) {
            kill(child[i], SIGKILL);
            waitpid(child[i], NULL, 0);
        }
}

static void report_cost(unsigned rounds)
{
    double v[MAX_ROUNDS];
    pid_t child[N_CHILDREN];
    for (unsigned i = 0; i < rounds; i++)
        v[i] = cost(100000000, 2, 0);
    print_spread("every 100 ms", "% of one core", v, rounds);
    start_children(child);
    for (unsigned i = 0; i < rounds; i++)
        v[i] = cost(100000000, 2, getpid());
    print_spread("every 100 ms, and 21 processes", "% of one core", v, rounds);
    for (unsigned i = 0; i < rounds; i++)
        v[i] = cost(10000000, 1, getpid());
    print_spread("every 10 ms, and 21 processes", "% of one core", v, rounds);
    end_children(child);
}

/* Microseconds to take over a text with that many devices. */
static void report_many_devices(unsigned n, unsigned rounds)
{
    enum { LINE = 96 };
    char *text = malloc((size_t)n * LINE);
    struct mr_disks d;
    double v[MAX_ROUNDS];
    size_t len = 0;
    char what[64];
    for (unsigned i = 0; text && i < n; i++)
        len += (size_t)snprintf(text + len, LINE,
                                "%4u %7u sd%u 9766 0 555010 691 11823 13988 1385464 7646 0 6608 "
                                "13180\n",
                                i / 256, i % 256, i);
    mr_disks_init(&d, "/sys", 0);
    for (unsigned i = 0; text && i <= rounds; i++) {
        uint64_t start = mr_clock_ns();
        mr_disks_update(&d, text);
        if (i)
            v[i - 1] = (double)(mr_clock_ns() - start) / 1e3;
    }
    snprintf(what, sizeof what, "%u devices, one reading", n);
    print_spread(what, " us", v, rounds);
    mr_disks_fini(&d);
    free(text);
}

struct load {
    char path[PATH_MAX], device[MR_DISK_NAME];
    int fd;
    char *buf;
    uint64_t n; /* operations so far: the key of the next draw */
};

static int open_load(struct load *l, const char *dir)
{
    struct stat st;
    char link[64], target[PATH_MAX];
    if (stat(dir, &st))
        return -1;
    snprintf(link, sizeof link, "/sys/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
    ssize_t n = readlink(link, target, sizeof target - 1);
    if (n < 0) {
        fprintf(stderr, "%s is not on a block device\n", dir);
        return -1;
    }
    target[n] = 0;
    snprintf(l->device, sizeof l->device, "%s", strrchr(target, '/') + 1);
    snprintf(l->path, sizeof l->path, "%s/compare_watch.tmp", dir);
    l->buf = aligned_alloc(4096, MAX_BYTES);
    l->fd = open(l->path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC, 0600);
    if (l->fd < 0 || !l->buf)
        return -1;
    unlink(l->path);
    memset(l->buf, 1, MAX_BYTES);
    for (uint64_t at = 0; at < FILE_BYTES; at += MAX_BYTES)
        if (pwrite(l->fd, l->buf, MAX_BYTES, (off_t)at) != (ssize_t)MAX_BYTES)
            return -1;
    return fsync(l->fd);
}

/* Two reads a write, 4 to 256 KB, anywhere. */
static int run_load(struct load *l, double seconds)
{
    uint64_t end = mr_clock_ns() + (uint64_t)(seconds * 1e9);
    while (mr_clock_ns() < end) {
        uint64_t x = mr_draw(7, MR_DRAW_SYNTHETIC, 0, l->n, 0);
        size_t n = (size_t)4096 << x % 7;
        off_t at = (off_t)((x >> 8) % (FILE_BYTES / MAX_BYTES) * MAX_BYTES);
        ssize_t r = l->n++ % 3 ? pread(l->fd, l->buf, n, at) : pwrite(l->fd, l->buf, n, at);
        if (r != (ssize_t)n)
            return -1;
    }
    return 0;
}

static FILE *start_iostat(const char *device, unsigned seconds)
{
    char line[256];
    snprintf(line, sizeof line, "S_TIME_FORMAT=ISO LC_ALL=C iostat -d -x -y -k -o JSON %s 1 %u",
             device, seconds);
    return popen(line, "re");
}

static double at(const struct mr_json *o, const char *path)
{
    double v = mr_json_number(mr_json_at(o, path));
    return v > 0 ? v : 0;
}

/* Sums over the reports, each about one second. */
static int read_iostat(FILE *f, double out[N_FIGURES])
{
    static char text[1 << 20];
    size_t len = fread(text, 1, sizeof text, f);
    int status = pclose(f);
    struct mr_json *root = mr_json_parse(text, len);
    const struct mr_json *all = mr_json_at(root, "sysstat.hosts.0.statistics");
    memset(out, 0, N_FIGURES * sizeof *out);
    for (size_t i = 0; i < mr_json_len(all); i++) {
        char path[32];
        snprintf(path, sizeof path, "%zu.disk.0", i);
        const struct mr_json *d = mr_json_at(all, path);
        out[READ_KB] += at(d, "rkB/s");
        out[READ_IOS] += at(d, "r/s");
        out[READ_WAIT] += at(d, "r_await") * at(d, "r/s");
        out[WRITE_KB] += at(d, "wkB/s");
        out[WRITE_IOS] += at(d, "w/s");
        out[WRITE_WAIT] += at(d, "w_await") * at(d, "w/s");
    }
    mr_json_free(root);
    out[READ_WAIT] /= out[READ_IOS];
    out[WRITE_WAIT] /= out[WRITE_IOS];
    return status || !(out[READ_IOS] > 0) || !(out[WRITE_IOS] > 0) ? -1 : 0;
}

struct ours {
    const char *device;
    double figure[N_FIGURES];
};

static void take_ours(void *ctx, const struct mr_system_sample *s)
{
    struct ours *k = ctx;
    for (unsigned i = 0; s->final && i < s->n_disks; i++) {
        const struct mr_disk_side *side = s->disks[i].total.side;
        if (strcmp(s->disks[i].name, k->device))
            continue;
        k->figure[READ_KB] = (double)side[MR_DISK_READ].sectors / 2;
        k->figure[READ_IOS] = (double)side[MR_DISK_READ].ios;
        k->figure[READ_WAIT] = (double)side[MR_DISK_READ].ms / (double)side[MR_DISK_READ].ios;
        k->figure[WRITE_KB] = (double)side[MR_DISK_WRITE].sectors / 2;
        k->figure[WRITE_IOS] = (double)side[MR_DISK_WRITE].ios;
        k->figure[WRITE_WAIT] = (double)side[MR_DISK_WRITE].ms / (double)side[MR_DISK_WRITE].ios;
    }
}

static int agree_once(struct load *l, double seconds, double ratio[N_FIGURES],
                      double control[N_FIGURES])
{
    double first[N_FIGURES], second[N_FIGURES];
    struct ours k = {.device = l->device};
    struct mr_sampler *s;
    struct mr_sampler_opts o = {.interval_ns = 1000000000, .on_sample = take_ours, .ctx = &k};
    unsigned watched = (unsigned)seconds + 3;
    if (mr_sampler_open(&o, &s, NULL))
        return -1;
    FILE *a = start_iostat(l->device, watched), *b = start_iostat(l->device, watched);
    sleep_ns(500000000); /* all have taken their first reading */
    int r = run_load(l, seconds);
    if (!a || read_iostat(a, first) || !b || read_iostat(b, second))
        r = -1;
    mr_sampler_close(s);
    for (unsigned i = 0; !r && i < N_FIGURES; i++) {
        ratio[i] = k.figure[i] / first[i];
        control[i] = second[i] / first[i];
    }
    return r;
}

static int report_agreement(const char *dir, unsigned rounds, double seconds)
{
    static double ratio[MAX_ROUNDS][N_FIGURES], control[MAX_ROUNDS][N_FIGURES];
    struct load l = {.fd = -1};
    int r = open_load(&l, dir);
    for (unsigned i = 0; !r && i < rounds; i++)
        r = agree_once(&l, seconds, ratio[i], control[i]);
    for (unsigned f = 0; !r && f < N_FIGURES; f++) {
        double v[MAX_ROUNDS];
        char what[64];
        for (unsigned i = 0; i < rounds; i++)
            v[i] = ratio[i][f];
        snprintf(what, sizeof what, "%s: ours / iostat", figure_names[f]);
        print_spread(what, "", v, rounds);
        for (unsigned i = 0; i < rounds; i++)
            v[i] = control[i][f];
        snprintf(what, sizeof what, "%s: iostat / iostat", figure_names[f]);
        print_spread(what, "", v, rounds);
    }
    if (l.fd >= 0)
        close(l.fd);
    free(l.buf);
    if (r)
        fprintf(stderr, "the load or iostat (package sysstat) failed\n");
    return r;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: compare_watch DIR [ROUNDS [LOAD_SECONDS]]\n");
        return 2;
    }
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 9;
    rounds = rounds < 1 ? 1 : rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds;
    double seconds = argc > 3 ? atof(argv[3]) : 4;
    report_cost(rounds);
    report_many_devices(5000, rounds);
    return report_agreement(argv[1], rounds, seconds) ? 1 : 0;
}
